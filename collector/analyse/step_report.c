/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/step_report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"
#include "resolve/nccl_call.h"
#include "resolve/op_names.h"
#include "resolve/selection.h"

static void step_report_analysis_release(struct report *report)
{
    struct step_report *r = report->steps;
    steps_release(&r->steps);
    op_phases_release(&r->phases);
    free(r->sweeps);
    free(r->thread_phases);
    free(r->order);
    sums_release(&r->differs.changes);
}

/* ---- the time of a process, moment by moment ------------------------------------------------- */

/* True if parts and phases include the step. */
static bool is_split(const struct step_report *r, const struct step *step)
{
    return !step->is_partial && (!step->is_blind || r->all.blind == r->all.whole);
}

/* Splits time since at_ns, in which work and calls only ended. */
static void split(const struct step_sweep *p, struct step *step, uint64_t to_ns)
{
    for (uint64_t at_ns = p->at_ns; at_ns < to_ns;) {
        unsigned part = STEP_KERNELS;
        while (part <= STEP_RUNTIME && p->until_ns[part] <= at_ns)
            part++;
        uint64_t end_ns = to_ns;
        if (part <= STEP_RUNTIME)
            end_ns = p->until_ns[part] < to_ns ? p->until_ns[part] : to_ns;
        else
            part = p->loaders ? STEP_LOADER_WAIT : p->operators ? STEP_OPERATORS : STEP_OTHER;
        step->parts[part] += end_ns - at_ns;
        at_ns = end_ns;
    }
}

/* Python code between two operators of one phase counts for that phase. */
static void spend_in(struct step_report *r, struct step_sweep *p, const struct step *step,
                     unsigned phase, uint64_t ns)
{
    if (phase == PHASE_NONE) {
        p->gap_ns += ns;
        return;
    }
    uint64_t before_ns = phase == p->phase ? p->gap_ns : 0;
    if (is_split(r, step)) {
        r->all.host_ns[PHASE_NONE] += p->gap_ns - before_ns;
        r->all.host_ns[phase] += before_ns + ns;
    }
    p->gap_ns = 0;
    p->phase = (uint8_t)phase;
}

static void step_report_spend(struct step_report *r, struct step_sweep *p, const struct step *step,
                              uint64_t to_ns)
{
    unsigned phase = PHASES - 1;
    uint64_t at_ns = p->at_ns;
    while (phase > PHASE_NONE && !p->phase_threads[phase])
        phase--;
    if (phase == PHASE_NONE && p->waited_ns > at_ns) {
        at_ns = p->waited_ns < to_ns ? p->waited_ns : to_ns;
        spend_in(r, p, step, PHASE_SYNC, at_ns - p->at_ns);
    }
    if (at_ns < to_ns)
        spend_in(r, p, step, phase, to_ns - at_ns);
}

/* Advances to `to_ns`, with the state from before the current event. */
static void step_report_pass_time(struct step_report *r, struct step_sweep *p, uint64_t to_ns)
{
    while (p->next < p->end) {
        struct step *step = &r->steps.list[p->next];
        uint64_t from_ns = p->at_ns > step->begin_ns ? p->at_ns : step->begin_ns;
        uint64_t until_ns = to_ns < step->end_ns ? to_ns : step->end_ns;
        if (from_ns < until_ns) {
            p->at_ns = from_ns;
            split(p, step, until_ns);
            step_report_spend(r, p, step, until_ns);
            p->at_ns = until_ns;
        }
        if (to_ns < step->end_ns)
            return;
        r->all.host_ns[PHASE_NONE] += is_split(r, step) ? p->gap_ns : 0;
        p->gap_ns = 0;
        p->phase = PHASE_NONE;
        p->next++;
    }
}

/* ---- operators ------------------------------------------------------------------------------- */

/* A thread is in the phase of its innermost open operator; `ended` is the phase of one that just
 * ended. Between operators of a closure that an optimizer runs, the forward pass goes on. */
static void set_phase(struct step_report *r, struct step_sweep *p, const struct thread *thread,
                      uint32_t ended)
{
    const struct host_span *top = spans_innermost(&r->walk->spans, thread, SPAN_OP);
    uint8_t *phase = &r->thread_phases[thread->index];
    p->phase_threads[*phase]--;
    *phase = top ? (uint8_t)top->row : PHASE_NONE;
    if (ended == PHASE_FORWARD && top && top->region == PHASE_OPTIMIZER)
        *phase = PHASE_FORWARD;
    p->phase_threads[*phase]++;
}

/* Sets the operator's phase in `row`: that of its region or unit. */
static void step_report_open_op(struct step_report *r, struct host_span *op)
{
    const struct host_span *around = spans_around(&r->walk->spans, op);
    op->region = op_phase_region(r->walk, op);
    if (!(op->region & REGION_UNIT))
        op->row = op->region;
    else if (around && around->region & REGION_UNIT)
        op->row = around->row;
    else
        op->row = op_phases_at(&r->phases, op->thread->index, op->begin_ns);
}

