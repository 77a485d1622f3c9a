/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "analyse/energy_report.h"
#include "analyse/gpu_report.h"
#include "analyse/library_report.h"
#include "analyse/op_report.h"
#include "analyse/source_report.h"
#include "analyse/stack_report.h"
#include "analyse/step_report.h"
#include "analyse/throttle_finding.h"
#include "api/api.h"
#include "base/array.h"
#include "base/message.h"
#include "error.h"
#include "find/findings.h"
#include "find/idle.h"
#include "memory/memory_rows.h"
#include "model/selection.h"
#include "model/steps.h"

static int take_call(void *context, const struct slice *s)
{
    struct report *r = context;
    const struct event *e = &s->event;
    uint64_t duration_ns = e->end_ns - e->begin_ns;
    uint64_t weight = e->record->weight > 1 ? e->record->weight : 1;
    /* The outer call has the time and the bytes of those nested in it already. */
    bool outermost = !(e->record->flags & RECORD_NESTED);
    r->total_ns += outermost ? duration_ns * weight : 0;
    if (r->calls == 0)
        r->begin_ns = e->begin_ns;
    if (e->end_ns > r->end_ns)
        r->end_ns = e->end_ns;
    hang_take(&r->hang, s);
    r->calls += weight;
    r->is_estimated |= weight > 1;
    r->process_calls[e->process->index] += weight;
    if (api_has_failed(e->function->domain, e->record->result)) {
        r->errors += weight;
        return failures_take(&r->sums[ANALYSIS_failures_sums], e, weight);
    } else if (api_is_copy(e->function->does) && outermost) {
        r->copy_calls += weight;
        r->copy_bytes += function_bytes(e->function, e->record) * weight;
    }
    return 0;
}

/* Calls of libraries have tables of their own. */
static int take(void *context, const struct slice *s)
{
    struct report *r = context;
    hang_take_library(&r->hang, s);
    return failures_take_library(&r->sums[ANALYSIS_failures_sums], s);
}

static int make_source(struct report *r, const struct report_wish *wish)
{
    uint64_t begin_ns = UINT64_MAX;
    for (uint32_t i = 0; i < r->rec->count; i++) {
        struct process *p = r->rec->processes[i];
        uint64_t ns = p->min_ns <= p->max_ns ? clock_map_ns(&p->clock, p->min_ns) : UINT64_MAX;
        begin_ns = ns < begin_ns ? ns : begin_ns;
    }
    r->source = calloc(1, sizeof *r->source);
    if (!r->source)
        return GPUPROF_NO_MEMORY;
    r->source->is_list = wish->is_sorted;
    return source_report_make(r->source, r->stacks, wish->source, begin_ns);
}

void report_sum_up(struct report *r)
{
    r->sums[ANALYSIS_failures_sums].begin_ns = r->begin_ns ? r->begin_ns : r->walk.survey.origin_ns;
    for (uint32_t i = 0; i < r->rec->count; i++)
        losses_add(&r->losses, &r->walk.losses[i]);
}

/* As idle.h has the time of devices; of a piece of time, how long that is. */
static void measure_wall(struct report *r)
{
    r->is_piece = r->selection && selection_time(r->selection, &r->wall_begin_ns, &r->wall_end_ns);
    if (r->is_piece) {
        r->wall_begin_ns += r->walk.survey.origin_ns;
        r->wall_end_ns += r->walk.survey.origin_ns;
        return;
    }
    r->wall_begin_ns = r->begin_ns;
    r->wall_end_ns = r->end_ns;
    for (uint32_t i = 0; i < r->rec->count; i++) {
        uint64_t first_ns = r->walk.first_ns[i], start_ns = process_start_ns(r->rec->processes[i]);
        if (!first_ns)
            continue;
        first_ns = start_ns && start_ns < first_ns ? start_ns : first_ns;
        if (!r->wall_begin_ns || first_ns < r->wall_begin_ns)
            r->wall_begin_ns = first_ns;
        if (r->walk.last_ns[i] > r->wall_end_ns)
            r->wall_end_ns = r->walk.last_ns[i];
    }
}

