/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators, recorded without an edit of the program: callbacks of PyTorch's own, global
 * ones, registered by the writer once libtorch_cpu is loaded and the process records. What ran
 * before is not recorded. Four of them: labels (the program's, the optimiser's, the data
 * loader's), operators, operators with their inputs, and those with stacks, too; of the latter
 * three one at most is on.
 */
#ifndef GPUPROF_INJECT_TORCH_H
#define GPUPROF_INJECT_TORCH_H

#include <stdbool.h>

struct thread;

enum torch_detail { TORCH_NOTHING, TORCH_LABELS, TORCH_NAMES, TORCH_SHAPES, TORCH_STACKS };

/* By the writer: registers them when there is PyTorch. */
void torch_look(struct thread *writer);

/* Switches them as recorded_asked says. */
void torch_turn(void);

/* META record "pytorch", and again when there is more to say of it. */
void torch_describe(struct thread *writer, bool is_last);

/* What is recorded now, pauses aside; TORCH_NOTHING while there is no PyTorch. */
enum torch_detail torch_detail_now(void);

/* After each dlclose. */
void torch_unloaded(void);

/* In the child of a fork. */
void torch_reset(void);

#endif
