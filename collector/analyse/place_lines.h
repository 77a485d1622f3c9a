/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of places: of a stack the innermost one that is the user's own, in Python, C or C++.
 * Names are looked up for the stacks that are asked for, and of these for frames in modules of the
 * user's alone: a report must not take long to say where. Memory: as stack_table.h has it of those,
 * symbols.h, shown_frame.h for each line, and 64 bytes for each distinct frame of all stacks.
 */
#ifndef GPUPROF_COLLECTOR_PLACE_LINES_H
#define GPUPROF_COLLECTOR_PLACE_LINES_H

#include <string.h>

#include "resolve/stack_table.h"
#include "resolve/symbols.h"
#include "symbol/shown_frame.h"

#define PLACE_CALLED ", called at " /* between a line and that of its caller */

struct place_lines {
    const struct stack_table *all; /* a view */
    struct stack_table few;        /* the stacks that are asked for, of the user's own frames */
    struct symbols *symbols;       /* owned; NULL: there is no such stack */
    struct shown_frames shown;
    bool has_callers;
    struct key_map ways; /* (process, word) -> on how many ways calls came there */
    char *text;          /* owned: the last one with a caller */
};

/* `all`, of files of so many bytes, must stay. `has_callers`: places are told with them. */
void place_lines_init(struct place_lines *l, const struct stack_table *all, uint64_t bytes,
                      bool has_callers);
void place_lines_release(struct place_lines *l);

/* After the walk: a stack by its number in the process; 0 is none. 0 or GPUPROF_NO_MEMORY. */
int place_lines_add(struct place_lines *l, uint32_t process, uint32_t stack);

/* The same for who wants place_frame of it: the innermost frame, if none may be the user's own. */
int place_lines_add_any(struct place_lines *l, uint32_t process, uint32_t stack);

/* Once all are added, of `rec`: looks names up (`symbol_folder` as in symbols.h). 0 or
 * GPUPROF_NO_MEMORY. */
int place_lines_find(struct place_lines *l, struct recording *rec, const char *symbol_folder);

/*
 * After that: "train (train.py:17)"; where only names of functions are known, the innermost
 * function; NULL: neither. A function that does one thing for many, such as a launch, is told with
 * its caller: where calls came to the line on several ways, or the compiler has inlined it,
 * "launch (train.c:4), called at train (train.c:17)" has the nearest line around it that tells them
 * apart. A view, until the next call. 0 or GPUPROF_NO_MEMORY.
 */
int place_line(struct place_lines *l, uint32_t process, uint32_t stack, const char **text);

/*
 * What place_line tells, without a caller, as a frame; or the innermost frame, which has no name
 * where only its module is known. False: there is no such stack.
 */
bool place_frame(const struct place_lines *l, uint32_t process, uint32_t stack,
                 struct shown_frame *frame);

/* The order of places, which may be NULL: with their callers, and without. In the first order those
 * that are equal in the second stand together. */
int place_compare(const char *a, const char *b);
int place_compare_lines(const char *a, const char *b);

#endif
