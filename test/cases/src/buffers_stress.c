/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that stand for CUPTI, and one that parses:
 *   buffers_stress VERSION MEGABYTES LEAD THREADS COUNT
 * LEAD: so many filled ones at most wait for the parser. Prints how many buffers were filled, taken
 * by the parser, and refused.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/gpu_buffers.h"
#include "cupti/gpu_state.h"

enum { THREADS_MAX = 16, FILL_MAX = 512, WHOLE_EVERY = 16, WHOLE_STEP = 1024 };

struct state gp;
struct gpu gpu;

static _Atomic uint64_t counters[COUNTER_COUNT];
static _Atomic uint64_t filled, taken, refused, working;
static unsigned count, lead;

/* Nobody waits here. */
void futex_wake_all(_Atomic uint32_t *word);
void futex_wake_all(_Atomic uint32_t *word)
{
    (void)word;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Of those that are filled to their last byte, not every byte is looked at. */
static size_t step_of(size_t used)
{
    return used > FILL_MAX ? WHOLE_STEP : 1;
}

/* A buffer comes empty, and holds its owner's byte until it is taken. */
static void *fill(void *data)
{
    uint8_t mark = (uint8_t)(1 + (uintptr_t)data);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *buffer = NULL;
        size_t bytes = 0, record_max = 1;
        while (atomic_load(&filled) - atomic_load(&taken) >= lead)
            sched_yield();
        gpu_buffers_requested(&buffer, &bytes, &record_max);
        if (!buffer) {
            atomic_fetch_add(&refused, 1);
            continue;
        }
        size_t used = i % WHOLE_EVERY ? 1 + (i * 7 + mark) % FILL_MAX : bytes;
        for (size_t at = 0; at < (i % WHOLE_EVERY ? FILL_MAX : bytes); at++)
            if (buffer[at])
                fail("a buffer is not empty");
        for (size_t at = 0; at < used; at += step_of(used))
            buffer[at] = mark;
        atomic_fetch_add(&filled, 1);
        gpu_buffers_completed(NULL, mark, buffer, bytes, used);
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static void parse(void)
{
    for (;;) {
        struct gpu_buffer buffer;
        bool last = atomic_load(&working) == 0;
        while (gpu_buffers_take(&buffer)) {
            for (size_t at = 0; at < buffer.valid_bytes; at += step_of(buffer.valid_bytes))
                if (buffer.data[at] != buffer.stream)
                    fail("a buffer was written by another");
            gpu_buffers_release(&buffer);
            atomic_fetch_add(&taken, 1);
        }
        if (last)
            return;
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    if (argc != 6)
        return 2;
    unsigned thread_count = (unsigned)atoi(argv[4]);
    gp.counters = counters;
    gpu.cupti.version = (uint32_t)atoi(argv[1]);
    lead = (unsigned)atoi(argv[3]);
    count = (unsigned)atoi(argv[5]);
    if (thread_count > THREADS_MAX || !gpu_buffers_create((uint64_t)atoi(argv[2]) << 20))
        return 2;
    atomic_store(&working, thread_count);
    for (uintptr_t i = 0; i < thread_count; i++)
        pthread_create(&threads[i], NULL, fill, (void *)i);
    parse();
    for (unsigned i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    printf("%llu %llu %llu\n", (unsigned long long)filled, (unsigned long long)taken,
           (unsigned long long)refused);
    return 0;
}
