/* SPDX-License-Identifier: Apache-2.0 */
/* Books and rows together, for who shows them beside other things. */
#ifndef GPUPROF_COLLECTOR_MEMORY_LOOK_H
#define GPUPROF_COLLECTOR_MEMORY_LOOK_H

#include "memory/memory_rows.h"

struct memory_look {
    struct memory_report report;
    struct memory_rows rows; /* at the peak */
};

/*
 * Walks through `rec`, which must stay, twice. NULL: an error in *error, after one line on stderr;
 * else to be freed by memory_look_free, which takes NULL, too.
 */
struct memory_look *memory_look_create(struct recording *rec, const struct memory_wish *wish,
                                       const char *symbols, int *error);
void memory_look_free(struct memory_look *look);

#endif
