/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records PyTorch's operators without changes to the program, through PyTorch's global callbacks.
 * The writer registers them as soon as libtorch_cpu is loaded and the process records; operators
 * that ran before are not recorded. There are four: labels (of the program, the optimizer, the data
 * loader), operators, operators with inputs, and those with stacks, too. At most one of the latter
 * three is enabled.
 */
#ifndef GPUPROF_INJECT_TORCH_H
#define GPUPROF_INJECT_TORCH_H

#include <stdbool.h>

struct thread;

enum torch_detail { TORCH_NOTHING, TORCH_LABELS, TORCH_NAMES, TORCH_SHAPES, TORCH_STACKS };

/* Called by the writer: registers the callbacks if PyTorch is loaded. */
void torch_look(struct thread *writer);

/* Enables and disables them as recorded_asked() says. */
void torch_turn(void);

/* Writes the META record "pytorch", and again if its text has changed. */
void torch_describe(struct thread *writer, bool is_last);

/* The current level of detail, without regard to pauses; TORCH_NOTHING if PyTorch is not loaded. */
enum torch_detail torch_detail_now(void);

/* Call it after each dlclose. */
void torch_unloaded(void);

/* Call it in the child of a fork. */
void torch_reset(void);

#endif
