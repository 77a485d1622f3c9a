/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats of `export` that are made of stacks and what the calls of each cost: pprof's, and those
 * of `flame`. The walk fills the costs, and all is written behind the last event. Memory:
 * stack_costs.h, and for pprof the texts again.
 */
#ifndef GPUPROF_COLLECTOR_STACKS_EXPORT_H
#define GPUPROF_COLLECTOR_STACKS_EXPORT_H

#include "flame/flame.h"

/* When anything was recorded: absolute. */
struct stacks_span {
    uint64_t begin_ns;
    uint64_t end_ns;
};

/* A profile of all costs at once; processes and threads, which must be split, are labels of its
 * samples. 0 or GPUPROF_NO_MEMORY. (pprof.c) */
int pprof_write(const struct stack_costs *costs, const struct stacks_span *span,
                struct output *out);

#endif
