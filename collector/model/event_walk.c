/* SPDX-License-Identifier: Apache-2.0 */
#include "model/event_walk.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/file_at.h"
#include "base/message.h"
#include "error.h"
#include "record/gpu_record.h"
#include "record/stack_record.h"

#define PENDING_SLOTS 4

/* Slices that go to the same consumers. */
enum heard {
    HEARD_PLAIN_CALL,
    HEARD_GRAPH_CALL,
    HEARD_OPEN_CALL,
    HEARD_WORK,
    HEARD_OTHER,
    HEARD_TIED,
    HEARD_TIED_LATE,
    HEARD_KINDS
};

struct listener {
    int (*hears)(void *context, const struct slice *s); /* NULL: the end of the list */
    void *context;
};

/* One time through the events. */
struct pass {
    struct walk *walk;
    struct timeline *timeline;
    const struct consumer *consumers; /* none: a survey */
    unsigned count;
    struct listener listeners[HEARD_KINDS][WALK_CONSUMERS_MAX + 1];
    struct listener of_hidden[HEARD_KINDS][WALK_CONSUMERS_MAX + 1];
    const struct walk_filter *filter; /* NULL: nothing is hidden */
    unsigned needs;
    bool surveys;             /* what is learnt is not known yet */
    bool learns_ops;          /* nor are the numbers of operators */
    bool learns_stacks;       /* nor are these, */
    bool learns_pauses;       /* nor these */
    timeline_wants_fn *wants; /* NULL: as the walk's filter says */
    bool ties;                /* somebody needs the calls of work */
};

/* As it lies in the spool. */
struct pending_work {
    struct event event; /* its record is the one below */
    struct record record;
};

int walk_init(struct walk *w, struct recording *rec)
{
    *w = (struct walk){.rec = rec, .texts = {.plain = true}, .open_bytes_max = OPEN_BYTES_MAX};
    w->losses = calloc(rec->count + 1u, sizeof *w->losses);
    w->names = calloc(rec->count + 1u, sizeof *w->names);
    kernel_names_limit(&w->kernels, recording_bytes(rec));
    kernel_names_limit(&w->texts, recording_bytes(rec));
    spool_init(&w->pending, sizeof(struct pending_work));
    w->pending.usable = PENDING_SLOTS; /* it is written and read from one end to the other */
    w->op_threads = calloc(rec->thread_count + 1u, sizeof *w->op_threads);
    w->first_ns = calloc(rec->count + 1u, sizeof *w->first_ns);
    w->last_ns = calloc(rec->count + 1u, sizeof *w->last_ns);
    w->recorded = calloc(rec->count + 1u, sizeof *w->recorded);
    int error = library_kinds_init(&w->kinds, &w->texts, recording_bytes(rec), rec->count);
    if (error == 0)
        error = survey_init(&w->survey, rec);
    if (!w->losses || !w->names || !w->first_ns || !w->last_ns || !w->op_threads || !w->recorded)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < rec->count; i++)
        w->losses[i] = rec->processes[i]->losses;
    return error;
}

void walk_release(struct walk *w)
{
    for (uint32_t i = 0; w->names && i < w->rec->count; i++) {
        kernel_handles_release(&w->kernels, &w->names[i].handles);
        kernel_handles_release(&w->kernels, &w->names[i].kernels);
        kernel_handles_release(&w->texts, &w->names[i].ops.names);
        kernel_handles_release(&w->texts, &w->names[i].ops.inputs);
    }
    library_kinds_release(&w->kinds);
    library_calls_release(&w->libraries);
    device_sources_release(&w->sources);
    kernel_names_release(&w->kernels);
    kernel_names_release(&w->texts);
    survey_release(&w->survey);
    ranges_release(&w->ranges);
    ops_release(&w->ops);
    spool_release(&w->pending);
    free(w->losses);
    free(w->names);
    free(w->first_ns);
    free(w->last_ns);
    free(w->recorded);
    free(w->op_threads);
    *w = (struct walk){.pending.fd = -1};
}

