/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread_table.h"

#include <stdlib.h>

#include "error.h"

void thread_table_release(struct thread_table *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->threads[i]);
    free(t->threads);
    number_set_release(&t->numbers);
    key_map_release(&t->tids);
    *t = (struct thread_table){0};
}

static uint32_t thread_table_hash_of(const void *item)
{
    return (*(const struct thread *const *)item)->number * 0x9E3779B1u;
}

static bool are_same(const void *a, const void *b)
{
    return (*(const struct thread *const *)a)->number == (*(const struct thread *const *)b)->number;
}

static const struct number_kind kind = {
    .item_bytes = sizeof(struct thread *), .hash = thread_table_hash_of, .same = are_same};

struct thread *thread_find(struct thread_table *t, uint32_t number)
{
    if (t->last && t->last->number == number)
        return t->last;
    const struct thread wanted = {.number = number}, *item = &wanted;
    const uint32_t *place =
        t->count ? number_set_find(&t->numbers, &kind, t->threads, t->count, &item) : NULL;
    return place && *place ? t->last = t->threads[*place - 1] : NULL;
}

struct thread *thread_get(struct thread_table *t, uint32_t number)
{
    struct thread *thread = thread_find(t, number);
    if (thread || t->count == THREADS_MAX)
        return thread;
    thread = calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    thread->number = number;
    if (NUMBER_ADD(&t->numbers, &kind, t->threads, t->count, THREADS_MAX, &thread) > 0)
        return t->last = thread;
    free(thread);
    return NULL;
}

struct thread *thread_of_tid(struct thread_table *t, uint64_t tid)
{
    t->tids.count_max = THREADS_MAX;
    for (; t->tid_count < t->count; t->tid_count++)
        if (t->threads[t->tid_count]->tid)
            key_map_set(&t->tids, (struct key){t->threads[t->tid_count]->tid, 0, 0},
                        t->tid_count + 1ull); /* without memory it is not found */
    uint64_t place = key_map_get(&t->tids, (struct key){tid, 0, 0});
    return place ? t->threads[place - 1] : NULL;
}

int thread_get_error(const struct thread_table *t)
{
    return t->count == THREADS_MAX ? GPUPROF_LIMIT : GPUPROF_NO_MEMORY;
}
