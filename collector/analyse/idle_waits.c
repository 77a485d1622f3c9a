/* SPDX-License-Identifier: Apache-2.0 */
/* Time in which devices only waited for another rank's communication. */
#include <stdlib.h>

#include "analyse/idle_state.h"
#include "base/array.h"
#include "error.h"

int idle_wait_at(struct idle *d, uint32_t number, uint64_t place, struct idle_wait *wait)
{
    const struct idle_waits *waits = &d->devices[number].waits;
    int error = 0;
    if (place >= waits->end - waits->first)
        return 0;
    const struct idle_wait *found = spool_at(&d->waits, waits->first + place, false, &error);
    *wait = found ? *found : (struct idle_wait){0};
    return found ? 1 : error;
}

int idle_waited(struct idle *d, uint32_t number, uint64_t begin_ns, uint64_t end_ns, uint64_t *ns)
{
    struct idle_waits *waits = number < d->device_count ? &d->devices[number].waits : NULL;
    struct idle_wait wait;
    int more = 0;
    *ns = 0;
    for (; waits && (more = idle_wait_at(d, number, waits->next, &wait)) > 0; waits->next++) {
        *ns += overlap_ns(wait.begin_ns, wait.end_ns, begin_ns, end_ns);
        if (wait.end_ns > end_ns)
            break;
    }
    return more < 0 ? more : 0;
}

/* The waits of a device, in the order of the kernels that waited: merges those of its few
 * sequences. */
struct waits {
    struct span_reader *readers; /* owned; at their next wait */
    uint32_t count;
    struct span now; /* current wait */
    bool is_charged;
};

#define NO_WAIT UINT64_MAX /* place of a reader at its end */

static int next_of(struct span_reader *reader)
{
    int more = span_next(reader, wait_kind);
    if (more == 0)
        reader->span.numbers[WAIT_PLACE] = NO_WAIT;
    return more < 0 ? more : 0;
}

/* Moves to the wait of the earliest kernel: 1, 0 at the end, or an error. */
static int next_wait(struct waits *w)
{
    struct span_reader *first = w->readers;
    for (struct span_reader *r = w->readers; r < w->readers + w->count; r++)
        if (r->span.numbers[WAIT_PLACE] < first->span.numbers[WAIT_PLACE])
            first = r;
    if (first->span.numbers[WAIT_PLACE] == NO_WAIT)
        return 0;
    w->now = first->span;
    w->is_charged = false;
    int error = next_of(first);
    return error < 0 ? error : 1;
}

/* Charges a time in which the device of track `number` only waited. */
static int charge_wait(struct idle *d, uint32_t number, struct waits *w, uint64_t begin_ns,
                       uint64_t end_ns)
{
    struct idle_device *device = idle_device_of(d, number);
    uint64_t waited_for = w->now.numbers[WAIT_FOR], ns = end_ns - begin_ns;
    const struct idle_track *other = waited_for < d->track_count ? &d->tracks[waited_for] : NULL;
    struct idle_row what = {.place = idle_text("a rank, maybe one that is not here"),
                            .process = device->process->index,
                            .device = d->tracks[number].place,
                            .thread = IDLE_NONE,
                            .cause = IDLE_COMMUNICATION};
    const struct idle_wait wait = {begin_ns, end_ns, other ? other->process->index : IDLE_NONE};
    if (other)
        what.place = (struct idle_place){.word = other->device << 32 | other->process->index,
                                         .function = IDLE_NONE,
                                         .kind = IDLE_WORD_DEVICE};
    d->rows.gap += !w->is_charged;
    w->is_charged = true;
    device->parts[IDLE_COMMUNICATING] -= ns;
    device->idle_ns += ns;
    device->causes[IDLE_COMMUNICATION] += ns;
    if (other && other->place != IDLE_NONE)
        d->devices[other->place].awaited_ns += ns;
    if (!device->waits.end)
        device->waits.first = d->waits.count;
    device->waits.end = d->waits.count + 1;
    int error = spool_append(&d->waits, &wait);
    return error < 0 ? error : idle_rows_add(&d->rows, &what, begin_ns, ns);
}

/* Charges the parts of waits within a time in which nothing else ran. */
static int charge_alone(struct idle *d, uint32_t number, struct waits *w, const struct span *alone)
{
    uint64_t at_ns = alone->begin_ns;
    int error = 0;
    while (error == 0 && at_ns < alone->end_ns) {
        while (w->now.end_ns <= at_ns)
            if ((error = next_wait(w)) <= 0)
                return error;
        at_ns = max_of(at_ns, w->now.begin_ns);
        uint64_t end_ns = min_of(w->now.end_ns, alone->end_ns);
        if (at_ns >= end_ns)
            return 0;
        error = charge_wait(d, number, w, at_ns, end_ns);
        at_ns = end_ns;
    }
    return error;
}

static int charge_device(struct idle *d, uint32_t number)
{
    struct idle_ranks *ranks = &d->ranks;
    const struct ranked_device *device = &ranks->devices[number];
    struct span_reader alone;
    struct waits w = {0};
    int error = 0, more = 1;
    for (uint32_t i = device->first; i; i = ranks->list[i - 1].next)
        w.count++;
    if (!w.count)
        return 0;
    w.readers = calloc(w.count, sizeof *w.readers);
    if (!w.readers)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = device->first, k = 0; i && error == 0; i = ranks->list[i - 1].next, k++) {
        span_reader_init(&w.readers[k], &ranks->waits, &ranks->list[i - 1].waits);
        error = next_of(&w.readers[k]);
    }
    rank_spans_open(ranks, &alone, &device->alone);
    while (error == 0 && (more = span_next(&alone, (struct span_kind){0})) > 0)
        error = charge_alone(d, number, &w, &alone.span);
    rank_spans_close(&alone, &device->alone);
    free(w.readers);
    return more < 0 ? more : error;
}

/* Finds the job of each device. If several processes share a rank, their devices get none: it is
 * not known which of them the others meet. */
static int find_jobs(const struct idle *d)
{
    struct key_map ranks = {0}; /* -> process index + 1 */
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < d->track_count; i++) {
        const struct process *p = d->tracks[i].process;
        struct key key = {p->rank, p->job, 0};
        uint64_t known = key_map_get(&ranks, key);
        if (known != p->index + 1u)
            error = key_map_set(&ranks, key, known ? UINT64_MAX : p->index + 1u);
    }
    for (uint32_t i = 0; error == 0 && i < d->track_count; i++) {
        const struct process *p = d->tracks[i].process;
        bool is_one = key_map_get(&ranks, (struct key){p->rank, p->job, 0}) == p->index + 1u;
        d->tracks[i].job = is_one ? p->job : JOB_NONE;
    }
    key_map_release(&ranks);
    return error;
}

int idle_waits_charge(struct idle *d)
{
    int error = find_jobs(d);
    if (error == 0)
        error = idle_meetings_find(d);
    for (uint32_t i = 0; i < d->ranks.device_count && i < d->track_count && error == 0; i++)
        error = charge_device(d, i);
    if (error == 0)
        arrivals_finish(&d->arrivals);
    return error;
}
