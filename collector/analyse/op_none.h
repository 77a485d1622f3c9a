/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time under no operator, by what it is: compiled code by the names of its kernels, replays of
 * graphs, calls of threads that have no operators, work whose call is not known, and what was begun
 * between operators. Memory: 150 bytes a row, of which there are OP_NONE_ROWS_MAX and one for all
 * others; 1 byte for each thread.
 */
#ifndef GPUPROF_COLLECTOR_OP_NONE_H
#define GPUPROF_COLLECTOR_OP_NONE_H

#include "model/event_walk.h"
#include "model/graph_origins.h"
#include "query/sums.h"

#define OP_NONE_ROWS_MAX 16384

enum op_none_cause {
    NONE_COMPILED,
    NONE_GRAPH,
    NONE_THREAD, /* without operators */
    NONE_CALL,   /* that is not known */
    NONE_BETWEEN,
    NONE_CAUSES
};

struct op_none_row {
    enum op_none_cause cause;
    enum graph_origin origin;       /* of NONE_GRAPH: why it is in none */
    const struct kernel_name *name; /* of a kernel or label of compiled code; NULL: none */
    const struct process *process;  /* of a kernel, until its name is asked for */
    uint32_t thread;                /* one that had no operators yet: its index + 1; 0: none */
    uint64_t count;
    uint64_t ns;
};

#define NONE_RECENT 64

struct op_none {
    struct walk *walk;
    struct {
        struct key key;    /* of what is tied: before it is known whether its kernel is compiled */
        int64_t row;       /* 0: free */
    } recent[NONE_RECENT]; /* a few: of a recording without operators all work comes here */
    struct op_none_row *rows; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct key_map places; /* of rows + 1 */
    bool *has_ops;         /* owned, by thread index: operators began on it */
};

/* `walk` must stay. 0 or GPUPROF_NO_MEMORY; op_none_release in both cases. */
int op_none_init(struct op_none *n, struct walk *walk);
void op_none_release(struct op_none *n);

/* An operator begins on that thread. */
static inline void op_none_sees(struct op_none *n, const struct thread *thread)
{
    n->has_ops[thread->index] = true;
}

/* Tied work in no operator; `label` is that of compiled code around it, or NULL. 0 or an error. */
int op_none_add(struct op_none *n, const struct slice *s, const struct kernel_name *label);

/* All replays of a node whose operators are not known, `origin` says why. 0 or an error. */
int op_none_add_node(struct op_none *n, const struct graph_node *node, enum graph_origin origin);

/* Behind the walk: fills the table, whose keys are what it is and the cause in one word, and whose
 * values a count and the time. 0 or GPUPROF_NO_MEMORY. */
enum { NONE_COUNT, NONE_NS };
int op_none_complete(struct op_none *n, struct sums *sums);

const char *op_none_word(enum op_none_cause cause);

#endif
