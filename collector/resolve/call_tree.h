/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as paths in one tree, from the outermost frame to the innermost. Nodes are numbered from 1
 * on, and each node represents one chain of callers. Inlined functions have nodes of their own.
 * Memory: 20 to 40 bytes a node up to TREE_NODES_MAX, or the limit for files of this size
 * (stack_table.h); 64 to 128 bytes a stack. shown_frame.h and symbols.h bound theirs.
 */
#ifndef GPUPROF_COLLECTOR_CALL_TREE_H
#define GPUPROF_COLLECTOR_CALL_TREE_H

#include "base/key_map.h"
#include "resolve/survey.h"
#include "resolve/symbols.h"
#include "symbol/shown_frame.h"

#define TREE_NODES_MAX (1u << 23)
#define TREE_NODES_FREE                                                                            \
    (STACK_FRAMES_FREE + STACKS_FREE) /* each stack has one node more, for the call */
#define TREE_NODES_PER_BYTE (STACK_FRAMES_PER_BYTE + 1)

struct tree_node {
    uint32_t parent; /* 0: it is a root */
    uint32_t frame;  /* number of its shown frame */
    uint32_t cost;   /* number of its costs (stack_costs.h); 0: none */
};

struct call_tree {
    struct survey *survey;
    struct symbols *symbols; /* owned */
    struct shown_frames frames;
    struct tree_node *nodes; /* owned; number n is nodes[n - 1] */
    uint32_t count;
    uint32_t nodes_max;
    struct number_set numbers;
    struct key_map leaves; /* (stack, root, range) -> its node + 1 */
    bool only_own;         /* own frames only (shown_frame.h); set before the first stack */
    bool only_named;       /* keeps only frames with a name, likewise */
    bool is_below_python;  /* while a stack is added: in the interpreter, before a function */
    uint64_t left_out;     /* nodes beyond the maximum */
};

/* The largest number of nodes for this recording. */
uint32_t call_tree_nodes_max(const struct recording *rec);

/* `survey` must stay. `wanted` and `symbol_folder` as in symbols.h. */
void call_tree_init(struct call_tree *t, struct survey *survey, const bool *wanted,
                    const char *symbol_folder);
void call_tree_release(struct call_tree *t);

/* Finds or adds the node of a frame below `parent` (0: a root); beyond the maxima, returns `parent`
 * itself. */
uint32_t call_tree_child(struct call_tree *t, uint32_t parent, const struct shown_frame *frame);

/*
 * Finds or adds the stack of that number below `root`, and returns its innermost node; 0: there is
 * no such stack. `range` (NULL: none) was open around the call; it names threads of Python
 * processes that have no Python frames.
 */
uint32_t call_tree_stack(struct call_tree *t, uint32_t root, uint32_t process, uint32_t stack,
                         const struct kernel_name *range);

/* Prints one line on stderr if a maximum was exceeded; call it after the last stack. */
void call_tree_say(const struct call_tree *t);

static inline const struct tree_node *call_tree_node(const struct call_tree *t, uint32_t number)
{
    return &t->nodes[number - 1];
}

static inline const struct shown_frame *call_tree_frame(const struct call_tree *t, uint32_t node)
{
    return shown_frame_of(&t->frames, t->nodes[node - 1].frame);
}

#endif
