/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/finding_charges.h"

#include <stdlib.h>
#include <string.h>

static bool launches_block(const struct process *p)
{
    const char *value = process_meta(p, "env.CUDA_LAUNCH_BLOCKING");
    return value && value[0] && strcmp(value, "0") != 0;
}

/* The finding for idle time of a cause; FINDING_KINDS: none. With blocking launches, nobody knows
 * what else the device would have waited for. */
static enum finding_id kind_of(enum idle_cause cause, bool is_blocking)
{
    switch (cause) {
    case IDLE_LAUNCH: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_LAUNCH_BOUND;
    case IDLE_HOST: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_HOST_BOUND;
    case IDLE_WAITING:
    case IDLE_PREEMPTED: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_KINDS;
    case IDLE_SYNC: return FINDING_SYNC_IN_LOOP;
    case IDLE_COPY: return FINDING_PAGEABLE_COPIES;
    case IDLE_LOADER: return FINDING_SLOW_LOADER;
    case IDLE_ALLOCATION: return FINDING_ALLOCATION_CHURN;
    case IDLE_CAPTURE:
    case IDLE_START_UP: return FINDING_START_UP;
    default: return FINDING_KINDS;
    }
}

const struct found_device *finding_worked(const struct findings *f, uint32_t place)
{
    return place < f->gpu.device_count && place < FOUND_DEVICES_MAX - 1 ? &f->gpu.devices[place]
                                                                        : NULL;
}

/* No call for seconds, and then one. After the last work there is no next call. */
static bool finding_charges_is_between(const struct idle_row *row)
{
    const void *word = (const void *)(uintptr_t)row->place.word;
    const char *text = row->place.kind == IDLE_WORD_OURS ? word
                       : row->place.kind == IDLE_WORD_REPORTED
                           ? ((const struct idle_reported *)word)->text
                           : "";
    return row->cause == IDLE_NOTHING && strcmp(text, idle_behind_all) != 0;
}

/* The finding for a row of idle time: by what the thread did, if that is known, else by cause.
 * Whatever the thread does to load data counts for the loader. */
static enum finding_id kind_of_row(const struct idle_row *row, bool is_blocking)
{
    enum finding_id by_cause = finding_charges_is_between(row)
                                   ? FINDING_HOST_BOUND
                                   : kind_of((enum idle_cause)row->cause, is_blocking);
    if (is_blocking)
        return by_cause;
    if (row->cause == IDLE_LOADER)
        return row->did == DID_WORKERS ? FINDING_FEW_LOADER_WORKERS : by_cause;
    if (row->cause == IDLE_START_UP)
        return row->did == DID_IMPORT ? FINDING_SLOW_IMPORT : by_cause;
    switch (row->did) {
    case DID_GIL: return FINDING_GIL_CONTENTION;
    case DID_GC: return FINDING_GC_PAUSES;
    case DID_LOCK: return FINDING_LOCK_WAIT;
    case DID_FILE: return FINDING_BLOCKING_IO;
    case DID_IMPORT: return FINDING_SLOW_IMPORT;
    case DID_THROTTLED: return FINDING_CPU_QUOTA;
    case DID_SLEEP:
    case DID_CHILD: return FINDING_HOST_BOUND;
    default: return by_cause;
    }
}

/* Moves time to another finding if the thread did something else than the cause says. */
static void count_moved(struct finding_gaps *gaps, const struct idle_row *row, bool is_blocking)
{
    struct idle_row all = *row;
    all.did = DID_NONE;
    int64_t *moved = gaps->moved_ns[row->cause == IDLE_LOADER], ns = (int64_t)row->ns;
    enum finding_id from = kind_of_row(&all, is_blocking), to = kind_of_row(row, is_blocking);
    if (from != FINDING_KINDS)
        moved[from] -= ns;
    if (to != FINDING_KINDS)
        moved[to] += ns;
}

struct finding_gaps *finding_gaps_count(const struct findings *f)
{
    struct finding_gaps *gaps = calloc(f->idle->device_count + 1u, sizeof *gaps);
    for (uint32_t i = 0; gaps && i < f->idle->rows.count; i++) {
        const struct idle_row *row = &f->idle->rows.list[i];
        if (row->did) {
            count_moved(&gaps[row->device], row,
                        launches_block(f->idle->devices[row->device].process));
            continue;
        }
        bool is_after = row->place.side == IDLE_AFTER;
        gaps[row->device].counts[is_after][row->cause] += row->place.is_open ? 0 : row->count;
        gaps[row->device].open_ns[row->cause] += row->place.is_open ? row->ns : 0;
        gaps[row->device].between_ns += finding_charges_is_between(row) ? row->ns : 0;
    }
    return gaps;
}

