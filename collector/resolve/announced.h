/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that calls announced beside kernels, and that is not recorded: copies, fills, and the nodes
 * of graphs. Where a process ended by itself and CUPTI gave all that it had, such a call without
 * work made none (a copy within the host, a graph of host functions). So only those of processes
 * that did not count, and of these only such as came no earlier than NEAR_NS before the last call
 * whose work is there: CUPTI keeps nothing longer than that, but for kernels of a device that is
 * far behind, which correlation_unmatched counts.
 *
 * A launch of a graph announces as much as other launches of it made, or, where none is known, as
 * much as was captured. Of copies within the host, and of no byte, none is expected. Memory: some
 * 100 bytes for each graph that can be launched, GRAPHS_MAX at most; behind these a graph is one
 * piece of work.
 */
#ifndef GPUPROF_COLLECTOR_ANNOUNCED_H
#define GPUPROF_COLLECTOR_ANNOUNCED_H

#include "base/key_map.h"
#include "read/recording.h"
#include "resolve/correlation.h"

struct event;
struct announced_capture;

/* A graph that can be launched, from when it was made until its handle is another's. */
struct announced_graph {
    uint32_t captured; /* calls that make work, UINT32_MAX: not known */
    /* While counting, of launches: */
    uint32_t work;    /* the most that one has */
    uint32_t partial; /* how many have less, */
    uint32_t some;    /* have any, */
    uint32_t none;    /* have none */
    uint64_t sum;     /* work of all */
};

struct announced {
    struct key_map
        keys; /* (process, what it is, handle) -> captured calls + 1, graph's index + 1 */
    struct announced_graph *graphs; /* owned */
    uint32_t graph_count;
    struct announced_capture *captures; /* owned, by process index */
    uint64_t *worked_ns; /* owned, likewise: when the last call began whose work is there */
};

/* 0 or GPUPROF_NO_MEMORY; announced_release in both cases. */
int announced_init(struct announced *a, uint32_t process_count);
void announced_release(struct announced *a);

/* Forgets what was said, of process `only` or, with NULL, of all so many. */
void announced_forget(struct announced *a, const struct process *only, uint32_t process_count);

/* Work was found of that call. */
static inline void announced_work(struct announced *a, const struct correlated_call *call)
{
    const unsigned of_device = CORRELATION_LAUNCH | CORRELATION_MOVES | CORRELATION_GRAPH;
    uint64_t *worked_ns = &a->worked_ns[call->process];
    if (call->flags & of_device && !(call->flags & CORRELATION_NESTED) &&
        call->begin_ns > *worked_ns)
        *worked_ns = call->begin_ns;
}

/* Any call, in the order of time: its flags among calls (CORRELATION_MOVES, CORRELATION_GRAPH), or
 * an error. `graph`: of a launch, correlated_call.graph. */
int announced_take(struct announced *a, const struct event *e, uint32_t *graph);

/* Adds what is missing of a process to *missing. The gaps and hangs are as for
 * correlation_unmatched, which was called before. 0 or an error. */
int announced_missing(struct announced *a, struct correlation *c, const struct process *p,
                      const struct correlation_gap *gaps, uint32_t gap_count,
                      const struct correlation_hangs *hangs, uint64_t *missing);

#endif
