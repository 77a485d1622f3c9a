/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/projection.h"

#include <stdlib.h>

#include "base/array.h"

void projections_release(struct projections *s)
{
    free(s->list);
    key_map_release(&s->places);
}

/* Ends the innermost range; the next work on the stream begins at `next_ns`. */
static void close_innermost(struct projections *s, struct projection *p, uint64_t next_ns)
{
    struct projected_range *range = &p->open[--p->count];
    /* Ranges end before the next work begins. Outer ranges, which may end there too, each end 1 ns
     * after the inner one. */
    uint64_t last_ns = next_ns > p->count ? next_ns - 1 - p->count : 0;
    range->end_ns = max_of(min_of(range->end_ns, last_ns), range->begin_ns);
    range->end_ns = max_of(range->end_ns, p->free_from_ns);
    p->free_from_ns = range->end_ns + 1;
    if (p->count)
        p->open[p->count - 1].end_ns = max_of(p->open[p->count - 1].end_ns, range->end_ns + 1);
    s->notify(s->context, p, range);
}

/* Finds the projection of a thread on a stream, or adds it if `wanted`. */
static struct projection *projection_find(struct projections *s, struct process *process,
                                          uint64_t device, uint64_t stream, uint32_t thread,
                                          bool wanted)
{
    const struct key key = {thread, device, stream};
    uint32_t number = (uint32_t)key_map_get(&s->places, key);
    if (!number && wanted) { /* PROJECTIONS_MAX is more than any real program has */
        struct projection made = {
            .process = process, .device = device, .stream = stream, .thread = thread};
        for (uint32_t i = 0; i < s->count; i++)
            made.lane += s->list[i].process == process && s->list[i].device == device &&
                         s->list[i].stream == stream;
        number = KEY_MAP_ITEM(&s->places, key, s->list, s->count, PROJECTIONS_MAX, &made);
    }
    return number ? &s->list[number - 1] : NULL;
}

/* Writes the ranges and labels around the call, innermost first. Returns their count. */
static uint32_t ranges_around(struct projections *s, const struct correlated_call *call,
                              struct projected_range around[static PROJECTION_DEPTH_MAX])
{
    const unsigned types = SPANS_OF(SPAN_RANGE) | SPANS_OF(SPAN_OP);
    uint32_t number = call->span, count = 0;
    const struct span_node *node;
    while (count < PROJECTION_DEPTH_MAX &&
           (node = survey_span(s->survey, call, types, &number, false)))
        if (node->type == SPAN_RANGE || node->scope == OP_SCOPE_LABEL)
            around[count++] =
                (struct projected_range){.sequence = node->number, .text = node->text};
    return count;
}

/* Closes the ranges that do not contain the work, and opens those that it begins. */
void projections_add(struct projections *s, struct process *process, uint64_t device,
                     uint64_t stream, uint64_t begin_ns, uint64_t end_ns,
                     const struct correlated_call *call)
{
    struct projected_range around[PROJECTION_DEPTH_MAX];
    uint32_t same = 0, count = call ? ranges_around(s, call, around) : 0;
    struct projection *p =
        call ? projection_find(s, process, device, stream, call->thread, count) : NULL;
    if (!p)
        return;
    while (same < p->count && same < count &&
           p->open[same].sequence == around[count - 1 - same].sequence)
        same++;
    while (p->count > same)
        close_innermost(s, p, begin_ns);
    begin_ns = max_of(begin_ns, p->free_from_ns);
    for (; p->count < count; p->count++) {
        struct projected_range *range = &p->open[p->count];
        if (p->count)
            begin_ns = max_of(begin_ns, range[-1].begin_ns + 1);
        *range = around[count - 1 - p->count];
        range->begin_ns = begin_ns;
        range->end_ns = max_of(begin_ns, end_ns);
    }
    if (count)
        p->open[count - 1].end_ns = max_of(p->open[count - 1].end_ns, end_ns);
}

void projections_end(struct projections *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        while (s->list[i].count)
            close_innermost(s, &s->list[i], UINT64_MAX);
}
