/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a launch mix against the stub library in real time: replay_mix MIX SECONDS
 * The program waits out the gaps, the library the durations, both by reading the clock. Prints the
 * number of calls made. With libgpuprof.so before it, it makes the recording of a training run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "mix.h"
#include "stub_cudart.h"

#define POINTER(word) ((void *)(uintptr_t)(word))

static char kernels[MIX_KERNELS_MAX]; /* their addresses are the handles */

static void make_call(const struct mix_call *c, uint64_t step)
{
    const uint64_t *f = c->words;
    dim3 grid = {(unsigned)f[1], (unsigned)f[2], (unsigned)f[3]};
    dim3 block = {(unsigned)f[4], (unsigned)f[5], (unsigned)f[6]};
    switch (c->kind) {
    case MIX_LAUNCH:
        cudaLaunchKernel(&kernels[f[0]], grid, block, NULL, f[7], POINTER(f[8]));
        break;
    case MIX_COPY:
        cudaMemcpyAsync(POINTER(f[0]), POINTER(mix_copy_source(c, step)), f[2], (int)f[3],
                        POINTER(f[4]));
        break;
    case MIX_SET: cudaMemsetAsync(POINTER(f[0]), (int)f[1], f[2], POINTER(f[3])); break;
    case MIX_RECORD: cudaEventRecord(POINTER(f[0]), POINTER(f[1])); break;
    case MIX_WAIT: cudaStreamWaitEvent(POINTER(f[0]), POINTER(f[1]), 0); break;
    case MIX_SYNC: cudaStreamSynchronize(POINTER(f[0])); break;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct mix *m = mix_read(argv[1]);
    for (unsigned k = 0; k < m->kernel_count; k++)
        __cudaRegisterFunction(NULL, &kernels[k], m->kernels[k], m->kernels[k], -1, NULL, NULL,
                               NULL, NULL, NULL);
    uint64_t end = monotonic_ns() + (uint64_t)(atof(argv[2]) * 1e9), calls = 0;
    for (uint64_t step = 0; monotonic_ns() < end; step++) {
        for (unsigned i = 0; i < m->call_count; i++, calls++) {
            busy_wait(mix_time(m, m->calls[i].gap_ns, m->gap_sigma));
            stub_busy_ns = mix_time(m, m->calls[i].duration_ns, m->duration_sigma);
            make_call(&m->calls[i], step);
        }
    }
    printf("calls %llu\n", (unsigned long long)calls);
    return 0;
}
