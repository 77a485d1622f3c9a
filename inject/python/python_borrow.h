/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads on which PyTorch computes gradients have no Python frames. The Python thread that
 * waits for them in torch.autograd has: its frames say whose gradients they are. It may go on at
 * any moment, so each read is checked, and what is made of it is looked at again at the end: that
 * the thread and all its frames are what they were, by each that borrows them; that their code is,
 * and that no other thread has come to wait, once a millisecond.
 */
#ifndef GPUPROF_INJECT_PYTHON_BORROW_H
#define GPUPROF_INJECT_PYTHON_BORROW_H

#include <stdbool.h>

#include "python/python_frame.h"
#include "python/python_layout.h"

/*
 * Frames of the one thread that waits in torch.autograd, innermost first; 0 if there is none, or
 * more than one. `runtime` is the address of _PyRuntime. One or two system calls if it is as it
 * was.
 */
unsigned python_borrow(const struct python_layout *l, uint64_t runtime, struct python_frame *frames,
                       unsigned max, bool *is_cut);

/* In the child of a fork. */
void python_borrow_reset(void);

#endif
