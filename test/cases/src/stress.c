/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks, pool, writer, names, captures and ranges under threads that come and go, without CUDA:
 * the calls are begun and ended here as a wrapper does it. Built together with inject/ for the
 * sanitizers. stress THREADS CALLS It prints how many calls it made; the recording must hold as
 * many. With GPUPROF_OS there are calls that waited, too: it prints how many.
 *
 * stress THREADS SECONDS PLUGIN COPY: stacks are taken through the functions of a plugin meanwhile,
 * by threads that stay, come and go, throw; after half of the time, its copy is unloaded and
 * loaded.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "hook/hook_table.h"
#include "host/os_table.h"
#include "range/labels.h"
#include "range/user_ranges.h"
#include "stack/modules.h"
#include "stress_calls.h"

static const uint8_t stream_kinds[] = {ARG_STREAM};
static const uint8_t event_kinds[] = {ARG_EVENT, ARG_STREAM, ARG_FLAGS};

static const uint8_t none_late[API_ARGS_MAX];

#define SITE(function, count, kinds, role)                                                         \
    {                                                                                              \
        API_CODE_##function, count, kinds, none_late, API_CLASS_OF_##role, API_PENDING_OF_RUNTIME, \
            API_CAPTURE_OF_##role, API_COST_OF_##role                                              \
    }
static const struct call_site begin_capture =
    SITE(cudaStreamBeginCapture, 1, stream_kinds, CAPTURE_BEGIN);
static const struct call_site end_capture =
    SITE(cudaStreamEndCapture, 1, stream_kinds, CAPTURE_END);
static const struct call_site record = SITE(cudaEventRecord, 2, event_kinds, EVENT_RECORD);

static unsigned long call_count;
static unsigned pause_us; /* $STRESS_PAUSE_US, after every 50 calls */

/* Some begin before anybody's first call, and some end on another thread. */
static void say_something(uint64_t thread, unsigned long i)
{
    static _Atomic uint64_t started;
    char text[32];
    int length = snprintf(text, sizeof text, "%lu %lu", (unsigned long)thread, i);
    struct range_event e = {.text = text, .byte_count = (uint32_t)length};
    if (i % 16 == 0)
        e.message = label_string(0, text, e.byte_count);
    if (i % 64 == 0)
        e.domain = label_domain(text, i % 128 ? 1 : 2);
    range_push(&e);
    if (i % 8 == 0)
        range_end(atomic_exchange(&started, range_start(&e)));
    if (i % 32 == 0)
        range_labels_changed();
    range_mark(&e);
    range_pop(e.domain);
}

/* As libgpuprof-os.so tells of them. */
static const struct os_function functions[] = {{"pthread_mutex_lock", OS_LOCK}, {"read", OS_FILE}};
static _Alignas(64) unsigned char kept[OS_KEPT_BYTES], holders[OS_HOLDERS_BYTES];
static struct os_client client = {.threshold = OS_OFF,
                                  .functions = functions,
                                  .function_count = 2,
                                  .kept = kept,
                                  .holders = holders};
static const struct os_host *host;
static _Atomic unsigned long waited_count;

static void wait_for_something(unsigned long i)
{
    uint64_t now = ticks_now();
    struct os_said said = {
        .function = i % 2, .known_fd = i % 2, .begin = now - 1, .end = now, .object = 0x40};
    if (!host)
        return;
    host->call(&said);
    atomic_fetch_add(&waited_count, 1);
}

static void calls_of(uint64_t thread, unsigned long count)
{
    say_something(thread, 0);
    for (unsigned long i = 0; i < count; i++) {
        uint64_t kernel = 0x1000 + 16 * (i % 300), stream = 0x100 + thread;
        const uint64_t words[] = {kernel, 1, 1, i, stream};
        const uint64_t event_words[] = {0x5000 + i % 7, stream};
        if (i % 4 == 0)
            say_something(thread, i);
        if (i % 20 == 0)
            wait_for_something(i / 20);
        if (i % 50 == 0) {
            char name[32];
            snprintf(name, sizeof name, "kernel_%lu_%lu", (unsigned long)thread, i);
            name_define(kernel, name, true, 0x77);
        }
        stress_call(&stress_launch, words);
        if (i % 100 == 0 && !pause_us) /* while a stream is captured no call is passed by */
            stress_call(&begin_capture, &stream);
        if (i % 10 == 0)
            stress_call(&record, event_words);
        if (i % 100 == 30)
            stress_call(&end_capture, &stream);
        if (i % 1000 == 999)
            names_drop_module(0x77);
        if (pause_us && i % 50 == 49)
            usleep(pause_us);
    }
}

