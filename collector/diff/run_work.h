/* SPDX-License-Identifier: Apache-2.0 */
/* For run_summary.c: the kernels of the steps that are kept, by name and where they were launched,
 * of a walk that has been surveyed. */
#ifndef GPUPROF_COLLECTOR_RUN_WORK_H
#define GPUPROF_COLLECTOR_RUN_WORK_H

#include "base/key_map.h"
#include "diff/run_steps.h"
#include "find/place_lines.h"

/* The texts are views of the walk's. */
struct run_work_row {
    const struct kernel_name *name; /* NULL: it is not known, or work of a graph */
    const struct kernel_name *op;
    const struct kernel_name *range;
    uint32_t kind;    /* of library_calls.h; 0: none */
    uint32_t process; /* index, of the stack, */
    uint32_t stack;   /* whose number this is; 0: none */
    bool is_graph;
    uint64_t count;
    uint64_t ns;
};

struct run_work {
    struct run_steps *steps;
    struct run_work_row *list; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct key_map places; /* what of a row is place -> number */
    struct key_map rows;   /* number of the place, name -> row + 1 */
};

void run_work_init(struct run_work *w, struct run_steps *steps);
void run_work_release(struct run_work *w);
struct consumer run_work_consumer(struct run_work *w);

/* After the walk: the rows as the run's kernels, with lines by `symbols` (symbols.h). 0 or an
 * error. */
int run_work_name(struct run_work *w, const char *symbols, struct run_summary *r);

#endif
