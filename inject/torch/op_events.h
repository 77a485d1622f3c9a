/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators, as its callbacks report them: a record at the start and one at the end,
 * matched by the address of PyTorch's object, since operators may overlap and end on other threads.
 * Texts are written only when a name or a set of inputs is first used.
 *
 * Any thread, with or without Python's GIL. Calls only PyTorch's exported functions in
 * torch_library.h, none of which allocates or throws. Keeps errno. Never starts a recording.
 */
#ifndef GPUPROF_INJECT_OP_EVENTS_H
#define GPUPROF_INJECT_OP_EVENTS_H

#include <stdint.h>

/* The functions that PyTorch calls at the start and end. There is one set each for labels,
 * operators, operators with inputs, and operators whose outermost ones also have a Python stack. */
uintptr_t op_start_mark(void);
uintptr_t op_start_plain(void);
uintptr_t op_start_full(void);
uintptr_t op_start_stacks(void);
uintptr_t op_end(void);

/* Python has begun or left the forward of a module (nn_modules.h); `module` is its address, `text`
 * its name. */
void op_module_begin(const void *module, const char *text);
void op_module_end(const void *module);

/* The same for a hook of Lightning, recorded as a label. Returns the value for its end, or 0 if it
 * is not recorded. */
uint64_t op_hook_begin(const char *text);
void op_hook_end(uint64_t hook);

/* Call it in the child of a fork: its file has no names yet. */
void op_events_reset(void);

#endif
