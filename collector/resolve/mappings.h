/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranges of a process's addresses are mapped to what. They do not overlap: what is mapped
 * over others takes their place. Memory: 64 bytes a range.
 */
#ifndef GPUPROF_COLLECTOR_MAPPINGS_H
#define GPUPROF_COLLECTOR_MAPPINGS_H

#include <stdint.h>

struct mapping {
    uint64_t address;
    uint64_t bytes; /* not 0, and the end is an address, too */
    uint32_t to;    /* for its user */
};

struct mappings {
    void *root; /* owned: a tree of the C library's, of struct mapping */
    uint32_t count;
};

void mappings_release(struct mappings *m);

/*
 * Adds one, which overlaps none. 0, GPUPROF_LIMIT if there is no such range of addresses or it
 * overlaps one, or GPUPROF_NO_MEMORY.
 */
int mappings_add(struct mappings *m, const struct mapping *added);

/* Any that has an address of the range; NULL: none. A view until the next change. */
const struct mapping *mappings_find(const struct mappings *m, uint64_t address, uint64_t bytes);

/* All of them in the order of addresses. 0, or the first error of `each`. */
int mappings_each(const struct mappings *m, int (*each)(void *context, const struct mapping *found),
                  void *context);

/* Takes out what mappings_find has found. */
void mappings_remove(struct mappings *m, const struct mapping *found);

#endif
