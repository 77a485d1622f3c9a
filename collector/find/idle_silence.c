/* SPDX-License-Identifier: Apache-2.0 */
/* What threads did while they made no call. */
#include "find/idle_state.h"

#include <stdlib.h>

#include "error.h"

struct idle_thread *idle_thread_of(struct idle *d, const struct thread *thread)
{
    struct idle_thread **t = &d->threads[thread->index];
    if (!*t)
        *t = calloc(1, sizeof **t);
    return *t;
}

int idle_take_silence(struct idle *d, const struct slice *s)
{
    struct idle_thread *t = idle_thread_of(d, s->event.thread);
    if (!t)
        return GPUPROF_NO_MEMORY;
    t->silence =
        (struct idle_silence){.ns = record_arg(s->event.record, SILENCE_NS), .is_pending = true};
    (void)silence_look_of(s->event.record, &t->silence.look); /* else it is as if the thread ran */
    return 0;
}

void idle_silence_ended(struct idle_thread *t, struct idle_entry *call)
{
    struct idle_silence *silence = &t->silence;
    const struct idle_entry *last = idle_thread_last(t);
    uint32_t from = last ? last->place.function : IDLE_NONE;
    if (silence->is_pending) {
        silence->is_pending = false;
        silence->function = call->place.function;
        silence->from = from;
        silence->stack = call->place.stack;
    } else if (!silence->ns || !last || call->place.function != silence->function ||
               from != silence->from || call->begin_ns < last->end_ns + IDLE_SILENT_NS) {
        return;
    }
    call->look = silence->look;
    call->place.stack = call->place.stack ? call->place.stack : silence->stack;
}
