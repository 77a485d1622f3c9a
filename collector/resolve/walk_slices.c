/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/walk_slices.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/gpu_record.h"
#include "resolve/stack_table.h"

/* ---- looking ahead ---------------------------------------------------------------------------
 *
 * The events of a timeline, with a look at the next ones: of one process at most AHEAD_EVENTS, in a
 * merged walk as in one of that process alone. Memory: AHEAD_EVENTS of 260 bytes, with their byte
 * strings, after the first look ahead; in a merged walk for up to AHEAD_PROCESSES.
 */

#define AHEAD_EVENTS    512
#define AHEAD_PROCESSES 16

struct ahead_event {
    struct event event;
    struct record record; /* the record of `event` */
    uint8_t *bytes;       /* owned: byte string of the record */
    bool is_known;
};

struct look_ahead {
    struct timeline *timeline;   /* a view */
    struct ahead_event *events;  /* owned; NULL: no look ahead so far */
    uint32_t first, count, room; /* `room` is a power of two */
    struct record now;           /* record of the event that was returned last */
    int more;                    /* last result of the timeline */
    bool is_known;               /* the event returned last was found by look_ahead_find before */
};

static void look_ahead_release(struct look_ahead *l)
{
    for (uint32_t i = 0; l->events && i < l->room; i++)
        free(l->events[i].bytes);
    free(l->events);
}

static struct ahead_event *at(const struct look_ahead *l, uint32_t index)
{
    return &l->events[(l->first + index) & (l->room - 1)];
}

/* The next event, like timeline_next. */
static inline int look_ahead_next(struct look_ahead *l, struct event *event)
{
    l->is_known = false;
    if (!l->events)
        return timeline_next(l->timeline, event);
    if (!l->count)
        return l->more > 0 ? l->more = timeline_next(l->timeline, event) : l->more;
    struct ahead_event *next = at(l, 0);
    *event = next->event;
    l->is_known = next->is_known;
    l->first++;
    l->count--;
    return 1;
}

/* Copies the event, as the timeline's views end with the next one. */
static void look_ahead_keep(struct ahead_event *to, const struct event *event)
{
    uint32_t bytes = event->record->byte_count;
    free(to->bytes);
    *to = (struct ahead_event){.event = *event, .record = *event->record};
    to->event.record = &to->record;
    if (!to->record.bytes)
        return;
    to->record.bytes = to->bytes = memory_new(bytes + 1, 1);
    memcpy(to->bytes, event->record->bytes, bytes);
}

/* Reads ahead; keeps the slot of the last returned event unchanged. */
static void look_ahead_fill(struct look_ahead *l, uint64_t until_ns)
{
    struct event event;
    while (l->more > 0 && l->count < l->room - 1 &&
           (!l->count || at(l, l->count - 1)->event.begin_ns <= until_ns))
        if ((l->more = timeline_next(l->timeline, &event)) > 0)
            look_ahead_keep(at(l, l->count++), &event);
}

/*
 * Finds, among the next events, the call with the correlation id of `now`, the event returned last.
 * NULL: none within AHEAD_NS. The result is a view until the next event; is_known is
 * set when it is returned in turn. The record of `now` stays valid until then, too.
 */
static const struct event *look_ahead_find(struct look_ahead *l, struct event *now)
{
    if (!l->events)
        l->events = memory_new(l->room, sizeof *l->events);
    l->now = *now->record;
    l->now.bytes = NULL;
    l->now.byte_count = 0;
    now->record = &l->now;
    look_ahead_fill(l, now->begin_ns + AHEAD_NS);
    for (uint32_t i = 0, seen = 0; i < l->count && seen < AHEAD_EVENTS - 1; i++) {
        struct ahead_event *e = at(l, i);
        seen += e->event.process == now->process;
        if (e->record.correlation == l->now.correlation && e->record.type == RECORD_CALL &&
            e->event.process == now->process) {
            e->is_known = true;
            return &e->event;
        }
    }
    return NULL;
}

