/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/findings.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "read/process.h"

const struct finding_kind finding_kinds[FINDING_KINDS] = {
#define FINDING(NAME, id, share, floor, title, advice, next, measures)                             \
    [FINDING_##NAME] = {id, share, floor * 1000000ull, title, advice, next, measures},
#include "analyse/finding_kinds.def"
};

static void findings_analysis_begin(struct report *r)
{
    uint64_t most = EVIDENCE_FREE + recording_bytes(r->rec) / EVIDENCE_BYTES;
    struct findings *f = r->findings;
    *f = (struct findings){.walk = &r->walk, .idle = r->idle, .next = &r->next};
    f->work.count_max = (uint32_t)min_of(most, EVIDENCE_MAX);
    f->gpu = finding_gpu_create(&r->walk, r->idle, &f->work);
    if (r->idle)
        report_hear(r, (struct consumer){.context = f->gpu,
                                         .needs = WALK_WORK | WALK_SPANS | WALK_STACKS,
                                         .take_work = finding_gpu_take,
                                         .end = finding_gpu_end});
}

static void findings_analysis_end(struct report *r)
{
    /* The summary must be quick. */
    const char *symbols = r->walk.ns_max ? SYMBOLS_OFF : r->request.symbols;
    if (r->idle)
        findings_finish(r->findings, &r->hang, symbols);
}

static void row_release(struct finding_row *row)
{
    free(row->name);
    free(row->where);
}

static void findings_analysis_release(struct report *r)
{
    struct findings *f = r->findings;
    for (uint32_t i = 0; i < f->count; i++) {
        free(f->list[i].where);
        for (uint32_t k = 0; k < f->list[i].row_count; k++)
            row_release(&f->list[i].rows[k]);
    }
    for (uint32_t i = 0; i < f->work.count; i++)
        row_release(&f->work.list[i].is);
    free(f->work.list);
    free(f->work.charged);
    key_map_release(&f->work.places);
    finding_gpu_free(f->gpu);
}

const struct analysis findings_analysis = {
    ANALYSIS_STATE(findings), .uses = USE_PARTS, .begin = findings_analysis_begin,
    .end = findings_analysis_end, .release = findings_analysis_release};

/* "rank 0 waits at WHERE; COLLECTIVES": the rank that waits is not the late one. The caller frees
 * it. */
static char *waiting_text(const struct collectives *c, const struct process *waits,
                          const char *where)
{
    char who[RANK_TITLE_BYTES];
    char *text = collectives_text(c), *clean = json_line(text ? text : "");
    char *both = text_printf("%s waits%s%s; %s", process_who(waits, who), where ? " at " : "",
                             where ? where : "", clean);
    free(clean);
    free(text);
    return both;
}

/* Adds the finding of a hang, with that call as its only row. Its place is that of the late process
 * if the last call of that has a stack. */
static void add_hang(struct findings *f, const struct hang *hang)
{
    const struct open_call *c = hang_call(hang);
    const struct pending_row *late = collectives_late(&hang->collectives);
    bool has_collectives = hang->collectives.pending.count;
    struct finding *to = &f->list[FINDING_HANG];
    if (!c)
        return;
    struct idle_row row = {.place = {.stack = c->reported.stack, .function = c->function->index},
                           .process = c->process->index};
    uint64_t begin_ns = f->idle->way.processes[c->process->index].begin_ns;
    uint64_t window_ns = f->walk->last_ns[c->process->index] - begin_ns;
    *to = (struct finding){.kind = &finding_kinds[FINDING_HANG],
                           .next = has_collectives     ? "gpuprof report --table=collectives DATA"
                                   : c->reported.stack ? NULL
                                                       : "gpuprof run " OPEN_CALLS_BACKTRACE
                                                         " PROGRAM",
                           .ns = c->duration_ns,
                           .window_ns = window_ns,
                           .of_ns = window_ns,
                           .process = late ? late->process : c->process,
                           .device = UINT64_MAX,
                           .devices = 1,
                           .total_ns = c->duration_ns,
                           .row_count = 1,
                           .says.is_awaited = late != NULL};
    idle_row_name(f->walk, &f->idle->lines, &row);
    to->rows[0] = (struct finding_row){.name = row.text,
                                       .where = row.where,
                                       .count = 1,
                                       .ns = c->duration_ns,
                                       .longest_ns = c->duration_ns,
                                       .at_ns = c->begin_ns,
                                       .tid = c->thread ? c->thread->tid : 0};
    bool has_line = late && late->place && late->place->stack_ns >= late->place->begin_ns;
    to->where = memory_text(!late ? row.where : has_line ? late->reported.line : NULL);
    if (has_collectives) {
        to->rows[0].where = waiting_text(&hang->collectives, c->process, row.where);
        free(row.where);
    }
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
bool finding_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t of_ns, double part)
{
    return (double)ns > (double)kind->floor_ns * (finding_is_of_all(kind) ? 1 : part) &&
           (double)ns * 100 > (double)of_ns * kind->share;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Counts a device with cost `ns` if that exceeds the thresholds, and keeps the worst. */
static void findings_weigh(struct findings *f, enum finding_id id, uint32_t place, uint64_t ns,
                           struct judged_time time)
{
    const struct idle_device *device = &f->idle->devices[place];
    struct finding *found = &f->list[id];
    uint64_t of_ns = finding_is_of_all(found->kind) ? time.window_ns : time.judged_ns;
    if (!finding_worth_it(found->kind, ns, of_ns, time.part))
        return;
    found->devices++;
    found->total_ns += ns;
    if (ns <= found->ns)
        return;
    f->work.reported[id] = place + 1;
    found->ns = ns;
    found->window_ns = time.window_ns;
    found->of_ns = of_ns;
    found->process = device->process;
    found->device = device->device;
}

/* Weighs how long the other communicating devices wait for each process, on average. The share is
 * of the longest time of one: that of the late one may be shorter. `waits`: zeros, by process
 * index. */
static void weigh_ranks(struct findings *f, uint64_t *waits)
{
    uint32_t count = 0;
    struct judged_time longest = {0};
    for (uint32_t i = 0; i < f->idle->device_count; i++) {
        const struct idle_device *device = &f->idle->devices[i];
        struct judged_time own = judged_time_of(f->walk, device);
        bool counts = idle_device_communicates(device);
        count += counts;
        longest = counts && own.window_ns > longest.window_ns ? own : longest;
        waits[device->process->index] += device->met.awaited_ns;
    }
    for (uint32_t i = 0; i < f->idle->device_count; i++) {
        uint32_t process = f->idle->devices[i].process->index;
        uint32_t waiting = count - idle_device_communicates(&f->idle->devices[i]);
        if (waiting)
            findings_weigh(f, FINDING_STRAGGLER, i, waits[process] / waiting, longest);
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

/* Looks up lines only for what is shown: the devices that findings are about. */
static void name_places(struct findings *f, const struct open_call *hung, const char *symbol_folder)
{
    if (hung)
        place_lines_add(&f->idle->lines, hung->process->index, hung->reported.stack, false);
    finding_gpu_want(f->gpu);
    idle_name(f->idle, symbol_folder);
    finding_gpu_name(f->gpu);
}

void findings_finish(struct findings *f, const struct hang *hang, const char *symbol_folder)
{
    uint64_t *waits = memory_new(f->walk->rec->count, sizeof *waits);
    struct finding_charges *costs = finding_costs_make(f);
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        f->list[id].kind = &finding_kinds[id];
    for (uint32_t i = 0; i < f->idle->device_count; i++)
        for (unsigned id = 0; id < FINDING_KINDS; id++)
            findings_weigh(f, (enum finding_id)id, i, costs[i].ns[id],
                           judged_time_of(f->walk, &f->idle->devices[i]));
    weigh_ranks(f, waits);
    free(waits);
    free(costs);
    f->list[FINDING_EXPOSED_COMMUNICATION].says.lacks_ranks = idle_lacks_ranks(f->idle);
    name_places(f, hang_call(hang), symbol_folder);
    if (f->walk->rec->share)
        return;
    for (unsigned id = FINDING_HANG + 1; id < FINDING_KINDS; id++)
        if (f->list[id].devices)
            finding_add_evidence(f, &f->list[id]);
    add_hang(f, hang);
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        if (f->list[id].devices)
            f->list[f->count++] = f->list[id];
    findings_sort(f);
}