/* What a walk does not know. */
static int complete(struct report *r, const struct report_wish *wish)
{
    struct sums *failures = &r->sums[ANALYSIS_failures_sums];
    report_sum_up(r);
    measure_wall(r);
    int error = failures->info ? sums_finish(failures) : 0;
    if (error == 0)
        error = kernels_find_makers(&r->sums[ANALYSIS_kernels_sums], r->libraries);
    if (error == 0 && r->stacks)
        error = stack_report_finish(r->stacks, wish->symbols);
    if (error == 0 && wish->source)
        error = make_source(r, wish);
    if (error == 0 && r->idle)
        error = idle_finish(r->idle);
    const char *symbols = r->walk.ns_max ? SYMBOLS_OFF : wish->symbols; /* the summary is quick */
    if (error == 0)
        /* Of a few stacks, and only if it hangs. */
        error = hang_finish(&r->hang, wish->leaves_hangs ? SYMBOLS_OFF : wish->symbols);
    if (error == 0 && r->idle)
        error = findings_finish(r->findings, &r->hang, symbols);
    return error < 0 ? error : cost_report_init(&r->cost, r->rec);
}

static int marks_init(struct report *r, const struct step_wish *wish)
{
    return steps_init(r->marks, &r->walk, wish ? wish->by : NULL, wish ? wish->pattern : NULL);
}

/* The parts of which there may be none. Idle time is of devices: somebody must have, or should
 * have, some. */
static int start_parts(struct report *r, const struct report_wish *wish, bool has_idle)
{
    bool has_marks = !(wish->leaves & REPORT_IDLE);
    r->idle = has_idle ? calloc(1, sizeof *r->idle) : NULL;
    r->marks = has_marks ? calloc(1, sizeof *r->marks) : NULL;
    if (has_idle != (r->idle != NULL) || has_marks != (r->marks != NULL))
        return GPUPROF_NO_MEMORY;
    int error = r->idle ? idle_init(r->idle, &r->walk, r->marks) : 0;
    r->devices = calloc(1, sizeof *r->devices);
    r->energy = calloc(1, sizeof *r->energy);
    if (!r->devices || !r->energy)
        return GPUPROF_NO_MEMORY;
    energy_report_init(r->energy, r->devices, wish->walk_ns_max == 0);
    if (error == 0)
        error = device_report_init(r->devices, &r->walk, r->idle);
    return error == 0 && r->marks ? marks_init(r, wish->steps) : error;
}

static int start(struct report *r, struct recording *rec, const struct report_wish *wish)
{
    enum report_by by = wish->by;
    bool has_stacks = by == BY_STACK || by == BY_PYTHON_LINE || by == BY_SOURCE;
    bool has_ops = wish->walk_ns_max == 0 && !(wish->leaves & REPORT_OPS); /* nor the summary */
    bool has_libraries = wish->walk_ns_max == 0 && !(wish->leaves & REPORT_LIBRARIES);
    int error = walk_init(&r->walk, rec);
    analyses_start(r->sums, &r->walk, by, wish->groups, wish->leaves, &r->histogram_rows);
    /* Calls behind a piece tell steps, and what hangs. */
    bool reads_on = !(wish->leaves & REPORT_IDLE) || !wish->leaves_hangs;
    if (wish->selection)
        r->walk.filter = selection_filter(wish->selection, reads_on ? CALLS_OF_ALL : CALLS_UP_TO);
    if (error == 0)
        error = hang_init(&r->hang, &r->walk);
    r->gpu = gpu_report_create(&r->walk, r->sums, by, wish->groups,
                               has_stacks || recording_expects_gpu(rec));
    r->process_calls = calloc(rec->count + 1u, sizeof *r->process_calls);
    r->ops = has_ops ? calloc(1, sizeof *r->ops) : NULL;
    r->libraries = has_libraries ? calloc(1, sizeof *r->libraries) : NULL;
    r->stacks = has_stacks ? calloc(1, sizeof *r->stacks) : NULL;
    if (r->gpu)
        gpu_report_leave(r->gpu, wish->leaves);
    if (error < 0 || !r->gpu || !r->process_calls || has_stacks != (r->stacks != NULL) ||
        has_ops != (r->ops != NULL) || has_libraries != (r->libraries != NULL))
        return GPUPROF_NO_MEMORY;
    if (start_parts(r, wish, recording_expects_gpu(rec) && !(wish->leaves & REPORT_IDLE)) < 0)
        return GPUPROF_NO_MEMORY;
    /* Whom a rank met is known only of all kernels, and what idle time at the edge of a piece ends
     * with, of those beyond it. */
    if (wish->selection)
        wish->selection->keeps_work =
            r->idle && (wish->selection->filter.is_of_time || idle_follows_ranks(r->idle));
    if (!(r->findings = calloc(1, sizeof *r->findings)) ||
        findings_init(r->findings, &r->walk, r->idle) < 0 ||
        memory_signs_init(&r->signs, &r->walk) < 0)
        return GPUPROF_NO_MEMORY;
    const struct ledger_user signs = memory_signs_user(&r->signs);
    gpu_report_tell(r->gpu, &signs);
    if (r->ops && op_report_init(r->ops, &r->walk, &r->sums[ANALYSIS_ops_sums]) < 0)
        return GPUPROF_NO_MEMORY;
    if (r->libraries)
        library_report_init(r->libraries, &r->walk, &r->sums[ANALYSIS_library_waits_sums]);
    if (r->libraries) {
        r->libraries->is_part = wish->is_part;
        r->libraries->is_refused = wish->refused & PART_LIBRARIES;
    }
    r->devices->is_refused = wish->refused & PART_COUNTERS;
    return r->stacks ? stack_report_init(r->stacks, &r->walk, by, wish->is_mine) : 0;
}

