/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of a few calls as text. Names are looked up for these stacks only, since a lookup for
 * all stacks would take too long. */
#ifndef GPUPROF_COLLECTOR_REPORTED_STACKS_H
#define GPUPROF_COLLECTOR_REPORTED_STACKS_H

#include "resolve/call_tree.h"

/* The stack of one call. */
struct reported_stack {
    const struct process *process;
    uint32_t stack; /* STACK record number in the process; 0: none */
    uint32_t node;  /* after the lookup: innermost node; 0: none, or no room */
    char *line;     /* after the lookup, owned: reported_stack_line; NULL: not known */
};

struct reported_stacks {
    struct survey few; /* only its stacks are used: the reported ones */
    struct call_tree tree;
    bool has_tree;
};

/* `all` must be complete before the first stack is added, and must outlive `t`. */
void reported_stacks_init(struct reported_stacks *t, struct recording *rec,
                          const struct stack_table *all);
void reported_stacks_release(struct reported_stacks *t);

/* After the walk. 0 or GPUPROF_NO_MEMORY. */
int reported_stacks_add(struct reported_stacks *t, const struct stack_table *all,
                        const struct reported_stack *stack);

/* Call after the last stack: looks names up (`symbol_folder` as in symbols.h). 0 or an error. */
int reported_stacks_finish(struct reported_stacks *t, const char *symbol_folder);

/* Call after reported_stacks_finish: sets the node and line of `stack`. */
void reported_stacks_find(struct reported_stacks *t, struct reported_stack *stack);

/* True if all frames are Python's, as in stacks that were read from outside the process. */
bool reported_stack_is_python(const struct reported_stacks *t, uint32_t node);

/*
 * New text, NULL if there is none. _line: the innermost line of the user's own, else the user's
 * innermost function, else the innermost frame. _text: all frames, innermost first, each after a
 * line break, or as a JSON list. _below: lines after `title`, which it frees.
 */
char *reported_stack_line(const struct reported_stacks *t, uint32_t node);
char *reported_stack_text(const struct reported_stacks *t, uint32_t node, bool is_json);
char *reported_stack_below(const struct reported_stacks *t, uint32_t node, char *title);

#endif
