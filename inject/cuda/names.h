/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel names. Hooks make no CUDA calls, and a handle may be reused after its module is unloaded.
 * So names are taken where the program states them (registration, get-function calls) and kept by
 * handle. A NAME record is written at a handle's first launch after each definition, and is valid
 * from its time on. A NAME record without a text says that the handle's meaning is not known from
 * then on.
 */
#ifndef GPUPROF_INJECT_NAMES_H
#define GPUPROF_INJECT_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/state.h"

struct thread;

#define NAME_CACHE_SLOTS 4096 /* power of two */

/* Handles whose NAME record is written, in a direct-mapped cache: the fast path for every launch
 * after the first. */
extern HIDDEN _Atomic uint64_t name_cache[NAME_CACHE_SLOTS];

static inline unsigned name_slot(uint64_t handle)
{
    return (unsigned)((handle * 0x9E3779B97F4A7C15u) >> 52);
}

/* Returns 0 if the NAME record of this handle is written. */
static inline uint64_t name_difference(uint64_t handle)
{
    return atomic_load_explicit(&name_cache[name_slot(handle)], memory_order_relaxed) ^ handle;
}

static inline bool name_is_known(uint64_t handle)
{
    return name_difference(handle) == 0;
}

/* Writes the NAME record of `handle` if one is due, and remembers it. */
void name_first_use(struct thread *t, uint64_t handle);

/*
 * The program defined `handle`, until names_drop_module(module), or for ever if `module` is 0.
 * `name` is copied if `copy`; otherwise it must stay valid as long as the handle. If there is no
 * space the handle has no name.
 */
void name_define(uint64_t handle, const char *name, bool copy, uint64_t module);

/* `handle` is the same kernel as `known` (a function of a kernel, a kernel of a host symbol), for
 * as long as `known` is. */
void name_alias(uint64_t handle, uint64_t known);

/* The program obtained this handle, and its meaning is not known. */
void name_forget(uint64_t handle);

/* A module is about to be unloaded, with its strings and its handles. */
void names_drop_module(uint64_t module);

/* Call it in the child of a fork: its file has no names yet. */
void names_reset(void);

#endif
