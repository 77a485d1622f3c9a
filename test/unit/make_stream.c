/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_stream DIR CALLS [PROCESSES [THREADS]]: recordings with a launch mix (60 kernels, copies,
 * synchronisations), CALLS calls in all, for measuring the collector and for looking at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "stream_builder.h"

#define KERNELS 60

static uint64_t random_state = 88172645463325252u;

static uint64_t random_next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void add_calls(struct stream_builder *b, uint32_t thread, uint64_t count, uint64_t *now)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t gap = 500 + random_next() % 4000;
        uint64_t duration = 1500 + random_next() % 3000;
        uint64_t pick = random_next() % 100;
        *now += gap;
        if (pick < 85) {
            uint64_t kernel = random_next() % KERNELS;
            uint64_t args[7] = {0x555500000000u + 64 * kernel,
                                108 | 1ull << 32, /* the grid */
                                1,
                                256 | 1ull << 32,
                                1,
                                kernel % 3 * 1024,
                                0x7f0000001000u};
            builder_call(b, thread, API_CODE_cudaLaunchKernel, *now, duration, 0, 7, args);
        } else if (pick < 95) {
            uint64_t args[5] = {0x7f2000000000u + 512 * (random_next() % 256), 0x55550000u,
                                1u << (10 + random_next() % 12), 1, 0x7f0000001000u};
            builder_call(b, thread, API_CODE_cudaMemcpyAsync, *now, duration, 0, 5, args);
        } else {
            uint64_t args[2] = {0x7f3000000000u + 512 * (random_next() % 256), 4096};
            builder_call(b, thread, API_CODE_cudaMalloc, *now, duration, 0, 2, args);
        }
        *now += duration;
    }
}

static void add_process(const char *folder, unsigned number, unsigned threads, uint64_t calls)
{
    struct stream_builder b;
    uint64_t now[64] = {0};
    builder_init(&b, number);
    builder_api(&b);
    builder_meta(&b, "cmdline=python train.py --steps 100");
    for (unsigned t = 1; t <= threads; t++) {
        builder_thread(&b, t, 0, b.header.pid + t - 1, t == 1 ? "python" : "worker");
        now[t - 1] = 1000;
    }
    for (unsigned k = 0; k < KERNELS; k++) {
        char name[128];
        snprintf(name, sizeof name, "_ZN2at6native13kernel_numberILi%uEfEEvPT0_S2_i", k);
        builder_name(&b, 1, 1, 0x555500000000u + 64 * k, name);
    }
    /* Slices of about a millisecond, as a writer that seals once in a while would leave them. */
    for (uint64_t done = 0; done < calls;) {
        for (unsigned t = 1; t <= threads && done < calls; t++) {
            uint64_t part = calls - done < 4096 ? calls - done : 4096;
            add_calls(&b, t, part, &now[t - 1]);
            done += part;
        }
    }
    builder_finish(&b, "%s/p%u.gpuprof", folder, number);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: make_stream DIR CALLS [PROCESSES [THREADS]]\n");
        return 2;
    }
    uint64_t calls = strtoull(argv[2], NULL, 10);
    unsigned processes = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    unsigned threads = argc > 4 ? (unsigned)atoi(argv[4]) : 1;
    if (processes < 1 || threads < 1 || threads > 64)
        return 2;
    for (unsigned p = 0; p < processes; p++)
        add_process(argv[1], p, threads, calls / processes);
    return 0;
}
