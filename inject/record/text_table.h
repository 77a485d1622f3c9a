/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte strings that have numbers: names of operators, what they were called with, plans. Each is
 * written once, as a record of its own, by the thread that meets it first; from then on its number
 * stands for it. Looked up without a lock, by any thread; bounded, and nothing is ever removed.
 */
#ifndef GPUPROF_INJECT_TEXT_TABLE_H
#define GPUPROF_INJECT_TEXT_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/futex.h"

struct thread;

struct text_entry {
    uint64_t hash;
    uint32_t text_at;
    uint32_t byte_count;
    uint32_t mark;               /* the table's user's */
    _Atomic uint32_t variants;   /* likewise */
    _Atomic uint32_t is_written; /* its record is in the stream, or somebody writes it */
};

/* Mapped at the first entry, and touched as needed. */
struct text_pages {
    struct text_entry *entries;
    uint8_t *text;            /* each with a zero behind it */
    _Atomic uint32_t slots[]; /* numbers, 0 = free: open addressing, never more than half full */
};

struct text_table {
    const uint8_t record_type;  /* its records have the number, and the bytes */
    const uint32_t entries_max; /* a power of two */
    const uint32_t text_max;
    uint32_t (*const mark)(const uint8_t *bytes, uint32_t byte_count); /* of a new entry; or NULL */
    _Atomic(struct text_pages *) pages;
    struct lock lock;
    uint32_t count; /* under the lock, as is the next */
    uint32_t text_bytes;
};

/* Every byte changes about half of the bits. */
static inline uint64_t text_hash_word(uint64_t hash, uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)(hash ^ word) * 0x9E3779B97F4A7C15u;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t text_hash(const uint8_t *bytes, uint32_t byte_count)
{
    uint64_t hash = 0x5851F42D4C957F2Du ^ byte_count, word;
    for (; byte_count >= 8; byte_count -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        hash = text_hash_word(hash, word);
    }
    word = 0;
    memcpy(&word, bytes, byte_count);
    return text_hash_word(hash, word);
}

static inline struct text_entry *text_table_entry(const struct text_table *table, uint32_t number)
{
    struct text_pages *p = atomic_load_explicit(&table->pages, memory_order_relaxed);
    return &p->entries[number];
}

/* The number of these bytes; 0: none yet, or its record could not be written. */
static inline uint32_t text_table_find(const struct text_table *table, const uint8_t *bytes,
                                       uint32_t byte_count, uint64_t hash)
{
    struct text_pages *p = atomic_load_explicit(&table->pages, memory_order_acquire);
    if (unlikely(!p))
        return 0;
    for (uint32_t i = (uint32_t)hash;; i++) {
        uint32_t number =
            atomic_load_explicit(&p->slots[i & (2 * table->entries_max - 1)], memory_order_acquire);
        const struct text_entry *e = &p->entries[number];
        if (!number)
            return 0;
        if (e->hash == hash && e->byte_count == byte_count &&
            memcmp(p->text + e->text_at, bytes, byte_count) == 0)
            return atomic_load_explicit(&e->is_written, memory_order_relaxed) ? number : 0;
    }
}

/* The same, and if it has none it gets one. 0: there is no room. errno is kept. */
uint32_t text_table_add(struct text_table *table, struct thread *t, const uint8_t *bytes,
                        uint32_t byte_count, uint64_t hash);

/* Is there no room for such a text, now and later? False, if that cannot be told. */
bool text_table_is_full(struct text_table *table, uint32_t byte_count);

/* In the child of a fork: its file has no records of them yet. */
void text_table_reset(struct text_table *table);

#endif
