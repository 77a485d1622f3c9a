/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/ladder.h"

/* The features that say least about the program for their cost are turned off first. */
static const uint8_t order[] = {LADDER_OP_STACKS, LADDER_STACKS,    LADDER_SHAPES,
                                LADDER_ARGUMENTS, LADDER_QUERIES,   LADDER_OPERATORS,
                                LADDER_LIBRARIES, LADDER_CALLBACKS, LADDER_TENTH,
                                LADDER_HUNDREDTH, LADDER_CUPTI};

static bool is_worth_it(const struct ladder *l, const struct ladder_window *w, unsigned step)
{
    if (l->taken >> step & 1 || !(w->possible >> step & 1))
        return false;
    if (step == LADDER_HUNDREDTH && !ladder_has(l, LADDER_TENTH))
        return false;
    return step == LADDER_CUPTI || w->saves[step] > 0;
}

int ladder_look(struct ladder *l, const struct ladder_window *w)
{
    l->over_count = w->share > w->budget ? l->over_count + 1 : 0;
    if (l->over_count < LADDER_WINDOWS)
        return LADDER_NONE;
    for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++) {
        unsigned step = order[i];
        if (!is_worth_it(l, w, step))
            continue;
        l->taken |= 1u << step;
        l->over_count = 0;
        return (int)step;
    }
    if (l->over_count < LADDER_WINDOWS_LAST && w->possible & ~l->taken)
        return LADDER_NONE;
    l->over_count = 0;
    if (l->is_at_bottom)
        return LADDER_NONE;
    l->is_at_bottom = true;
    return LADDER_BOTTOM;
}
