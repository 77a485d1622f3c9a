/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of addresses in a process, and what they are mapped to. They do not overlap. Memory: 24
 * to 48 bytes a range.
 */
#ifndef GPUPROF_COLLECTOR_MAPPINGS_H
#define GPUPROF_COLLECTOR_MAPPINGS_H

#include <stdint.h>

struct mapping {
    uint64_t address;
    uint64_t bytes; /* not 0; the end is an address, too */
    uint32_t to;    /* for its user */
};

struct mappings {
    struct mapping *list; /* owned; by address */
    uint32_t count;
};

void mappings_release(struct mappings *m);

/*
 * Adds one. Returns 0, GPUPROF_LIMIT if it is not a valid range of addresses or overlaps another,
 * or GPUPROF_NO_MEMORY.
 */
int mappings_add(struct mappings *m, const struct mapping *added);

/* A mapping that overlaps the range; NULL: none. A view until the next change. */
const struct mapping *mappings_find(const struct mappings *m, uint64_t address, uint64_t bytes);

/* Removes a mapping that mappings_find returned. */
void mappings_remove(struct mappings *m, const struct mapping *found);

#endif
