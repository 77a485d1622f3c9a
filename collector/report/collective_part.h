/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives in a part, as far as nothing is to be told of them: of each order of calls what its
 * ranks have called, in a number. If all parts have the same of it, and no process has left
 * anything unfinished, nobody has called something else than others and nobody waits. If not, it
 * may be that something is to be told, and only all recordings together know: PART_COLLECTIVES.
 */
#ifndef GPUPROF_COLLECTOR_COLLECTIVE_PART_H
#define GPUPROF_COLLECTOR_COLLECTIVE_PART_H

#include "find/hang.h"
#include "query/part_file.h"

/* Is something to be told, or may it be when other parts are there? */
bool collective_part_is_doubtful(const struct hang *h);

void collective_part_put(const struct collectives *c, struct part *p);

/* What the parts' ranks have called. */
struct called_parts {
    struct called_part *list; /* owned */
    uint32_t count;
    uint32_t capacity;
};

/* Adds what is in the part. 0 or GPUPROF_NO_MEMORY; that it is damaged the part says. */
int collective_part_add(struct called_parts *c, struct part *p);

/* After the last part: have they all called the same? */
bool collective_part_add_end(struct called_parts *c);

#endif
