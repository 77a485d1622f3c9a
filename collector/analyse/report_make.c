/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/report_make.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/gpu_report.h"
#include "analyse/idle.h"
#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "resolve/selection.h"
#include "resolve/steps.h"

#define ANALYSIS(info) &info,
static const struct sums_info *const infos[] = {
#include "analyse/analyses.def"
};

#define MAKES(name, member) [MAKES_##name] = &name##_analysis,
static const struct analysis *const analyses[] = {
#include "analyse/analyses.def"
};

void report_hear(struct report *r, struct consumer consumer)
{
    assert(r->making.consumer_count < WALK_CONSUMERS_MAX);
    r->making.consumers[r->making.consumer_count++] = consumer;
}

/* ---- analyses of the folders below ----------------------------------------------------------- */

bool report_wants_steps(const struct report *r)
{
    return r->request.steps && r->request.steps->is_wanted;
}

/* Copies the steps of the report of all. */
static void copy_marks(struct report *r, const struct steps *from)
{
    r->marks->kind = from->kind;
    r->marks->has_sampled = from->has_sampled;
    for (uint32_t i = 0; i < from->count; i++) {
        struct step step = from->list[i];
        step.process = r->rec->processes[step.process->index];
        ARRAY_PUSH(r->marks->list, r->marks->count, &step);
    }
    memcpy(r->marks->firsts, from->firsts, (r->rec->count + 1u) * sizeof *from->firsts);
}

static void begin_marks(struct report *r)
{
    const struct step_request *request = r->request.steps;
    r->program_steps = r->marks;
    if (r->request.whole) {
        steps_init(r->marks, &r->walk, NULL, NULL);
        copy_marks(r, r->request.whole->marks);
        return;
    }
    report_hear(r, steps_consumer(r->marks));
    steps_init(r->marks, &r->walk, request ? request->by : NULL, request ? request->pattern : NULL);
}

ANALYSIS_FREES(release_marks, steps_release(r->marks))

const struct analysis marks_analysis = {ANALYSIS_STATE(marks), .uses = USE_PARTS,
                                        .parts = REPORT_IDLE, .begin = begin_marks,
                                        .release = release_marks};

static bool wants_crossings(const struct report *r)
{
    return r->request.is_part || r->request.use == USE_PARTS;
}

static void begin_crossings(struct report *r)
{
    crossings_init(&r->crossings);
    r->walk.crossings = &r->crossings;
}

static void end_crossings(struct report *r)
{
    for (uint32_t i = 0; i < r->rec->count; i++) {
        const struct losses *l = &r->walk.losses[i];
        r->crossings.is_unusable |=
            l->unmatched_ops || l->unmatched_ranges || l->deep_ops || l->deep_ranges;
    }
}

ANALYSIS_FREES(release_crossings, crossings_release(&r->crossings))

const struct analysis crossings_analysis = {.uses = USE_PARTS,
                                            .is_wanted = wants_crossings,
                                            .begin = begin_crossings,
                                            .end = end_crossings,
                                            .release = release_crossings};

static void begin_peaks(struct report *r)
{
    memory_peaks_init(&r->peaks, &r->walk);
    report_hear(r, ledger_consumer(&r->peaks.ledger));
}

static void end_peaks(struct report *r)
{
    struct sums *s = &r->sums[ANALYSIS_gpu_memory_sums];
    memory_peaks_finish(&r->peaks);
    for (uint32_t i = 0; i < memory_peaks_count(&r->peaks); i++) {
        const struct place_totals *place = &r->peaks.ledger.totals.list[i];
        uint32_t process = place->process->index;
        if (place->is_host || place->device == LEDGER_NO_DEVICE)
            continue;
        *sums_row(s, process, place->device, PEAK_ALLOCATED)->values = r->peaks.list[i].allocated;
        *sums_row(s, process, place->device, PEAK_RESERVED)->values = r->peaks.list[i].reserved;
    }
    sums_finish(s);
}

ANALYSIS_FREES(release_peaks, memory_peaks_release(&r->peaks))

const struct analysis peaks_analysis = {.uses = USE_EXPORT | USE_PARTS,
                                        .parts = REPORT_MEMORY,
                                        .begin = begin_peaks,
                                        .end = end_peaks,
                                        .release = release_peaks};

