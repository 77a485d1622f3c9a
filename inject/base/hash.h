/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes for tables that only this process uses; they may change between versions.
 * Async-signal-safe. */
#ifndef GPUPROF_INJECT_HASH_H
#define GPUPROF_INJECT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Mixes `value` into `hash`, the hash of what came before. Every bit of both affects the upper
 * half. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static inline uint64_t hash_bytes(const char *bytes, size_t count)
{
    uint64_t hash = count, word;
    for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = hash_mix(hash, word);
    }
    word = 0;
    memcpy(&word, bytes, count);
    return hash_mix(hash, word);
}

#endif
