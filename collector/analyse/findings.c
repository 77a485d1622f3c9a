/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/text.h"
#include "error.h"
#include "read/process.h"

int findings_init(struct findings *f, struct walk *walk, struct idle *idle)
{
    *f = (struct findings){.walk = walk, .idle = idle};
    return finding_gpu_init(&f->gpu, walk, idle);
}

void findings_release(struct findings *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        free(f->list[i].where);
        for (uint32_t k = 0; k < f->list[i].row_count; k++) {
            free(f->list[i].rows[k].name);
            free(f->list[i].rows[k].where);
        }
    }
    finding_gpu_release(&f->gpu);
}

struct consumer findings_consumer(struct findings *f)
{
    return (struct consumer){.context = &f->gpu,
                             .needs = WALK_WORK | WALK_SPANS | WALK_STACKS,
                             .take_work = finding_gpu_take,
                             .end = finding_gpu_end};
}

int finding_sums_find(struct finding_sums *s, const struct finding_sum *sum, uint32_t *recent)
{
    const struct finding_sum new = {
        .kind = sum->kind, .device = sum->device, .what = sum->what, .where = sum->where};
    struct key key = {(uint64_t)sum->kind << 32 | sum->device, sum->what, sum->where};
    return KEY_MAP_ITEM(&s->places, key, s->rows, s->count, s->rows_max, &new, recent);
}

/* Adds who is missing: the rank that waits is not the late one. */
static int report_missing(const struct collectives *c, const struct process *waits, char **where)
{
    char who[RANK_TITLE_BYTES];
    char *text = collectives_text(c), *clean = text ? json_line(text) : NULL;
    char *both = clean ? text_printf("%s waits%s%s; %s", process_who(waits, who),
                                     *where ? " at " : "", *where ? *where : "", clean)
                       : NULL;
    int error = text && !both ? GPUPROF_NO_MEMORY : 0; /* NULL: no collective hangs */
    free(clean);
    free(text);
    if (!both)
        return error;
    free(*where);
    *where = both;
    return 0;
}

/* The line of the late process, safe to print; NULL: its last call has no stack. */
static const char *line_of(const struct pending_row *late)
{
    const struct process_place *place = late->place;
    return place && place->stack_ns >= place->begin_ns ? late->reported.line : NULL;
}

/* Adds the finding of a hang, with that call as its only row. */
static int add_hang(struct findings *f, const struct hang *hang)
{
    const struct open_call *c = hang_call(hang);
    const struct collectives *all = hang->collectives.pending.count ? &hang->collectives : NULL;
    const struct pending_row *late = collectives_late(&hang->collectives);
    struct finding *to = &f->list[f->count];
    if (!c)
        return 0;
    struct idle_row row = {.place = {.stack = c->reported.stack, .function = c->function->index},
                           .process = c->process->index};
    uint64_t begin_ns = f->idle->way.processes[c->process->index].begin_ns;
    *to = (struct finding){.kind = &finding_kinds[FINDING_HANG],
                           .next = all                 ? "gpuprof report --table=collectives DATA"
                                   : c->reported.stack ? NULL
                                                       : "gpuprof run " OPEN_CALLS_BACKTRACE
                                                         " PROGRAM",
                           .ns = c->duration_ns,
                           .window_ns = f->walk->last_ns[c->process->index] - begin_ns,
                           .of_ns = f->walk->last_ns[c->process->index] - begin_ns,
                           .process = late ? late->process : c->process,
                           .device = UINT64_MAX,
                           .devices = 1,
                           .total_ns = c->duration_ns,
                           .says.is_awaited = late != NULL};
    int error = idle_row_name(f->walk, &f->idle->lines, &row);
    to->rows[to->row_count++] = (struct finding_row){.name = row.text,
                                                     .where = row.where,
                                                     .count = 1,
                                                     .ns = c->duration_ns,
                                                     .longest_ns = c->duration_ns,
                                                     .at_ns = c->begin_ns,
                                                     .tid = c->thread ? c->thread->tid : 0};
    f->count++;
    const char *where = late ? line_of(late) : to->rows[0].where;
    to->where = where ? strdup(where) : NULL;
    if (where && !to->where)
        error = GPUPROF_NO_MEMORY;
    if (error == 0 && all)
        error = report_missing(all, c->process, &to->rows[0].where);
    return to->rows[0].name ? error : GPUPROF_NO_MEMORY;
}

/* ---- what is worth it ------------------------------------------------------------------------ */

/* For a selection the whole is the life of its process, which is known without reading all of it.
 */
struct judged_time judged_time_of(const struct walk *walk, const struct idle_device *device)
{
    const struct walk_filter *f = walk->filter;
    uint32_t process = device->process->index;
    uint64_t start_up_ns = device->causes[IDLE_START_UP];
    struct judged_time time = {.window_ns = device->end_ns - device->begin_ns, .part = 1};
    uint64_t whole_ns = f && f->is_of_time ? walk->last_ns[process] - walk->first_ns[process]
                                           : time.window_ns - start_up_ns;
    time.judged_ns = time.window_ns - start_up_ns - device->stopped_ns;
    if (time.judged_ns < whole_ns)
        time.part = (double)time.judged_ns / (double)whole_ns;
    return time;
}

