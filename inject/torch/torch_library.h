/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the PyTorch functions that we call. We are not linked with PyTorch, and call nothing
 * of Python. */
#ifndef GPUPROF_INJECT_TORCH_LIBRARY_H
#define GPUPROF_INJECT_TORCH_LIBRARY_H

#include <stdbool.h>

#include "torch/torch_abi.h"

struct torch_library {
    torch_add_fn add;
    torch_switch_fn disable;
    torch_switch_fn reenable;
    torch_name_fn name; /* name of an operator; valid at least while it runs */
    torch_count_fn input_count;
    torch_thread_fn thread; /* number of the calling thread, as backward operators refer to it */
    const void *undefined;  /* the undefined tensor; NULL: not known */
};

/* Filled once, before any callback is registered. */
extern struct torch_library torch_library;

#define TORCH_LIBRARY_ABSENT "absent: no libtorch_cpu.so is loaded"

/* Searches the loaded objects. Returns NULL if it was found, else "absent: " and the reason. */
const char *torch_library_find(void);

/* Is the library still loaded? */
bool torch_library_is_loaded(void);

#endif
