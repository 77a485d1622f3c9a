/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that name the places of idle time. Functions that return an int return 0 or
 * GPUPROF_NO_MEMORY. */
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

/* Requests the source lines of a place. */
int idle_place_want(struct place_lines *lines, uint32_t process, const struct idle_place *place);

/* The place as new text, once lines have been looked up: "train (train.py:17)", an operator, a
 * range, a function, "after" or "before" one of these, or "between" two. NULL if out of memory. */
char *idle_place_text(const struct walk *walk, struct place_lines *lines,
                      const struct idle_row *row);

/* The same for a row of what a thread did (idle_host.c), with that activity in front unless it ran:
 * "lock: put (data.py:12)". */
char *idle_did_text(const struct walk *walk, struct place_lines *lines, const struct idle_row *row);

/* Like idle_place_text, but sets *text to NULL if the place is no line, operator or range. */
int idle_where_text(const struct walk *walk, struct place_lines *lines, const struct idle_row *row,
                    char **text);

/* The preposition for such a text in a sentence: "at ", or "" if the text has its own. */
const char *idle_at(const char *place);

/* Adds up the rows by cause and place, largest first, in new memory. */
int idle_totals(const struct walk *walk, struct place_lines *lines, const struct idle_rows *rows,
                struct idle_total **totals, uint32_t *count);

/*
 * Numbered places in the program: where device work was launched (the innermost line of the
 * launching call that is the user's own, else its operator, else its range), or where a device was
 * idle. Numbers start at 1; 0 is not known. Memory: 80 to 96 bytes a place and its text,
 * WORK_PLACES_MAX at most; later places are not known.
 */
#define WORK_PLACES_MAX (1u << 16)

struct work_place {
    struct idle_place place;
    uint32_t process; /* index */
    uint32_t cause;   /* 0, or for arrivals; the key ends here */
    bool is_wanted;   /* its text is requested */
    char *text;       /* owned; NULL: not known */
};

struct work_places {
    struct walk *walk;       /* a view */
    struct work_place *list; /* owned */
    uint32_t count;
    struct number_set numbers;
    bool has_all_texts; /* texts of all places are requested, as idle_place_text makes them */
    struct correlated_call last; /* call of the last lookup */
    uint32_t last_number;
};

void work_places_init(struct work_places *p, struct walk *walk);
void work_places_release(struct work_places *p);

/* Call from a consumer with WALK_WORK for each slice with device work. Sets *number as above. 0 or
 * an error. */
int work_places_find(struct work_places *p, const struct slice *s, uint32_t *number);
static inline int work_places_take(struct work_places *p, const struct slice *s, uint32_t *number)
{
    *number = 0; /* most calls have no place */
    return s->is_called && s->call.stack | s->call.op | s->call.range
               ? work_places_find(p, s, number)
               : 0;
}

/* Sets *place to the call's stack, and its operator or else its range. 0 or an error. */
int work_place_of(struct walk *w, const struct correlated_call *call, struct idle_place *place);

int work_places_number(struct work_places *p, const struct work_place *place, uint32_t *number);

/* Requests the text of a place. */
static inline void work_places_want(struct work_places *p, uint32_t number)
{
    if (number && number <= p->count)
        p->list[number - 1].is_wanted = true;
}

/* Then: request the lines of these places and, once they are looked up, make the texts. */
int work_places_add_lines(const struct work_places *p, struct place_lines *lines);
int work_places_name(struct work_places *p, struct place_lines *lines);

/* NULL: not known. */
static inline const struct work_place *work_places_at(const struct work_places *p, uint32_t number)
{
    return number && number <= p->count ? &p->list[number - 1] : NULL;
}

#endif
