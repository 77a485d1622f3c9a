/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/warm_up.h"

#include <math.h>
#include <string.h>

#include "base/array.h"

#define WINDOW  5 /* steps around one */
#define HELD_UP 8 /* times as far from those around it as half of all steps are */

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

/* The median of those around a step: a level stays where it ends. At the begin there are fewer, and
 * the first step, which may be all of a warm-up, is alone. */
static double around(const double *logs, uint32_t count, uint32_t i)
{
    double window[WINDOW];
    uint32_t half = i < WINDOW / 2 ? i : WINDOW / 2;
    uint32_t first = i - half < count - WINDOW ? i - half : count - WINDOW;
    uint32_t width = first == count - WINDOW ? WINDOW : 2 * half + 1;
    memcpy(window, logs + first, width * sizeof *window);
    return array_median(window, width);
}

/* What was held up, one step or two in a row, becomes what is around it: `quiet`. */
static void calm(const double *logs, uint32_t count, double *quiet)
{
    for (uint32_t i = 0; i < count; i++)
        quiet[i] = fabs(logs[i] - around(logs, count, i));
    double usual = array_median(quiet, count);
    usual = usual > WARM_UP_NOISE ? usual : WARM_UP_NOISE;
    for (uint32_t i = 0; i < count; i++) {
        double level = around(logs, count, i);
        quiet[i] = logs[i] - level > HELD_UP * usual ? level : logs[i];
    }
}

/* The place in logs[0..count) before which the mean is highest above that of what is behind, in
 * units of what is likely, and most are above `high`; at most `last`. 0: there is none. */
static uint32_t change_point(const double *logs, uint32_t count, uint32_t last, double high)
{
    struct piece before = {0}, behind = {0};
    double highest = WARM_UP_DEVIATIONS;
    uint32_t found = 0, slow = 0;
    for (uint32_t i = 0; i < count; i++)
        move(&behind, logs[i], 1);
    for (uint32_t i = 1; i <= last; i++) {
        move(&before, logs[i - 1], 1);
        move(&behind, logs[i - 1], -1);
        slow += logs[i - 1] > high;
        double rise = before.sum / before.count - behind.sum / behind.count;
        double each = sqrt(spread(&behind) / (behind.count > 1 ? behind.count - 1 : 1));
        each = each > WARM_UP_NOISE ? each : WARM_UP_NOISE;
        double likely = each * sqrt(1 / before.count + 1 / behind.count);
        if (2 * slow > i && rise > log1p(WARM_UP_SHARE) && rise > highest * likely) {
            highest = rise / likely;
            found = i;
        }
    }
    return found;
}

static uint32_t most_steps(uint32_t count)
{
    uint32_t most = count / WARM_UP_PART > WARM_UP_FEW ? count / WARM_UP_PART : WARM_UP_FEW;
    return most < count / 2 ? most : count / 2;
}

/* Looked for is what is up to half of the steps: of a drift, which has its place there, no part is
 * taken for a warm-up. */
uint32_t warm_up_steps(double *logs, uint32_t count, double *room)
{
    uint32_t left_out = 0, half = count / 2, most = most_steps(count), more;
    if (count < WARM_UP_STEPS)
        return 0;
    calm(logs, count, room);
    memcpy(logs, room + half, (count - half) * sizeof *logs);
    double high = array_median(logs, count - half) + log1p(WARM_UP_SHARE);
    while (left_out < half &&
           (more = change_point(room + left_out, count - left_out, half - left_out, high)) > 0 &&
           left_out + more <= most)
        left_out += more;
    return left_out;
}
