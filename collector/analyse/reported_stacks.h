/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of a few calls as text. Names are looked up for these stacks only, since a lookup for
 * all stacks would take too long. */
#ifndef GPUPROF_COLLECTOR_REPORTED_STACKS_H
#define GPUPROF_COLLECTOR_REPORTED_STACKS_H

#include "resolve/call_tree.h"

#define STACK_FRAMES_SHOWN_MAX 64 /* in lines of text */

/* The stack of one call. */
struct reported_stack {
    const struct process *process;
    uint32_t stack; /* STACK record number in the process; 0: none */
    bool is_python; /* all frames are Python's, as in stacks that were read from outside */
    char *line;     /* owned; the innermost line of the user's own, else the user's innermost
                     * function, else the innermost frame; NULL: not known, as are the next */
    char *lines;    /* owned; the frames, innermost first */
    char *json;     /* owned; likewise, as a list */
};

/* Looks up the names of the stacks in `list` after the walk (`symbol_folder` as in symbols.h). 0 or
 * an error. */
int reported_stacks_find(struct survey *survey, const char *symbol_folder,
                         struct reported_stack *const *list, uint32_t count);
void reported_stack_release(struct reported_stack *s);

/* New text: the frames from `node` outwards, each on a line, or as a JSON list; NULL: no memory. */
char *stack_text(const struct call_tree *tree, uint32_t node, bool is_json);

/* New text: the stack's lines below `title`, which it frees. */
char *reported_stack_below(const struct reported_stack *s, char *title);

#endif
