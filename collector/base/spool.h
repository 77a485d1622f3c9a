/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array of items of one size that may grow without bound while its memory does not: blocks of
 * at most SPOOL_BLOCK_BYTES are kept in SPOOL_SLOTS places, two of which a block may have, and one
 * that has to give its place to another goes to a file without a name in $TMPDIR (or /tmp), made
 * when it is first needed. The file is private to this process and gone with it, so items lie in it
 * as they lie in memory.
 */
#ifndef GPUPROF_COLLECTOR_SPOOL_H
#define GPUPROF_COLLECTOR_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOOL_BLOCK_BYTES 65536
#define SPOOL_SLOTS       64 /* 4 MiB, touched as needed */

struct spool_slot {
    uint8_t *data;  /* owned; NULL: never used */
    uint64_t block; /* the number of the block that is there */
    uint64_t used;  /* when it was last fetched, by the spool's clock */
    bool filled;
    bool changed; /* not yet as in the file */
};

struct spool {
    size_t item_bytes;
    unsigned block_shift; /* a block has 1 << block_shift items, as many as it has room for */
    uint64_t count;
    uint64_t saved;          /* blocks that the file has, some of them perhaps as holes */
    int fd;                  /* -1: nothing had to go to a file */
    uint32_t usable;         /* slots; fewer where they will do, and in tests */
    uint64_t clock;          /* fetches so far */
    struct spool_slot *last; /* that was asked for; NULL: none */
    struct spool_slot slots[SPOOL_SLOTS];
};

/* `item_bytes` is at most SPOOL_BLOCK_BYTES. */
void spool_init(struct spool *s, size_t item_bytes);
void spool_release(struct spool *s);

/* The slot that has the block, now the last one asked for; NULL and *error as below. */
struct spool_slot *spool_fetch(struct spool *s, uint64_t block, int *error);

/*
 * The item at `index`, to be read or, with `change`, written; a view until the next call on this
 * spool. NULL: GPUPROF_NO_MEMORY or GPUPROF_SPOOL (errno) in *error.
 */
static inline void *spool_at(struct spool *s, uint64_t index, bool change, int *error)
{
    uint64_t block = index >> s->block_shift;
    struct spool_slot *slot = s->last;
    if (!slot || slot->block != block)
        slot = spool_fetch(s, block, error);
    if (!slot)
        return NULL;
    slot->changed |= change;
    return slot->data + (index - (block << s->block_shift)) * s->item_bytes;
}

/* Copies the item to the end. 0, GPUPROF_NO_MEMORY or GPUPROF_SPOOL. */
int spool_append(struct spool *s, const void *item);

/* The same for `count` of them, which do not come soon again: whole blocks go to the file at once.
 */
int spool_append_several(struct spool *s, const void *items, uint32_t count);

#endif
