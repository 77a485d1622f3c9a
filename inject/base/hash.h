/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of what only this process keeps: tables that nobody reads later. Async-signal-safe. */
#ifndef GPUPROF_INJECT_HASH_H
#define GPUPROF_INJECT_HASH_H

#include <stdint.h>

/* `hash` of what came before, and `value`; every bit of both has its part in the upper half. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

#endif
