/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator of the simulated PyTorch costs who is told of it: op_cost bare|empty|recorded
 * OPERATORS ROUNDS. With nobody told, with a callback that does nothing, or with gpuprof's. Prints
 * a line per round, nanoseconds of an operator (begin and end) on this thread; or, of a STEP, of a
 * training step: op_cost step-bare|step-recorded STEPS ROUNDS.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim_torch.h"
#include "stub_cudart.h"
#include "torch/torch_abi.h"

#define INPUTS  "T6[8,16,64] ( I128 I64 )" /* of a view */
#define FIRST   100                        /* looked at before they are believed */
#define NAP_NS  1000000
#define WORK_NS 1000 /* PyTorch's own, of an operator */

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

static void launch(unsigned count)
{
    const dim3 one = {1, 1, 1};
    for (unsigned i = 0; i < count; i++)
        cudaLaunchKernel((const void *)launch, one, one, NULL, 0, NULL);
}

/* One in another, as `names` has them; the innermost launches kernels. */
static void nest(const char *const *names, int scope, const char *inputs, unsigned launches)
{
    struct sim_op *op = sim_op_begin(names[0], scope, 1, scope == SIM_BACKWARD, inputs);
    busy_wait(WORK_NS);
    if (names[1])
        nest(names + 1, scope, inputs, launches);
    else
        launch(launches);
    sim_op_end(op);
}

/* Of 12 layers (linear, norm, activation), backward, and an optimiser: 268 operators and 100
 * launches. Such a one of PyTorch's takes 0.4 ms on small tensors, and so does this one. */
static void step(void)
{
    static const char *const linear[] = {"aten::linear", "aten::addmm", NULL};
    static const char *const view[] = {"aten::t", "aten::transpose", "aten::as_strided", NULL};
    static const char *const norm[] = {"aten::layer_norm", "aten::native_layer_norm", NULL};
    static const char *const relu[] = {"aten::relu", "aten::clamp_min", NULL};
    static const char *const node[] = {"autograd::engine::evaluate_function: AddmmBackward0",
                                       "AddmmBackward0", "aten::mm", NULL};
    static const char *const adam[] = {"aten::_foreach_addcdiv_", NULL};
    for (unsigned i = 0; i < 12; i++) {
        nest(view, SIM_FUNCTION, "T6[16,16]", 0);
        nest(linear, SIM_FUNCTION, "T6[4,16] T6[16,16] T6[16]", 1);
        nest(norm, SIM_FUNCTION, "T6[4,16] ( I16 ) T6[16] T6[16] D0.00001", 1);
        nest(relu, SIM_FUNCTION, "T6[4,16]", 1);
        for (unsigned k = 0; k < 4; k++)
            nest(node, SIM_BACKWARD, "T6[4,16] T6[16,16]", 1);
    }
    for (unsigned i = 0; i < 16; i++)
        nest(adam, SIM_FUNCTION, "( T6[16,16] T6[16] ) ( T6[16,16] T6[16] )", 1);
}

/* In ns, one of `count` operators or steps. */
static double measured(bool is_step, unsigned long count)
{
    uint64_t begin = thread_ns();
    for (unsigned long i = 0; is_step && i < count; i++)
        step();
    if (!is_step)
        sim_op_repeat("aten::view", INPUTS, count);
    return (double)(thread_ns() - begin) / (double)count;
}

int main(int argc, char **argv)
{
    const struct timespec nap = {0, NAP_NS};
    void *memory;
    if (argc != 4 || cudaMalloc(&memory, 64) != 0)
        return 2;
    bool is_step = strncmp(argv[1], "step-", 5) == 0;
    const char *told = argv[1] + (is_step ? 5 : 0);
    if (strcmp(told, "empty") == 0 && !add_empty())
        return 3;
    while (strcmp(told, "recorded") == 0 && sim_callbacks() < 2)
        nanosleep(&nap, NULL);
    for (int i = 0; i < FIRST; i++)
        sim_op_end(sim_op_begin("aten::view", SIM_FUNCTION, -1, 0, INPUTS));
    for (int i = 0; i < atoi(argv[3]); i++)
        printf("round %.2f\n", measured(is_step, strtoul(argv[2], NULL, 10)));
    return 0;
}