/* ---- consumers ------------------------------------------------------------------------------- */

/* Whether the slice gives context for others. */
static inline bool is_around(const struct slice *s)
{
    return s->change || s->pause_change;
}

/* Like pass_report, for a slice with a known kind and after the filter was applied. */
static inline int report_as(const struct pass *p, enum heard as, const struct slice *s)
{
    bool is_reported = !s->is_filtered || (is_around(s) && s->change != SPAN_MARKED);
    int more = 0;
    for (const struct listener *l = p->listeners[as]; more == 0 && l->hears; l++)
        if (is_reported || l->sees_filtered)
            more = l->hears(l->context, s);
    return more;
}

/* Applies the filter to the slice. */
static inline void hide(const struct pass *p, struct slice *s)
{
    const struct walk_filter *f = p->filter;
    if (!f)
        return;
    s->is_filtered = !f->has(f->context, s);
    s->is_call_filtered = s->is_called && (s->is_filtered || !f->has_call(f->context, s));
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

static int pass_report(const struct pass *p, struct slice *s)
{
    uint8_t type = s->event.record->type;
    hide(p, s);
    return report_as(p,
                     type == RECORD_CALL    ? heard_call(&s->event)
                     : is_stream_work(type) ? HEARD_WORK
                                            : HEARD_OTHER,
                     s);
}

static bool is_correlated(unsigned type)
{
    return is_stream_work(type) || type == RECORD_SYNC || type == RECORD_OVERHEAD ||
           type == RECORD_MEMORY;
}

/* Counts GPU work without a call: a record is missing, or was given up to cost less. Overheads and
 * allocations need no call. */
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

static inline void find_call(struct walk *w, struct slice *s)
{
    const struct event *e = &s->event;
    bool is_work = is_stream_work(e->record->type);
    unsigned marks = (is_work ? (unsigned)CORRELATION_MATCHED : 0) |
                     (e->record->type == RECORD_KERNEL ? (unsigned)CORRELATION_COUNTED : 0);
    s->is_called = correlation_find(&w->survey.calls, e->process->index, e->record->correlation,
                                    marks, &s->call);
    if (s->is_called && is_work) {
        uint64_t *worked_ns = &w->survey.processes[s->call.process].worked_ns;
        *worked_ns = s->call.begin_ns > *worked_ns ? s->call.begin_ns : *worked_ns;
    }
}

/* Whether the record comes from a warm-up, or after a window for work launched in it: CUPTI
 * delivers these, too. */
static bool is_behind(const struct slice *s)
{
    const struct event *e = &s->event;
    const struct recorded_now *now = &s->walk->recorded[e->process->index];
    return (now->is_closed || now->is_held) && (now->is_warm || e->record->correlation);
}

/* Whether the walk leaves out calls of such work. */
static bool is_left(const struct pass *p, const struct event *e)
{
    const struct walk_filter *f = p->filter;
    return f && f->leaves_calls && f->is_span &&
           (e->end_ns < f->from_ns || e->begin_ns >= f->to_ns);
}

/* Looks for the call among the next events: clock noise can place work before its call. */
static __attribute__((noinline)) void find_ahead(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    const struct event *call = look_ahead_find(p->ahead, &s->event);
    if (!call)
        return;
    survey_take_call(&w->survey, &w->spans, call);
    find_call(w, s);
}

/* Finds the call of GPU work, or of another record of a call. */
static void tie(const struct pass *p, struct slice *s)
{
    find_call(p->walk, s);
    bool behind = is_behind(s);
    if (!s->is_called && !behind && s->event.record->correlation && !is_left(p, &s->event))
        find_ahead(p, s);
    bool was_launched = s->is_called && s->call.begin_ns < s->event.begin_ns;
    s->is_outside = behind && !was_launched;
    if (!s->is_called && !s->is_outside)
        count_unpaired(p, &s->event);
}

/* Whether consumers get changes of the span. */
static bool is_shown(const struct host_span *span)
{
    return span->type != SPAN_RANGE || !span->is_duplicate;
}

/* Notes where spans begin and end, or completes one far from the window. */
static void take_place(const struct pass *p, struct slice *s, enum span_change change)
{
    const struct walk_filter *f = p->filter;
    struct walk *w = p->walk;
    bool has_ended = change != SPAN_OPENED && change != SPAN_MARKED;
    if (f && f->core && has_ended)
        f->restore(f->context, s->span, change == SPAN_LEFT ? UINT64_MAX : s->event.begin_ns);
    if (w->crossings)
        crossings_take(w->crossings, span_stack(&w->spans, s->span->thread->index), s->span, change,
                       &s->event);
}

/* A record may end several spans that were lost before its own: each is a slice. */
static int take_span(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    const struct kernel_handles *names = &w->names[s->event.process->index].ops;
    for (;;) {
        enum span_change change = spans_take(&w->spans, &s->event, names, &s->span);
        if (change)
            take_place(p, s, change);
        if (p->ties && (change == SPAN_CLOSED || change == SPAN_LOST))
            survey_take_end(&w->survey, s->span);
        s->change = change && is_shown(s->span) ? change : SPAN_SAME;
        int error = s->change == SPAN_LOST ? pass_report(p, s) : 0;
        if (error || change != SPAN_LOST)
            return error;
    }
}

/* Stores the text of a record as the name of the number in its argument `which`. */
static int set_name(struct kernel_names *all, struct kernel_handles *names, const struct record *r,
                    unsigned which)
{
    if (r->arg_count > which)
        kernel_name_set(all, names, r->args[which], r->bytes, r->byte_count);
    return 0;
}

/* Recording pauses when the program, gpuprof ctl or a window stops it, until all allow it again. */
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
        if (now->window > ++now->records) /* a file can contain anything */
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
    case RECORD_LIBRARY_END:
    case RECORD_OP_BEGIN:
    case RECORD_OP_END: return p->needs & WALK_SPANS ? take_span(p, s) : 0;
    case RECORD_LIBRARY_PLAN:
    case RECORD_COMMUNICATOR: library_kinds_learn(&w->kinds, e); return 0;
    case RECORD_NAME: return set_name(&w->kernels, &names->handles, r, NAME_HANDLE);
    case RECORD_KERNEL_NAME: return set_name(&w->kernels, &names->kernels, r, KERNEL_NAME_NAME);
    case RECORD_OP_NAME: return set_name(&w->texts, &names->ops, r, OP_NAME_NUMBER);
    case RECORD_OP_INPUTS: return set_name(&w->texts, &names->inputs, r, OP_INPUTS_NUMBER);
    case RECORD_OP_THREAD:
        w->op_threads[e->thread->index] = record_arg(r, OP_THREAD_NUMBER);
        return 0;
    case RECORD_MODULE:
    case RECORD_PYTHON:
    case RECORD_STACK:
        w->losses[e->process->index].stacks_unread += !stack_record_is_good(r);
        return p->needs & WALK_STACKS && !w->is_surveyed ? stack_table_take(&w->survey.stacks, e)
                                                         : 0;
    case RECORD_DEVICE_ABSENT:
        w->losses[e->process->index].devices_unread |= device_missing_of_all(r);
        return 0;
    case RECORD_DEVICE_SOURCE: device_sources_learn(&w->sources, e); return 0;
    case RECORD_PAUSE:
    case RECORD_WINDOW:
        take_pause(s);
        if (!w->is_surveyed && s->pause_change)
            survey_take_pause(&w->survey, e, s->pause_change == PAUSE_BEGINS);
        return 0;
    case RECORD_LINK:
        if (p->ties)
            survey_take(&w->survey, e);
        return 0;
    default:
        if (is_device_sample(r->type))
            s->source = device_sources_find(&w->sources, e);
        survey_take(&w->survey, e);
        if (is_range_record(r->type) && p->needs & WALK_SPANS)
            error = take_span(p, s);
        break;
    }
    if (p->ties && is_correlated(r->type))
        tie(p, s);
    return error;
}