/* Start-up happens once: its threshold does not shrink with the selection. */
bool judged_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t of_ns, double part)
{
    return (double)ns > (double)kind->floor_ns * (finding_is_of_all(kind) ? 1 : part) &&
           (double)ns * 100 > (double)of_ns * kind->share;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Counts a device with cost `ns` if that exceeds the thresholds, and keeps the worst. */
static void findings_weigh(const struct findings *f, struct finding *found, uint32_t *worst,
                           uint32_t place, uint64_t ns, struct judged_time time)
{
    const struct idle_device *device = &f->idle->devices[place];
    bool is_of_all = finding_is_of_all(found->kind);
    uint64_t of_ns = is_of_all ? time.window_ns : time.judged_ns;
    if (!judged_worth_it(found->kind, ns, of_ns, time.part))
        return;
    found->devices++;
    found->total_ns += ns;
    if (ns <= found->ns)
        return;
    *worst = place;
    found->ns = ns;
    found->window_ns = time.window_ns;
    found->of_ns = of_ns;
    found->process = device->process;
    found->device = device->device;
}

/* Weighs how long the other communicating devices wait for each process, on average. The share is
 * of the longest time of one: that of the late one may be shorter. `waits`: zeros, by process
 * index. */
static void weigh_ranks(const struct findings *f, struct finding *found, uint32_t *worst,
                        uint64_t *waits)
{
    uint32_t count = 0;
    struct judged_time longest = {0};
    for (uint32_t i = 0; i < f->idle->device_count; i++) {
        const struct idle_device *device = &f->idle->devices[i];
        struct judged_time own = judged_time_of(f->walk, device);
        bool counts = idle_device_communicates(device);
        count += counts;
        longest = counts && own.window_ns > longest.window_ns ? own : longest;
        waits[device->process->index] += device->awaited_ns;
    }
    for (uint32_t i = 0; i < f->idle->device_count; i++) {
        uint32_t process = f->idle->devices[i].process->index;
        uint32_t waiting = count - idle_device_communicates(&f->idle->devices[i]);
        if (waiting)
            findings_weigh(f, found, worst, i, waits[process] / waiting, longest);
        waits[process] = 0; /* count each process once */
    }
}

static int findings_compare(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    bool hangs = a->kind == &finding_kinds[FINDING_HANG];
    if (hangs || b->kind == &finding_kinds[FINDING_HANG])
        return hangs ? -1 : 1;
    return ORDER(b->ns, a->ns) ?: ORDER(b->bytes, a->bytes) ?: ORDER(a->kind, b->kind);
}

void findings_sort(struct findings *f)
{
    qsort(f->list, f->count, sizeof *f->list, findings_compare);
}

bool findings_may_report(const struct findings *f, const struct finding_sum *sum)
{
    return f->is_found[sum->kind] && f->worst[sum->kind] == sum->device;
}

/* Looks up lines only for what is shown: the devices that findings are about. */
static int name_places(struct findings *f, const struct open_call *hung, const char *symbol_folder)
{
    struct place_lines *lines = &f->idle->lines;
    int error =
        hung ? place_lines_add(lines, hung->process->index, hung->reported.stack, false) : 0;
    for (uint32_t i = 0; i < f->gpu.sums.count; i++)
        if (findings_may_report(f, &f->gpu.sums.rows[i]))
            work_places_want(&f->gpu.wheres, f->gpu.sums.rows[i].where);
    if (error == 0)
        error = work_places_add_lines(&f->gpu.wheres, lines);
    if (error == 0)
        error = idle_name(f->idle, symbol_folder);
    return error < 0 ? error : work_places_name(&f->gpu.wheres, lines);
}

int findings_finish(struct findings *f, const struct hang *hang, const char *symbol_folder)
{
    struct finding found[FINDING_KINDS] = {0};
    int settled = finding_gpu_settle(&f->gpu, f->idle);
    uint32_t *worst = f->worst;
    uint64_t *waits = calloc(f->walk->rec->count + 1u, sizeof *waits);
    struct finding_costs *costs = finding_costs_make(f);
    int error = waits && costs ? settled : GPUPROF_NO_MEMORY;
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        found[id].kind = &finding_kinds[id];
    for (uint32_t i = 0; costs && i < f->idle->device_count; i++)
        for (unsigned id = 0; id < FINDING_KINDS; id++)
            findings_weigh(f, &found[id], &worst[id], i, (uint64_t)costs[i].ns[id],
                           judged_time_of(f->walk, &f->idle->devices[i]));
    if (waits)
        weigh_ranks(f, &found[FINDING_STRAGGLER], &worst[FINDING_STRAGGLER], waits);
    free(waits);
    free(costs);
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        f->is_found[id] = found[id].devices != 0;
    found[FINDING_EXPOSED_COMMUNICATION].says.lacks_ranks = idle_lacks_ranks(f->idle);
    if (error == 0)
        error = name_places(f, hang_call(hang), symbol_folder);
    if (error < 0 || f->walk->rec->share)
        return error;
    error = add_hang(f, hang);
    for (unsigned id = 0; error == 0 && id < FINDING_KINDS; id++)
        if (found[id].devices) {
            f->list[f->count] = found[id];
            error = finding_add_evidence(f, &f->list[f->count++], worst[id]);
        }
    findings_sort(f);
    return error;
}
