/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory there was while ranges (NVTX) and labels of PyTorch's were open, by their names:
 * of each place the most that there was in any of them, and by how much it rose.
 *
 * Memory: 56 bytes a name and place, MEMORY_RANGE_ROWS_MAX of them. So many ranges of a process are
 * followed at a time as a word has bits; further ones are counted.
 */
#ifndef GPUPROF_COLLECTOR_MEMORY_RANGES_H
#define GPUPROF_COLLECTOR_MEMORY_RANGES_H

#include "base/key_map.h"
#include "model/event_walk.h"

#define MEMORY_RANGES_OPEN    64
#define MEMORY_RANGE_ROWS_MAX (1u << 16)

struct memory_range_row {
    const struct kernel_name *name;
    uint32_t place;
    uint64_t count; /* of such ranges that have ended, or were open at the end */
    uint64_t peak;  /* bytes */
    uint64_t rise;  /* the most that the peak was above what there was at the begin */
    double kept;    /* bytes more at the ends than at the begins, of all */
};

/* Of a place: what there is; at the begin of each that is open; and the most since. */
struct memory_in_ranges {
    uint64_t live;
    uint32_t process;
    uint32_t next; /* place of its process + 1; 0: none */
    uint64_t begin[MEMORY_RANGES_OPEN];
    uint64_t peak[MEMORY_RANGES_OPEN];
};

struct memory_open_ranges {
    uint64_t open;        /* bits of those that are */
    uint32_t first_place; /* + 1; the others follow by their `next` */
    const struct kernel_name *names[MEMORY_RANGES_OPEN];
};

struct memory_ranges {
    struct memory_open_ranges *processes; /* owned, by process index */
    struct memory_in_ranges *places;      /* owned, in the order in which they were added */
    uint32_t place_count;
    struct memory_range_row *rows; /* owned; at the end the largest peak first */
    uint32_t count;
    struct number_set numbers;
    uint64_t beyond; /* ranges that were not followed */
};

/* 0 or GPUPROF_NO_MEMORY; memory_ranges_release in both cases. */
int memory_ranges_init(struct memory_ranges *r, uint32_t process_count);
void memory_ranges_release(struct memory_ranges *r);

/* One more place, of the process of that index. 0 or GPUPROF_NO_MEMORY. */
int memory_ranges_add_place(struct memory_ranges *r, uint32_t process);

/* There are so many bytes in that place now. */
static inline void memory_ranges_change(struct memory_ranges *r, uint32_t place, uint64_t bytes)
{
    struct memory_in_ranges *in = &r->places[place];
    in->live = bytes;
    for (uint64_t open = r->processes[in->process].open; open; open &= open - 1) {
        unsigned slot = (unsigned)__builtin_ctzll(open);
        if (bytes > in->peak[slot])
            in->peak[slot] = bytes;
    }
}

/* Any slice, behind the ledger. 0 or GPUPROF_NO_MEMORY. */
int memory_ranges_take(struct memory_ranges *r, const struct slice *s);
void memory_ranges_sort(struct memory_ranges *r);

#endif