/* Where something seems to be wrong with the memory: its books, and what is to be said of them. The
 * summary, which is to be there soon, looks at failures alone, and where it has read all; so does a
 * piece, at those in it: what grows or is too much is so in the whole. */
static int look_at_memory(struct report *r, struct recording *rec, const struct report_wish *wish)
{
    const struct steps *steps = r->steps ? &r->steps->steps : r->marks;
    bool is_summary = wish->walk_ns_max > 0;
    struct memory_wish memory = {.by = MEMORY_BY_BEST,
                                 .at_seconds = -1,
                                 .piece = r->walk.filter,
                                 .step_by = wish->steps ? wish->steps->by : NULL,
                                 .step_pattern = wish->steps ? wish->steps->pattern : NULL};
    int error = 0;
    if (r->walk.is_cut || !wish->looks_at_memory ||
        !(r->signs.ooms ||
          (!is_summary && !r->selection && memory_signs_of_fault(&r->signs, steps))))
        return 0;
    if (is_summary && memory_best_by(rec) == MEMORY_BY_STACK)
        memory.by = MEMORY_BY_OPERATOR; /* without symbols stacks are addresses */
    r->memory = memory_look_create(rec, &memory, is_summary ? SYMBOLS_OFF : wish->symbols, &error);
    return r->memory && !r->selection ? findings_add_memory(r->findings, r->memory) : error;
}

/* Idle time has met other steps, if any. */
static int look_at_steps_again(struct report *r, bool *is_said)
{
    if (r->idle)
        r->idle->has_guessed = true;
    return steps_look_again(r->marks, is_said);
}

