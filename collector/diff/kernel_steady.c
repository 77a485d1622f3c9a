/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "diff/kernel_matching.h"
#include "error.h"

/* Of a name that both sides may have. */
struct launches {
    uint32_t class; /* the name's number */
    uint64_t place;
    double rate; /* in a step; of the base below zero */
};

static int compare(const void *left, const void *right)
{
    const struct launches *a = left, *b = right;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return (a->rate > b->rate) - (a->rate < b->rate); /* sums depend on the order */
}

static void find_steady(struct launches *list, uint32_t count, bool *steady)
{
    if (count)
        qsort(list, count, sizeof *list, compare);
    for (uint32_t at = 0, end = 0; at < count; at = end) {
        double more = 0, fewer = 0;
        while (end < count && list[end].class == list[at].class) {
            const struct launches *first = &list[end];
            double rate = 0;
            for (;
                 end < count && list[end].class == first->class && list[end].place == first->place;
                 end++)
                rate += list[end].rate;
            *(rate > 0 ? &more : &fewer) += rate;
        }
        steady[list[at].class] = more < STEADY_RATE && -fewer < STEADY_RATE;
    }
}

/* Where a name is launched, of both sides: a line is known of slow calls alone, if not of all. */
static void list_launches(const struct matching *g, struct launches *list, bool *lineless)
{
    uint32_t count = 0;
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t side = 0; side < MATCH_SIDES; side++)
            for (uint32_t i = 0; i < g->m->sides[side].count; i++) {
                const struct match_item *item = &g->items[side][i];
                uint32_t class = g->m->names[item->name].class;
                double rate = match_per_step(g->m, (enum match_which)side,
                                             g->m->sides[side].kernels[i].count);
                if (pass == 0) {
                    lineless[class] |= !item->places[AGREE_LINE] && !item->is_seldom;
                    continue;
                }
                uint64_t line = lineless[class] ? 0 : item->places[AGREE_LINE];
                list[count++] =
                    (struct launches){.class = class,
                                      .place = (uint64_t)item->places[AGREE_LIBRARY] << 42 |
                                               (uint64_t)item->places[AGREE_OPERATOR] << 21 | line,
                                      .rate = side ? rate : -rate};
            }
}

_Static_assert(RUN_KERNELS_MAX * 2 < 1u << 21, "a place's numbers have 21 bits each");

/* A compiler's ordinals mean the same kernels only if none of them has moved. */
static void distrust_ordinals(struct kernel_match *m)
{
    bool has_moved = false;
    for (uint32_t i = 0; i < m->name_count; i++)
        has_moved |= m->names[i].is_numbered && !m->names[i].is_steady;
    for (uint32_t i = 0; has_moved && i < m->name_count; i++)
        if (m->names[i].is_numbered)
            m->names[i].is_steady = false;
}

/* What is launched on both sides as often, and in the same places, is itself. */
int matching_find_steady(struct matching *g)
{
    struct kernel_match *m = g->m;
    struct launches *list = calloc(g->count + 1u, sizeof *list);
    uint32_t *before = calloc(m->name_count + 1u, sizeof *before); /* of a class: name + 1 */
    bool *flags = calloc(2 * (m->name_count + 1u), sizeof *flags);
    int error = list && before && flags ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < m->name_count; i++)
        g->numbered[i] =
            (struct numbered){m->names[i].raw, strlen(m->names[i].raw), &m->names[i].class};
    number_texts(g->numbered, m->name_count);
    if (error == 0) {
        list_launches(g, list, flags + m->name_count + 1);
        find_steady(list, g->count, flags);
    }
    for (uint32_t i = 0; error == 0 && i < m->name_count; i++)
        m->names[i].is_steady = flags[m->names[i].class];
    distrust_ordinals(m);
    for (uint32_t i = 0; error == 0 && i < m->name_count; i++) {
        uint32_t *other = &before[m->names[i].class];
        if (*other && m->names[i].is_steady)
            error = matching_pair_names(g, *other - 1, i);
        *other = i + 1;
    }
    free(list);
    free(before);
    free(flags);
    return error;
}
