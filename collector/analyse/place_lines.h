/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines of places: the innermost line of a stack that is the user's own, in Python, C or
 * C++. Names are looked up only for requested stacks, and only for frames in the user's modules,
 * because lookups are slow. Memory: as stack_table.h has it for those stacks, symbols.h,
 * shown_frame.h for each line, and 64 bytes for each distinct frame of all stacks. Functions that
 * return an int return 0 or GPUPROF_NO_MEMORY.
 */
#ifndef GPUPROF_COLLECTOR_PLACE_LINES_H
#define GPUPROF_COLLECTOR_PLACE_LINES_H

#include "resolve/stack_table.h"
#include "resolve/symbols.h"
#include "symbol/shown_frame.h"

#define PLACE_CALLED ", called at " /* between a line and its caller's line */

struct place_lines {
    const struct stack_table *all; /* a view */
    struct stack_table few;        /* the requested stacks, with the user's own frames only */
    struct symbols *symbols;       /* owned; NULL: no such stack */
    struct shown_frames shown;
    bool has_callers;
    struct key_map ways; /* (process, word) -> number of distinct call paths to it */
    char *text;          /* owned: the last text with a caller */
};

/* `all`, of files of `bytes` in total, must outlive `l`. `has_callers`: texts include callers. */
void place_lines_init(struct place_lines *l, const struct stack_table *all, uint64_t bytes,
                      bool has_callers);
void place_lines_release(struct place_lines *l);

/* Call after the walk: requests a stack by its number in the process; 0 is none. */
int place_lines_add(struct place_lines *l, uint32_t process, uint32_t stack);

/* The same for place_frame, which falls back to the innermost frame if none is the user's own. */
int place_lines_add_any(struct place_lines *l, uint32_t process, uint32_t stack);

/* Looks up the names of all added stacks of `rec` (`symbol_folder` as in symbols.h). */
int place_lines_find(struct place_lines *l, struct recording *rec, const char *symbol_folder);

/*
 * After place_lines_find: "train (train.py:17)"; the innermost function if only names of functions
 * are known; NULL if neither. A function that serves many callers, such as a launch wrapper, is
 * shown with its caller if several call paths led to the line, or if the compiler inlined it. Then
 * "launch (train.c:4), called at train (train.c:17)" has the nearest enclosing line that
 * distinguishes the paths. *text is a view until the next call.
 */
int place_line(struct place_lines *l, uint32_t process, uint32_t stack, const char **text);

/* The result of place_line as a frame, without a caller; else the innermost frame, without a name
 * if only its module is known. Returns false if there is no such stack. */
bool place_frame(const struct place_lines *l, uint32_t process, uint32_t stack,
                 struct shown_frame *frame);

#endif
