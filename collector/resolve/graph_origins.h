/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the captured call behind each node of a replayed graph. CUPTI names the graph and node of
 * each GPU record, but not the call that captured it. Nodes are numbered in the order of creation,
 * so a graph's captured calls are its nodes, one after another. This is accepted if both have the
 * same number and sorts, and the same kernels where both names are known. Otherwise, or if several
 * captures were open in the process, a reason replaces the call. (cudaGraphExecUpdate is not
 * recorded; it is noticed if nodes or kernels differ then.)
 *
 * Work is added up by node, so the number of replays does not matter. Memory: 64 bytes for each
 * node and 72 for each captured call, GRAPH_ORIGINS_MAX of each at most; and 64 to 128 for each
 * node, graph and one of its first launches, twice as many at most.
 */
#ifndef GPUPROF_COLLECTOR_GRAPH_ORIGINS_H
#define GPUPROF_COLLECTOR_GRAPH_ORIGINS_H

#include "resolve/event_walk.h"

#define GRAPH_ORIGINS_MAX (1u << 18)

enum graph_origin {
    GRAPH_KNOWN,
    GRAPH_WHOLE,     /* work is recorded for graphs as a whole */
    GRAPH_UNSEEN,    /* the capture or the launched graph is not known */
    GRAPH_DIFFERENT, /* the nodes differ from the captured calls */
    GRAPH_ORIGINS
};

struct capture; /* graph_origins.c */

/* A captured call. */
struct captured_call {
    struct correlated_call call;      /* its begin and span */
    uint64_t before_ns;               /* begin of the captured call before it; 0: none */
    const struct kernel_name *kernel; /* NULL: not known, or none */
    uint8_t type;                     /* record type of its work */
};

/* Whether the call is the first captured one in that span around it. */
static inline bool captured_is_first(const struct captured_call *c, uint64_t span_begin_ns)
{
    return span_begin_ns > c->before_ns || !c->before_ns;
}

/* Work of one node, in all replays. */
struct graph_node {
    const struct process *process;
    uint64_t graph;
    uint64_t node;
    uint64_t kernel; /* number of its name; 0: not a kernel */
    uint64_t device;
    uint64_t ns;
    uint64_t count;
    uint8_t type;    /* record type */
    bool is_changed; /* the replays differ in kernel or device */
};

struct graph_origins {
    struct walk *walk;
    struct capture *captures; /* owned */
    uint32_t capture_count;
    uint32_t call_count;      /* of all captures */
    struct key_map keys;      /* (process and kind of key, handle or number, node) -> its meaning */
    struct graph_node *nodes; /* owned */
    uint32_t node_count;
};

void graph_origins_init(struct graph_origins *g, struct walk *walk);
void graph_origins_release(struct graph_origins *g);

/* Takes any call, in the order of time, in a walk with WALK_WORK. Returns it, as a view until the
 * next call, if it was captured and makes work, else NULL. */
const struct captured_call *graph_origins_take(struct graph_origins *g, const struct slice *s);

/* Takes GPU work with its call. Returns false if it is not a graph's, or there is no room. */
bool graph_origins_work(struct graph_origins *g, const struct slice *s);

/* After all work: calls `notify` once for each node. `call` is its call if `origin` is GRAPH_KNOWN,
 * else NULL. Returns 0 or the result of `notify`. */
typedef int graph_origin_fn(void *context, const struct graph_node *node, enum graph_origin origin,
                            const struct captured_call *call);
int graph_origins_report(struct graph_origins *g, graph_origin_fn *notify, void *context);

#endif
