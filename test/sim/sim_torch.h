/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtorch_cpu.so as far as a client of its callbacks sees it: objects of PyTorch's own layouts,
 * chosen by SIMTORCH_LAYOUT (sim_torch.cpp has the names), made in C++ from their declarations.
 * SIMTORCH_LOG is a file to which each operator goes, a line for its begin and one for its end.
 */
#ifndef GPUPROF_TEST_SIM_TORCH_H
#define GPUPROF_TEST_SIM_TORCH_H

#ifdef __cplusplus
extern "C" {
#endif

enum { SIM_FUNCTION = 0, SIM_BACKWARD = 1, SIM_LABEL = 7 };

struct sim_op;

/*
 * An operator begins on this thread. A name ending in "()" is a text of its own, any other one that
 * of a schema. `inputs`: values with a blank between: T6[2,3] a tensor of type 6 (M6[2,3]: on the
 * device meta), U none, I5, D0.5, B1, N nothing, O something else, ( I1 I2 ) a list. `sequence`: -1
 * none; `forward`: a thread's number, 0 none.
 */
struct sim_op *sim_op_begin(const char *name, int scope, long sequence, unsigned long forward,
                            const char *inputs);

/* It ends, perhaps on another thread. */
void sim_op_end(struct sim_op *op);

/* `count` operators, one after another, on a thread of its own, which knows nothing of Python;
 * waits for it. */
void sim_op_native(const char *name, unsigned long count);

/* Callbacks that are on; and all that were ever registered. */
int sim_callbacks(void);
int sim_registered(void);

/* This thread's number, as backward operators are told it. */
unsigned long sim_thread(void);

/* What a client does at each of `count` operators, and nothing else: for measuring. */
void sim_op_repeat(const char *name, const char *inputs, unsigned long count);

#ifdef __cplusplus
}
#endif

#endif
