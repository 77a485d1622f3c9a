/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of places: of a stack the innermost one that is the user's own, in Python, C or C++.
 * Names are looked up for the stacks that are asked for, and of these for frames in modules of the
 * user's alone: a report must not take long to say where. Memory: as stack_table.h has it of those,
 * symbols.h, and shown_frame.h for each line.
 */
#ifndef GPUPROF_COLLECTOR_PLACE_LINES_H
#define GPUPROF_COLLECTOR_PLACE_LINES_H

#include "model/stack_table.h"
#include "model/symbols.h"
#include "symbol/shown_frame.h"

struct place_lines {
    const struct stack_table *all; /* a view */
    struct stack_table few;        /* the stacks that are asked for, of the user's own frames */
    struct symbols *symbols;       /* owned; NULL: there is no such stack */
    struct shown_frames shown;
};

/* `all`, of files of so many bytes, must stay. */
void place_lines_init(struct place_lines *l, const struct stack_table *all, uint64_t bytes);
void place_lines_release(struct place_lines *l);

/* After the walk: a stack by its number in the process; 0 is none. 0 or GPUPROF_NO_MEMORY. */
int place_lines_add(struct place_lines *l, uint32_t process, uint32_t stack);

/* Once all are added, of `rec`: looks names up (`symbol_folder` as in symbols.h). 0 or
 * GPUPROF_NO_MEMORY. */
int place_lines_find(struct place_lines *l, struct recording *rec, const char *symbol_folder);

/*
 * After that: "train (train.py:17)"; where only names of functions are known, the innermost
 * function; NULL: neither. A view, until the next call. 0 or GPUPROF_NO_MEMORY.
 */
int place_line(struct place_lines *l, uint32_t process, uint32_t stack, const char **text);

#endif
