/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process in a part: its header, what it says of itself, its losses, what gpuprof cost it, and
 * its dumps.
 */
#ifndef GPUPROF_COLLECTOR_PROCESS_PART_H
#define GPUPROF_COLLECTOR_PROCESS_PART_H

#include "query/part_file.h"
#include "read/process.h"

#define PROCESS_PART_BYTES (32 + 5 * COST_COUNT + COST_SUM_ARG_COUNT) /* at least */

/* What the walk knows of it. */
struct process_told {
    struct losses losses;
    uint64_t calls;
    uint64_t window; /* the number of the last one; 0: none */
};

void process_part_put(struct part *p, const struct process *process, struct process_told *told);

/* Reads into a process that has nothing. 0 or GPUPROF_NO_MEMORY; that it is damaged the part says.
 */
int process_part_get(struct part *p, struct process *process, struct process_told *told);

#endif