static void count_op(struct step_sweep *p, const struct host_span *op, uint32_t by)
{
    if (op->is_traced)
        return;
    if (op_works(op))
        p->operators += by;
    else if (op_kind_of(op->scope, op->text) == OP_KIND_LOADER)
        p->loaders += by;
}

static void step_report_take_op(struct step_report *r, const struct slice *s)
{
    struct host_span *op = s->span;
    struct step_sweep *p = &r->sweeps[s->event.process->index];
    uint32_t loaders = p->loaders;
    bool opens = s->change == SPAN_OPENED;
    count_op(p, op, opens ? 1 : UINT32_MAX);
    if (opens)
        step_report_open_op(r, op);
    set_phase(r, p, op->thread, opens ? PHASE_NONE : op->row);
    /* A batch counts for the step in which its fetch began. */
    if (p->loaders > loaders && !loaders && p->next < p->end &&
        r->steps.list[p->next].begin_ns <= s->event.begin_ns)
        r->steps.list[p->next].batches++;
    uint64_t ns = op->end_ns - op->begin_ns;
    if (!opens && s->change != SPAN_LOST && !s->is_filtered && op_works(op))
        step_differences_add(&r->differs, CHANGE_OPERATOR, op->process, op->begin_ns, op->text,
                             !op->is_moved && ns > op->inner_ns ? ns - op->inner_ns : 0);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void take_work(struct step_report *r, struct step_sweep *p, const struct event *e)
{
    const struct record *record = e->record;
    const struct kernel_name *name = NULL;
    unsigned part =
        record->type == RECORD_KERNEL || record->type == RECORD_GRAPH ? STEP_KERNELS : STEP_COPIES;
    if (record->type == RECORD_KERNEL)
        name = walk_kernel(r->walk, e->process, record_arg(record, KERNEL_NAME_INDEX));
    if (name && nccl_is_kernel(name))
        part = STEP_COMMUNICATION;
    p->until_ns[part] = max_of(p->until_ns[part], e->end_ns);
    if (record->type == RECORD_KERNEL)
        step_differences_add(&r->differs, CHANGE_KERNEL, e->process, e->begin_ns, name,
                             e->end_ns - e->begin_ns);
}

static int step_report_take(void *context, const struct slice *s)
{
    struct step_report *r = context;
    const struct event *e = &s->event;
    struct step_sweep *p = &r->sweeps[e->process->index];
    unsigned type = e->record->type;
    if (r->steps.firsts[e->process->index] == p->end) /* no steps */
        return 0;
    bool is_op = slice_change(s, SPAN_OP);
    if (!is_op && type != RECORD_CALL && !is_stream_work((uint8_t)type))
        return 0;
    step_report_pass_time(r, p, s->change == SPAN_LEFT ? s->span->end_ns : e->begin_ns);
    if (is_op) {
        step_report_take_op(r, s);
    } else if (type != RECORD_CALL) {
        take_work(r, p, e);
    } else {
        p->until_ns[STEP_RUNTIME] = max_of(p->until_ns[STEP_RUNTIME], e->end_ns);
        if (e->function->does == API_DOES_SYNC && !r->thread_phases[e->thread->index])
            p->waited_ns = max_of(p->waited_ns, e->end_ns);
    }
    return 0;
}

/* The phase of a call by the operators around it. */
static enum step_phase phase_of_call(struct step_report *r, const struct correlated_call *call)
{
    uint32_t number = call->span;
    enum step_phase found = PHASE_NONE;
    const struct span_node *node;
    bool is_in_unit = false;
    while ((node = survey_span(&r->walk->survey, call, SPANS_OF(SPAN_OP), &number, false))) {
        enum step_phase said = op_phase_said(node->scope, node->text);
        if (found == PHASE_NONE)
            found = said;
        else if (said != PHASE_NONE && !op_phase_holds(found, said))
            found = said;
        if (found != PHASE_NONE && found != PHASE_FORWARD)
            break;
        is_in_unit |= found == PHASE_NONE && op_scope_works(node->scope);
    }
    return is_in_unit && (found == PHASE_NONE || found == PHASE_OPTIMIZER)
               ? op_phases_at(&r->phases, call->thread, call->begin_ns)
               : found;
}

/* GPU work counts for the step and phase in which the host launched it. */
static int take_slice_of_work(void *context, const struct slice *s)
{
    struct step_report *r = context;
    const struct event *e = &s->event;
    uint64_t at_ns = s->is_called ? s->call.begin_ns : e->begin_ns;
    const struct step *step = steps_at(&r->steps, e->process, at_ns);
    step_report_take(r, s);
    if (step && is_split(r, step) && step->end_ns > at_ns)
        r->all.gpu_ns[s->is_called ? phase_of_call(r, &s->call) : PHASE_NONE] +=
            e->end_ns - e->begin_ns;
    return 0;
}

/* ---- after the walk -------------------------------------------------------------------------- */

const struct step_part_info step_parts[STEP_PARTS] = {
    [STEP_KERNELS] = {"kernels", "compute"},
    [STEP_COPIES] = {"copies", "copies"},
    [STEP_COMMUNICATION] = {"communication", "communication and waits"},
    [STEP_RUNTIME] = {"runtime", "CUDA calls"},
    [STEP_LOADER_WAIT] = {"dataloader", "data loader"},
    [STEP_OPERATORS] = {"operators", "operators"},
    [STEP_OTHER] = {"other", "other"},
};

static int step_report_end(void *context)
{
    struct step_report *r = context;
    for (uint32_t i = 0; i < r->walk->rec->count; i++)
        step_report_pass_time(r, &r->sweeps[i], UINT64_MAX);
    if (r->all.host_ns[PHASE_NONE] + r->all.host_ns[PHASE_SYNC] ==
        r->all.split_ns) { /* waits alone show no phases */
        r->all.host_ns[PHASE_NONE] = r->all.split_ns;
        r->all.host_ns[PHASE_SYNC] = 0;
    }
    for (uint32_t i = 0; i < r->steps.count; i++) {
        const struct step *step = &r->steps.list[i];
        uint64_t sum_ns = 0;
        for (unsigned part = 0; part < STEP_PARTS; part++) {
            r->all.parts[part] += is_split(r, step) ? step->parts[part] : 0;
            sum_ns += step->parts[part];
        }
        assert(sum_ns == step_ns(step)); /* for any file */
        (void)sum_ns;
    }
    step_differences_finish(r);
    return 0;
}

/* ---- making it ------------------------------------------------------------------------------- */

static int compare_steps(const void *left, const void *right, void *list)
{
    const struct step *a = (const struct step *)list + *(const uint32_t *)left;
    const struct step *b = (const struct step *)list + *(const uint32_t *)right;
    return ORDER(step_ns(b), step_ns(a)) ?: ORDER(a, b);
}

uint64_t step_report_quantile(const struct step_report *r, double fraction)
{
    uint64_t rank = (uint64_t)(fraction * r->all.whole);
    rank += (double)rank < fraction * r->all.whole; /* rounded up */
    rank = rank < 1 ? 1 : rank;
    return r->all.whole ? step_ns(&r->steps.list[r->order[r->all.whole - rank]]) : 0;
}

static void order_steps(struct step_report *r)
{
    struct step *list = r->steps.list;
    r->order = memory_new(r->steps.count + 1u, sizeof *r->order);
    for (uint32_t i = 0; i < r->walk->rec->count; i++) {
        r->sweeps[i].next = r->steps.firsts[i];
        r->sweeps[i].end = r->steps.firsts[i + 1];
        r->processes += r->sweeps[i].end > r->sweeps[i].next;
    }
    for (uint32_t i = 0; i < r->steps.count; i++) {
        if (list[i].is_partial)
            continue;
        r->order[r->all.whole++] = i;
        r->all.total_ns += step_ns(&list[i]);
        r->all.blind += list[i].is_blind;
    }
    for (uint32_t i = 0; i < r->steps.count; i++) {
        r->all.split += is_split(r, &list[i]);
        r->all.split_ns += is_split(r, &list[i]) ? step_ns(&list[i]) : 0;
    }
    if (r->all.whole)
        qsort_r(r->order, r->all.whole, sizeof *r->order, compare_steps, list);
    step_differences_find(r);
}

static void step_report_analysis_begin(struct report *r)
{
    report_hear(r, op_phases_consumer(&r->steps->phases));
    op_phases_init(&r->steps->phases, &r->walk);
}

/* Uses a walk of its own. Its losses are dropped: those of the report's walk are complete. */
static void step_report_analysis_end(struct report *report)
{
    struct step_report *r = report->steps;
    const struct step_request *request = report->request.steps;
    const struct recording *rec = report->rec;
    const struct consumer parts = {.context = r,
                                   .needs = WALK_SPANS | WALK_WORK,
                                   .take = step_report_take,
                                   .take_work = take_slice_of_work,
                                   .end = step_report_end};
    struct walk *walk = r->walk = &report->walk;
    struct losses *losses = walk->losses;
    const struct walk_filter *filter = walk->filter;
    r->samples = request->samples;
    r->report = report;
    r->steps = *report->marks;
    *report->marks = (struct steps){.kind = STEPS_NONE};
    report->program_steps = &r->steps;
    walk->filter = selection_steps_filter(request->selection);
    walk->losses = memory_new(rec->count + 1u, sizeof *losses);
    r->sweeps = memory_new(rec->count + 1u, sizeof *r->sweeps);
    r->thread_phases = memory_new(rec->thread_count + 1u, sizeof *r->thread_phases);
    order_steps(r);
    report->making.error = r->steps.count ? walk_run(walk, NULL, &parts, 1) : 0;
    free(walk->losses);
    walk->losses = losses;
    walk->filter = filter;
}

const struct analysis steps_analysis = {
    ANALYSIS_STATE(steps), .is_wanted = report_wants_steps, .begin = step_report_analysis_begin,
    .end = step_report_analysis_end, .release = step_report_analysis_release};
