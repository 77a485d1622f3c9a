/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel names. Hooks make no CUDA calls, and a handle may be used again after its module is gone;
 * so names are taken where the program itself states them (registration, get-function calls) and
 * kept by handle. A NAME record is written at a handle's first launch after each definition: it
 * holds from its time on. One without a text ends that: what the handle means now is not known.
 */
#ifndef GPUPROF_INJECT_NAMES_H
#define GPUPROF_INJECT_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/state.h"

struct thread;

#define NAME_CACHE_SLOTS 4096 /* power of two */

/* Handles whose NAME record is written, direct-mapped: the fast answer for every launch but the
 * first. */
extern HIDDEN _Atomic uint64_t name_cache[NAME_CACHE_SLOTS];

static inline unsigned name_slot(uint64_t handle)
{
    return (unsigned)((handle * 0x9E3779B97F4A7C15u) >> 52);
}

/* 0: the NAME record of this handle is written. */
static inline uint64_t name_difference(uint64_t handle)
{
    return atomic_load_explicit(&name_cache[name_slot(handle)], memory_order_relaxed) ^ handle;
}

static inline bool name_is_known(uint64_t handle)
{
    return name_difference(handle) == 0;
}

/* Writes the NAME record of `handle` if one is due, and remembers that. */
void name_first_sight(struct thread *t, uint64_t handle);

/*
 * The program defined `handle`, until names_drop_module(module), or for good if that is 0. `name`
 * is copied if `copy`, else it must stay so long. If there is no room the handle has no name.
 */
void name_define(uint64_t handle, const char *name, bool copy, uint64_t module);

/* `handle` means the kernel that `known` means (a function of a kernel, a kernel of a host symbol),
 * and as long as that. */
void name_alias(uint64_t handle, uint64_t known);

/* The program has got that handle, and nobody knows what it means. */
void name_forget(uint64_t handle);

/* A module is about to go, with its strings, and what its handles mean. */
void names_drop_module(uint64_t module);

/* In the child of a fork: its file knows no name yet. */
void names_reset(void);

#endif
