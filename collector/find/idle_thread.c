/* SPDX-License-Identifier: Apache-2.0 */
#include "find/idle_thread.h"

#include <stdlib.h>

#include "error.h"

#define ENTRIES_FIRST 8

void idle_thread_release(struct idle_thread *t)
{
    free(t->entries);
    *t = (struct idle_thread){0};
}

/* Room for one more; false: no memory. */
static bool make_room(struct idle_thread *t)
{
    if (t->count < t->capacity)
        return true;
    if (t->capacity == IDLE_ENTRIES_MAX) {
        t->first = t->first + 1 < t->capacity ? t->first + 1 : 0;
        t->count--;
        t->has_forgotten = true;
        return true;
    }
    /* It has not gone round yet: nothing is forgotten before the last size. */
    uint32_t capacity = t->capacity ? 2 * t->capacity : ENTRIES_FIRST;
    struct idle_entry *entries = realloc(t->entries, capacity * sizeof *entries);
    if (!entries)
        return false;
    t->entries = entries;
    t->capacity = capacity;
    return true;
}

int idle_thread_append(struct idle_thread *t, const struct idle_entry *entry)
{
    struct idle_entry *last = idle_thread_last(t);
    /* A damaged file may have calls of one thread that overlap. */
    uint64_t begin_ns = last && entry->begin_ns < last->end_ns ? last->end_ns : entry->begin_ns;
    uint64_t end_ns = entry->end_ns < begin_ns ? begin_ns : entry->end_ns;
    if (last && idle_entry_goes_on(last, entry, begin_ns)) {
        last->end_ns = end_ns;
        last->is_open = entry->is_open;
        return 0;
    }
    if (!make_room(t))
        return GPUPROF_NO_MEMORY;
    last = idle_thread_entry(t, t->count++);
    *last = *entry;
    last->begin_ns = begin_ns;
    last->end_ns = end_ns;
    return 0;
}

void idle_thread_enter(struct idle_thread *t, const struct idle_entry *what)
{
    if (!t->depth)
        t->in = *what;
    t->depth += t->in.cause == what->cause;
}

int idle_thread_leave(struct idle_thread *t, const struct idle_entry *what)
{
    if (t->depth && t->in.cause != what->cause)
        return 0;
    if (t->depth && --t->depth)
        return 0;
    /* What was not known to be that when it began has its calls here. */
    for (struct idle_entry *last; (last = idle_thread_last(t)) && last->begin_ns >= what->begin_ns;)
        t->count--;
    return idle_thread_append(t, what);
}

int idle_thread_part(struct idle_thread *t, const struct idle_entry *part)
{
    struct idle_entry *last = idle_thread_last(t);
    if (t->depth || !last || part->begin_ns < last->begin_ns || part->end_ns > last->end_ns)
        return 0;
    struct idle_entry rest = *last;
    last->end_ns = part->begin_ns;
    last->is_open = false;
    rest.begin_ns = part->end_ns;
    int error = idle_thread_append(t, part);
    return error < 0 ? error : idle_thread_append(t, &rest);
}
