/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where work of devices was launched: the innermost line that is the user's own, or else the
 * operator, or else the range, of the call that made it. A place has a number from 1 on; 0 is not
 * known. Memory: 120 to 160 bytes a place, WORK_PLACES_MAX at most, and its text; what comes then
 * has none.
 */
#ifndef GPUPROF_COLLECTOR_WORK_PLACES_H
#define GPUPROF_COLLECTOR_WORK_PLACES_H

#include "analyse/idle_rows.h"
#include "analyse/place_lines.h"
#include "base/key_map.h"
#include "resolve/event_walk.h"

#define WORK_PLACES_MAX (1u << 16)

struct work_place {
    struct idle_place place;
    uint32_t process; /* index */
    bool is_met;      /* it will be wanted, */
    bool is_wanted;   /* and is */
    char *text;       /* owned; NULL: nothing is known after all */
};

struct work_places {
    struct walk *walk;
    struct work_place *list; /* owned */
    uint32_t count;
    struct key_map numbers;
    struct correlated_call last; /* that was asked for */
    uint32_t last_number;
};

/* `walk` must stay. */
void work_places_init(struct work_places *p, struct walk *walk);
void work_places_release(struct work_places *p);

/* From a consumer with WALK_WORK, each slice with work of a device. 0 or an error; *number as
 * above. */
int work_places_find(struct work_places *p, const struct slice *s, uint32_t *number);
static inline int work_places_take(struct work_places *p, const struct slice *s, uint32_t *number)
{
    *number = 0; /* of most calls nothing is known */
    return s->is_called && s->call.stack | s->call.op | s->call.range
               ? work_places_find(p, s, number)
               : 0;
}

/* What the call was made in: its stack, and the operator or else the range. 0 or an error. */
int work_place_of(struct walk *w, const struct correlated_call *call, struct idle_place *place);

/* The number of a place of that process. 0 or GPUPROF_NO_MEMORY. */
int work_places_number(struct work_places *p, uint32_t process, const struct idle_place *place,
                       uint32_t *number);

/* Behind the walk: that place's text is wanted, and so is its line; or those of all places that
 * were met before. 0 or GPUPROF_NO_MEMORY. */
int work_places_want(struct work_places *p, struct place_lines *lines, uint32_t number);
int work_places_want_met(struct work_places *p, struct place_lines *lines);

/* During the walk: the place will be wanted. */
static inline void work_places_meet(struct work_places *p, uint32_t number)
{
    if (number && number <= p->count)
        p->list[number - 1].is_met = true;
}

/* Once lines have been looked up: makes those texts. 0 or GPUPROF_NO_MEMORY. */
int work_places_name(struct work_places *p, struct place_lines *lines);

/* For people, as idle_place.h has it; NULL: not known, or not wanted. A view. */
const char *work_places_text(const struct work_places *p, uint32_t number);

#endif