int walk_part(struct walk *w, uint32_t worker)
{
    struct survey *s = &w->survey;
    struct spool *const spools[] = {&w->pending, &s->calls.spool, &s->nodes, &s->ops,
                                    &s->libraries};
    int error = 0;
    for (unsigned i = 0; error == 0 && i < sizeof spools / sizeof spools[0]; i++)
        error = spool_part(spools[i]);
    recording_keep_share(w->rec, worker);
    return error;
}

struct walk_found walk_found(const struct walk *w, const struct process *p)
{
    return (struct walk_found){w->losses[p->index], w->first_ns[p->index], w->last_ns[p->index],
                               w->kernels.dropped, w->texts.dropped};
}

void walk_add_found(struct walk *w, const struct process *p, const struct walk_found *found)
{
    w->losses[p->index] = found->losses;
    w->first_ns[p->index] = found->first_ns;
    w->last_ns[p->index] = found->last_ns;
    w->kernels.dropped |= found->kernels_dropped;
    w->texts.dropped |= found->texts_dropped;
}

const struct kernel_name *walk_kernel(const struct walk *w, const struct process *p,
                                      uint64_t number)
{
    return number ? kernel_name_of(&w->names[p->index].kernels, number) : NULL;
}

const struct kernel_name *walk_launched(const struct slice *s)
{
    const struct event *e = &s->event;
    for (unsigned i = 0; i < e->record->arg_count && i < e->function->arg_count; i++)
        if (e->function->args[i].kind == ARG_KERNEL)
            return walk_handle(s, e->record->args[i]);
    return NULL;
}

enum exit_code walk_verdict(const struct walk *w, bool strict)
{
    return recording_verdict(w->rec, w->losses, w->kernels.dropped || w->texts.dropped, strict);
}

static int tell(const struct pass *p, struct slice *s);

/* ---- assembling ------------------------------------------------------------------------------ */

static bool is_tied(unsigned type)
{
    return is_stream_work(type) || type == RECORD_SYNC || type == RECORD_OVERHEAD ||
           type == RECORD_MEMORY;
}

/* GPU work has no call: something is missing, or was given up to cost less. Overheads and
 * allocations need not have one. */
static void count_unpaired(const struct pass *p, const struct event *e)
{
    struct losses *l = &p->walk->losses[e->process->index];
    uint64_t untied_ns = cost_table_untied_ns(&e->process->costs);
    if (!(p->needs & WALK_LOSSES) || !e->record->correlation ||
        e->record->type == RECORD_OVERHEAD || e->record->type == RECORD_MEMORY)
        return;
    if (untied_ns < CLOCK_NS_MAX && e->begin_ns >= clock_map_ns(&e->process->clock, untied_ns))
        l->gpu_given_up++;
    else
        l->gpu_unpaired++;
}

/* `early`: calls are still being added. */
static inline int find_call(struct walk *w, struct slice *s, bool early)
{
    struct correlation *c = &w->survey.calls;
    const struct event *e = &s->event;
    unsigned marks = (is_stream_work(e->record->type) ? (unsigned)CORRELATION_MATCHED : 0) |
                     (e->record->type == RECORD_KERNEL ? (unsigned)CORRELATION_COUNTED : 0);
    int found = early ? correlation_find_early(c, e->process->index, e->record->correlation,
                                               e->begin_ns, marks, &s->call)
                      : correlation_find(c, e->process->index, e->record->correlation, e->begin_ns,
                                         marks, &s->call);
    s->is_called = found > 0;
    return found < 0 ? found : 0;
}

/*
 * CUPTI's records go on while a window warms up, and a while behind it, for what was launched in
 * it: of the others nothing is known, or asked.
 */
static bool is_outside(const struct slice *s)
{
    const struct recorded_now *now = &s->walk->recorded[s->event.process->index];
    return (now->is_closed || now->is_held) && !s->is_called &&
           (now->is_warm || s->event.record->correlation);
}

