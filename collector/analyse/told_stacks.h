/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of a few calls as text. Names are looked up for these stacks only, since a lookup for
 * all stacks would take too long. */
#ifndef GPUPROF_COLLECTOR_TOLD_STACKS_H
#define GPUPROF_COLLECTOR_TOLD_STACKS_H

#include "resolve/call_tree.h"

/* The stack of one call. */
struct told_stack {
    const struct process *process;
    uint32_t stack; /* STACK record number in the process; 0: none */
    uint32_t node;  /* after the lookup: innermost node; 0: none, or no room */
    char *line;     /* after the lookup, owned: told_stack_line; NULL: not known */
};

struct told_stacks {
    struct survey few; /* only its stacks are used: the reported ones */
    struct call_tree tree;
    bool has_tree;
};

/* `all` must be complete before the first stack is added, and must outlive `t`. */
void told_stacks_init(struct told_stacks *t, struct recording *rec, const struct stack_table *all);
void told_stacks_release(struct told_stacks *t);

/* After the walk. 0 or GPUPROF_NO_MEMORY. */
int told_stacks_add(struct told_stacks *t, const struct stack_table *all,
                    const struct told_stack *stack);

/* Call after the last stack: looks names up (`symbol_folder` as in symbols.h). 0 or an error. */
int told_stacks_finish(struct told_stacks *t, const char *symbol_folder);

/* Call after told_stacks_finish: sets the node and line of `stack`. */
void told_stacks_find(struct told_stacks *t, struct told_stack *stack);

/* True if all frames are Python's, as in stacks that were read from outside the process. */
bool told_stack_is_python(const struct told_stacks *t, uint32_t node);

/*
 * New text, NULL if there is none. _line: the innermost line of the user's own, else the user's
 * innermost function, else the innermost frame. _text: all frames, each after a line break. _below:
 * the same after `title`, which it frees. _json: all frames as a JSON list.
 */
char *told_stack_line(const struct told_stacks *t, uint32_t node);
char *told_stack_text(const struct told_stacks *t, uint32_t node);
char *told_stack_below(const struct told_stacks *t, uint32_t node, char *title);
char *told_stack_json(const struct told_stacks *t, uint32_t node);

#endif
