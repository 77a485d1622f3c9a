/* SPDX-License-Identifier: Apache-2.0 */
#include "model/projection.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

void projections_init(struct projections *s, struct survey *survey, projection_fn *tell,
                      void *context)
{
    *s = (struct projections){.survey = survey, .tell = tell, .context = context};
    s->places.count_max = s->lanes.count_max = PROJECTIONS_MAX;
}

void projections_release(struct projections *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        free(s->list[i]);
    free(s->list);
    key_map_release(&s->places);
    key_map_release(&s->lanes);
}

/* Ends the innermost range; what comes next on the stream begins at `next_ns`. */
static int close_innermost(struct projections *s, struct projection *p, uint64_t next_ns)
{
    struct projected_range *range = &p->open[--p->count];
    /* Work that goes on behind the begin of what follows is counted up to there; each of those
     * around it, which may end there, too, ends 1 ns later than what is in it. */
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
    return s->tell(s->context, p, range);
}

/* A new lane of that stream. */
static struct projection *make(struct projections *s, struct process *process, uint64_t device,
                               uint64_t stream, uint32_t thread, uint32_t lane)
{
    struct projection **list =
        array_room(s->list, s->count, &s->capacity, sizeof(struct projection *), 16);
    if (!list)
        return NULL;
    s->list = list;
    struct projection *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->process = process;
    made->device = device;
    made->stream = stream;
    made->thread = thread;
    made->lane = lane;
    list[s->count++] = made;
    return made;
}

/* That of a thread on a stream, if it has one or `wanted`. 0 or GPUPROF_NO_MEMORY. */
static int find(struct projections *s, struct process *process, uint64_t device, uint64_t stream,
                uint32_t thread, bool wanted, struct projection **found)
{
    struct key key = {thread, device, stream};
    struct key stream_key = {process->index, device, stream};
    uint64_t place = key_map_get(&s->places, key);
    *found = place ? s->list[place - 1] : NULL;
    /* Nothing to tell of; or more of them than anything real has. */
    if (place || !wanted || s->places.count >= PROJECTIONS_MAX)
        return 0;
    place = key_map_get(&s->lanes, stream_key);
    uint32_t lane = place ? s->list[place - 1]->lane + 1 : 0;
    if (lane < PROJECTION_LANES_MAX) {
        if (!make(s, process, device, stream, thread, lane))
            return GPUPROF_NO_MEMORY;
        place = s->count;
    }
    *found = s->list[place - 1];
    int error = key_map_set(&s->places, key, place);
    if (error == 0)
        error = key_map_set(&s->lanes, stream_key, place);
    return error == GPUPROF_NO_MEMORY ? error : 0;
}

/* The ranges that the call was in, the outermost first; their count, or an error. */
static int ranges_around(struct projections *s, const struct correlated_call *call,
                         struct projected_range *around, uint64_t *valid_until_ns)
{
    struct projected_range found[PROJECTION_DEPTH_MAX];
    uint32_t count = 0;
    int error = 0;
    *valid_until_ns = UINT64_MAX;
    for (uint32_t number = call->range; number && count < PROJECTION_DEPTH_MAX;) {
        const struct range_node *node = survey_range(s->survey, number, &error);
        if (!node)
            return error;
        /* A free range may end before one that began inside it. */
        if (node->end_ns > call->begin_ns) {
            found[count++] = (struct projected_range){
                .number = number, .sequence = node->sequence, .text = node->text};
            if (node->end_ns < *valid_until_ns)
                *valid_until_ns = node->end_ns;
        }
        number = node->parent;
    }
    for (uint32_t i = 0; i < count; i++)
        around[i] = found[count - 1 - i];
    return (int)count;
}

/* Closes the ranges that this work is not in and opens those that it is the first of. */
static int change(struct projections *s, struct projection *p, uint64_t begin_ns, uint64_t end_ns,
                  const struct correlated_call *call)
{
    struct projected_range around[PROJECTION_DEPTH_MAX];
    uint32_t same = 0;
    int count = call ? ranges_around(s, call, around, &p->valid_until_ns) : 0;
    int error = 0;
    if (count < 0)
        return count;
    while (same < p->count && same < (uint32_t)count && p->open[same].number == around[same].number)
        same++;
    while (p->count > same && error == 0)
        error = close_innermost(s, p, begin_ns);
    if (begin_ns < p->free_from_ns)
        begin_ns = p->free_from_ns;
    for (uint32_t i = same; i < (uint32_t)count; i++) {
        if (i > 0 && begin_ns <= p->open[i - 1].begin_ns)
            begin_ns = p->open[i - 1].begin_ns + 1;
        p->open[i] = around[i];
        p->open[i].begin_ns = begin_ns;
        p->open[i].end_ns = end_ns > begin_ns ? end_ns : begin_ns;
        p->count = i + 1;
    }
    if (p->count && p->open[p->count - 1].end_ns < end_ns)
        p->open[p->count - 1].end_ns = end_ns;
    p->innermost = call ? call->range : 0;
    return error;
}

int projections_add(struct projections *s, struct process *process, uint64_t device,
                    uint64_t stream, uint64_t begin_ns, uint64_t end_ns,
                    const struct correlated_call *call)
{
    struct projection *p;
    bool inside = call && call->range;
    if (!call)
        return 0;
    int error = find(s, process, device, stream, call->thread, inside, &p);
    if (error < 0 || !p)
        return error;
    if (inside && p->count && p->innermost == call->range && call->begin_ns < p->valid_until_ns) {
        if (end_ns > p->open[p->count - 1].end_ns)
            p->open[p->count - 1].end_ns = end_ns;
        return 0;
    }
    return change(s, p, begin_ns, end_ns, inside ? call : NULL);
}

int projections_end(struct projections *s)
{
    int error = 0;
    for (uint32_t i = 0; i < s->count; i++)
        while (error == 0 && s->list[i]->count)
            error = close_innermost(s, s->list[i], UINT64_MAX);
    return error;
}
