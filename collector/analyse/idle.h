/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of each device of each process went, from the process's start (or, where that is
 * not recorded, its first event) to its last event, what of that is between --from and --to, or in
 * steps, ranges and windows from their begin (or the end of the work before) to their end (or that
 * of their last work): to computing, communication, copies, and none of these; and that idle time
 * by cause and place (formats/answers.md, "Idle time", has the rules). All sums are right to
 * the nanosecond. Nothing is said of the time in which recording was stopped, or nothing but calls
 * was recorded, and no work was seen, or whose work a kill took; and of work that is not in the
 * piece only that it was there: then the device was not idle.
 *
 * Memory: idle_rows.h, idle_thread.h, thread_time.h, idle_state.h, idle_ranks.h, arrivals.h,
 * place_lines.h, 8 bytes a thread and 448 a process; 1 KB a device of a process, of which
 * there are IDLE_DEVICES_MAX, and 16 bytes a gpuprof_stop(), IDLE_PAUSES_MAX at most; later ones
 * are not known. Waits for other ranks lie in a spool.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_H
#define GPUPROF_COLLECTOR_IDLE_H

#include "analyse/idle_state.h"
#include "table/table.h"

/* `walk` and `steps` must stay. Steps are complete, or a consumer of the same walk that comes
 * before this one; NULL: start-up ends with the first work. 0 or GPUPROF_NO_MEMORY; idle_release in
 * both cases. */
int idle_init(struct idle *d, struct walk *walk, const struct steps *steps);
void idle_release(struct idle *d);

struct consumer idle_consumer(struct idle *d);

/* After the walk, when steps are complete: adds up. 0 or an error. */
int idle_finish(struct idle *d);

/* After that: names the places, with lines by `symbol_folder` (symbols.h). 0 or an error. */
int idle_name(struct idle *d, const char *symbol_folder);

/* The devices' time behind start-up, as far as it was recorded. Shares are of that; of start-up
 * itself they are of all. */
static inline uint64_t idle_run_ns(const struct idle *d)
{
    return d->window_ns - d->all.causes[IDLE_START_UP] - d->all.stopped_ns;
}

static inline uint64_t idle_share_of(const struct idle *d, enum idle_cause cause)
{
    return cause == IDLE_START_UP ? d->window_ns : idle_run_ns(d);
}

/* May it have waited for ranks that are not here? */
static inline bool idle_lacks_ranks(const struct idle *d)
{
    return (d->all.parts[IDLE_COMMUNICATING] || d->all.causes[IDLE_COMMUNICATION]) &&
           (d->follows_ranks ? d->ranks.lacks_some
                             : d->walk->rec->left_out_ranks || d->walk->rec->missing_count);
}

/* Do devices of the job communicate? */
bool idle_communicates(const struct idle *d, uint32_t job);

/* The thread that a row of idle time is of; NULL: of none, or its id is not known. */
const struct thread *idle_row_thread(const struct idle *d, const struct idle_row *row);

/* How much of the work of its process's devices that thread made, in millionths; IDLE_NONE: not
 * known. */
uint32_t idle_row_work_share(const struct idle *d, const struct idle_row *row);

/* Devices' time, and idle time by cause and place: of a struct idle, which may be NULL.
 * (idle_print.c) */
#define IDLE_TABLES 2
extern const struct table_info idle_tables[IDLE_TABLES];

#endif