/* Finds its call, or lays it aside until all calls are known. */
static __attribute__((flatten)) int tie(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    int error = find_call(w, s, p->surveys);
    s->is_outside = is_outside(s);
    if (error || s->is_outside)
        return error;
    s->is_pending = p->surveys && !s->is_called && s->event.record->correlation;
    if (s->is_pending && error == 0) {
        struct pending_work work = {.event = s->event, .record = *s->event.record};
        work.record.bytes = NULL;
        work.record.byte_count = 0;
        return spool_append(&w->pending, &work);
    }
    s->is_tied = true;
    if (!s->is_called && error == 0)
        count_unpaired(p, &s->event);
    return error;
}

/* A range that is an operator is one, and no range. */
static int take_op_range(const struct pass *p, struct slice *s, int range_change)
{
    struct walk *w = p->walk;
    struct op_numbers *numbers = &w->names[s->event.process->index].ops;
    int change = OP_SAME;
    if (p->needs & WALK_OPS && range_change == RANGE_OPENED)
        change = ops_open_range(&w->ops, s->range, numbers, &s->op);
    else if (p->needs & WALK_OPS)
        change = ops_close_range(&w->ops, s->range, &s->op);
    if (change < 0)
        return change;
    s->op_change = (enum op_change)change;
    return p->surveys && change == OP_CLOSED ? survey_take_op_end(&w->survey, s->op) : 0;
}

/* Libraries that are recorded say their calls by ranges of NVTX's, too, of the function's name: it
 * is one call, and no range. */
static bool is_twin(const struct walk *w, const struct range *range)
{
    const struct library_call *call = library_innermost(&w->libraries, range->thread);
    return call && range->nested && range->text &&
           strcmp(range->text->raw, call->function->symbol) == 0;
}

/* What is around a range must be asked for before it is there itself. */
static int take_range(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    const struct range *around = p->surveys ? walk_range(s, false) : NULL;
    uint32_t parent = around ? around->node : 0;
    int change = ranges_take(&w->ranges, &s->event, &s->range);
    if (change < 0)
        return change;
    if (change != RANGE_NONE && s->range->is_op)
        return take_op_range(p, s, change);
    if (change == RANGE_OPENED && p->needs & WALK_LIBRARIES && is_twin(w, s->range)) {
        s->range->is_twin = true;
        s->range->node = parent; /* what is in it is in that */
    }
    if (change != RANGE_NONE && s->range->is_twin)
        return 0;
    s->change = (enum range_change)change;
    return p->surveys ? survey_take_range(&w->survey, s->change, s->range, parent) : 0;
}

static int take_op(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    uint32_t process = s->event.process->index;
    uint32_t *sequence = &w->ranges.sequences[process - w->ranges.first_process];
    int change = ops_take(&w->ops, &s->event, &w->names[process].ops, sequence, &s->op);
    int error = change < 0 ? change : 0;
    s->replaced = w->ops.is_replaced ? &w->ops.result : NULL;
    if (p->surveys && error == 0 && s->replaced)
        error = survey_take_op_end(&w->survey, s->replaced);
    s->op_change = error < 0 ? OP_SAME : (enum op_change)change;
    return p->surveys && s->op_change == OP_CLOSED ? survey_take_op_end(&w->survey, s->op) : error;
}

/* A record may say that some calls were left before it says its own: each is a slice. */
static int take_library(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    for (;;) {
        int change = library_calls_take(&w->libraries, &s->event, &s->library);
        if (change < 0)
            return change;
        s->library_change = (enum library_change)change;
        int done = change == LIBRARY_LEFT ? tell(p, s) : 0;
        if (done || change != LIBRARY_LEFT)
            return done;
    }
}

