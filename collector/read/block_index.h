/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the blocks are and when they begin, for the merge: made while the headers are walked, then
 * sorted by time. Its size is bounded: beyond BLOCK_INDEX_ONE entries (48 bytes each) and
 * BLOCK_INDEX_EACH for each further process, BLOCK_INDEX_MAX at most (3 MB), neighbouring entries
 * of one file become one that stands for a run of blocks; whoever comes to such a run walks its
 * headers again, and has all of its blocks at hand, which would be many where processes are.
 */
#ifndef GPUPROF_COLLECTOR_BLOCK_INDEX_H
#define GPUPROF_COLLECTOR_BLOCK_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "block.h"

#define BLOCK_INDEX_ONE  16384
#define BLOCK_INDEX_EACH 256
#define BLOCK_INDEX_MAX  65536
#define BLOCK_RUN_MAX    (1u << 24)

struct index_entry {
    uint64_t offset;     /* as struct block_place */
    uint64_t time;       /* the least begin: process ns, shared ns once it is sorted */
    uint64_t end;        /* the largest end, likewise */
    uint64_t types;      /* as struct block_header, of all of them; 0: not all say */
    uint32_t process;    /* number in the order of loading */
    uint32_t next;       /* once sorted: the place of its process's next, or `count` of the index */
    uint32_t count : 31; /* blocks of the run */
    uint32_t apart : 1;  /* the block before it in the file is not to be used */
};

struct block_index {
    struct index_entry *entries; /* owned */
    uint32_t count;
    uint32_t entries_max; /* in tests; 0: as above */
    uint32_t run_max;     /* blocks that an entry may stand for now */
};

/*
 * Blocks are added in the order in which their files are walked; `apart` if one was left out before
 * this one. 0 or GPUPROF_NO_MEMORY.
 */
int block_index_add(struct block_index *x, uint32_t process, uint64_t offset,
                    const struct block_header *h, bool apart);

/* Takes out the entries of a process that is not used after all. */
void block_index_drop(struct block_index *x, uint32_t process);

/* Gives processes other numbers, by their own; UINT32_MAX: its entries are taken out. */
void block_index_renumber(struct block_index *x, const uint32_t *numbers);

/* By time, then process, then offset. */
void block_index_sort(struct block_index *x);
void block_index_release(struct block_index *x);

#endif
