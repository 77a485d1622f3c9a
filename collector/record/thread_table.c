/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread_table.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"

void thread_table_release(struct thread_table *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->threads[i]);
    free(t->threads);
    key_map_release(&t->numbers);
    key_map_release(&t->tids);
    *t = (struct thread_table){0};
}

struct thread *thread_find(struct thread_table *t, uint32_t number)
{
    if (t->last && t->last->number == number)
        return t->last;
    uint64_t place = key_map_get(&t->numbers, (struct key){.a = number});
    return place ? t->last = t->threads[place - 1] : NULL;
}

struct thread *thread_get(struct thread_table *t, uint32_t number)
{
    struct thread *thread = thread_find(t, number);
    if (thread || t->count == THREADS_MAX)
        return thread;
    thread = memory_new(1, sizeof *thread);
    thread->number = number;
    t->numbers.count_max = THREADS_MAX;
    ARRAY_PUSH(t->threads, t->count, &thread);
    (void)key_map_set(&t->numbers, (struct key){.a = number}, t->count);
    return t->last = thread;
}

struct thread *thread_of_tid(struct thread_table *t, uint64_t tid)
{
    t->tids.count_max = THREADS_MAX;
    for (; t->tid_count < t->count; t->tid_count++)
        if (t->threads[t->tid_count]->tid)
            key_map_set(&t->tids, (struct key){.a = t->threads[t->tid_count]->tid},
                        t->tid_count + 1ull);
    uint64_t place = key_map_get(&t->tids, (struct key){.a = tid});
    return place ? t->threads[place - 1] : NULL;
}
