/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call with an LTTng-UST tracepoint before and after it, beside the same call without:
 * lttng_cost CALLS ROUNDS prints "round BARE TRACED" in ns of the thread's CPU
 * time per call.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stub_cudart.h"

#define SETTLE_US 200000 /* the consumer empties the buffers meanwhile: nothing is discarded */

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    unsigned long calls = strtoul(argv[1], NULL, 10);
    usleep(SETTLE_US);
    for (int round = atoi(argv[2]); round > 0; round--) {
        uint64_t begin = cpu_ns();
        for (unsigned long i = 0; i < calls; i++)
            cudaStreamSynchronize((void *)i);
        uint64_t middle = cpu_ns();
        for (unsigned long i = 0; i < calls; i++) {
            lttng_ust_tracepoint(gpuprof_bench, enter, 1, i);
            int result = cudaStreamSynchronize((void *)i);
            lttng_ust_tracepoint(gpuprof_bench, leave, 1, result);
        }
        uint64_t end = cpu_ns();
        printf("round %.3f %.3f\n", (double)(middle - begin) / (double)calls,
               (double)(end - middle) / (double)calls);
        usleep(SETTLE_US);
    }
    return 0;
}
