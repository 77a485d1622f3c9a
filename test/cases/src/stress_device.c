/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that reads devices (--device), on the simulated NVML, beside threads that come and go,
 * forks, and turns of the recording; it ends while it reads. Built together with inject/ for the
 * sanitizers. stress_device MILLISECONDS CALLS: each child makes so many calls of its own. It
 * prints how many calls the parent made.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/ticks.h"
#include "cuda/current_device.h"
#include "cupti/gpu_devices.h"
#include "device/device_thread.h"
#include "range/user_ranges.h"
#include "stress_calls.h"

#define DEVICES 2
#define THREADS 4
#define FORKS   8

static uint64_t end_ns;

static void launch(uint64_t i)
{
    const uint64_t words[] = {0x1000 + 16 * (i % 300), 1, 1, i, 0x100};
    stress_call(&stress_launch, words);
}

static void *short_life(void *data)
{
    for (uint64_t i = 0; i < 20; i++)
        launch(i + (uintptr_t)data);
    return NULL;
}

static void *parent_of_many(void *data)
{
    while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_life, data) == 0)
            pthread_join(thread, NULL);
        usleep(500);
    }
    return NULL;
}

/* The program stops its recording and goes on; further turns come at any time. */
static void *turn(void *data)
{
    (void)data;
    for (unsigned i = 0; clock_ns(CLOCK_MONOTONIC) < end_ns; i++) {
        range_pause(i % 4 == 0);
        device_turn();
        usleep(7000);
    }
    range_pause(false);
    return NULL;
}

/* As they come to be known: asked of the driver, and by their contexts and work one after the
 * other.
 */
static void tell_of_devices(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
    if (!init || init(0) != 0) {
        fprintf(stderr, "no driver: %s\n", driver ? "cuInit failed" : dlerror());
        exit(1);
    }
    gpu_devices_read();
    for (unsigned i = 0; i < DEVICES; i++) {
        device_note((void *)(uintptr_t)(0x1000 * (i + 1)), (int32_t)i);
        usleep(20000);
        gpu_devices_use(i);
    }
}

static void fork_children(unsigned long calls)
{
    for (int i = 0; i < FORKS; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            for (unsigned long call = 0; call < calls; call++)
                launch(call);
            if (calls)
                usleep(30000);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
            fprintf(stderr, "child %d: status %d\n", i, status);
            exit(1);
        }
        usleep(10000);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS + 1];
    if (argc != 3)
        return 2;
    end_ns = clock_ns(CLOCK_MONOTONIC) + strtoull(argv[1], NULL, 10) * 1000000;
    launch(0);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, parent_of_many, (void *)i);
    pthread_create(&threads[THREADS], NULL, turn, NULL);
    tell_of_devices();
    fork_children(strtoul(argv[2], NULL, 10));
    for (unsigned i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%lu\n", stress_count());
    device_end(1000000000);
    return 3;
}
