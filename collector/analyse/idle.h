/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of each device of each process went: computing, communication, copies or idle, and
 * the idle time by cause and place, exact to the nanosecond. formats/answers.md, "Idle time", has
 * the rules. Work outside the selection only makes the device not idle.
 *
 * Memory: idle_rows.h, thread_time.h, idle_state.h, idle_ranks.h, place_lines.h; 8 bytes a thread,
 * 448 a process, 1 KB a device of a process (IDLE_DEVICES_MAX at most) and 16 bytes a
 * gpuprof_stop() (IDLE_PAUSES_MAX at most; later ones are ignored). Waits for other ranks lie in a
 * spool.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_H
#define GPUPROF_COLLECTOR_IDLE_H

#include "analyse/idle_state.h"
#include "table/table.h"

/* `walk` and `steps` must outlive `d`. Steps are complete, or a consumer earlier in the same walk;
 * if NULL, start-up ends with the first work. 0 or GPUPROF_NO_MEMORY; call idle_release in both
 * cases. */
int idle_init(struct idle *d, struct walk *walk, const struct steps *steps);
void idle_release(struct idle *d);

struct consumer idle_consumer(struct idle *d);

/* Call after the walk, when steps are complete: adds everything up. 0 or an error. */
int idle_finish(struct idle *d);

/* Call after idle_finish: names the places, with lines found in `symbol_folder` (symbols.h). 0 or
 * an error. */
int idle_name(struct idle *d, const char *symbol_folder);

/* The devices' recorded time without start-up. Shares are relative to it, except the share of
 * start-up, which is relative to the whole window. */
static inline uint64_t idle_run_ns(const struct idle *d)
{
    return d->window_ns - d->all.causes[IDLE_START_UP] - d->all.stopped_ns;
}

static inline uint64_t idle_share_of(const struct idle *d, enum idle_cause cause)
{
    return cause == IDLE_START_UP ? d->window_ns : idle_run_ns(d);
}

/* True if devices may have waited for ranks that are not in the recording. */
static inline bool idle_lacks_ranks(const struct idle *d)
{
    return idle_device_communicates(&d->all) &&
           (d->follows_ranks ? d->ranks.lacks_some
                             : d->walk->rec->left_out_ranks || d->walk->rec->missing_count);
}

/* True if devices of the job communicate. */
bool idle_communicates(const struct idle *d, uint32_t job);

/* The thread of a row of idle time; 0 if it has none, or it is not known. */
uint32_t idle_row_tid(const struct idle *d, const struct idle_row *row);

/* The share of its process's device work that the row's thread launched, in millionths; IDLE_NONE
 * if not known. */
uint32_t idle_row_work_share(const struct idle *d, const struct idle_row *row);

/* The tables of devices' time and of idle time by cause and place. Their state is a struct idle,
 * which may be NULL. (idle_print.c) */
#define IDLE_TABLES 2
extern const struct table_info idle_tables[IDLE_TABLES];

#endif