/* Idle time needs devices: some process must have, or should have, some. */
static bool wants_idle(const struct report *r)
{
    return r->request.use == USE_PARTS || recording_any(r->rec, process_expects_gpu);
}

static void begin_idle(struct report *r)
{
    const struct steps *steps = r->marks ? r->marks : r->request.found;
    report_hear(r, idle_consumer(r->idle));
    idle_init(r->idle, &r->walk, r->request.use == USE_PARTS ? NULL : steps);
}

static void end_idle(struct report *r)
{
    idle_finish(r->idle);
}

ANALYSIS_FREES(release_idle, idle_release(r->idle))

const struct analysis idle_analysis = {ANALYSIS_STATE(idle),   .uses = USE_EXPORT | USE_PARTS,
                                       .parts = REPORT_IDLE,   .is_wanted = wants_idle,
                                       .begin = begin_idle,    .end = end_idle,
                                       .release = release_idle};

static void begin_hang(struct report *r)
{
    hang_init(&r->hang, &r->walk);
    if (r->request.leaves & REPORT_CALLS)
        return;
    report_hear(r, collectives_consumer(&r->hang.collectives, r->hang.needs_stacks));
    if (unfinished_may_be(&r->hang.unfinished))
        report_hear(r, unfinished_consumer(&r->hang.unfinished));
}

static void end_hang(struct report *r)
{
    /* Looks up a few stacks, and only if something hangs. */
    hang_finish(&r->hang, r->request.leaves_hangs ? SYMBOLS_OFF : r->request.symbols,
                r->request.is_part ? &r->sums[ANALYSIS_collective_calls_sums] : NULL);
}

ANALYSIS_FREES(release_hang, hang_release(&r->hang))

const struct analysis hang_analysis = {
    .uses = USE_PARTS, .begin = begin_hang, .end = end_hang, .release = release_hang};

/* ---- tables of sums -------------------------------------------------------------------------- */

_Static_assert(ANALYSES_COUNT <= 64, "each has a bit");

bool analyses_are_of_rows(uint64_t tables)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        if (tables >> i & 1 && !sums_is_of_rows(infos[i]))
            return false;
    return tables;
}

unsigned analyses_find(const struct table_info *table)
{
    unsigned i = 0;
    while (i < ANALYSES_COUNT && &infos[i]->table != table)
        i++;
    return i;
}

void analyses_finish(struct sums *sums)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        if (sums[i].info)
            sums_finish(&sums[i]);
}

void analyses_leave(struct sums *sums, unsigned leaves)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        if (infos[i]->parts & leaves)
            sums[i].info = NULL;
}

void analyses_put(struct sums *sums, struct part *p)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        if (infos[i]->table.by == BY_NAME)
            sums_put(&sums[i], p); /* no rows, if the table was not started */
}

