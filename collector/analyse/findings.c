/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/findings.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
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

/* Counts a device with cost `ns` if that exceeds both thresholds of the kind. The one in time is
 * for the whole run; that of start-up, which happens once, does not shrink with the selection.
 * Returns true if the device is the worst so far, and keeps it then. */
static bool finding_weigh(struct finding *f, const struct process *p, uint64_t device, uint64_t ns,
                          struct judged_time time)
{
    bool is_of_all = finding_is_of_all(f->kind);
    uint64_t of_ns = is_of_all ? time.window_ns : time.judged_ns;
    if ((double)ns <= (double)f->kind->floor_ns * (is_of_all ? 1 : time.part) ||
        (double)ns * 100 <= (double)of_ns * f->kind->share)
        return false;
    f->devices++;
    f->total_ns += ns;
    if (ns <= f->ns)
        return false;
    f->ns = ns;
    f->window_ns = time.window_ns;
    f->of_ns = of_ns;
    f->process = p;
    f->device = device;
    return true;
}

/* ---- the list -------------------------------------------------------------------------------- */

static void weigh_device(struct findings *f, enum finding_id id, uint32_t place, uint64_t ns,
                         struct judged_time time)
{
    const struct idle_device *device = &f->idle->devices[place];
    if (finding_weigh(&f->list[id], device->process, device->device, ns, time))
        f->work.reported[id] = place + 1;
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
            weigh_device(f, FINDING_STRAGGLER, i, waits[process] / waiting, longest);
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
            weigh_device(f, (enum finding_id)id, i, costs[i].ns[id],
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

/* ---- throttling ------------------------------------------------------------------------------ */

/*
 * The finding that a device was slowed down. Its cost is how much longer the slowed steps of a
 * process were than the others. It needs many steps of both kinds, and nearly all slowed ones must
 * be longer than nearly all others: else the cause is not certain.
 */
#define SLOWED_SHARE 0.2 /* part of a step that makes it a slowed one */
#define FREE_SHARE   0.02
#define STEPS_MIN    5 /* steps of each kind */
#define PART_BEYOND  4 /* 1/PART_BEYOND of each kind may be exceptions */

/* Steps that throttling hardly touched, and those that it slowed. */
enum { FREE, SLOWED, KINDS };

struct slowed {
    uint64_t *ns[KINDS]; /* owned: durations */
    uint32_t count[KINDS];
    uint64_t by_ns[THROTTLES]; /* of the slowed steps, by reason */
    uint64_t longest_ns;
    uint64_t longest_at_ns;
};

static void add_step(struct slowed *s, const struct device_row *row, const struct step *step)
{
    uint64_t step_ns = step->end_ns - step->begin_ns, ns[THROTTLES], most_ns = 0;
    for (unsigned why = 0; why < THROTTLES; why++) {
        if (!device_throttled_between(row, (enum throttle)why, step->begin_ns, step->end_ns,
                                      &ns[why]))
            return;
        most_ns = max_of(most_ns, ns[why]);
    }
    bool is_slowed = (double)most_ns >= SLOWED_SHARE * (double)step_ns;
    if (is_slowed || (double)most_ns < FREE_SHARE * (double)step_ns)
        s->ns[is_slowed][s->count[is_slowed]++] = step_ns;
    for (unsigned why = 0; why < THROTTLES && is_slowed; why++)
        s->by_ns[why] += ns[why];
    if (is_slowed && step_ns > s->longest_ns) {
        s->longest_ns = step_ns;
        s->longest_at_ns = step->begin_ns;
    }
}

/* The time beyond the median of the other steps, *usual_ns; 0 if it may be chance. */
static uint64_t cost_of(struct slowed *s, uint64_t *usual_ns)
{
    uint32_t free_count = s->count[FREE], count = s->count[SLOWED];
    uint64_t cost_ns = 0;
    if (free_count < STEPS_MIN || count < STEPS_MIN)
        return 0;
    array_sort_whole(s->ns[FREE], free_count);
    array_sort_whole(s->ns[SLOWED], count);
    *usual_ns = s->ns[FREE][(free_count - 1) / 2];
    if (s->ns[SLOWED][count / PART_BEYOND] <=
        s->ns[FREE][free_count - 1 - free_count / PART_BEYOND])
        return 0;
    for (uint32_t i = 0; i < count; i++)
        cost_ns += max_of(s->ns[SLOWED][i], *usual_ns) - *usual_ns;
    return cost_ns;
}

/* *word gets the reason of the worst device. */
static void weigh_throttling(struct finding *to, const struct device_row *row,
                             const struct steps *steps, struct slowed *s, const char **word)
{
    uint32_t first = steps->firsts[row->process->index], worst = 0;
    uint32_t end = steps->firsts[row->process->index + 1];
    uint64_t window_ns = 0, usual_ns = 0;
    *s = (struct slowed){.ns = {s->ns[FREE], s->ns[SLOWED]}};
    for (uint32_t i = first; i < end; i++) {
        window_ns += steps->list[i].end_ns - steps->list[i].begin_ns;
        if (!steps->list[i].is_partial)
            add_step(s, row, &steps->list[i]);
    }
    uint64_t ns = cost_of(s, &usual_ns);
    if (!finding_weigh(to, row->process, row->device, ns,
                       (struct judged_time){window_ns, window_ns, 1}))
        return;
    for (unsigned why = 0; why < THROTTLES; why++)
        worst = s->by_ns[why] > s->by_ns[worst] ? why : worst;
    *word = throttle_words[worst];
    to->rows[0] = (struct finding_row){.count = s->count[SLOWED],
                                       .ns = ns,
                                       .longest_ns = min_of(s->longest_ns - usual_ns, ns),
                                       .at_ns = s->longest_at_ns};
}

/* Runs after all findings except the memory's. */
static void throttle_analysis_end(struct report *report)
{
    struct findings *f = report->findings;
    const struct device_report *r = report->devices;
    const struct steps *steps = report->program_steps;
    struct finding found = {.kind = &finding_kinds[FINDING_THROTTLED]};
    uint32_t count = steps ? steps->count : 0;
    struct slowed s = {.ns = {memory_new(count, sizeof **s.ns), memory_new(count, sizeof **s.ns)}};
    const char *word = "";
    for (uint32_t i = 0; count && i < r->count; i++)
        if (r->rows[i].samples)
            weigh_throttling(&found, &r->rows[i], steps, &s, &word);
    free(s.ns[FREE]);
    free(s.ns[SLOWED]);
    if (found.devices) {
        found.rows[0].name = memory_text(word);
        found.row_count = 1;
        f->list[f->count++] = found;
    }
    findings_sort(f);
}

const struct analysis throttle_analysis = {.end = throttle_analysis_end};