static int pass_call(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    if (p->needs & WALK_SPANS)
        spans_see_call(&w->spans, &s->event);
    if (s->event.record->flags & RECORD_CAPTURED && w->crossings)
        crossings_keep(span_stack(&w->spans, s->event.thread->index));
    if (p->ties && !p->ahead->is_known)
        survey_take_call(&w->survey, &w->spans, &s->event);
    hide(p, s);
    return report_as(p, heard_call(&s->event), s);
}

static int pass_work(const struct pass *p, struct slice *s)
{
    int done = 0;
    if (p->ties)
        tie(p, s);
    if (!s->is_outside) {
        hide(p, s);
        done = report_as(p, HEARD_WORK, s);
    }
    s->is_called = s->is_outside = false;
    return done;
}

static int pass_other(const struct pass *p, struct slice *s)
{
    struct walk *w = p->walk;
    int done = assemble(p, s);
    if (done == 0 && !s->is_outside)
        done = pass_report(p, s);
    if (done == 0 && s->source)
        device_source_pass(device_sources_find(&w->sources, &s->event), &s->event);
    s->change = SPAN_SAME;
    s->pause_change = PAUSE_SAME;
    s->source = NULL;
    s->is_called = s->is_outside = false;
    return done;
}

static inline void see(struct walk *w, const struct event *e)
{
    uint64_t *first_ns = &w->first_ns[e->process->index];
    uint64_t *last_ns = &w->last_ns[e->process->index];
    if (!*first_ns) {
        *first_ns = e->begin_ns;
        see_origin(w, e->begin_ns);
    }
    /* Flushing CUPTI after the program ended is not part of its time. */
    if (e->end_ns > *last_ns && e->record->type != RECORD_OVERHEAD)
        *last_ns = e->end_ns;
}

