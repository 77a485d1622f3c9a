/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array of equal-sized items that may grow without bound in bounded memory. Blocks of at most
 * SPOOL_BLOCK_BYTES stay in SPOOL_SLOTS slots (two candidates per block); an evicted block goes to
 * an unnamed file in $TMPDIR (or /tmp), created at first use. The file is private to this process,
 * so it holds items as they are in memory. If it cannot be written, the program ends with one line
 * (file_unnamed_failed).
 */
#ifndef GPUPROF_COLLECTOR_SPOOL_H
#define GPUPROF_COLLECTOR_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOOL_BLOCK_BYTES 65536
#define SPOOL_SLOTS       64 /* 4 MiB, touched as needed */

struct spool_slot {
    uint8_t *data;  /* owned; NULL: unused */
    uint64_t block; /* number of the stored block */
    uint64_t used;  /* last fetch, on the spool's clock */
    bool filled;
    bool changed; /* differs from the file */
};

struct spool {
    size_t item_bytes;
    unsigned block_shift; /* a block has 1 << block_shift items, as many as fit */
    uint64_t count;
    uint64_t saved;          /* blocks in the file, some perhaps holes */
    int fd;                  /* -1: no file was needed yet */
    uint32_t usable;         /* slots in use; fewer if enough, and in tests */
    uint64_t clock;          /* fetches so far */
    struct spool_slot *last; /* last slot fetched; NULL: none */
    struct spool_slot slots[SPOOL_SLOTS];
};

/* `item_bytes` is at most SPOOL_BLOCK_BYTES. */
void spool_init(struct spool *s, size_t item_bytes);
void spool_release(struct spool *s);

/* Returns the slot with the block, which becomes `last`. */
struct spool_slot *spool_fetch(struct spool *s, uint64_t block);

/* Returns the item at `index` to read or, with `change`, to write; a view until the next call on
 * this spool. */
static inline void *spool_at(struct spool *s, uint64_t index, bool change)
{
    uint64_t block = index >> s->block_shift;
    struct spool_slot *slot = s->last;
    if (!slot || slot->block != block)
        slot = spool_fetch(s, block);
    slot->changed |= change;
    return slot->data + (index - (block << s->block_shift)) * s->item_bytes;
}

/* Appends a copy of the item. */
void spool_append(struct spool *s, const void *item);

#endif
