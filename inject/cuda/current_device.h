/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device of the calling thread's CUDA calls, known without asking CUDA. The wrappers of
 * functions that change it report here (hook/device_hooks.c), also for calls inside CUDA, with
 * which a runtime makes its contexts current. Calls without a wrapper leave it unchanged.
 *
 * As in CUDA, each thread has a stack of contexts, and below it the device given to cudaSetDevice,
 * or 0. Nothing here waits, allocates, or changes errno.
 */
#ifndef GPUPROF_INJECT_CURRENT_DEVICE_H
#define GPUPROF_INJECT_CURRENT_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define DEVICE_UNKNOWN (-1)

/* Read during each call that allocates memory, only by its own thread. */
extern HIDDEN __thread int32_t device_current;

/* A context of that device was created or queried. Green contexts count, too. */
void device_note(const void *context, int32_t device);

/* Returns the context's device. DEVICE_UNKNOWN: never reported, or dropped since. */
int32_t device_of(const void *context);

/* Is one of the reported contexts on that device? */
bool device_has_context(int32_t device);

/* cudaSetDevice; and the top of the stack is pushed, replaced (NULL pops it), or popped. */
void device_set(int32_t device);
void device_push(const void *context);
void device_replace(const void *context);
void device_pop(void);

/* The context is destroyed: popped if it is this thread's current one. */
void device_drop(const void *context);

#endif