/* Is the cause frequent enough to report? Done once, at the start or the end, it is no habit. */
static bool is_habit(enum idle_cause cause, const struct finding_gaps *of, struct judged_time time)
{
    /* There is some after a wait in a synchronisation, too, but not after one in a copy. */
    uint64_t at = of->counts[false][cause], after = of->counts[true][cause];
    uint64_t gaps = at > after ? at : after;
    bool may_be_once = cause != IDLE_SYNC && cause != IDLE_ALLOCATION && cause != IDLE_LOADER;
    return may_be_once || (double)gaps >= FINDING_HABIT_GAPS * judged_part(time);
}

/* A busy device gets its launches fast enough, however short its kernels are. */
static bool is_busy(const struct idle_device *device, struct judged_time time)
{
    uint64_t idle_ns = device->idle_ns - device->causes[IDLE_START_UP];
    return (double)idle_ns < (1 - FINDING_BUSY) * (double)(time.window_ns - time.aside_ns);
}

void finding_charges(const struct findings *f, uint32_t place, const struct finding_gaps *gaps,
                     uint64_t ns[static FINDING_KINDS])
{
    const struct idle_device *device = &f->idle->devices[place];
    const struct found_device *worked = finding_worked(f, place);
    bool is_blocking = launches_block(device->process);
    struct judged_time time = judged_time_of(f->walk, device);
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        ns[id] = worked ? worked->ns[id] : 0;
    for (unsigned cause = 0; cause < IDLE_CAUSES; cause++) {
        enum finding_id id = kind_of((enum idle_cause)cause, is_blocking);
        if (id != FINDING_KINDS && is_habit((enum idle_cause)cause, gaps, time))
            ns[id] += device->causes[cause] - gaps->open_ns[cause];
    }
    if (is_busy(device, time))
        ns[FINDING_LAUNCH_BOUND] = ns[FINDING_TINY_KERNELS] = 0;
    ns[FINDING_HOST_BOUND] += gaps->between_ns;
    for (unsigned id = 0; id < FINDING_KINDS; id++) {
        int64_t moved_ns = gaps->moved_ns[0][id];
        moved_ns += is_habit(IDLE_LOADER, gaps, time) ? gaps->moved_ns[1][id] : 0;
        ns[id] = moved_ns < 0 && ns[id] < (uint64_t)-moved_ns ? 0 : ns[id] + (uint64_t)moved_ns;
    }
    ns[FINDING_EXPOSED_COMMUNICATION] = device->parts[IDLE_COMMUNICATING];
}

bool finding_is_charged(const struct findings *f, enum finding_id id, const struct idle_row *row)
{
    const struct idle_device *device = &f->idle->devices[row->device];
    bool is_reported_by_cause = row->cause == IDLE_START_UP && id == FINDING_START_UP;
    bool is_split = row->cause == IDLE_HOST || row->cause == IDLE_WAITING ||
                    row->cause == IDLE_PREEMPTED || row->cause == IDLE_LOADER ||
                    finding_charges_is_between(row);
    if (row->did ? is_reported_by_cause : device->is_split && is_split)
        return false; /* the row without `did`, or those with it, hold this time */
    return kind_of_row(row, launches_block(device->process)) == id;
}

/* For a selection the whole is the life of its process, which is known without reading all of it.
 */
struct judged_time judged_time_of(const struct walk *walk, const struct idle_device *device)
{
    const struct walk_filter *f = walk->filter;
    uint32_t process = device->process->index;
    uint64_t window_ns = device->end_ns - device->begin_ns;
    uint64_t start_up_ns = device->causes[IDLE_START_UP];
    return (struct judged_time){
        .window_ns = window_ns,
        .aside_ns = start_up_ns + device->stopped_ns,
        .whole_ns = f && f->is_of_time ? walk->last_ns[process] - walk->first_ns[process]
                                       : window_ns - start_up_ns,
    };
}

struct judged_time judged_time_mean(struct judged_time all, struct judged_time but, uint32_t count)
{
    return (struct judged_time){(all.window_ns - but.window_ns) / count,
                                (all.aside_ns - but.aside_ns) / count,
                                (all.whole_ns - but.whole_ns) / count};
}

double judged_part(struct judged_time time)
{
    uint64_t looked_ns = time.window_ns - time.aside_ns;
    return looked_ns < time.whole_ns ? (double)looked_ns / (double)time.whole_ns : 1;
}

/* Start-up happens once: its threshold does not shrink with the selection. */
bool judged_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t of_ns, double part)
{
    bool is_once =
        kind == &finding_kinds[FINDING_START_UP] || kind == &finding_kinds[FINDING_SLOW_IMPORT];
    return (double)ns > (double)kind->floor_ns * (is_once ? 1 : part) &&
           (double)ns * 100 > (double)of_ns * kind->share;
}
