/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators, as its callbacks tell of them: a record where one begins, and one where it
 * ends, tied by the address of PyTorch's own object, since they may cross and end on other threads.
 * No text, but the first time that a name or a set of inputs is met.
 *
 * On any thread, with or without Python's lock. Nothing of PyTorch is called but the exported
 * functions in torch_library.h, none of which allocates or throws. errno is kept. None of it starts
 * a recording.
 */
#ifndef GPUPROF_INJECT_OP_EVENTS_H
#define GPUPROF_INJECT_OP_EVENTS_H

#include <stdint.h>

/* What PyTorch is given as starts and end of a callback: of labels, of operators, of operators with
 * their inputs, and of those of which each thread's outermost ones have a stack of Python's, too.
 */
uintptr_t op_start_mark(void);
uintptr_t op_start_plain(void);
uintptr_t op_start_full(void);
uintptr_t op_start_stacks(void);
uintptr_t op_end(void);

/* Python has begun, or left, the forward of a module (nn_modules.h): `module` is its address,
 * `text` what it is called. */
void op_module_begin(const void *module, const char *text);
void op_module_end(const void *module);

/* Likewise a hook of Lightning's, as a label: what its end is told, or 0: it is not recorded. */
uint64_t op_hook_begin(const char *text);
void op_hook_end(uint64_t hook);

/* In the child of a fork: its file has no names yet. */
void op_events_reset(void);

#endif
