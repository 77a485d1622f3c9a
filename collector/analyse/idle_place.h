/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that name the places of idle time. */
#ifndef GPUPROF_COLLECTOR_IDLE_PLACE_H
#define GPUPROF_COLLECTOR_IDLE_PLACE_H

#include "analyse/idle_rows.h"
#include "analyse/place_lines.h"
#include "resolve/event_walk.h"

/* Idle time of one cause and place, in all processes. */
struct idle_total {
    enum idle_cause cause;
    char *place; /* owned; text for the reader */
    uint64_t ns;
    uint64_t count;
    uint32_t longest;   /* index of the row with the longest gap */
    uint32_t devices;   /* number of devices added up */
    bool has_processes; /* the devices belong to several processes */
};

/* True if a range of this name marks data loading. */
bool idle_says_loading(const char *name);

/* Requests the source lines of a place. 0 or GPUPROF_NO_MEMORY. */
static inline int idle_place_want(struct place_lines *lines, uint32_t process,
                                  const struct idle_place *place)
{
    int error = place_lines_add(lines, process, place->stack);
    return error < 0 ? error : place_lines_add(lines, process, place->from_stack);
}

/* The place as new text, once lines have been looked up: "train (train.py:17)", an operator, a
 * range, a function, "after" or "before" one of these, or "between" two. NULL if out of memory. */
char *idle_place_text(const struct walk *walk, struct place_lines *lines,
                      const struct idle_row *row);

/* The same for a row of what a thread did (idle_host.c), with that activity in front unless it ran:
 * "lock: put (data.py:12)". */
char *idle_did_text(const struct walk *walk, struct place_lines *lines, const struct idle_row *row);

/* Like idle_place_text, but sets *text to NULL if the place is no line, operator or range. 0 or
 * GPUPROF_NO_MEMORY. */
int idle_where_text(const struct walk *walk, struct place_lines *lines, const struct idle_row *row,
                    char **text);

/* The preposition for such a text in a sentence: "at ", or "" if the text has its own. */
const char *idle_at(const char *place);

/* Adds up the rows by cause and place, largest first, in new memory. 0 or GPUPROF_NO_MEMORY. */
int idle_totals(const struct walk *walk, struct place_lines *lines, const struct idle_rows *rows,
                struct idle_total **totals, uint32_t *count);

#endif
