/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What findings are made of, by name and place: how often and for how long something was charged to
 * a finding on a device. Memory: 160 bytes a row, of which there are FINDING_SUMS_FREE and one more
 * for each FINDING_SUM_BYTES of the files, FINDING_SUMS_MAX at most; what is beyond has no place
 * or, where there is no room for that either, no name.
 */
#ifndef GPUPROF_COLLECTOR_FINDING_SUMS_H
#define GPUPROF_COLLECTOR_FINDING_SUMS_H

#include <stddef.h>

#include "base/key_map.h"

#define FINDING_SUMS_FREE   4096u
#define FINDING_SUM_BYTES   64u
#define FINDING_SUMS_MAX    (1u << 18)
#define FINDING_SUMS_RECENT 64

struct finding_sum {
    uint32_t device; /* its place among those of findings */
    uint32_t kind;   /* enum finding_id */
    uint64_t what;   /* for its user: what it is the name of, ... */
    uint32_t where;  /* ... and its place; 0: not known, and of those without room */
    uint64_t count;
    uint64_t ns;
    uint64_t longest_ns;
    uint64_t at_ns; /* the longest one began then */
};

struct finding_sums {
    struct finding_sum *rows; /* owned */
    uint32_t count;
    uint32_t rows_max;
    struct key_map places; /* of rows + 1 */
    uint32_t
        recent[FINDING_SUMS_RECENT]; /* likewise; most are of rows that were asked for before */
};

/* For files of so many bytes. */
void finding_sums_init(struct finding_sums *s, uint64_t bytes);
void finding_sums_release(struct finding_sums *s);

/* The row + 1 of what is not in *recent, which it is then; 0: there is no room for another one. 0
 * or GPUPROF_NO_MEMORY. */
int finding_sums_find(struct finding_sums *s, uint32_t kind, uint32_t device, uint64_t what,
                      uint32_t where, uint32_t *recent, uint32_t *place);

/* `count` more, which took `ns` and began at `at_ns`. 0 or GPUPROF_NO_MEMORY. */
static inline int finding_sums_add(struct finding_sums *s, uint32_t kind, uint32_t device,
                                   uint64_t what, uint32_t where, uint32_t count, uint64_t ns,
                                   uint64_t at_ns)
{
    uint32_t *recent =
        &s->recent[(what ^ what >> 8 ^ where ^ device ^ kind << 4) % FINDING_SUMS_RECENT];
    uint32_t place = *recent;
    struct finding_sum *row = place ? &s->rows[place - 1] : NULL;
    if (!row || row->kind != kind || row->device != device || row->what != what ||
        row->where != where) {
        int error = finding_sums_find(s, kind, device, what, where, recent, &place);
        if (error == 0 && !place && where)
            error = finding_sums_find(s, kind, device, what, 0, recent, &place);
        if (error < 0 || !place)
            return error;
        row = &s->rows[place - 1];
    }
    if (ns > row->longest_ns || row->count == 0) {
        row->longest_ns = ns;
        row->at_ns = at_ns;
    }
    row->count += count;
    row->ns += ns;
    return 0;
}

#endif
