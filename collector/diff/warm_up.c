/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/warm_up.h"

#include <math.h>

/* Sums of a piece of the steps. */
struct piece {
    double count, sum, squares;
};

static void move(struct piece *p, double value, double sign)
{
    p->count += sign;
    p->sum += sign * value;
    p->squares += sign * value * value;
}

static double spread(const struct piece *p)
{
    double squares = p->squares - p->sum * p->sum / p->count;
    return squares > 0 ? squares : 0;
}

/* The place in logs[0..count) before which the mean is highest above that of what is behind, in
 * units of what is likely; at most `last`. 0: none is high enough. */
static uint32_t change_point(const double *logs, uint32_t count, uint32_t last)
{
    struct piece before = {0}, behind = {0};
    double highest = WARM_UP_DEVIATIONS;
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        move(&behind, logs[i], 1);
    for (uint32_t i = 1; i <= last; i++) {
        move(&before, logs[i - 1], 1);
        move(&behind, logs[i - 1], -1);
        double rise = before.sum / before.count - behind.sum / behind.count;
        double each = sqrt(spread(&behind) / (behind.count > 1 ? behind.count - 1 : 1));
        each = each > WARM_UP_NOISE ? each : WARM_UP_NOISE;
        double likely = each * sqrt(1 / before.count + 1 / behind.count);
        if (rise > log1p(WARM_UP_SHARE) && rise > highest * likely) {
            highest = rise / likely;
            found = i;
        }
    }
    return found;
}

uint32_t warm_up_steps(const double *logs, uint32_t count)
{
    uint32_t left_out = 0, half = count < WARM_UP_STEPS ? 0 : count / 2, more;
    while (left_out < half &&
           (more = change_point(logs + left_out, count - left_out, half - left_out)) > 0)
        left_out += more;
    return left_out;
}
