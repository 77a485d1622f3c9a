/* SPDX-License-Identifier: Apache-2.0 */
/* Time in which devices only waited for another rank's communication. */
#include "analyse/idle_state.h"

#include <stdlib.h>

#include "base/numbers.h"
#include "error.h"
#include "read/recording.h"

static int keep_wait(struct idle *d, struct idle_device *device, const struct idle_wait *wait)
{
    if (!device->waits.end)
        device->waits.first = d->waits.count;
    device->waits.end = d->waits.count + 1;
    return spool_append(&d->waits, wait);
}

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

/* The device of a track; NULL if it has no selected work. */
static struct idle_device *idle_waits_device_of(const struct idle *d, uint32_t track)
{
    uint32_t place = d->tracks[track].place;
    return place == IDLE_NONE ? NULL : &d->devices[place];
}

static int wait_for_rank(void *context, uint32_t number, uint32_t waited_for, bool is_new,
                         uint64_t begin_ns, uint64_t end_ns)
{
    struct idle *d = context;
    struct idle_device *device = idle_waits_device_of(d, number);
    const struct idle_track *other = waited_for < d->track_count ? &d->tracks[waited_for] : NULL;
    uint64_t ns = end_ns - begin_ns;
    struct idle_row what = {.place = idle_text("a rank, maybe one that is not here"),
                            .process = device->process->index,
                            .device = d->tracks[number].place,
                            .thread = IDLE_NONE,
                            .cause = IDLE_COMMUNICATION};
    if (other)
        what.place = (struct idle_place){.word = other->device << 32 | other->process->index,
                                         .function = IDLE_NONE,
                                         .kind = IDLE_WORD_DEVICE};
    if (is_new)
        device->waits.gap = ++d->way.last_gap;
    d->rows.gap = device->waits.gap;
    device->parts[IDLE_COMMUNICATING] -= ns;
    device->idle_ns += ns;
    device->causes[IDLE_COMMUNICATION] += ns;
    if (other && idle_waits_device_of(d, waited_for))
        idle_waits_device_of(d, waited_for)->awaited_ns += ns;
    int error =
        keep_wait(d, device,
                  &(struct idle_wait){begin_ns, end_ns, other ? other->process->index : IDLE_NONE});
    return error < 0 ? error : idle_rows_add(&d->rows, &what, begin_ns, ns);
}

static void idle_waits_join(void *context, uint32_t number, const struct rank_meeting *m)
{
    struct idle *d = context;
    struct idle_device *device = idle_waits_device_of(d, number);
    if (!device)
        return;
    device->collectives++;
    if (m->sequence->device != number || m->last.begin_ns == m->first_ns)
        return;
    device->late++;
    device->late_ns += m->last.begin_ns - m->first_ns;
}

static int idle_waits_meet(void *context, const struct rank_meeting *m)
{
    struct idle *d = context;
    return arrivals_met(&d->arrivals, m, d->tracks[m->sequence->device].process->job);
}

static void miss(void *context, const struct rank_kernel *k, enum rank_miss why)
{
    struct idle *d = context;
    arrivals_missed(&d->arrivals, k, why);
}

/* Fills in the rank of each device. If several processes share a rank, their devices get no job: it
 * is not known which of them the others meet. */
static int find_ranks(const struct idle *d, struct rank_device *devices)
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
        devices[i] =
            (struct rank_device){.process = p->index,
                                 .host = p->host,
                                 .job = is_one ? p->job : JOB_NONE,
                                 .device = d->tracks[i].device,
                                 .lacks_ranks = missing_ranks_of(d->walk->rec, p->job) != NULL,
                                 .loses_work = d->tracks[i].loses_work};
    }
    key_map_release(&ranks);
    return error;
}

int idle_waits_charge(struct idle *d)
{
    const struct rank_listener listener = {d, idle_waits_join, idle_waits_meet, miss,
                                           wait_for_rank};
    bool leaves_out = d->walk->rec->left_out_ranks || d->way.leaves_out_ranks;
    struct rank_device *devices = calloc(d->track_count + 1u, sizeof *devices);
    int error = devices ? find_ranks(d, devices) : GPUPROF_NO_MEMORY;
    d->way.last_gap = d->rows.gap;
    if (error == 0)
        error = idle_ranks_report(&d->ranks, devices, d->track_count, leaves_out, &listener);
    if (error == 0)
        arrivals_finish(&d->arrivals);
    free(devices);
    return error;
}
