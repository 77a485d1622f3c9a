/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a block of PyTorch's allocator costs whom it is told: tensor_cost BLOCKS ROUNDS BYTES.
 * Prints a line per round, nanoseconds of a block (got and freed) on this thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "c10.h"
#include "stub_cudart.h"

#define NAP_NS 150000000
#define FRAMES 20 /* above the allocator's: as in a layer of a model */

static uint64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static __attribute__((noinline)) double round_of(unsigned frames, unsigned blocks, int64_t bytes)
{
    if (frames) {
        double ns = round_of(frames - 1, blocks, bytes);
        __asm__ volatile(""); /* no tail call */
        return ns;
    }
    const struct c10_device device = {1, 0};
    uint64_t address = 0x7f0000000000, begin = thread_ns();
    for (unsigned i = 0; i < blocks; i++) {
        address += 512;
        c10_usage((void *)(uintptr_t)address, bytes, (uint64_t)bytes, (uint64_t)bytes, device);
        c10_usage((void *)(uintptr_t)address, -bytes, 0, (uint64_t)bytes, device);
    }
    return (double)(thread_ns() - begin) / blocks;
}

int main(int argc, char **argv)
{
    unsigned blocks = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    long bytes = argc > 3 ? atol(argv[3]) : 512;
    void *ptr;
    cudaMalloc(&ptr, 64); /* a recording begins with a call */
    for (unsigned i = 0; i < rounds; i++) {
        printf("round %.2f\n", round_of(FRAMES, blocks, bytes));
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL); /* what is told is stored then */
    }
    return 0;
}
