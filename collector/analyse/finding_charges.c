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
    return place < f->gpu.device_count ? &f->gpu.devices[place] : NULL;
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

/* Is the cause frequent enough to report? Done once, at the start or the end, it is no habit. */
static bool is_habit(enum idle_cause cause, const struct finding_costs *of, struct judged_time time)
{
    /* There is some after a wait in a synchronisation, too, but not after one in a copy. */
    uint64_t at = of->gaps[false][cause], after = of->gaps[true][cause];
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

/* Charges a row of a cause. A row of what the thread did moves its time from the finding of the
 * cause, if that is another one. Time in calls that never returned is nobody's cost. */
static void charge(const struct findings *f, const struct idle_row *row, struct finding_costs *to)
{
    const struct idle_device *device = &f->idle->devices[row->device];
    struct idle_row all = *row;
    all.did = DID_NONE;
    enum finding_id by_cause = kind_of_row(&all, to->is_blocking);
    enum finding_id id = kind_of_row(row, to->is_blocking);
    bool counts = (row->did && row->cause != IDLE_LOADER) ||
                  is_habit((enum idle_cause)row->cause, to, judged_time_of(f->walk, device));
    if (!counts || (!row->did && row->place.is_open))
        return;
    if (id != FINDING_KINDS)
        to->ns[id] += (int64_t)row->ns;
    if (row->did && by_cause != FINDING_KINDS)
        to->ns[by_cause] -= (int64_t)row->ns;
}

struct finding_costs *finding_costs_make(const struct findings *f)
{
    struct finding_costs *all = calloc(f->idle->device_count + 1u, sizeof *all);
    const struct idle_row *rows = f->idle->rows.list;
    for (uint32_t i = 0; all && i < f->idle->device_count; i++) {
        const struct found_device *worked = finding_worked(f, i);
        all[i].is_blocking = launches_block(f->idle->devices[i].process);
        for (unsigned id = 0; worked && id < FINDING_KINDS; id++)
            all[i].ns[id] = (int64_t)worked->ns[id];
    }
    for (uint32_t i = 0; all && i < f->idle->rows.count; i++)
        if (!rows[i].did && !rows[i].place.is_open)
            all[rows[i].device].gaps[rows[i].place.side == IDLE_AFTER][rows[i].cause] +=
                rows[i].count;
    for (uint32_t i = 0; all && i < f->idle->rows.count; i++)
        if (!rows[i].did)
            charge(f, &rows[i], &all[rows[i].device]);
    for (uint32_t i = 0; all && i < f->idle->device_count; i++)
        if (is_busy(&f->idle->devices[i], judged_time_of(f->walk, &f->idle->devices[i])))
            all[i].ns[FINDING_LAUNCH_BOUND] = all[i].ns[FINDING_TINY_KERNELS] = 0;
    for (uint32_t i = 0; all && i < f->idle->rows.count; i++)
        if (rows[i].did)
            charge(f, &rows[i], &all[rows[i].device]);
    for (uint32_t i = 0; all && i < f->idle->device_count; i++) {
        for (unsigned id = 0; id < FINDING_KINDS; id++)
            all[i].ns[id] = all[i].ns[id] < 0 ? 0 : all[i].ns[id];
        all[i].ns[FINDING_EXPOSED_COMMUNICATION] =
            (int64_t)f->idle->devices[i].parts[IDLE_COMMUNICATING];
    }
    return all;
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

double judged_part(struct judged_time time)
{
    uint64_t looked_ns = time.window_ns - time.aside_ns;
    return looked_ns < time.whole_ns ? (double)looked_ns / (double)time.whole_ns : 1;
}

/* Start-up happens once: its threshold does not shrink with the selection. */
bool judged_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t of_ns, double part)
{
    return (double)ns > (double)kind->floor_ns * (finding_is_of_all(kind) ? 1 : part) &&
           (double)ns * 100 > (double)of_ns * kind->share;
}