int report_make(struct report *r, struct recording *rec, const struct report_wish *wish)
{
    bool has_steps = wish->steps && wish->steps->is_wanted;
    *r = (struct report){.rec = rec,
                         .selection = wish->selection,
                         .histogram_rows = histogram_rows_max(recording_bytes(rec))};
    bool is_said = false;
    int error = start(r, rec, wish);
    if (error == 0 && has_steps)
        error = op_phases_init(&r->phases, &r->walk);
    if (error == 0) {
        struct consumer consumers[WALK_CONSUMERS_MAX + ANALYSES_COUNT]; /* the walk checks */
        unsigned count = 0;
        if (!(wish->leaves & REPORT_CALLS))
            consumers[count++] = (struct consumer){.context = r,
                                                   .needs = WALK_LIBRARIES,
                                                   .skips = WALK_SKIPS_WORK | WALK_SKIPS_TIED,
                                                   .take = take,
                                                   .take_call = take_call};
        analyses_consumers(r->sums, consumers, &count);
        if (!(wish->leaves & REPORT_MEMORY))
            consumers[count++] = gpu_report_books(r->gpu);
        consumers[count] = gpu_report_consumer(r->gpu);
        consumers[count].needs |= WALK_OPS; /* what is lost of them is told */
        if (wish->leaves & REPORT_IDLE)
            consumers[count].needs |= WALK_STACKS; /* likewise */
        count++;
        if (r->marks)
            consumers[count++] = steps_consumer(r->marks);
        if (r->idle) {
            consumers[count++] = idle_consumer(r->idle);
            consumers[count++] = findings_consumer(r->findings);
        }
        consumers[count++] = device_report_consumer(r->devices);
        consumers[count++] = energy_report_consumer(r->energy);
        if (has_steps)
            consumers[count++] = op_phases_consumer(&r->phases);
        if (r->ops)
            consumers[count++] =
                op_report_consumer(r->ops, has_steps || recording_expects_gpu(rec));
        if (r->libraries)
            consumers[count++] = library_report_consumer(r->libraries, recording_expects_gpu(rec));
        if (r->stacks)
            consumers[count++] = stack_costs_consumer(&r->stacks->costs);
        bool has_unfinished = unfinished_may_be(&r->hang.unfinished);
        if (!(wish->leaves & REPORT_CALLS))
            consumers[count++] = collectives_consumer(&r->hang.collectives, r->hang.needs_stacks);
        if (!(wish->leaves & REPORT_CALLS) && has_unfinished)
            consumers[count++] = unfinished_consumer(&r->hang.unfinished);
        r->walk.ns_max = wish->walk_ns_max;
        if ((error = walk_run(&r->walk, NULL, consumers, count)) < 0)
            return error;
        r->piece_events = wish->selection ? wish->selection->found.met[MET_ALL] : 0;
        if (r->marks && r->marks->is_unsure && !r->walk.is_cut)
            error = look_at_steps_again(r, &is_said);
    }
    if (error == 0)
        error = complete(r, wish);
    if (error == 0 && r->marks && r->selection)
        selection_keep_steps(r->selection, r->marks);
    if (error == 0 && has_steps)
        error = (r->steps = calloc(1, sizeof *r->steps)) ? 0 : GPUPROF_NO_MEMORY;
    if (error < 0 && !is_said)
        say_error("report", error);
    if (error == 0 && has_steps)
        error = step_report_make(r->steps, &r->walk, r->marks, &r->phases, r->idle, wish->steps);
    if (r->steps)
        r->steps->devices = r->devices;
    const struct steps *steps = r->steps ? &r->steps->steps : r->marks;
    if (error == 0 && ((error = energy_report_make(r->energy, steps)) < 0 ||
                       (error = throttle_finding_add(r->findings, r->devices, steps)) < 0 ||
                       (error = rank_report_init(&r->ranks, rec, steps)) < 0))
        say_error("report", error);
    if (error == 0 && !wish->is_part) /* a part has its rows by process */
        rank_report_make(&r->ranks, rec, r->idle);
    if (error == 0)
        error = look_at_memory(r, rec, wish);
    if (wish->selection && r->walk.is_surveyed) { /* walks behind this one see the piece alone */
        selection_filter(wish->selection, CALLS_OF_PIECE);
        wish->selection->keeps_work = false;
    }
    return error;
}

void report_tell_next(struct report *r, const struct next_words *next)
{
    r->next = next;
    if (r->findings)
        r->findings->next = next;
    if (r->steps)
        r->steps->next = next;
}

void report_release(struct report *r)
{
    analyses_release(r->sums);
    free(r->process_calls);
    cost_report_release(&r->cost);
    if (r->source)
        source_report_release(r->source);
    free(r->source);
    if (r->stacks)
        stack_report_release(r->stacks);
    free(r->stacks);
    gpu_report_free(r->gpu);
    if (r->idle)
        idle_release(r->idle);
    free(r->idle);
    rank_report_release(&r->ranks);
    if (r->devices)
        device_report_release(r->devices);
    free(r->devices);
    if (r->energy)
        energy_report_release(r->energy);
    free(r->energy);
    if (r->findings)
        findings_release(r->findings);
    free(r->findings);
    memory_signs_release(&r->signs);
    memory_look_free(r->memory);
    if (r->marks)
        steps_release(r->marks);
    free(r->marks);
    op_phases_release(&r->phases);
    if (r->ops)
        op_report_release(r->ops);
    free(r->ops);
    if (r->libraries)
        library_report_release(r->libraries);
    free(r->libraries);
    if (r->steps)
        step_report_release(r->steps);
    free(r->steps);
    hang_release(&r->hang);
    walk_release(&r->walk);
}
