/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/idle_thread.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

#define ENTRIES_FIRST 8

void idle_thread_release(struct idle_thread *t)
{
    free(t->entries);
    *t = (struct idle_thread){0};
}

/* Makes room for one more entry; false if out of memory. */
static bool idle_thread_make_room(struct idle_thread *t)
{
    if (t->count < t->capacity)
        return true;
    if (t->capacity == IDLE_ENTRIES_MAX) {
        t->first = t->first + 1 < t->capacity ? t->first + 1 : 0;
        t->count--;
        t->has_forgotten = true;
        return true;
    }
    /* The ring has not wrapped: nothing is forgotten before the last size. */
    return array_grow(&t->entries, &t->capacity, sizeof *t->entries, ENTRIES_FIRST);
}

static bool is_same_name(const struct idle_place *a, const struct idle_place *b)
{
    return a->word == b->word && a->kind == b->kind;
}

void idle_thread_ended(struct idle_thread *t, struct idle_place place, uint64_t begin_ns,
                       uint64_t end_ns)
{
    const struct idle_entry *last = idle_thread_last(t);
    if (t->depth || !place.kind || !last || end_ns <= last->end_ns)
        return;
    if (t->spent_since_ns != last->end_ns)
        t->spent_count = 0;
    t->spent_since_ns = last->end_ns;
    if (begin_ns <= last->begin_ns)
        place.stack = last->place.stack; /* the last known stack in it */
    uint64_t ns = end_ns - (begin_ns > last->end_ns ? begin_ns : last->end_ns);
    uint32_t i = 0, least = 0;
    for (; i < t->spent_count && !is_same_name(&t->spent[i].place, &place); i++)
        least = t->spent[i].ns < t->spent[least].ns ? i : least;
    if (i < t->spent_count)
        t->spent[i].ns += ns;
    else if (i < IDLE_SPENT_MAX)
        t->spent[t->spent_count++] = (struct idle_spent){place, ns};
    else if (t->spent[least].ns < ns)
        t->spent[least] = (struct idle_spent){place, ns};
}

/* The innermost, thus shortest, name that took half of that time; NULL if there is none. */
static const struct idle_spent *find_spent(const struct idle_thread *t, uint64_t begin_ns,
                                           uint64_t end_ns)
{
    const struct idle_spent *found = NULL;
    uint32_t count = t->spent_since_ns == begin_ns ? t->spent_count : 0;
    for (uint32_t i = 0; i < count; i++)
        if (t->spent[i].ns >= (end_ns - begin_ns) / 2 && (!found || t->spent[i].ns < found->ns))
            found = &t->spent[i];
    return found;
}

/* Appends the time from the last call to end_ns, if a name took most of it. */
static int append_between(struct idle_thread *t, uint64_t end_ns, struct silence_look look)
{
    const struct idle_entry *last = idle_thread_last(t);
    uint64_t begin_ns = last ? last->end_ns : end_ns;
    if (end_ns - begin_ns < IDLE_NEAR_NS)
        return 0;
    const struct idle_spent *spent = find_spent(t, begin_ns, end_ns);
    if (!spent)
        return 0;
    if (!idle_thread_make_room(t))
        return GPUPROF_NO_MEMORY;
    *idle_thread_entry(t, t->count++) = (struct idle_entry){
        .begin_ns = begin_ns,
        .end_ns = end_ns,
        .place = spent->place,
        .look = look,
        .cause = end_ns - begin_ns < IDLE_NOTHING_NS ? IDLE_HOST : IDLE_NOTHING};
    return 0;
}

int idle_thread_append(struct idle_thread *t, const struct idle_entry *entry)
{
    struct idle_entry *last = idle_thread_last(t);
    /* A damaged file may have calls of one thread that overlap. */
    uint64_t begin_ns = last && entry->begin_ns < last->end_ns ? last->end_ns : entry->begin_ns;
    if (last && idle_entry_go_on(last, entry))
        return 0;
    if (append_between(t, begin_ns, entry->look) < 0 || !idle_thread_make_room(t))
        return GPUPROF_NO_MEMORY;
    last = idle_thread_entry(t, t->count++);
    *last = *entry;
    last->begin_ns = begin_ns;
    last->end_ns = entry->end_ns < begin_ns ? begin_ns : entry->end_ns;
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
    /* Calls made before it was recognised belong to it, too. */
    for (struct idle_entry *last; (last = idle_thread_last(t)) && last->begin_ns >= what->begin_ns;)
        t->count--;
    return idle_thread_append(t, what);
}

int idle_thread_part(struct idle_thread *t, const struct idle_entry *part)
{
    struct idle_entry *last = idle_thread_last(t);
    if (t->depth || !last)
        return 0;
    if (part->begin_ns >= last->end_ns)
        return idle_thread_append(t, part);
    if (part->begin_ns < last->begin_ns || part->end_ns > last->end_ns)
        return 0;
    struct idle_entry rest = *last;
    last->end_ns = part->begin_ns;
    last->is_open = false;
    rest.begin_ns = part->end_ns;
    int error = idle_thread_append(t, part);
    return error < 0 ? error : idle_thread_append(t, &rest);
}