/* Calls of libraries do not outlive the operator or the nested range that they were made in. */
static int leave_libraries(const struct pass *p, const struct slice *s)
{
    bool is_op = s->op_change == OP_CLOSED && !s->op->is_moved;
    bool is_range = s->change == RANGE_CLOSED && s->range->nested;
    if (!(is_op || is_range) || !(p->needs & WALK_LIBRARIES))
        return 0;
    struct slice left = *s;
    uint64_t begin_ns = is_op ? s->op->begin_ns : s->range->begin_ns;
    int done = 0;
    left.op_change = OP_SAME;
    left.change = RANGE_NONE;
    left.library_change = LIBRARY_LEFT;
    while (done == 0 &&
           (left.library = library_calls_leave(&p->walk->libraries, s->event.thread, begin_ns)))
        done = tell(p, &left);
    return done;
}

static int take_call(const struct pass *p, const struct slice *s)
{
    struct walk *w = p->walk;
    if (p->needs & WALK_LIBRARIES)
        library_calls_see(&w->libraries, &s->event);
    return p->surveys ? survey_take_call(&w->survey, &w->ranges, &w->ops, &w->libraries, &s->event)
                      : 0;
}

/* The text of a record is the name of the number that stands in its argument `which`. */
static int set_name(struct kernel_names *all, struct kernel_handles *names, const struct record *r,
                    unsigned which)
{
    if (!r->bytes || r->arg_count <= which)
        return 0;
    return kernel_name_set(all, names, r->args[which], r->bytes, r->byte_count);
}

/* It begins when the first of two ends recording, and ends when both have it go on. */
static void take_pause(struct slice *s)
{
    const struct record *r = s->event.record;
    struct recorded_now *now = &s->walk->recorded[s->event.process->index];
    bool was_off = now->is_stopped || now->is_held || now->is_closed;
    if (r->type == RECORD_PAUSE) {
        bool *is_stopped = record_arg(r, PAUSE_BY) ? &now->is_held : &now->is_stopped;
        *is_stopped = record_arg(r, PAUSE_PAUSED);
        now->is_warm = record_arg(r, PAUSE_PAUSED) > 1;
    } else {
        now->is_closed = record_arg(r, WINDOW_STATE) != WINDOW_IS_OPEN;
        now->is_warm = record_arg(r, WINDOW_STATE) == WINDOW_IS_WARMING;
        now->window = record_arg(r, WINDOW_NUMBER);
        if (now->window > ++now->records) /* a file can say anything */
            now->window = now->records;
    }
    bool is_off = now->is_stopped || now->is_held || now->is_closed;
    s->pause_change = is_off == was_off ? PAUSE_SAME : is_off ? PAUSE_BEGINS : PAUSE_ENDS;
}

static int assemble(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    struct named_numbers *names = &w->names[e->process->index];
    int error = 0;
    switch (r->type) {
    case RECORD_LIBRARY_BEGIN:
    case RECORD_LIBRARY_END: return p->needs & WALK_LIBRARIES ? take_library(p, s) : 0;
    case RECORD_LIBRARY_PLAN:
    case RECORD_COMMUNICATOR:
        return p->needs & WALK_LIBRARIES ? library_kinds_learn(&w->kinds, e) : 0;
    case RECORD_NAME: return p->count ? set_name(&w->kernels, &names->handles, r, NAME_HANDLE) : 0;
    case RECORD_KERNEL_NAME:
        return p->surveys ? set_name(&w->kernels, &names->kernels, r, KERNEL_NAME_NAME) : 0;
    case RECORD_OP_NAME:
        return p->learns_ops ? set_name(&w->texts, &names->ops.names, r, OP_NAME_NUMBER) : 0;
    case RECORD_OP_INPUTS:
        return p->learns_ops ? set_name(&w->texts, &names->ops.inputs, r, OP_INPUTS_NUMBER) : 0;
    case RECORD_OP_THREAD:
        if (p->learns_ops)
            w->op_threads[e->thread->index] = record_arg(r, OP_THREAD_NUMBER);
        return 0;
    case RECORD_OP_BEGIN:
    case RECORD_OP_END: return p->needs & WALK_OPS ? take_op(p, s) : 0;
    case RECORD_MODULE:
    case RECORD_PYTHON:
    case RECORD_STACK:
        w->losses[e->process->index].stacks_unread += !stack_record_is_good(r);
        return p->learns_stacks ? stack_table_take(&w->survey.stacks, e) : 0;
    case RECORD_DEVICE_ABSENT:
        w->losses[e->process->index].devices_unread |= device_absent_of_all(r);
        return 0;
    case RECORD_DEVICE_SOURCE: return device_sources_learn(&w->sources, e);
    case RECORD_PAUSE:
    case RECORD_WINDOW:
        take_pause(s);
        return p->learns_pauses && s->pause_change
                   ? survey_take_pause(&w->survey, e, s->pause_change == PAUSE_BEGINS)
                   : 0;
    default:
        if (is_device_sample(r->type))
            s->source = device_sources_find(&w->sources, e);
        if (p->surveys)
            error = survey_take(&w->survey, e);
        if (error == 0 && is_range_record(r->type) && p->needs & WALK_RANGES)
            error = take_range(p, s);
        break;
    }
    return error == 0 && p->ties && is_tied(r->type) ? tie(p, s) : error;
}

