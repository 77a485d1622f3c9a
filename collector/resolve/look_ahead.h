/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a timeline (timeline.h), with a look at the next ones: clock noise can place GPU
 * work a little before its call. Memory: AHEAD_EVENTS of 260 bytes, with their byte strings, after
 * the first look ahead.
 */
#ifndef GPUPROF_COLLECTOR_LOOK_AHEAD_H
#define GPUPROF_COLLECTOR_LOOK_AHEAD_H

#include "resolve/timeline.h"

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

#endif
