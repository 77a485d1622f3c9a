/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator of the simulated PyTorch costs who is told of it: op_cost bare|empty|recorded
 * OPERATORS ROUNDS. With nobody told, with a callback that does nothing, or with gpuprof's. Prints
 * a line per round, nanoseconds of an operator (begin and end) on this thread.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim_torch.h"
#include "stub_cudart.h"
#include "torch/torch_abi.h"

#define INPUTS "T6[8,16,64] ( I128 I64 )" /* of a view */
#define FIRST  100                        /* looked at before they are believed */
#define NAP_NS 1000000

uint64_t add_callback(struct torch_callback c) __asm__(
    "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");

#if defined(__x86_64__)
static void **empty_start(void **context, const void *function)
{
    (void)function;
    *context = NULL;
    return context;
}
#endif

static void empty_end(const void *function, void *context)
{
    (void)function;
    (void)context;
}

static uint64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* False: not on this machine. */
static bool add_empty(void)
{
#if defined(__x86_64__)
    struct torch_callback c = {.start = (uintptr_t)empty_start,
                               .end = (uintptr_t)empty_end,
                               .probability = 1,
                               .needs_inputs = true};
    memset(c.scopes, true, sizeof c.scopes);
    add_callback(c);
    return true;
#else
    (void)empty_end;
    return false;
#endif
}

int main(int argc, char **argv)
{
    const struct timespec nap = {0, NAP_NS};
    void *memory;
    if (argc != 4 || cudaMalloc(&memory, 64) != 0)
        return 2;
    if (strcmp(argv[1], "empty") == 0 && !add_empty())
        return 3;
    while (strcmp(argv[1], "recorded") == 0 && sim_callbacks() < 2)
        nanosleep(&nap, NULL);
    for (int i = 0; i < FIRST; i++)
        sim_op_end(sim_op_begin("aten::view", SIM_FUNCTION, -1, 0, INPUTS));
    unsigned long count = strtoul(argv[2], NULL, 10);
    for (int i = 0; i < atoi(argv[3]); i++) {
        uint64_t begin = thread_ns();
        sim_op_repeat("aten::view", INPUTS, count);
        printf("round %.2f\n", (double)(thread_ns() - begin) / (double)count);
    }
    return 0;
}
