/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device that the calling thread's calls are for, known without asking CUDA: the wrappers of
 * the calls that change it tell of them (hook/device_hooks.c), of those inside CUDA, too, which
 * is how a runtime makes its contexts current. What no wrapper sees leaves it as it was.
 *
 * As CUDA has it, a thread has a stack of contexts, and under it the device that it told the
 * runtime, 0 if it told none. Nothing here waits, allocates, or touches errno.
 */
#ifndef GPUPROF_INJECT_CURRENT_DEVICE_H
#define GPUPROF_INJECT_CURRENT_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define DEVICE_UNKNOWN (-1)

/* Read on the way of each call that gets memory; by its own thread alone. */
extern HIDDEN __thread int32_t device_current;

/* A context of that device was made or asked for. A green context is one, by this. */
void device_note(const void *context, int32_t device);

/* The device of such a context; DEVICE_UNKNOWN: nobody told, or it was too long ago. */
int32_t device_of(const void *context);

/* Is one of the contexts told of on that device? */
bool device_has_context(int32_t device);

/* cudaSetDevice; and the stack's top is pushed, replaced (by NULL: popped), popped. */
void device_set(int32_t device);
void device_push(const void *context);
void device_replace(const void *context);
void device_pop(void);

/* It is destroyed: popped, where it is this thread's current one. */
void device_drop(const void *context);

#endif