void analyses_add(struct sums *sums, struct part *p)
{
    for (unsigned i = 0; i < ANALYSES_COUNT && !p->has_failed; i++)
        if (sums[i].info)
            sums_add(&sums[i], p);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int report_make_take_call(void *context, const struct slice *s)
{
    struct report *r = context;
    const struct event *e = &s->event;
    uint64_t weight = e->record->weight > 1 ? e->record->weight : 1;
    /* The outer call includes the time and bytes of nested calls. */
    bool outermost = !(e->record->flags & RECORD_NESTED);
    r->total.begin_ns = r->total.begin_ns ? min_of(r->total.begin_ns, e->begin_ns) : e->begin_ns;
    r->total.end_ns = max_of(r->total.end_ns, e->end_ns);
    open_calls_take(&r->hang.open, s);
    r->total.is_estimated |= weight > 1;
    r->total.process_calls[e->process->index] += weight;
    if (api_has_failed(e->function->domain, e->record->result)) {
        r->total.errors += weight;
    } else if (api_is_copy(e->function->does) && outermost) {
        r->total.copy_calls += weight;
        r->total.copy_bytes += function_bytes(e->function, e->record) * weight;
    }
    return 0;
}

/* Library calls only matter for hangs: they have tables of their own. */
static int report_make_take(void *context, const struct slice *s)
{
    if (slice_change(s, SPAN_LIBRARY) == SPAN_LEFT)
        open_calls_take_library(&((struct report *)context)->hang.open, s);
    return 0;
}

void report_sum_up(struct report *r)
{
    r->sums[ANALYSIS_failures_sums].begin_ns =
        r->total.begin_ns ? r->total.begin_ns : r->walk.survey.origin_ns;
    for (uint32_t i = 0; i < r->rec->count; i++) {
        r->total.calls += r->total.process_calls[i];
        losses_add(&r->total.losses, &r->walk.losses[i]);
    }
}

/* Measures the wall time like idle.h; for a selection of time, its length. */
static void measure_wall(struct report *r)
{
    r->time.is_selection =
        r->time.selection &&
        selection_time(r->time.selection, &r->time.wall_begin_ns, &r->time.wall_end_ns);
    if (r->time.is_selection) {
        r->time.wall_begin_ns += r->walk.survey.origin_ns;
        r->time.wall_end_ns += r->walk.survey.origin_ns;
        return;
    }
    r->time.wall_begin_ns = r->total.begin_ns;
    r->time.wall_end_ns = r->total.end_ns;
    for (uint32_t i = 0; i < r->rec->count; i++) {
        uint64_t first_ns = r->walk.first_ns[i], start_ns = process_start_ns(r->rec->processes[i]);
        if (!first_ns)
            continue;
        first_ns = start_ns ? min_of(start_ns, first_ns) : first_ns;
        if (!r->time.wall_begin_ns || first_ns < r->time.wall_begin_ns)
            r->time.wall_begin_ns = first_ns;
        r->time.wall_end_ns = max_of(r->time.wall_end_ns, r->walk.last_ns[i]);
    }
}

/* ---- a report -------------------------------------------------------------------------------- */

unsigned report_parts_missing(const struct recording *rec)
{
    const uint64_t ops = block_type_bit(RECORD_OP_BEGIN) | block_type_bit(RECORD_OP_END) |
                         block_type_bit(RECORD_PUSH); /* from emit_nvtx */
    const uint64_t libraries =
        block_type_bit(RECORD_LIBRARY_BEGIN) | block_type_bit(RECORD_LIBRARY_END);
    const uint64_t host = block_type_bit(RECORD_SAMPLE) | block_type_bit(RECORD_OS_CALL) |
                          block_type_bit(RECORD_GIL) | block_type_bit(RECORD_GC);
    return (recording_may_have(rec, ops) ? 0 : REPORT_OPS) |
           (recording_may_have(rec, libraries) ? 0 : REPORT_LIBRARIES) |
           (recording_may_have(rec, host) ? 0 : REPORT_HOST);
}

static bool report_make_is_wanted(const struct report *r, const struct analysis *a)
{
    return !r->request.only && (a->uses & r->request.use) == (unsigned)r->request.use &&
           !(a->parts & r->request.leaves) && (!a->is_wanted || a->is_wanted(r));
}

/* Calls after the selection show steps and hangs; calls before it affect operators, libraries and
 * memory in it. (Those that matter, if only time is selected.) */
static enum selection_calls calls_of(const struct report_request *request)
{
    const unsigned past = REPORT_OPS | REPORT_LIBRARIES | REPORT_MEMORY;
    if (request->only)
        return CALLS_OF_ROWS;
    if (!(request->leaves & REPORT_IDLE) || !request->leaves_hangs)
        return CALLS_OF_ALL;
    return (request->leaves & past) == past ? CALLS_OF_WORK : CALLS_UP_TO;
}

static void begin_tables(struct report *r)
{
    const struct report_request *request = &r->request;
    for (unsigned i = 0; i < ANALYSES_COUNT; i++) {
        const struct sums_info *info = infos[i];
        struct sums *s = &r->sums[i];
        if (info->parts & request->leaves || (request->only && !(request->only >> i & 1)) ||
            (info->table.by != BY_NAME && info->table.by != request->by))
            continue;
        sums_init(s, info, &r->walk, &r->making.histogram_rows);
        s->by = request->by;
        s->groups = request->groups;
        s->is_unseen = request->leaves & REPORT_UNSEEN;
        sums_read_rows(s, &r->resolver);
        if (sums_has_consumer(s))
            report_hear(r, sums_consumer(s));
    }
}

void report_begin(struct report *r, struct recording *rec, const struct report_request *request)
{
    r->rec = rec;
    r->request = *request;
    r->time.selection = request->selection;
    r->total.process_calls = memory_new(rec->count + 1u, sizeof *r->total.process_calls);
    if (!r->walk.rec)
        walk_init(&r->walk, rec);
    resolver_init(&r->resolver, &r->walk);
    if (request->selection)
        r->walk.filter = selection_filter(request->selection, calls_of(request));
    r->walk.symbols =
        request->walk_ns_max ? SYMBOLS_OFF : request->symbols; /* the summary must be quick */
    r->making.consumer_count = 2;
    begin_tables(r);
    for (unsigned i = 0; i < REPORT_ANALYSES; i++) {
        const struct analysis *a = analyses[i];
        if (!(r->making.has_begun[i] = report_make_is_wanted(r, a)))
            continue;
        void *state = memory_new(a->bytes != 0, a->bytes);
        if (a->bytes)
            memcpy((char *)r + a->at, &state, sizeof state);
        if (a->begin)
            a->begin(r);
    }
}

int report_walk(struct report *r, const struct consumer *first)
{
    r->resolver.leaves_work = !r->stacks && !recording_any(r->rec, process_expects_gpu);
    r->making.consumers[0] = *first;
    if (!r->request.only) /* what was lost is reported */
        r->making.consumers[0].needs |=
            WALK_SPANS | (r->request.leaves & REPORT_IDLE ? (unsigned)WALK_STACKS : 0) |
            (r->resolver.leaves_work ? 0 : (unsigned)WALK_LOSSES);
    r->making.consumers[1] = resolver_consumer(&r->resolver);
    return walk_run(&r->walk, NULL, r->making.consumers, r->making.consumer_count);
}

int report_end(struct report *r)
{
    for (unsigned i = 0; i < REPORT_ANALYSES && r->making.error == 0; i++)
        if (r->making.has_begun[i] && analyses[i]->end)
            analyses[i]->end(r);
    return r->making.error;
}

int report_make(struct report *r, struct recording *rec, const struct report_request *request)
{
    *r = (struct report){.making.histogram_rows = histogram_rows_max(recording_bytes(rec))};
    report_begin(r, rec, request);
    if (request->selection && r->idle)
        selection_keep_work(request->selection);
    bool leaves_calls = request->leaves & REPORT_CALLS || request->only;
    struct consumer calls = {.context = r,
                             .needs = leaves_calls ? 0 : WALK_SPANS,
                             .skips = WALK_SKIPS_WORK,
                             .take = leaves_calls ? NULL : report_make_take,
                             .take_call = leaves_calls ? NULL : report_make_take_call};
    r->walk.ns_max = request->walk_ns_max;
    r->walk.by_process = true;
    int error = report_walk(r, &calls);
    r->walk.by_process = false;
    if (error < 0)
        return error;
    for (uint32_t i = 0; request->whole && i < rec->count; i++) {
        struct losses *l = &r->walk.losses[i];
        *l = request->whole->rec->processes[i]->losses; /* not all was read this time */
        l->gpu_unpaired = l->gpu_given_up = l->gpu_missing = l->gpu_pending = l->gpu_untied = 0;
    }
    r->time.piece_events = request->selection ? request->selection->found.events : 0;
    report_sum_up(r);
    measure_wall(r);
    error = report_end(r);
    cost_report_init(&r->cost, rec);
    rank_report_make(&r->ranks, rec, r->program_steps, r->idle);
    if (request->selection) /* later walks see only the selection */
        request->selection->keeps_work = false;
    return error;
}

void report_release(struct report *r)
{
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        sums_release(&r->sums[i]);
    resolver_release(&r->resolver);
    free(r->total.process_calls);
    free(r->cost.steps);
    rank_report_release(&r->ranks);
    for (unsigned i = 0; i < REPORT_ANALYSES; i++) {
        void *state = NULL;
        if (analyses[i]->bytes)
            memcpy(&state, (char *)r + analyses[i]->at, sizeof state);
        if (r->making.has_begun[i] && analyses[i]->release && (state || !analyses[i]->bytes))
            analyses[i]->release(r);
        free(state);
    }
    walk_release(&r->walk);
}
