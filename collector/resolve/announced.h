/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts missing GPU work for copies, fills and graph launches; correlation_unmatched does so for
 * kernels. If a process ended normally and CUPTI delivered everything, such a call without work
 * made none (a copy within the host, a graph of host functions). So only processes that ended
 * otherwise are counted, and only calls no earlier than NEAR_NS before the last call with work.
 * CUPTI does not hold records back longer, except for kernels of a device that is far behind.
 *
 * A graph launch is expected to make as much work as its other launches or, if there are none, as
 * was captured. Copies within the host, and of no bytes, are not expected to make work. Memory:
 * some 100 bytes for each graph, GRAPHS_MAX at most; beyond that a graph counts as one GPU record.
 */
#ifndef GPUPROF_COLLECTOR_ANNOUNCED_H
#define GPUPROF_COLLECTOR_ANNOUNCED_H

#include "base/key_map.h"
#include "read/recording.h"
#include "resolve/correlation.h"

struct event;
struct announced_capture;

/* A graph that can be launched, until its handle is reused. */
struct announced_graph {
    uint32_t captured; /* captured calls that make work; UINT32_MAX: not known */
    /* Counts of launches, by their work: */
    uint32_t work;    /* most work of one launch */
    uint32_t partial; /* launches with less than that */
    uint32_t some;    /* launches with any */
    uint32_t none;    /* launches with none */
    uint64_t sum;     /* total work */
};

struct announced {
    struct key_map
        keys; /* (process, kind of handle, handle) -> captured calls + 1 or the graph's index + 1 */
    struct announced_graph *graphs; /* owned */
    uint32_t graph_count;
    struct announced_capture *captures; /* owned, by process index */
    uint64_t *worked_ns;                /* owned, likewise: begin of the last call with work */
};

/* 0 or GPUPROF_NO_MEMORY; announced_release in both cases. */
int announced_init(struct announced *a, uint32_t process_count);
void announced_release(struct announced *a);

/* Forgets everything about process `only`, or with NULL about all processes. */
void announced_forget(struct announced *a, const struct process *only, uint32_t process_count);

/* Notes that work was found for that call. */
static inline void announced_work(struct announced *a, const struct correlated_call *call)
{
    const unsigned of_device = CORRELATION_LAUNCH | CORRELATION_MOVES | CORRELATION_GRAPH;
    uint64_t *worked_ns = &a->worked_ns[call->process];
    if (call->flags & of_device && !(call->flags & CORRELATION_NESTED) &&
        call->begin_ns > *worked_ns)
        *worked_ns = call->begin_ns;
}

/* Takes any call, in the order of time. Returns its flags (CORRELATION_MOVES, CORRELATION_GRAPH) or
 * an error, and in *graph the value for correlated_call.graph. */
int announced_take(struct announced *a, const struct event *e, uint32_t *graph);

/* Adds the missing work of a process to *missing, after correlation_unmatched, with the same gaps
 * and hangs. Returns 0 or an error. */
int announced_missing(struct announced *a, struct correlation *c, const struct process *p,
                      const struct correlation_gap *gaps, uint32_t gap_count,
                      const struct correlation_hangs *hangs, uint64_t *missing);

#endif
