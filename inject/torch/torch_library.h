/* SPDX-License-Identifier: Apache-2.0 */
/* What we call of PyTorch, by address: nothing of it is linked, and nothing of Python called. */
#ifndef GPUPROF_INJECT_TORCH_LIBRARY_H
#define GPUPROF_INJECT_TORCH_LIBRARY_H

#include <stdbool.h>

#include "torch/torch_abi.h"

struct torch_library {
    torch_add_fn add;
    torch_switch_fn disable;
    torch_switch_fn reenable;
    torch_name_fn name; /* of the operator; lives as long as that runs at least */
    torch_count_fn input_count;
    torch_thread_fn thread; /* the calling thread's number, as backward operators name it */
    const void *undefined;  /* the tensor that is none; NULL: not known */
};

/* Filled once, before any callback is registered. */
extern struct torch_library torch_library;

#define TORCH_LIBRARY_ABSENT "absent: no libtorch_cpu.so is loaded"

/* Looks for it among the loaded objects. NULL: it is there; else "absent: " and why. */
const char *torch_library_find(void);

/* Is it still loaded? */
bool torch_library_is_loaded(void);

#endif
