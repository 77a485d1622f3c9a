/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads on which PyTorch computes gradients have no Python frames. The Python thread that
 * waits for them in torch.autograd has: its frames say whose gradients they are. It may go on at
 * any moment, so each read is checked, and what is made of it is looked at again at the end.
 */
#ifndef GPUPROF_INJECT_PYTHON_BORROW_H
#define GPUPROF_INJECT_PYTHON_BORROW_H

#include <stdbool.h>

#include "python/python_frame.h"
#include "python/python_layout.h"

/*
 * Frames of the one thread that waits in torch.autograd, innermost first; 0 if there is none, or
 * more than one. `runtime` is the address of _PyRuntime. The answer holds for a millisecond, or as
 * long as that thread stays where it is, if that is less.
 */
unsigned python_borrow(const struct python_layout *l, uint64_t runtime, struct python_frame *frames,
                       unsigned max, bool *is_cut);

/* In the child of a fork. */
void python_borrow_reset(void);

#endif
