/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines of places: the innermost line of a stack that is the user's own, in Python, C or
 * C++. Names are looked up only for requested stacks, and only for frames in the user's modules,
 * because lookups are slow. Memory: that of symbols.h, of shown_frame.h for each line, and 65 bytes
 * for each distinct frame of all stacks.
 */
#ifndef GPUPROF_COLLECTOR_PLACE_LINES_H
#define GPUPROF_COLLECTOR_PLACE_LINES_H

#include "resolve/call_tree.h"

#define PLACE_CALLED ", called at " /* between a line and its caller's line */

struct place_lines {
    const struct stack_table *stacks; /* a view; set it, and `has_callers`, before the first call */
    bool has_callers;                 /* texts include callers */
    bool *wanted;            /* owned, by index of the frame: its name is looked up; NULL: none */
    struct symbols *symbols; /* owned; NULL: no stack was added */
    struct shown_frames shown;
    struct key_map ways; /* (process, word) -> number of distinct call paths to it */
    char *text;          /* owned: the last text with a caller */
};

void place_lines_release(struct place_lines *l);

/* Call after the walk: requests a stack by its number in the process; 0 is none. `any`: for
 * place_frame, also the innermost frame if none is the user's own, whose name takes longer to
 * find. */
void place_lines_add(struct place_lines *l, uint32_t process, uint32_t stack, bool any);

/* Looks up the names of all added stacks of `rec` (`symbol_folder` as in symbols.h). */
void place_lines_find(struct place_lines *l, struct recording *rec, const char *symbol_folder);

/*
 * After place_lines_find: "train (train.py:17)"; the innermost function if only names of functions
 * are known; NULL if neither. A function that serves many callers, such as a launch wrapper, is
 * shown with its caller if several call paths led to the line, or if the compiler inlined it. Then
 * "launch (train.c:4), called at train (train.c:17)" has the nearest enclosing line that
 * distinguishes the paths. A view until the next call.
 */
const char *place_line(struct place_lines *l, uint32_t process, uint32_t stack);

/* The result of place_line as a frame, without a caller; else the innermost frame, without a name
 * if only its module is known. Returns false if there is no such stack. */
bool place_frame(const struct place_lines *l, uint32_t process, uint32_t stack,
                 struct shown_frame *frame);

/* ---- the stacks of a few calls as text ---- */

#define STACK_FRAMES_SHOWN_MAX 64 /* in lines of text */

/* The stack of one call. */
struct reported_stack {
    const struct process *process;
    uint32_t stack; /* STACK record number in the process; 0: none */
    char *line;     /* owned; the innermost line of the user's own, else the user's innermost
                     * function, else the innermost frame; NULL: not known, as are the next */
    char *lines;    /* owned; the frames, innermost first */
    char *json;     /* owned; likewise, as a list */
};

/* Looks up the names of the stacks in `list` after the walk (`symbol_folder` as in symbols.h). */
void reported_stacks_find(struct survey *survey, const char *symbol_folder,
                          struct reported_stack *const *list, uint32_t count);
void reported_stack_release(struct reported_stack *s);

/* New text: the frames from `node` outwards, each on a line, or as a JSON list. */
char *stack_text(const struct call_tree *tree, uint32_t node, bool is_json);

/* New text: the stack's lines below `title`, which it frees. */
char *reported_stack_below(const struct reported_stack *s, char *title);

#endif