/* ---- handing out ----------------------------------------------------------------------------- */

/* Does it say what is around others? */
static bool is_around(const struct slice *s)
{
    return s->change || s->op_change || s->library_change || s->pause_change;
}

static inline int tell_as(const struct pass *p, enum heard as, const struct slice *s)
{
    bool is_told = !s->is_hidden || (is_around(s) && s->change != RANGE_MARKED);
    for (const struct listener *l = is_told ? p->listeners[as] : p->of_hidden[as]; l->hears; l++) {
        int more = l->hears(l->context, s);
        if (more)
            return more;
    }
    return 0;
}

static inline void hide(const struct pass *p, struct slice *s)
{
    const struct walk_filter *f = p->filter;
    if (!f)
        return;
    s->is_hidden = !f->has(f->context, s);
    s->is_call_hidden = s->is_called && !f->has_call(f->context, s);
}

static inline enum heard heard_call(const struct event *e)
{
    unsigned class = e->function->class, flags = e->record->flags;
    if (flags & RECORD_OPEN)
        return HEARD_OPEN_CALL;
    return flags & RECORD_CAPTURED || class == API_GRAPH_LAUNCH || class == API_GRAPH
               ? HEARD_GRAPH_CALL
               : HEARD_PLAIN_CALL;
}

static int tell(const struct pass *p, struct slice *s)
{
    uint8_t type = s->event.record->type;
    hide(p, s);
    return tell_as(p,
                   type == RECORD_CALL    ? heard_call(&s->event)
                   : is_stream_work(type) ? HEARD_WORK
                                          : HEARD_OTHER,
                   s);
}

static void add_listeners(struct pass *p)
{
    static const unsigned skips[HEARD_KINDS] = {[HEARD_PLAIN_CALL] = WALK_SKIPS_PLAIN_CALLS,
                                                [HEARD_GRAPH_CALL] =
                                                    WALK_SKIPS_CALLS & ~WALK_SKIPS_PLAIN_CALLS,
                                                [HEARD_WORK] = WALK_SKIPS_WORK,
                                                [HEARD_OTHER] = WALK_SKIPS_OTHERS,
                                                [HEARD_TIED] = WALK_SKIPS_TIED};
    assert(p->count <= WALK_CONSUMERS_MAX);
    for (unsigned as = 0; as < HEARD_KINDS; as++) {
        struct listener *next = p->listeners[as], *of_hidden = p->of_hidden[as];
        for (const struct consumer *c = p->consumers; c < p->consumers + p->count; c++) {
            next->hears = c->skips & skips[as] ? NULL : as >= HEARD_TIED ? c->tied : c->take;
            next->context = c->context;
            *of_hidden = *next;
            of_hidden += next->hears && c->sees_hidden;
            next += next->hears != NULL;
        }
        *next = *of_hidden = (struct listener){0};
    }
}