static void *long_life(void *data)
{
    calls_of((uint64_t)(uintptr_t)data, call_count);
    return NULL;
}

static void *short_life(void *data)
{
    calls_of((uint64_t)(uintptr_t)data, 20);
    return NULL;
}

static void *parent_of_many(void *data)
{
    for (unsigned long i = 0; i < call_count / 100; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_life, data) == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

/* ---- stacks ---- */

typedef void (*through_fn)(void (*call)(void *), void *data, unsigned depth);

static through_fn through, throwing;
static const char *copy_path;
static double end_seconds, half_seconds;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void one_launch(void *data)
{
    const uint64_t words[] = {0x1000, 1, 1, *(const unsigned long *)data, 0x100};
    stress_call(&stress_launch, words);
}

static void *take_stacks(void *data)
{
    for (unsigned long i = 0; seconds_now() < end_seconds; i++) {
        (i % 8 ? through : throwing)(one_launch, &i, (unsigned)(i + (uintptr_t)data) % 40);
        if (i % 16 == 0)
            usleep(2000); /* others want a processor, too */
    }
    return NULL;
}

static void *take_few_stacks(void *data)
{
    for (unsigned long i = 0; i < 20; i++)
        (i % 8 ? through : throwing)(one_launch, &i, (unsigned)(i + (uintptr_t)data) % 40);
    return NULL;
}

static void *parent_of_takers(void *data)
{
    while (seconds_now() < end_seconds) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, take_few_stacks, data) == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

/* As the hooks of dlclose do it. */
static void *open_and_close(void *data)
{
    while (seconds_now() < end_seconds) {
        void *handle = dlopen(copy_path, RTLD_NOW | RTLD_LOCAL);
        through_fn of_copy = handle ? (through_fn)dlsym(handle, "through") : NULL;
        if (!of_copy)
            abort();
        do
            for (unsigned long i = 0; i < 3; i++)
                of_copy(one_launch, &i, (unsigned)(uintptr_t)data % 40);
        while (seconds_now() < half_seconds);
        modules_closing();
        dlclose(handle);
        modules_closed();
        usleep(1000);
    }
    return NULL;
}

static void take_for(unsigned count, double seconds, const char *path, const char *copy)
{
    static void *(*const bodies[])(void *) = {take_stacks, take_stacks, parent_of_takers,
                                              open_and_close};
    pthread_t threads[64];
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    through = handle ? (through_fn)dlsym(handle, "through") : NULL;
    throwing = handle ? (through_fn)dlsym(handle, "throwing") : NULL;
    if (!through || !throwing)
        abort();
    copy_path = copy;
    half_seconds = seconds_now() + seconds / 2;
    end_seconds = seconds_now() + seconds;
    for (unsigned i = 0; i < count && i < 64; i++)
        pthread_create(&threads[i], NULL, bodies[i < 9 ? i % 3 : 3], (void *)(uintptr_t)i);
    for (unsigned i = 0; i < count && i < 64; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *pause = getenv("STRESS_PAUSE_US");
    pause_us = pause ? (unsigned)atoi(pause) : 0;
    host = getenv("GPUPROF_OS") ? gpuprof_os_v1(&client) : NULL;
    pthread_t threads[64];
    unsigned count = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
    call_count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (argc > 4) {
        take_for(count, atof(argv[2]), argv[3], argv[4]);
        count = 0;
    }
    for (unsigned i = 0; i < count && i < 64; i++)
        pthread_create(&threads[i], NULL, i % 4 == 3 ? parent_of_many : long_life,
                       (void *)(uintptr_t)i);
    for (unsigned i = 0; i < count && i < 64; i++)
        pthread_join(threads[i], NULL);
    printf("%lu\n", stress_count());
    if (host)
        printf("%lu\n", waited_count);
    return 3;
}
