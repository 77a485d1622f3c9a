/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/warm_up.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAD_DEVIATIONS 1.4826 /* of normal noise: deviations in a median one */

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

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The numbers come into another order. */
static double median(double *list, uint32_t count)
{
    qsort(list, count, sizeof *list, compare_numbers);
    return (list[count / 2] + list[(count - 1) / 2]) / 2;
}

/* Of the second half, in which there is no warm-up, the median; all steps are clipped around it. */
static double clip(double *logs, uint32_t count, double *room)
{
    uint32_t first = count / 2, behind = count - first;
    memcpy(room, logs + first, behind * sizeof *room);
    double middle = median(room, behind);
    for (uint32_t i = 0; i < behind; i++)
        room[i] = fabs(logs[first + i] - middle);
    double each = median(room, behind) * MAD_DEVIATIONS;
    each = each > WARM_UP_NOISE ? each : WARM_UP_NOISE;
    double most = WARM_UP_CLIP * each;
    most = most > 2 * log1p(WARM_UP_SHARE) ? most : 2 * log1p(WARM_UP_SHARE);
    for (uint32_t i = 0; i < count; i++)
        logs[i] = fmax(middle - most, fmin(middle + most, logs[i]));
    return middle;
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

uint32_t warm_up_steps(double *logs, uint32_t count, double *room)
{
    uint32_t left_out = 0, half = count < WARM_UP_STEPS ? 0 : count / 2, more;
    double high = half ? clip(logs, count, room) + log1p(WARM_UP_SHARE) : 0;
    while (left_out < half &&
           (more = change_point(logs + left_out, count - left_out, half - left_out, high)) > 0)
        left_out += more;
    return left_out;
}
