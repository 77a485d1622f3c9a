/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which captured call each node of a replayed graph comes from. CUPTI names the graph and the node
 * of each piece of work, but not who captured it: nodes are numbered in the order in which they
 * were made, and so the captured calls of a graph are its nodes, one after another. That is
 * believed if there are as many of the one as of the other, all of the same sort, and of the same
 * kernels where both names are known; if not, or if several captures were open in the process, a
 * reason is told in place of the call. (That a graph was changed later, cudaGraphExecUpdate, is
 * recorded nowhere; it is noticed if it has other nodes then, or other kernels.)
 *
 * Work is added up by node, so it does not matter how often a graph is replayed. Memory: 64 bytes
 * for each node, 24 for each captured call, GRAPH_ORIGINS_MAX of each at most, and 64 to 128 for
 * each node, graph and one of its first launches, twice as many at most.
 */
#ifndef GPUPROF_COLLECTOR_GRAPH_ORIGINS_H
#define GPUPROF_COLLECTOR_GRAPH_ORIGINS_H

#include "resolve/event_walk.h"

#define GRAPH_ORIGINS_MAX (1u << 18)

enum graph_origin {
    GRAPH_KNOWN,
    GRAPH_WHOLE,     /* work is recorded for graphs as a whole */
    GRAPH_UNSEEN,    /* its capture, or which graph was launched */
    GRAPH_DIFFERENT, /* the nodes are not the captured calls */
    GRAPH_ORIGINS
};

struct capture; /* graph_origins.c */

/* Work of one node, all replays together. */
struct graph_node {
    const struct process *process;
    uint64_t graph;
    uint64_t node;
    uint64_t kernel; /* number of its name; 0: it is no kernel */
    uint64_t device;
    uint64_t ns;
    uint64_t count;
    uint8_t type;    /* of its records */
    bool is_changed; /* they are not all of one kernel on one device */
};

struct graph_origins {
    struct walk *walk;
    struct capture *captures; /* owned */
    uint32_t capture_count;
    uint32_t call_count; /* of all captures */
    struct key_map keys; /* (process and what it is, handle or number, node) -> what it means */
    struct graph_node *nodes; /* owned */
    uint32_t node_count;
};

void graph_origins_init(struct graph_origins *g, struct walk *walk);
void graph_origins_release(struct graph_origins *g);

/* Is this slice a call that was captured, and that work will be done for? */
bool graph_origins_wants(const struct slice *s);

/* It is, and is to be known by `user`. 0 or GPUPROF_NO_MEMORY. */
int graph_origins_capture(struct graph_origins *g, const struct slice *s, uint32_t user);

/* Any call, in the order of time. 0 or GPUPROF_NO_MEMORY. */
int graph_origins_take(struct graph_origins *g, const struct slice *s);

/* Work of a graph, as it is tied: 1 if it was taken, 0 if it is none of a graph or found no room,
 * or GPUPROF_NO_MEMORY. */
int graph_origins_work(struct graph_origins *g, const struct slice *s);

/* Behind all work: tells of each node once. `user` is that of its call if `origin` is GRAPH_KNOWN.
 * 0 or what `tell` returned. */
typedef int graph_origin_fn(void *context, const struct graph_node *node, enum graph_origin origin,
                            uint32_t user);
int graph_origins_tell(struct graph_origins *g, graph_origin_fn *tell, void *context);

#endif
