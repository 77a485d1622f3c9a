/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a few calls, as people read them: names are looked up for these alone, where a
 * table of all stacks would look up everybody's.
 */
#ifndef GPUPROF_COLLECTOR_TOLD_STACKS_H
#define GPUPROF_COLLECTOR_TOLD_STACKS_H

#include "resolve/call_tree.h"

/* The stack of one of them. */
struct told_stack {
    const struct process *process;
    uint32_t stack; /* its number in the process; 0: none */
    uint32_t node;  /* once names are looked up: the innermost; 0: there is none, or no room */
    char *line;     /* likewise, owned: told_stack_line; NULL: not known */
};

struct told_stacks {
    struct survey few; /* its stacks are those that are told; no more of it is used */
    struct call_tree tree;
    bool has_tree;
};

/* `all` is to be filled before the first stack is added, and must stay. */
void told_stacks_init(struct told_stacks *t, struct recording *rec, const struct stack_table *all);
void told_stacks_release(struct told_stacks *t);

/* After the walk. 0 or GPUPROF_NO_MEMORY. */
int told_stacks_add(struct told_stacks *t, const struct stack_table *all,
                    const struct told_stack *stack);

/* Once all are added: looks names up (`symbol_folder` as in symbols.h). 0 or an error. */
int told_stacks_finish(struct told_stacks *t, const char *symbol_folder);

/* After that: sets its node and line. */
void told_stacks_find(struct told_stacks *t, struct told_stack *stack);

/* Has it frames of Python only, as those have that were read from outside? */
bool told_stack_is_python(const struct told_stacks *t, uint32_t node);

/*
 * In new memory, NULL if there is none: the innermost line of the user's own, or else the user's
 * innermost function, or else the innermost frame; all frames, each behind a line break, and the
 * same behind `title`, which goes; all of them as a list in JSON.
 */
char *told_stack_line(const struct told_stacks *t, uint32_t node);
char *told_stack_text(const struct told_stacks *t, uint32_t node);
char *told_stack_below(const struct told_stacks *t, uint32_t node, char *title);
char *told_stack_json(const struct told_stacks *t, uint32_t node);

#endif