static int tell_pending(const struct pass *p)
{
    struct walk *w = p->walk;
    int error = 0;
    for (uint64_t i = 0; error == 0 && i < w->pending.count; i++) {
        struct slice s = {.walk = w};
        const struct pending_work *work = spool_at(&w->pending, i, false, &error);
        if (!work)
            return error;
        struct record record = work->record;
        s.event = work->event;
        s.event.record = &record;
        error = find_call(w, &s, false);
        if (error == 0 && !s.is_called)
            count_unpaired(p, &s.event);
        hide(p, &s);
        if (error == 0)
            error = tell_as(p, HEARD_TIED_LATE, &s);
    }
    return error;
}

/* The processes that are walked through: what it costs does not depend on the others' number. */
static uint32_t first_of(const struct process *only)
{
    return only ? only->index : 0;
}

static uint32_t end_of(const struct walk *w, const struct process *only)
{
    return only ? only->index + 1 : w->rec->count;
}

/* What is still open behind the last event. */
static int tell_left(const struct pass *p)
{
    struct walk *w = p->walk;
    static const struct record nothing;
    struct slice s = {.walk = w, .event.record = &nothing, .library_change = LIBRARY_OPEN};
    int error = 0;
    while (error == 0 && p->needs & WALK_LIBRARIES &&
           (s.library = library_calls_drain(&w->libraries, w->last_ns))) {
        s.event.process = s.library->process;
        s.event.thread = s.library->thread;
        error = tell(p, &s);
    }
    s.library_change = LIBRARY_SAME;
    s.op_change = OP_LEFT;
    while (error == 0 && p->needs & WALK_OPS && (s.op = ops_drain(&w->ops, w->last_ns))) {
        s.event.process = s.op->process;
        s.event.thread = s.op->thread;
        error = tell(p, &s);
    }
    s.op_change = OP_SAME;
    s.change = RANGE_LEFT;
    while (error == 0 && p->needs & WALK_RANGES &&
           (s.range = ranges_drain(&w->ranges, UINT64_MAX))) {
        if (s.range->is_op || s.range->is_twin)
            continue;
        s.event.process = s.range->process;
        s.event.thread = s.range->thread;
        error = tell(p, &s);
    }
    return error;
}

/* Behind the last event. */
static int finish(const struct pass *p, const struct process *only)
{
    struct walk *w = p->walk;
    int error = p->surveys ? survey_finish(&w->survey) : 0;
    if (p->learns_pauses)
        survey_finish_pauses(&w->survey);
    if (error == 0 && p->count)
        error = tell_left(p);
    if (error == 0)
        error = tell_pending(p);
    for (uint32_t i = first_of(only); error == 0 && p->needs & WALK_LOSSES && i < end_of(w, only);
         i++)
        if (w->filter && w->filter->wants)
            w->losses[i].gpu_unpaired = w->losses[i].gpu_given_up = 0; /* not all was read */
        else if (process_expects_gpu(w->rec->processes[i]))
            error = survey_tell(&w->survey, w->rec->processes[i], &w->losses[i]);
    for (unsigned i = 0; error == 0 && i < p->count; i++)
        if (p->consumers[i].end)
            error = p->consumers[i].end(p->consumers[i].context);
    return error;
}

/* What a walk learns on its way is forgotten; what a survey has learnt is not. */
static int begin(struct walk *w, const struct process *only)
{
    for (uint32_t i = first_of(only); i < end_of(w, only); i++) {
        w->losses[i] = w->rec->processes[i]->losses;
        kernel_handles_release(&w->kernels, &w->names[i].handles);
        w->first_ns[i] = w->last_ns[i] = 0;
        w->recorded[i] = (struct recorded_now){0};
    }
    ranges_release(&w->ranges);
    ops_release(&w->ops);
    library_calls_release(&w->libraries);
    device_sources_release(&w->sources);
    int error = ops_init(&w->ops, w->rec, only, &w->texts, w->losses);
    if (error == 0)
        error = library_calls_init(&w->libraries, w->rec, only, &w->kinds);
    return error < 0 ? error : ranges_init(&w->ranges, w->rec, only, &w->texts, w->losses);
}