/* Handles calls and GPU work first: most events are these, and they change no context. */
int pass_walk(struct pass *p)
{
    struct walk *w = p->walk;
    struct slice s = {.walk = w};
    struct look_ahead ahead = {.timeline = p->timeline, .more = 1, .room = AHEAD_EVENTS};
    const uint8_t *core = p->filter ? p->filter->core : NULL;
    int more, done = 0;
    for (uint32_t i = 1; i < p->processes && i < AHEAD_PROCESSES; i *= 2)
        ahead.room *= 2;
    p->ahead = &ahead;
    while (!done && (more = look_ahead_next(&ahead, &s.event)) > 0) {
        uint8_t type = s.event.record->type;
        if (core && !core[s.event.entry] && !p->filter->keeps(p->filter->context, &s.event))
            continue;
        if (event_is_visible(type))
            see(w, &s.event);
        done = type == RECORD_CALL    ? pass_call(p, &s)
               : is_stream_work(type) ? pass_work(p, &s)
                                      : pass_other(p, &s);
    }
    look_ahead_release(&ahead);
    return done ? done : more;
}

int pass_report_left(const struct pass *p)
{
    struct walk *w = p->walk;
    static const struct record nothing;
    struct slice s = {.walk = w, .event.record = &nothing, .change = SPAN_LEFT};
    const uint32_t first = w->spans.first_thread, end = first + w->spans.thread_count;
    int error = 0;
    for (unsigned type = p->needs & WALK_SPANS ? SPAN_TYPES : 0; type-- > 0;)
        for (uint32_t i = first; i < end; i++)
            while (error == 0 && (s.span = spans_drain(&w->spans, i, type, w->last_ns))) {
                s.event.process = s.span->process;
                s.event.thread = s.span->thread;
                take_place(p, &s, SPAN_LEFT);
                error = is_shown(s.span) ? pass_report(p, &s) : 0;
            }
    return error;
}
