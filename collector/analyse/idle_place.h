/* SPDX-License-Identifier: Apache-2.0 */
/* What the places of idle time are called. */
#ifndef GPUPROF_COLLECTOR_IDLE_PLACE_H
#define GPUPROF_COLLECTOR_IDLE_PLACE_H

#include "analyse/idle_rows.h"
#include "analyse/place_lines.h"
#include "resolve/event_walk.h"

/* What is of one cause and place, in all processes. */
struct idle_total {
    enum idle_cause cause;
    char *place; /* owned: for people */
    uint64_t ns;
    uint64_t count;
    uint32_t longest;   /* index of the row with the longest gap */
    uint32_t devices;   /* of how many it is the sum */
    bool has_processes; /* these are of several processes */
};

/* Does a range of this name say that data is loaded in it? */
bool idle_says_loading(const char *name);

/* Asks for the lines of a place. 0 or GPUPROF_NO_MEMORY. */
static inline int idle_place_want(struct place_lines *lines, uint32_t process,
                                  const struct idle_place *place)
{
    int error = place_lines_add(lines, process, place->stack);
    return error < 0 ? error : place_lines_add(lines, process, place->from_stack);
}

/* The place in new memory, once lines have been looked up: "train (train.py:17)", an operator, a
 * range, a function, "after" or "before" such a one, or "between" two; NULL: no memory. */
char *idle_place_text(const struct walk *walk, struct place_lines *lines,
                      const struct idle_row *row);

/* Of a row of what a thread did (idle_host.c) the same with what that was: "lock: put
 * (data.py:12)", but for a line where it ran. */
char *idle_did_text(const struct walk *walk, struct place_lines *lines, const struct idle_row *row);

/* Likewise, but *text is NULL where it is no line, no operator and no range. 0 or
 * GPUPROF_NO_MEMORY. */
int idle_where_text(const struct walk *walk, struct place_lines *lines, const struct idle_row *row,
                    char **text);

/* What stands before such a text in a sentence: "at ", or nothing if it says more. */
const char *idle_at(const char *place);

/* Adds up the rows by cause and place, the largest first, in new memory. 0 or GPUPROF_NO_MEMORY. */
int idle_totals(const struct walk *walk, struct place_lines *lines, const struct idle_rows *rows,
                struct idle_total **totals, uint32_t *count);

#endif
