/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes slices from events (event_walk.h) and passes them to the consumers of a pass. Each function
 * returns 0, a consumer's WALK_STOP, or an error.
 */
#ifndef GPUPROF_COLLECTOR_WALK_SLICES_H
#define GPUPROF_COLLECTOR_WALK_SLICES_H

#include "api/api.h"
#include "resolve/event_walk.h"

/*
 * The events of a timeline, with a look at the next ones: clock noise can place GPU work a little
 * before its call. Memory: AHEAD_EVENTS of 260 bytes, with their byte strings, after the first look
 * ahead.
 */
#define AHEAD_EVENTS 512 /* a power of two */
#define AHEAD_NS     1000000u

struct ahead_event {
    struct event event;
    struct record record; /* the record of `event` */
    uint8_t *bytes;       /* owned: byte string of the record */
    bool is_known;
};

struct look_ahead {
    struct timeline *timeline;  /* a view */
    struct ahead_event *events; /* owned; NULL: no look ahead so far */
    uint32_t first, count;
    struct record now; /* record of the event that was returned last */
    int more;          /* last result of the timeline */
    bool is_known;     /* the event returned last was found by look_ahead_find before */
};

static inline void look_ahead_init(struct look_ahead *l, struct timeline *timeline)
{
    *l = (struct look_ahead){.timeline = timeline, .more = 1};
}

void look_ahead_release(struct look_ahead *l);

/* look_ahead_next when events are queued. */
int look_ahead_take(struct look_ahead *l, struct event *event);

/* The next event, like timeline_next. */
static inline int look_ahead_next(struct look_ahead *l, struct event *event)
{
    l->is_known = false;
    return l->events ? look_ahead_take(l, event) : timeline_next(l->timeline, event);
}

/*
 * Finds, among the next events, the call with the correlation id of `now`, the event returned last.
 * NULL: none within AHEAD_NS, or an error. The result is a view until the next event; is_known is
 * set when it is returned in turn. The record of `now` stays valid until then, too.
 */
const struct event *look_ahead_find(struct look_ahead *l, struct event *now, int *error);

/*
 * A pass: one time through the events of a recording. It has what the consumers need of it, and
 * which slices each consumer gets.
 */

/* Kinds of slices, each with its own list of consumers. */
enum heard {
    HEARD_PLAIN_CALL,
    HEARD_GRAPH_CALL,
    HEARD_OPEN_CALL,
    HEARD_WORK,
    HEARD_OTHER,
    HEARD_KINDS
};

typedef int hears_fn(void *context, const struct slice *s);

struct listener {
    hears_fn *hears; /* NULL: the end of the list */
    void *context;
};

struct pass {
    struct walk *walk;
    struct timeline *timeline;
    struct look_ahead *ahead;         /* a view */
    const struct consumer *consumers; /* NULL: this is a survey */
    unsigned count;
    struct listener listeners[HEARD_KINDS][WALK_CONSUMERS_MAX + 1];
    struct listener of_filtered[HEARD_KINDS][WALK_CONSUMERS_MAX + 1];
    const struct walk_filter *filter; /* NULL: nothing is filtered */
    unsigned needs;
    bool learns;        /* devices and contexts are not known yet */
    bool learns_names;  /* nor are the names of kernels and operators */
    bool learns_ops;    /* nor the threads of operators, and kinds of library calls */
    bool learns_stacks; /* nor the stacks */
    bool learns_pauses; /* nor the pauses */
    bool ties;          /* a consumer needs the calls of GPU work */
};

/* Builds the lists of consumers by their needs and skips; call it before the pass begins. */
void pass_add_listeners(struct pass *p);

/* Passes the slice to all its consumers. Returns 0, or the first result that is not 0. */
int pass_report(const struct pass *p, struct slice *s);

/* Whether the slice gives context for others. */
static inline bool pass_is_around(const struct slice *s)
{
    return s->change || s->op_change || s->library_change || s->pause_change;
}

/* Like pass_report, for a slice with a known kind and after the filter was applied. */
static inline int pass_report_as(const struct pass *p, enum heard as, const struct slice *s)
{
    bool is_reported = !s->is_filtered || (pass_is_around(s) && s->change != RANGE_MARKED);
    for (const struct listener *l = is_reported ? p->listeners[as] : p->of_filtered[as]; l->hears;
         l++) {
        int more = l->hears(l->context, s);
        if (more)
            return more;
    }
    return 0;
}

/* Applies the filter to the slice. */
static inline void pass_hide(const struct pass *p, struct slice *s)
{
    const struct walk_filter *f = p->filter;
    if (!f)
        return;
    s->is_filtered = !f->has(f->context, s);
    s->is_call_filtered = s->is_called && (s->is_filtered || !f->has_call(f->context, s));
}

static inline enum heard pass_heard_call(const struct event *e)
{
    unsigned class = e->function->class, flags = e->record->flags;
    if (flags & RECORD_OPEN)
        return HEARD_OPEN_CALL;
    return flags & RECORD_CAPTURED || class == API_GRAPH_LAUNCH || class == API_GRAPH
               ? HEARD_GRAPH_CALL
               : HEARD_PLAIN_CALL;
}

/* Handle the event of `s` by its kind: a call, GPU work, or anything else. They restore all members
 * of `s` that they change. */
int slices_pass_call(const struct pass *p, struct slice *s);
int slices_pass_work(const struct pass *p, struct slice *s);
int slices_pass_other(const struct pass *p, struct slice *s);

#endif