static void see(struct walk *w, const struct event *e)
{
    uint64_t *first_ns = &w->first_ns[e->process->index];
    uint64_t *last_ns = &w->last_ns[e->process->index];
    if (!w->survey.origin_ns)
        w->survey.origin_ns = e->begin_ns;
    if (!*first_ns)
        *first_ns = e->begin_ns;
    /* When the program has ended, CUPTI is asked for its last records: that is none of its time. */
    if (e->end_ns > *last_ns && e->record->type != RECORD_OVERHEAD)
        *last_ns = e->end_ns;
}

static inline int pass_call(const struct pass *p, struct slice *s)
{
    int done = take_call(p, s);
    hide(p, s);
    return done == 0 ? tell_as(p, heard_call(&s->event), s) : done;
}

static inline int pass_work(const struct pass *p, struct slice *s)
{
    int done = p->ties ? tie(p, s) : 0;
    hide(p, s);
    if (done == 0 && !s->is_outside)
        done = tell_as(p, HEARD_WORK, s);
    if (done == 0 && s->is_tied)
        done = tell_as(p, HEARD_TIED, s);
    s->is_called = s->is_pending = s->is_tied = s->is_outside = false;
    return done;
}

static int pass_other(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    int done = assemble(p, s);
    if (done == 0)
        done = leave_libraries(p, s);
    if (done == 0 && !s->is_outside)
        done = tell(p, s);
    if (done == 0 && s->is_tied)
        done = tell_as(p, HEARD_TIED, s);
    if (done == 0 && s->source)
        device_source_pass(device_sources_find(&w->sources, &s->event), &s->event);
    s->change = RANGE_NONE;
    s->op_change = OP_SAME;
    s->library_change = LIBRARY_SAME;
    s->pause_change = PAUSE_SAME;
    s->replaced = NULL;
    s->source = NULL;
    s->is_called = s->is_pending = s->is_tied = s->is_outside = false;
    return done;
}

/* Most events are calls and work, which change nothing of what is around others. */
static int walk(const struct pass *p)
{
    struct walk *w = p->walk;
    struct slice s = {.walk = w};
    int more;
    while ((more = timeline_next(p->timeline, &s.event)) > 0) {
        uint8_t type = s.event.record->type;
        if (event_is_visible(type))
            see(w, &s.event);
        int done = type == RECORD_CALL    ? pass_call(p, &s)
                   : is_stream_work(type) ? pass_work(p, &s)
                                          : pass_other(p, &s);
        if (done)
            return done;
    }
    return more;
}

/* Has work of devices nothing that anybody must know? */
static bool skips_work(const struct pass *p)
{
    bool is_skipped = !p->ties;
    for (unsigned i = 0; i < p->count; i++)
        is_skipped &= (p->consumers[i].skips & WALK_SKIPS_WORK) != 0;
    return is_skipped;
}

