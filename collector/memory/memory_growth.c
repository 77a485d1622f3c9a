/* SPDX-License-Identifier: Apache-2.0 */
/* What grows from step to step, and by more than chance: a straight line through the ends. */
#include <math.h>

#include "memory/memory_report.h"

#define GROWTH_ERRORS   5 /* a slope of so many times its error is no chance */
#define PERSISTENCE_MAX 0.99

/* Until the end of step `steps` - 1 there was so much. */
void memory_growth_pass(struct memory_growth *g, uint32_t steps, uint32_t middle, uint64_t bytes)
{
    if (g->steps >= steps)
        return;
    double count = steps - g->steps, y = (double)bytes;
    g->y += count * y;
    g->xy += count * ((double)g->steps + steps - 1) / 2 * y;
    g->yy += count * y * y;
    g->neighbours += (count - 1) * y * y + (g->steps ? (double)g->last * y : 0);
    if (g->steps == 0)
        g->first = bytes;
    if (g->steps <= middle && middle < steps)
        g->middle = bytes;
    g->last = bytes;
    g->steps = steps;
}

/*
 * How much of what one step's end is off the line the next one is, too: blocks that live for
 * several steps look like growth for a while. From 0 to 1, of a line with that rise and that begin.
 */
static double persistence(const struct memory_growth *g, double rise, double from, double rest)
{
    double m = g->steps - 1.0, first = (double)g->first, last = (double)g->last;
    double earlier = g->y - last, earlier_x = g->xy - m * last;
    double later = g->y - first, later_x = g->xy - later;
    double both = g->neighbours - (from + rise) * earlier - rise * earlier_x - from * later -
                  rise * later_x + m * from * from + from * rise * m * m +
                  rise * rise * (m - 1) * m * (m + 1) / 3;
    return both <= 0 || rest <= 0          ? 0
           : both < PERSISTENCE_MAX * rest ? both / rest
                                           : PERSISTENCE_MAX;
}

bool memory_slope(const struct memory_growth *g, struct memory_slope *slope)
{
    double n = g->steps;
    *slope = (struct memory_slope){0};
    if (g->steps < MEMORY_STEPS_MIN)
        return false;
    double spread = n * (n * n - 1) / 12;
    double xy = g->xy - (n - 1) / 2 * g->y, yy = g->yy - g->y * g->y / n;
    slope->bytes = xy / spread;
    double rest = yy - slope->bytes * xy;
    double kept = persistence(g, slope->bytes, g->y / n - slope->bytes * (n - 1) / 2, rest);
    slope->error = rest > 0 ? sqrt(rest / (n - 2) / spread * (1 + kept) / (1 - kept)) : 0;
    return true;
}

/* What only fills up at the beginning, as caches do, does not. */
bool memory_leaks(const struct memory_growth *g)
{
    struct memory_slope slope;
    return memory_slope(g, &slope) && g->last > g->middle && g->middle > g->first &&
           (g->last - g->middle) >= (g->last - g->first) / 4 &&
           slope.bytes > GROWTH_ERRORS * slope.error;
}
