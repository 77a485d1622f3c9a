/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads on which PyTorch computes gradients have no Python frames. But the Python thread that
 * waits for them in torch.autograd has: its frames tell whose gradients they are. It may resume at
 * any moment, so each read is checked, and conclusions are checked again at the end. Each borrowing
 * thread checks that the waiting thread and its frames are unchanged; once a millisecond, also that
 * their code is, and that no other thread waits.
 */
#ifndef GPUPROF_INJECT_PYTHON_BORROW_H
#define GPUPROF_INJECT_PYTHON_BORROW_H

#include <stdbool.h>

#include "python/python_frame.h"
#include "python/python_layout.h"

/*
 * Reads the frames of the one thread that waits in torch.autograd, innermost first; 0: there is
 * none, or more than one. `runtime` is the address of _PyRuntime. One or two system calls if
 * nothing has changed.
 */
unsigned python_borrow(const struct python_layout *l, uint64_t runtime, struct python_frame *frames,
                       unsigned max, bool *is_cut);

/* Call it in the child of a fork. */
void python_borrow_reset(void);

#endif
