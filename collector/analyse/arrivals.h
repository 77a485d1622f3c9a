/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks arrive at collectives. A row for each kind of collective on each communicator: how far
 * the last rank was behind the first, the rank that was late by most in total, and its place then.
 * That place is where its device was idle since its collective before, if it was idle for half of
 * the delay or more. Otherwise it is where its longest work since then was launched.
 *
 * Memory: ARRIVAL_ROWS_MAX rows of 600 bytes, and 8 MiB for their histograms; after that all
 * communicators share a row. places as idle_place.h has them; 40 to 48 for each row, device
 * and place of a late rank, ARRIVAL_LATE_MAX. Later ones are not recorded.
 */
#ifndef GPUPROF_COLLECTOR_ARRIVALS_H
#define GPUPROF_COLLECTOR_ARRIVALS_H

#include "analyse/idle_place.h"
#include "analyse/idle_ranks.h"
#include "base/histogram.h"
#include "table/table.h"

#define ARRIVAL_ROWS_MAX 4096
#define ARRIVAL_LATE_MAX (1u << 20)
#define ARRIVAL_WORKED   IDLE_CAUSES /* in place of a cause of idle time: work */

struct idle;

struct arrival_row {
    uint64_t communicator; /* 0: unknown (matched by kernels' names), or several */
    uint32_t kind;
    uint32_t job;             /* job of the device that was last; JOB_NONE */
    uint64_t count;           /* collectives that were compared */
    uint32_t ranks;           /* largest number of ranks */
    uint64_t skew_ns, max_ns; /* delay of the last rank after the first: total, longest */
    struct histogram skews;
    uint32_t late; /* device that was last by most in total: index, times, delay */
    uint64_t late_count, late_ns;
    uint32_t place; /* where it was then; 0: not known */
};

struct arrivals {
    struct work_places places;
    struct arrival_row *rows; /* owned, like the other pointers */
    struct arrival_late *late;
    char **kinds;
    uint32_t row_count, late_count, kind_count;
    uint64_t missed[RANK_MISSES]; /* collectives whose last rank is unknown, by reason */
    struct key_map row_of, late_of;
    uint64_t histogram_rows;
};

/* Returns 0 or GPUPROF_NO_MEMORY; call arrivals_release in both cases. */
int arrivals_init(struct arrivals *a, struct walk *walk);
void arrivals_release(struct arrivals *a);

/* The number of the collective in a kernel's name ("AllReduce"). Returns 0 or GPUPROF_NO_MEMORY. */
int arrivals_kind(struct arrivals *a, const struct kernel_name *name, uint32_t *number);
int arrivals_kind_named(struct arrivals *a, const char *name, size_t length, uint32_t *number);

/* Adds one collective that all ranks ran. Returns 0 or GPUPROF_NO_MEMORY. */
int arrivals_met(struct arrivals *a, const struct rank_meeting *m, uint32_t job);

/* Counts a collective without a known last rank, by one of its kernels. Ignores those outside the
 * selection, and messages: they are not of all ranks. */
void arrivals_missed(struct arrivals *a, const struct span *kernel, enum rank_miss why);

/* After the last collective: finds the rank that was late by most in each row, and sorts the
 * rows. */
void arrivals_finish(struct arrivals *a);

/* Why a table that compares ranks is empty although the recording has several. */
#define RANKS_LEFT_OUT ": needs at least two ranks, but --rank or --pid left the others out"

/* Prints how many collectives were missed, and why; nothing if none. */
void arrivals_say_missed(const uint64_t missed[static RANK_MISSES], FILE *out);

/* Sets *text to where the process delayed the others most: "AllReduce of 4, last 10 times, 4.500 ms
 * behind, at load (train.py:3)". The caller owns it; NULL: nowhere. Returns 0 or GPUPROF_NO_MEMORY.
 * */
int arrivals_late_text(const struct idle *d, const struct process *p, char **text);

/* The word for a cause of idle time, or "work". */
const char *arrivals_cause(const struct work_place *p);

/* Its source is a struct idle or NULL. */
extern const struct table_info arrivals_table;

#endif
