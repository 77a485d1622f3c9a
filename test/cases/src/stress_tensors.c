/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_tensors THREADS COUNT: what PyTorch's allocator tells, from many threads at a time, with
 * numbers that no allocator has, among calls, forks, and libraries that go. Prints how many blocks
 * were told of in this process, and how many could not be had.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress_calls.h"
#include "torch/tensor_memory.h"

struct device {
    signed char type, index;
};

extern void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *address, int64_t bytes,
                                                                  uint64_t allocated,
                                                                  uint64_t reserved,
                                                                  struct device device);
extern void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t bytes, uint64_t allocated,
                                                                uint64_t reserved,
                                                                struct device device);

static unsigned long count;
static _Atomic unsigned long blocks, failures;
static _Atomic int is_over;

static void tell(unsigned *seed)
{
    static const int64_t sizes[] = {0, 512, -512, 1 << 20, -(1 << 20), INT64_MAX, INT64_MIN};
    static const uint64_t totals[] = {0, 1 << 20, UINT64_MAX, INT64_MAX};
    unsigned any = (unsigned)rand_r(seed);
    struct device device = {(signed char)(any % 8 ? 1 : any >> 3), (signed char)(any >> 11)};
    void *address = (void *)(uintptr_t)(512 * (any % 4096));
    if (any % 64) {
        _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
            address, sizes[any % 7], totals[any % 4], totals[any / 4 % 4], device);
        blocks += device.type != 0; /* 0 is the CPU */
    } else {
        _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(sizes[any % 7], totals[any % 4],
                                                            totals[any / 4 % 4], device);
        failures += device.type != 0;
    }
}

static void *body(void *context)
{
    unsigned seed = (unsigned)(uintptr_t)context;
    uint64_t words[API_ARGS_MAX] = {1};
    stress_call(&stress_launch, words);
    for (unsigned long i = 0; i < count; i++) {
        tell(&seed);
        if (i % 97 == 0)
            stress_call(&stress_launch, words);
        if (seed % 5 == 0 && i % (count / 2) == 1 && fork() == 0) {
            for (int k = 0; k < 20; k++)
                tell(&seed);
            _exit(0);
        }
    }
    return NULL;
}

static void *unload(void *context)
{
    while (!is_over) {
        tensor_memory_unloaded();
        usleep(200);
    }
    return context;
}

int main(int argc, char **argv)
{
    pthread_t threads[64], unloader;
    unsigned thread_count = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
    count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    pthread_create(&unloader, NULL, unload, NULL);
    for (unsigned i = 0; i < thread_count && i < 64; i++)
        pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)(i + 1));
    for (unsigned i = 0; i < thread_count && i < 64; i++)
        pthread_join(threads[i], NULL);
    is_over = 1;
    pthread_join(unloader, NULL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    printf("%lu %lu\n", blocks, failures);
    return 3;
}
