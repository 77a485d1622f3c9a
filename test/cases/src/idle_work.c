/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle_work: a device that waits for its host's own code, for synchronisations, for data and for
 * memory. Prints when it loaded data, "load BEGIN END" on CLOCK_MONOTONIC: nobody else knows.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cupti_work.h"
#include "range/gpuprof.h"

enum { ROUNDS = 8, LONG_US = 12000, SHORT_US = 3500 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void load_batch(void)
{
    gpuprof_range_push("load batch");
    uint64_t begin_ns = now_ns();
    usleep(LONG_US);
    uint64_t end_ns = now_ns();
    gpuprof_range_pop();
    printf("load %llu %llu\n", (unsigned long long)begin_ns, (unsigned long long)end_ns);
}

int main(void)
{
    void *memory;
    for (unsigned i = 0; i < ROUNDS; i++) {
        launch(gemm, 3, 64, 128, NULL);
        usleep(LONG_US);
        launch(gemm, 3, 64, 128, NULL);
        cudaDeviceSynchronize();
        usleep(SHORT_US); /* less than it waited for */
        launch(gemm, 3, 64, 128, NULL);
        load_batch();
        launch(gemm, 3, 64, 128, NULL);
        cudaMalloc(&memory, WORK_BYTES);
        cudaFree(memory);
    }
    cudaDeviceSynchronize();
    return 0;
}
