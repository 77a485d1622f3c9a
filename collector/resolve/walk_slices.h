/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes slices from events (event_walk.h) and passes them to the consumers of a pass. Each function
 * returns 0, a consumer's WALK_STOP, or an error.
 */
#ifndef GPUPROF_COLLECTOR_WALK_SLICES_H
#define GPUPROF_COLLECTOR_WALK_SLICES_H

#include "api/api.h"
#include "resolve/slice.h"

struct look_ahead; /* walk_slices.c */

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
    bool sees_filtered;
};

struct pass {
    struct walk *walk;
    struct timeline *timeline;
    struct look_ahead *ahead;         /* during pass_walk */
    uint32_t processes;               /* of the walk */
    const struct consumer *consumers; /* NULL: this is a survey */
    unsigned count;
    struct listener listeners[HEARD_KINDS][WALK_CONSUMERS_MAX + 1];
    const struct walk_filter *filter; /* NULL: nothing is filtered */
    unsigned needs;
    bool ties; /* a consumer needs the calls of GPU work */
};

/* Notes the first event of a process. */
static inline void see_origin(struct walk *w, uint64_t first_ns)
{
    uint64_t *origin_ns = &w->survey.origin_ns;
    *origin_ns = *origin_ns && *origin_ns < first_ns ? *origin_ns : first_ns;
}

/* Passes all events, in the order of time. */
int pass_walk(struct pass *p);

/* Passes on what is still open after the last event. */
int pass_report_left(const struct pass *p);

#endif
