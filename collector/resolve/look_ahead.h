/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a timeline (timeline.h), some of which can be looked at before their turn: by the
 * noise of two clocks, work of a device may begin a little before its call. Memory: AHEAD_EVENTS of
 * 260 bytes, with their byte strings, once somebody has looked ahead.
 */
#ifndef GPUPROF_COLLECTOR_LOOK_AHEAD_H
#define GPUPROF_COLLECTOR_LOOK_AHEAD_H

#include "resolve/timeline.h"

#define AHEAD_EVENTS 512 /* a power of two */
#define AHEAD_NS     1000000u

struct ahead_event {
    struct event event;
    struct record record; /* its */
    uint8_t *bytes;       /* owned: the record's */
    uint32_t room;
    bool is_known;
};

struct look_ahead {
    struct timeline *timeline;  /* a view */
    struct ahead_event *events; /* owned; NULL: nobody has looked ahead */
    uint32_t first, count;
    struct record now; /* of the event that was handed out */
    int more;          /* what the timeline said last */
    bool is_known;     /* the event that was handed out had been found before its turn */
};

static inline void look_ahead_init(struct look_ahead *l, struct timeline *timeline)
{
    *l = (struct look_ahead){.timeline = timeline, .more = 1};
}

void look_ahead_release(struct look_ahead *l);

/* look_ahead_next where events wait. */
int look_ahead_take(struct look_ahead *l, struct event *event);

/* The next event, as timeline_next says it. */
static inline int look_ahead_next(struct look_ahead *l, struct event *event)
{
    l->is_known = false;
    return l->events ? look_ahead_take(l, event) : timeline_next(l->timeline, event);
}

/*
 * The call with the correlation id of `now`, which was handed out last, among the next events;
 * NULL: there is none within AHEAD_NS, or an error. A view until the next event; when its turn
 * comes, is_known says so. The record of `now` stays until then, too.
 */
const struct event *look_ahead_find(struct look_ahead *l, struct event *now, int *error);

#endif
