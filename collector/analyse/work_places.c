/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/work_places.h"

#include <stdlib.h>

#include "analyse/idle_place.h"
#include "error.h"

void work_places_init(struct work_places *p, struct walk *walk)
{
    *p = (struct work_places){.walk = walk};
}

void work_places_release(struct work_places *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        free(p->list[i].text);
    free(p->list);
    key_map_release(&p->numbers);
}

int work_place_of(struct walk *w, const struct correlated_call *call, struct idle_place *place)
{
    struct survey *survey = &w->survey;
    struct op_place at = {.number = call->op};
    const struct op_node *op;
    int error = 0;
    *place = (struct idle_place){.stack = call->stack, .function = IDLE_NONE};
    while ((op = survey_op(survey, call, &at, &error)) && !op_scope_works(op->scope))
        ;
    if (op) {
        place->kind = op->text ? IDLE_WORD_NAME : IDLE_WORD_OP;
        place->word = op->text ? (uintptr_t)op->text : op->name;
    }
    const struct range_node *range =
        !op && error == 0 && call->range ? survey_range(survey, call->range, &error) : NULL;
    if (range && range->text) {
        place->kind = IDLE_WORD_NAME;
        place->word = (uintptr_t)range->text;
    }
    return error;
}

int work_places_number(struct work_places *p, uint32_t process, const struct idle_place *place,
                       uint32_t *number)
{
    struct key key = {(uint64_t)process << 32 | place->stack, place->word, place->kind};
    const struct work_place new = {.place = *place, .process = process};
    return KEY_MAP_ITEM(&p->numbers, key, p->list, p->count, WORK_PLACES_MAX, &new, number);
}

static bool same_place(const struct correlated_call *a, const struct correlated_call *b)
{
    return a->process == b->process && a->stack == b->stack && a->op == b->op &&
           a->range == b->range;
}

int work_places_find(struct work_places *p, const struct slice *s, uint32_t *number)
{
    const struct correlated_call *call = &s->call;
    struct idle_place place;
    if (p->last_number && same_place(call, &p->last)) {
        *number = p->last_number;
        return 0;
    }
    *number = 0;
    int error = work_place_of(p->walk, call, &place);
    if (error == 0 && (place.stack || place.kind))
        error = work_places_number(p, call->process, &place, number);
    p->last = *call;
    p->last_number = *number;
    return error;
}

int work_places_add_lines(const struct work_places *p, struct place_lines *lines)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < p->count; i++)
        if (p->list[i].is_wanted)
            error = place_lines_add(lines, p->list[i].process, p->list[i].place.stack);
    return error;
}

int work_places_name(struct work_places *p, struct place_lines *lines)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < p->count; i++) {
        const struct idle_row row = {.place = p->list[i].place, .process = p->list[i].process};
        if (p->list[i].is_wanted)
            error = idle_where_text(p->walk, lines, &row, &p->list[i].text);
    }
    return error;
}

const char *work_places_text(const struct work_places *p, uint32_t number)
{
    return number && number <= p->count ? p->list[number - 1].text : NULL;
}
