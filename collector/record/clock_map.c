/* SPDX-License-Identifier: Apache-2.0 */
#include "record/clock_map.h"

#include <stdlib.h>

#include "base/array.h"

#define SLOPE_ONE     (1ull << CLOCK_SCALE_SHIFT)
#define SLOPE_STEP_NS (1ull << 30) /* after the last anchor */

void clock_map_init(struct clock_map *m, const struct stream_header *h)
{
    uint64_t shift = (uint64_t)h->monotonic_shift_ns;
    uint64_t zero_ns = min_of(h->monotonic_zero_ns - shift, CLOCK_NS_MAX);
    *m = (struct clock_map){.stride = 1, .shift = shift};
    m->offset = min_of(h->realtime_zero_ns, CLOCK_NS_MAX) - zero_ns;
    m->last = (struct clock_anchor){.shared_ns = zero_ns, .slope = SLOPE_ONE};
    m->place.end_ns = CLOCK_NS_MAX;
    ARRAY_PUSH(m->anchors, m->count, &m->last);
}

void clock_map_release(struct clock_map *m)
{
    free(m->anchors);
    m->anchors = NULL;
}

/* Whether it is later than `before`, and the clocks agree to 1 % (0.1 % on real machines). */
static bool plausible(const struct clock_anchor *before, uint64_t ns, uint64_t shared_ns)
{
    if (ns >= CLOCK_NS_MAX || shared_ns >= CLOCK_NS_MAX || ns <= before->ns ||
        shared_ns <= before->shared_ns)
        return false;
    uint64_t step = ns - before->ns;
    uint64_t shared_step = shared_ns - before->shared_ns;
    uint64_t differ = step > shared_step ? step - shared_step : shared_step - step;
    return differ <= step / 100 + 1000;
}

static void halve(struct clock_map *m)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->count; i += 2)
        m->anchors[kept++] = m->anchors[i];
    m->count = kept;
    m->stride *= 2;
}

void clock_map_add(struct clock_map *m, uint64_t ns, uint64_t monotonic_ns)
{
    monotonic_ns -= m->shift;
    /* Anchors within a millisecond show noise rather than the clock's rate. */
    if (!plausible(&m->last, ns, monotonic_ns) || ns - m->last.ns < 1000000)
        return;
    m->last = (struct clock_anchor){.ns = ns, .shared_ns = monotonic_ns};
    if (++m->offered % m->stride != 0)
        return;
    if (m->count == CLOCK_ANCHORS_MAX)
        halve(m);
    ARRAY_PUSH(m->anchors, m->count, &m->last);
}

static uint64_t slope_of(uint64_t shared_ns, uint64_t ns)
{
    return (uint64_t)(((unsigned __int128)shared_ns << CLOCK_SCALE_SHIFT) / ns);
}

static void set_slopes(struct clock_map *m)
{
    for (uint32_t i = 0; i + 1 < m->count; i++) {
        struct clock_anchor *a = &m->anchors[i];
        a->slope = slope_of(a[1].shared_ns - a->shared_ns, a[1].ns - a->ns);
    }
}

void clock_map_finish(struct clock_map *m)
{
    if (m->last.ns > m->anchors[m->count - 1].ns)
        ARRAY_PUSH(m->anchors, m->count, &m->last); /* without it, the last slope goes on */
    set_slopes(m);
    m->anchors[m->count - 1].slope = m->count > 1 ? m->anchors[m->count - 2].slope : SLOPE_ONE;
    m->place = (struct clock_place){0};
}

uint64_t clock_map_search(const struct clock_map *m, struct clock_place *place, uint64_t ns)
{
    ns = min_of(ns, CLOCK_NS_MAX);
    uint32_t behind = ARRAY_UP_TO(m->anchors, m->count, ns, ns), low = behind ? behind - 1 : 0;
    place->segment = low;
    place->end_ns = low + 1 < m->count ? m->anchors[low + 1].ns : CLOCK_NS_MAX + 1;
    return clock_map_look(m, place, ns);
}

uint64_t clock_map_back(const struct clock_map *m, uint64_t shared_ns)
{
    uint64_t monotonic_ns = shared_ns - m->offset;
    uint32_t behind = ARRAY_UP_TO(m->anchors, m->count, shared_ns, monotonic_ns);
    const struct clock_anchor *a = &m->anchors[behind ? behind - 1 : 0];
    if (monotonic_ns <= a->shared_ns)
        return a->ns;
    unsigned __int128 ticks = (unsigned __int128)(monotonic_ns - a->shared_ns) << CLOCK_SCALE_SHIFT;
    return min_of(a->ns + (uint64_t)(ticks / a->slope), CLOCK_NS_MAX);
}

void clock_map_move(struct clock_map *m, clock_move_fn *move, const void *context)
{
    struct clock_anchor *last = &m->anchors[m->count - 1];
    uint64_t later_ns = move(context, clock_map_ns(m, last->ns + SLOPE_STEP_NS));
    uint64_t first_ns = m->anchors[0].shared_ns;
    uint64_t offset = move(context, first_ns + m->offset) - first_ns;
    for (uint32_t i = 0; i < m->count; i++)
        m->anchors[i].shared_ns = move(context, m->anchors[i].shared_ns + m->offset) - offset;
    m->offset = offset;
    set_slopes(m);
    last->slope = slope_of(later_ns - offset - last->shared_ns, SLOPE_STEP_NS);
}
