/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread_table.h"

#include <stdlib.h>

#include "error.h"

void thread_table_release(struct thread_table *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->threads[i]);
    free(t->threads);
    free(t->slots);
    *t = (struct thread_table){0};
}

static uint32_t slot_of(const struct thread_table *t, uint32_t number)
{
    uint32_t at = (number * 0x9E3779B1u) & (t->slot_count - 1);
    while (t->slots[at] && t->threads[t->slots[at] - 1]->number != number)
        at = (at + 1) & (t->slot_count - 1);
    return at;
}

struct thread *thread_find(struct thread_table *t, uint32_t number)
{
    if (t->last && t->last->number == number)
        return t->last;
    if (!t->count)
        return NULL;
    uint32_t at = slot_of(t, number);
    if (!t->slots[at])
        return NULL;
    return t->last = t->threads[t->slots[at] - 1];
}

static int table_grow(struct thread_table *t)
{
    uint32_t capacity = t->capacity ? 2 * t->capacity : 16;
    struct thread **threads = realloc(t->threads, capacity * sizeof(struct thread *));
    if (!threads)
        return -1;
    t->threads = threads;
    t->capacity = capacity;
    uint32_t *slots = calloc(2 * (size_t)capacity, sizeof *slots);
    if (!slots)
        return -1;
    free(t->slots);
    t->slots = slots;
    t->slot_count = 2 * capacity;
    for (uint32_t i = 0; i < t->count; i++)
        t->slots[slot_of(t, threads[i]->number)] = i + 1;
    return 0;
}

struct thread *thread_get(struct thread_table *t, uint32_t number)
{
    struct thread *thread = thread_find(t, number);
    if (thread || t->count == THREADS_MAX)
        return thread;
    if ((t->count == t->capacity || t->slot_count < 2 * t->capacity) && table_grow(t) < 0)
        return NULL;
    thread = calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    thread->number = number;
    t->slots[slot_of(t, number)] = t->count + 1;
    t->threads[t->count++] = thread;
    return t->last = thread;
}

int thread_get_error(const struct thread_table *t)
{
    return t->count == THREADS_MAX ? GPUPROF_LIMIT : GPUPROF_NO_MEMORY;
}
