/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events become slices (event_walk.h), which a pass is told of. Each function returns 0, WALK_STOP
 * of a consumer, or an error.
 */
#ifndef GPUPROF_COLLECTOR_WALK_SLICES_H
#define GPUPROF_COLLECTOR_WALK_SLICES_H

#include "api/api.h"
#include "resolve/look_ahead.h"
#include "resolve/slice.h"

/*
 * One time through the events of a recording (event_walk.h): what is wanted of it, and who is told
 * of which slices.
 */

/* Slices that go to the same consumers. */
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

/* One time through the events. */
struct pass {
    struct walk *walk;
    struct timeline *timeline;
    struct look_ahead *ahead;         /* a view */
    const struct consumer *consumers; /* none: a survey */
    unsigned count;
    struct listener listeners[HEARD_KINDS][WALK_CONSUMERS_MAX + 1];
    struct listener of_hidden[HEARD_KINDS][WALK_CONSUMERS_MAX + 1];
    const struct walk_filter *filter; /* NULL: nothing is hidden */
    unsigned needs;
    bool learns;        /* which devices and contexts there are is not known yet */
    bool learns_names;  /* nor what numbers of kernels and operators mean */
    bool learns_ops;    /* nor are the threads of operators, and kinds of libraries' calls */
    bool learns_stacks; /* nor are these, */
    bool learns_pauses; /* nor these */
    bool ties;          /* somebody needs the calls of work */
};

/* What the consumers of this pass need not hear of is left out: before it begins. */
void pass_add_listeners(struct pass *p);

/* All who hear of such a slice are told. 0, or what the first of them returned that is not 0. */
int pass_tell(const struct pass *p, struct slice *s);

/* Does it say what is around others? */
static inline bool pass_is_around(const struct slice *s)
{
    return s->change || s->op_change || s->library_change || s->pause_change;
}

/* Likewise, where it is known which slices are like it, and what is hidden of it. */
static inline int pass_tell_as(const struct pass *p, enum heard as, const struct slice *s)
{
    bool is_told = !s->is_hidden || (pass_is_around(s) && s->change != RANGE_MARKED);
    for (const struct listener *l = is_told ? p->listeners[as] : p->of_hidden[as]; l->hears; l++) {
        int more = l->hears(l->context, s);
        if (more)
            return more;
    }
    return 0;
}

/* What of it the filter has not. */
static inline void pass_hide(const struct pass *p, struct slice *s)
{
    const struct walk_filter *f = p->filter;
    if (!f)
        return;
    s->is_hidden = !f->has(f->context, s);
    s->is_call_hidden = s->is_called && (s->is_hidden || !f->has_call(f->context, s));
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

/* The event of `s`, by its kind: a call, work of a device, or anything else. What these set in `s`
 * is as before when they return. */
int slices_pass_call(const struct pass *p, struct slice *s);
int slices_pass_work(const struct pass *p, struct slice *s);
int slices_pass_other(const struct pass *p, struct slice *s);

#endif
