/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are hard to measure: cost_shapes SHAPE MS. Each goes on for so long, or,
 * 0, until its stdin ends, and prints how
 * many calls it has made.
 */
#include "range/gpuprof.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tiny_cudart.h"
#include "until.h"

enum {
    IDLE_THREADS = 1100,
    FEW = 5,
    MANY = 100,
    SELDOM = 2,
    SELDOM_US = 50000,
    STACK_BYTES = 64 << 10
};

static atomic_ulong made;
static uint64_t end_ms;
static pthread_barrier_t all_are_there;

static void calls(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        cudaMemset(NULL, 0, 1);
    atomic_fetch_add(&made, count);
}

static void *few_calls(void *unused)
{
    calls(FEW);
    return unused;
}

static void *many_calls(void *unused)
{
    while (!is_until(end_ms))
        calls(MANY), usleep(1000);
    return unused;
}

static void *call_and_wait(void *unused)
{
    calls(1);
    pthread_barrier_wait(&all_are_there);
    pthread_barrier_wait(&all_are_there);
    return unused;
}

static void start(pthread_t *thread, void *(*body)(void *))
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(thread, &attributes, body, NULL) != 0)
        abort();
}

/* Hardly any calls at all. */
static void seldom(void)
{
    while (!is_until(end_ms))
        calls(SELDOM), usleep(SELDOM_US);
}

/* After one call nothing but ranges. */
static void ranges(void)
{
    calls(1);
    while (!is_until(end_ms)) {
        for (unsigned i = 0; i < MANY; i++)
            gpuprof_range_push("range"), gpuprof_range_pop();
        usleep(1000);
    }
}

/* Threads one after another, each of a few calls. */
static void short_threads(void)
{
    while (!is_until(end_ms)) {
        pthread_t thread;
        start(&thread, few_calls);
        pthread_join(thread, NULL);
    }
}

/* The one that calls comes after more than have sums of their own. */
static void late_thread(void)
{
    pthread_t thread, idle;
    pthread_barrier_init(&all_are_there, NULL, IDLE_THREADS + 1);
    for (unsigned i = 0; i < IDLE_THREADS; i++)
        start(&idle, call_and_wait);
    pthread_barrier_wait(&all_are_there);
    start(&thread, many_calls);
    pthread_join(thread, NULL);
    pthread_barrier_wait(&all_are_there);
}

/* All that call share one sum. */
static void late_threads(void)
{
    enum { COUNT = 8 };
    pthread_t threads[COUNT], idle;
    pthread_barrier_init(&all_are_there, NULL, IDLE_THREADS + 1);
    for (unsigned i = 0; i < IDLE_THREADS; i++)
        start(&idle, call_and_wait);
    pthread_barrier_wait(&all_are_there);
    for (unsigned i = 0; i < COUNT; i++)
        start(&threads[i], many_calls);
    for (unsigned i = 0; i < COUNT; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_wait(&all_are_there);
}

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        void (*run)(void);
    } shapes[] = {{"seldom", seldom},
                  {"ranges", ranges},
                  {"short-threads", short_threads},
                  {"late-thread", late_thread},
                  {"late-threads", late_threads}};
    end_ms = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    end_ms += end_ms ? now_ms() : 0;
    if (argc > 1 && strcmp(argv[1], "many") == 0)
        many_calls(NULL);
    for (unsigned i = 0; argc > 1 && i < sizeof shapes / sizeof shapes[0]; i++)
        if (strcmp(argv[1], shapes[i].name) == 0)
            shapes[i].run();
    printf("%lu\n", atomic_load(&made));
    return 3;
}
