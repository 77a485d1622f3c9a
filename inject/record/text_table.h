/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbered byte strings: names of operators, their inputs, library plans. The thread that first
 * uses one writes it, once, as a record; afterwards its number stands for it. Look-ups use no lock,
 * on any thread. The table is bounded, and entries are never removed.
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
    uint32_t mark;               /* for the table's user */
    _Atomic uint32_t variants;   /* likewise */
    _Atomic uint32_t is_written; /* its record is in the stream, or a thread is writing it */
};

/* Mapped at the first entry; pages are touched as needed. */
struct text_pages {
    struct text_entry *entries;
    uint8_t *text;            /* each followed by a zero */
    _Atomic uint32_t slots[]; /* numbers; 0: free. Open addressing, at most half full */
};

struct text_table {
    const uint8_t record_type;  /* type of its records, which have the number and the bytes */
    const uint32_t entries_max; /* a power of two */
    const uint32_t text_max;
    /* computes the mark of a new entry; NULL: none */
    uint32_t (*const mark)(const uint8_t *bytes, uint32_t byte_count);
    _Atomic(struct text_pages *) pages;
    struct lock lock;
    uint32_t count; /* changed under the lock, like the next one */
    uint32_t text_bytes;
};

/* Each bit of `word` changes about half of the bits. */
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

/* Returns the number of these bytes; 0: none yet, or its record could not be written. */
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

/* The same, but adds the bytes if they are new. Returns 0 if there is no space. Keeps errno. */
uint32_t text_table_add(struct text_table *table, struct thread *t, const uint8_t *bytes,
                        uint32_t byte_count, uint64_t hash);

/* Is there no space for such a text, now or later? Returns false if that is not known. */
bool text_table_is_full(struct text_table *table, uint32_t byte_count);

/* Call it in the child of a fork: its file has none of these records yet. */
void text_table_reset(struct text_table *table);

#endif