static int run(struct pass *p, const struct process *only)
{
    struct walk *w = p->walk;
    p->timeline = timeline_create(w->rec, w->losses, w->open_bytes_max);
    int more = p->timeline ? begin(w, only) : GPUPROF_NO_MEMORY;
    if (p->timeline && only)
        timeline_only(p->timeline, only);
    if (p->timeline && skips_work(p))
        timeline_skip_work(p->timeline, w->last_ns);
    if (p->timeline && p->wants)
        timeline_choose(p->timeline, p->wants, NULL);
    else if (p->timeline && w->filter && w->filter->wants)
        timeline_choose(p->timeline, w->filter->wants, w->filter->context);
    if (p->timeline && w->ns_max)
        timeline_limit(p->timeline, w->ns_max, &w->is_cut);
    if (more == 0)
        more = walk(p);
    if (more == 0)
        more = finish(p, only);
    int number = errno;
    progress_clear(w->rec->progress);
    if (more == GPUPROF_SPOOL)
        message("%s: %s%s; TMPDIR=DIR names a folder with room for what memory does not hold",
                file_unnamed_folder(), strerror(number), limit_advice(number));
    else if (more < 0)
        message("%s: %s", p->timeline ? timeline_path(p->timeline) : "gpuprof-collector",
                more == GPUPROF_IO ? strerror(number) : gpuprof_error_text(more));
    timeline_free(p->timeline);
    return more;
}

static int survey(struct walk *w, const struct process *only, bool knows_shared)
{
    struct pass p = {.walk = w,
                     .needs = WALK_RANGES | WALK_OPS | WALK_LIBRARIES,
                     .surveys = true,
                     .learns_ops = true,
                     .learns_stacks = !knows_shared,
                     .learns_pauses = !knows_shared};
    w->is_surveyed = w->survey.calls.is_late = true;
    return run(&p, only);
}

int walk_survey(struct walk *w)
{
    return survey(w, NULL, false);
}

int walk_survey_rest(struct walk *w, const struct process *only)
{
    if (only)
        survey_forget(&w->survey, only);
    return only || !w->is_surveyed ? survey(w, only, true) : 0;
}

static int stop_at_first(void *context, const struct slice *s)
{
    const struct walk *w = context;
    (void)s;
    return w->survey.origin_ns ? WALK_STOP : 0;
}

static bool has_shared(void *context, const struct process *p, uint64_t begin_ns, uint64_t end_ns,
                       uint64_t types)
{
    (void)context;
    (void)p;
    (void)begin_ns;
    (void)end_ns;
    return !types || types & (block_type_bit(RECORD_MODULE) | block_type_bit(RECORD_PYTHON) |
                              block_type_bit(RECORD_STACK) | block_type_bit(RECORD_PAUSE) |
                              block_type_bit(RECORD_WINDOW));
}

int walk_survey_shared(struct walk *w)
{
    struct consumer first = {.context = w, .sees_hidden = true, .take = stop_at_first};
    struct pass p = {.walk = w, .learns_stacks = true, .learns_pauses = true, .wants = has_shared};
    int error = walk_run(w, NULL, &first, 1);
    return error < 0 ? error : run(&p, NULL);
}

int walk_run(struct walk *w, const struct process *only, const struct consumer *consumers,
             unsigned count)
{
    struct pass p = {
        .walk = w, .consumers = consumers, .count = count, .filter = count ? w->filter : NULL};
    for (unsigned i = 0; i < count; i++)
        p.needs |= consumers[i].needs;
    p.ties = p.needs & (WALK_WORK | WALK_LOSSES);
    add_listeners(&p);
    p.surveys = !w->is_surveyed && p.needs & (WALK_WORK | WALK_LOSSES | WALK_STACKS);
    w->survey.is_bare = p.needs & WALK_LOSSES && !(p.needs & WALK_WORK);
    p.learns_ops = !w->is_surveyed && p.needs & WALK_OPS;
    p.learns_stacks = p.surveys && p.needs & WALK_STACKS;
    p.learns_pauses = p.surveys;
    p.needs |= p.surveys ? (unsigned)WALK_LIBRARIES : 0;
    if (p.surveys || p.needs & WALK_OPS)
        p.needs |= WALK_RANGES; /* in which calls were made, and operators of emit_nvtx */
    if (p.needs & WALK_RANGES)
        p.needs |= WALK_LIBRARIES; /* some are their calls, and no ranges */
    int more = run(&p, only);
    w->is_surveyed |= p.surveys && p.learns_ops && !w->survey.is_bare && !only && more == 0;
    w->pending.count = 0; /* all are told */
    return more;
}
