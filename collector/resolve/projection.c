/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/projection.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"

void projections_init(struct projections *s, struct survey *survey, projection_fn *notify,
                      void *context)
{
    *s = (struct projections){.survey = survey, .notify = notify, .context = context};
}

void projections_release(struct projections *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        free(s->list[i]);
    free(s->list);
    key_map_release(&s->places);
    key_map_release(&s->lanes);
}

/* Ends the innermost range; the next work on the stream begins at `next_ns`. */
static void close_innermost(struct projections *s, struct projection *p, uint64_t next_ns)
{
    struct projected_range *range = &p->open[--p->count];
    /* Ranges end before the next work begins. Outer ranges, which may end there too, each end 1 ns
     * after the inner one. */
    uint64_t last_ns = next_ns > p->count ? next_ns - 1 - p->count : 0;
    if (range->end_ns > last_ns)
        range->end_ns = last_ns;
    if (range->end_ns < range->begin_ns)
        range->end_ns = range->begin_ns;
    if (range->end_ns < p->free_from_ns)
        range->end_ns = p->free_from_ns;
    p->free_from_ns = range->end_ns + 1;
    if (p->count && p->open[p->count - 1].end_ns <= range->end_ns)
        p->open[p->count - 1].end_ns = range->end_ns + 1;
    s->notify(s->context, p, range);
}

/* Finds the projection of a thread on a stream, or adds it if `wanted`; NULL: none. */
static struct projection *projection_find(struct projections *s, struct process *process,
                                          uint64_t device, uint64_t stream, uint32_t thread,
                                          bool wanted)
{
    struct key key = {thread, device, stream};
    struct key stream_key = {process->index, device, stream};
    uint64_t place = key_map_get(&s->places, key);
    if (place)
        return s->list[place - 1];
    if (!wanted || s->count == PROJECTIONS_MAX) /* more than any real program has */
        return NULL;
    uint64_t lane = key_map_get(&s->lanes, stream_key);
    struct projection *made = memory_new(1, sizeof *made);
    ARRAY_PUSH(s->list, s->count, &made);
    made->process = process;
    made->device = device;
    made->stream = stream;
    made->thread = thread;
    made->lane = (uint32_t)lane;
    (void)key_map_set(&s->places, key, s->count);
    (void)key_map_set(&s->lanes, stream_key, lane + 1);
    return made;
}

/* ---- ranges around a call -------------------------------------------------------------------- */

/* The next range or label from *number, which advances past it. */
static const struct span_node *next_around(struct projections *s,
                                           const struct correlated_call *call, uint32_t *number)
{
    const unsigned types = SPANS_OF(SPAN_RANGE) | SPANS_OF(SPAN_OP);
    const struct span_node *node;
    do
        node = survey_span(s->survey, call, types, number, false);
    while (node && node->type == SPAN_OP && node->scope != OP_SCOPE_LABEL);
    return node;
}

/* Writes the ranges and labels around the call, outermost first. Returns their count. */
static uint32_t ranges_around(struct projections *s, const struct correlated_call *call,
                              struct projected_range *around, uint64_t *valid_until_ns)
{
    struct projected_range found[PROJECTION_DEPTH_MAX];
    uint32_t number = call->span, count = 0;
    const struct span_node *node;
    *valid_until_ns = UINT64_MAX;
    while (count < PROJECTION_DEPTH_MAX && (node = next_around(s, call, &number))) {
        *valid_until_ns = min_of(*valid_until_ns, node->end_ns);
        found[count++] = (struct projected_range){.sequence = node->number, .text = node->text};
    }
    for (uint32_t i = 0; i < count; i++)
        around[i] = found[count - 1 - i];
    return count;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Closes the ranges that do not contain this work, and opens those that it begins. */
static void projection_change(struct projections *s, struct projection *p, uint64_t begin_ns,
                              uint64_t end_ns, const struct correlated_call *call,
                              uint32_t innermost)
{
    struct projected_range around[PROJECTION_DEPTH_MAX];
    uint32_t same = 0, count = ranges_around(s, call, around, &p->valid_until_ns);
    while (same < p->count && same < count && p->open[same].sequence == around[same].sequence)
        same++;
    while (p->count > same)
        close_innermost(s, p, begin_ns);
    if (begin_ns < p->free_from_ns)
        begin_ns = p->free_from_ns;
    for (uint32_t i = same; i < count; i++) {
        if (i > 0 && begin_ns <= p->open[i - 1].begin_ns)
            begin_ns = p->open[i - 1].begin_ns + 1;
        p->open[i] = around[i];
        p->open[i].begin_ns = begin_ns;
        p->open[i].end_ns = end_ns > begin_ns ? end_ns : begin_ns;
        p->count = i + 1;
    }
    if (p->count && p->open[p->count - 1].end_ns < end_ns)
        p->open[p->count - 1].end_ns = end_ns;
    p->innermost = innermost;
}

void projections_add(struct projections *s, struct process *process, uint64_t device,
                     uint64_t stream, uint64_t begin_ns, uint64_t end_ns,
                     const struct correlated_call *call)
{
    if (!call)
        return;
    uint32_t number = call->span;
    const struct span_node *node = next_around(s, call, &number);
    uint32_t innermost = node ? node->number : 0;
    struct projection *p = projection_find(s, process, device, stream, call->thread, innermost);
    if (!p)
        return;
    if (innermost && p->count && p->innermost == innermost && call->begin_ns < p->valid_until_ns) {
        if (end_ns > p->open[p->count - 1].end_ns)
            p->open[p->count - 1].end_ns = end_ns;
        return;
    }
    projection_change(s, p, begin_ns, end_ns, call, innermost);
}

void projections_end(struct projections *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        while (s->list[i]->count)
            close_innermost(s, s->list[i], UINT64_MAX);
}
