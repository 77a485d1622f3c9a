/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/work_places.h"

#include <stddef.h>
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
    number_set_release(&p->numbers);
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

static const struct number_kind kind = NUMBER_KEY(struct work_place, cause);

int work_places_number(struct work_places *p, const struct work_place *place, uint32_t *number)
{
    int64_t found = NUMBER_ADD(&p->numbers, &kind, p->list, p->count, WORK_PLACES_MAX, place);
    *number = found < 0 ? 0 : (uint32_t)found;
    return found < 0 ? (int)found : 0;
}

static bool same_place(const struct correlated_call *a, const struct correlated_call *b)
{
    return a->process == b->process && a->stack == b->stack && a->op == b->op &&
           a->range == b->range;
}

int work_places_find(struct work_places *p, const struct slice *s, uint32_t *number)
{
    const struct correlated_call *call = &s->call;
    struct work_place place = {.process = call->process};
    if (p->last_number && same_place(call, &p->last)) {
        *number = p->last_number;
        return 0;
    }
    *number = 0;
    int error = work_place_of(p->walk, call, &place.place);
    if (error == 0 && (place.place.stack || place.place.kind))
        error = work_places_number(p, &place, number);
    p->last = *call;
    p->last_number = *number;
    return error;
}

int work_places_add_lines(const struct work_places *p, struct place_lines *lines)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < p->count; i++)
        if (p->has_all_texts || p->list[i].is_wanted)
            error = idle_place_want(lines, p->list[i].process, &p->list[i].place);
    return error;
}

int work_places_name(struct work_places *p, struct place_lines *lines)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < p->count; i++) {
        struct work_place *place = &p->list[i];
        const struct idle_row row = {.place = place->place, .process = place->process};
        if (p->has_all_texts)
            error = (place->text = idle_place_text(p->walk, lines, &row)) ? 0 : GPUPROF_NO_MEMORY;
        else if (place->is_wanted)
            error = idle_where_text(p->walk, lines, &row, &place->text);
    }
    return error;
}
