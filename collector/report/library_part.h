/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libraries in a part: each kind with what it is called and what it computes, since
 * numbers of kinds and plans are a process's own; and the collectives that not all ranks of the
 * share have come to, some 10 bytes each, of which all parts together know the shortest kernel.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_PART_H
#define GPUPROF_COLLECTOR_LIBRARY_PART_H

#include "analyse/library_report.h"
#include "query/part_file.h"

/* Of one that is_part; NULL: none was made. 0 or GPUPROF_NO_MEMORY. */
int library_part_put(const struct library_report *l, struct part *p);

/* What the parts' ranks have come to. */
struct library_waits {
    struct library_wait *list; /* owned */
    uint32_t count;
    uint32_t capacity;
};

/* Adds what is in the part, which must stay. 0 or GPUPROF_NO_MEMORY; that it is damaged the part
 * says. *has_more: it had more than it kept. */
int library_part_add(struct library_report *l, struct library_waits *waits, struct part *p,
                     struct process *const *processes, uint32_t process_count, bool *has_more);

/* After the last part: makes the rows complete. */
void library_part_add_end(struct library_report *l, struct library_waits *waits);

#endif
