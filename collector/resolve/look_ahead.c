/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/look_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

void look_ahead_release(struct look_ahead *l)
{
    for (uint32_t i = 0; l->events && i < AHEAD_EVENTS; i++)
        free(l->events[i].bytes);
    free(l->events);
    *l = (struct look_ahead){0};
}

static struct ahead_event *at(const struct look_ahead *l, uint32_t index)
{
    return &l->events[(l->first + index) % AHEAD_EVENTS];
}

int look_ahead_take(struct look_ahead *l, struct event *event)
{
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
static int look_ahead_keep(struct ahead_event *to, const struct event *event)
{
    uint32_t bytes = event->record->byte_count;
    free(to->bytes);
    *to = (struct ahead_event){.event = *event, .record = *event->record};
    to->event.record = &to->record;
    if (!to->record.bytes)
        return 0;
    to->record.bytes = to->bytes = malloc(bytes);
    if (!to->bytes)
        return GPUPROF_NO_MEMORY;
    memcpy(to->bytes, event->record->bytes, bytes);
    return 0;
}

/* Reads ahead; keeps the slot of the last returned event unchanged. */
static int look_ahead_fill(struct look_ahead *l, uint64_t until_ns)
{
    struct event event;
    int error = 0;
    while (error == 0 && l->more > 0 && l->count < AHEAD_EVENTS - 1 &&
           (!l->count || at(l, l->count - 1)->event.begin_ns <= until_ns))
        if ((l->more = timeline_next(l->timeline, &event)) > 0)
            error = look_ahead_keep(at(l, l->count++), &event);
    return error;
}

const struct event *look_ahead_find(struct look_ahead *l, struct event *now, int *error)
{
    if (!l->events && !(l->events = calloc(AHEAD_EVENTS, sizeof *l->events))) {
        *error = GPUPROF_NO_MEMORY;
        return NULL;
    }
    l->now = *now->record;
    l->now.bytes = NULL;
    l->now.byte_count = 0;
    now->record = &l->now;
    *error = look_ahead_fill(l, now->begin_ns + AHEAD_NS);
    for (uint32_t i = 0; *error == 0 && i < l->count; i++) {
        struct ahead_event *e = at(l, i);
        if (e->record.correlation == l->now.correlation && e->record.type == RECORD_CALL &&
            e->event.process == now->process) {
            e->is_known = true;
            return &e->event;
        }
    }
    return NULL;
}
