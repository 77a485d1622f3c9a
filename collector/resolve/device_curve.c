/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/device_curve.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

void device_curve_release(struct device_curve *c)
{
    free(c->points);
    *c = (struct device_curve){0};
}

/* Drops every second point, but not the first or the last. */
static void thin(struct device_curve *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (i % 2 == 0 || i + 1 == c->count)
            c->points[kept++] = c->points[i];
    c->count = kept;
    c->step *= 2;
    c->passed = 0;
}

static void device_curve_put(struct device_curve *c, uint64_t at_ns, uint64_t value,
                             uint32_t curves)
{
    uint32_t room = ROOM_POINTS_MAX / (curves ? curves : 1);
    room = room < CURVE_POINTS_MIN ? CURVE_POINTS_MIN : room;
    room = room > CURVE_POINTS_MAX ? CURVE_POINTS_MAX : room;
    while (c->count >= room)
        thin(c);
    ARRAY_PUSH(c->points, c->count, (&(struct curve_point){at_ns, value}));
}

void device_curve_add(struct device_curve *c, uint64_t at_ns, uint64_t raw, uint32_t curves)
{
    struct curve_point *last = c->count ? &c->points[c->count - 1] : NULL;
    uint64_t raw_before = c->raw;
    if (last && at_ns <= last->at_ns)
        return;
    /* A late update may include earlier growth. */
    double most = (double)c->rate_max * ((double)(at_ns - c->read_ns) / 1e9 + 1);
    c->raw = raw;
    c->readings++;
    if (!last) {
        c->step = 1;
        c->first_ns = c->changed_ns = c->read_ns = at_ns;
        device_curve_put(c, at_ns, 0, curves);
        return;
    }
    if (raw < raw_before || raw - raw_before > UINT64_MAX - last->value ||
        (c->rate_max && (double)(raw - raw_before) > most)) {
        if (c->jump_count < CURVE_JUMPS_MAX)
            c->jumps_ns[c->jump_count] = at_ns;
        c->jump_count++;
        raw_before = raw;
    }
    c->read_ns = at_ns;
    uint64_t value = last->value + (raw - raw_before);
    if (value != last->value) {
        c->changed_ns = at_ns;
        c->changes++;
    }
    /* Move the last point, as long as nothing is lost by that. */
    bool is_flat = c->count > 1 && last->value == value && last[-1].value == value;
    if (is_flat || (c->count > 1 && ++c->passed < c->step)) {
        *last = (struct curve_point){at_ns, value};
        return;
    }
    c->passed = 0;
    device_curve_put(c, at_ns, value, curves);
}

uint64_t device_curve_period_ns(const struct device_curve *c)
{
    uint64_t last_ns = c->count ? c->points[c->count - 1].at_ns : 0;
    if (c->may_rest)
        return c->readings > 1 ? (last_ns - c->first_ns) / (c->readings - 1) : 0;
    return c->changes ? (c->changed_ns - c->first_ns) / c->changes : 0;
}

/* Index of the first point after that time; the count: none. */
static uint32_t point_behind(const struct device_curve *c, uint64_t ns)
{
    return ARRAY_UP_TO(c->points, c->count, at_ns, ns);
}

/* Index of the last point at that time or before; the count: none. */
static uint32_t point_before(const struct device_curve *c, uint64_t ns)
{
    uint32_t behind = point_behind(c, ns);
    return behind ? behind - 1 : c->count;
}

/* The counter at a moment: between two points, and interpolated between the readings half a period
 * later, which is the mean lag. The error is the distance to the farther point. */
struct moment {
    struct curve_point low, high;
    double value, error;
};

/* Returns false if one of the points is not there. */
static bool moment_at(const struct device_curve *c, uint64_t at_ns, struct moment *m)
{
    uint64_t lag_ns = device_curve_lag_ns(c), middle_ns = at_ns + lag_ns / 2;
    uint32_t before = point_before(c, at_ns), middle = point_before(c, middle_ns);
    uint32_t behind = at_ns + lag_ns ? point_behind(c, at_ns + lag_ns - 1) : 0;
    behind = behind > before ? behind : before;
    if (before >= c->count || behind >= c->count)
        return false;
    const struct curve_point *a = &c->points[middle], *b = a + (middle + 1 < c->count);
    double share =
        b->at_ns > a->at_ns ? (double)(middle_ns - a->at_ns) / (double)(b->at_ns - a->at_ns) : 0;
    double value = (double)a->value + share * (double)(b->value - a->value);
    m->low = c->points[before];
    m->high = c->points[behind];
    m->value = fmin(value, (double)m->high.value);
    m->error = fmax(m->value - (double)m->low.value, (double)m->high.value - m->value);
    return true;
}

bool device_curve_between(const struct device_curve *c, uint64_t begin_ns, uint64_t end_ns,
                          struct curve_growth *growth)
{
    struct moment from, to;
    bool is_early = c->count && begin_ns < c->points[0].at_ns;
    *growth = (struct curve_growth){.known = !c->count  ? CURVE_UNREAD
                                             : is_early ? CURVE_EARLY
                                                        : CURVE_LATE};
    if (end_ns < begin_ns || end_ns > UINT64_MAX - device_curve_lag_ns(c) ||
        !moment_at(c, begin_ns, &from) || !moment_at(c, end_ns, &to))
        return false;
    bool has_jumped = c->jump_count > CURVE_JUMPS_MAX; /* their times are not known */
    for (uint32_t i = 0; i < c->jump_count && i < CURVE_JUMPS_MAX; i++)
        has_jumped |= c->jumps_ns[i] > from.low.at_ns && c->jumps_ns[i] <= to.high.at_ns;
    growth->known = has_jumped                                      ? CURVE_STARTED
                    : end_ns - begin_ns < device_curve_period_ns(c) ? CURVE_SHORT
                                                                    : CURVE_KNOWN;
    if (growth->known != CURVE_KNOWN)
        return false;
    growth->value = to.value - from.value;
    growth->error = from.error + to.error;
    return true;
}

struct curve_growth device_curve_whole(const struct device_curve *c, uint64_t *ns)
{
    struct curve_growth growth = {.known = CURVE_UNREAD};
    *ns = c->count ? c->points[c->count - 1].at_ns - c->first_ns : 0;
    if (!c->count || !*ns)
        return growth;
    growth.known = CURVE_KNOWN;
    growth.value = (double)c->points[c->count - 1].value;
    /* Each end is uncertain by the growth of one period. */
    double share = (double)device_curve_period_ns(c) / (double)*ns;
    growth.error = 2 * growth.value * (share < 1 ? share : 1);
    return growth;
}

struct curve_growth curve_reported(struct curve_growth growth)
{
    if (growth.known == CURVE_KNOWN && curve_whole(ceil(growth.error)) >= curve_whole(growth.value))
        return (struct curve_growth){.known = CURVE_SHORT};
    return growth;
}
