/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks arrived at collectives: of each kind on each communicator how far the last one was
 * behind the first, which rank was so by most in all, and where it was then: where its device had
 * been idle, if that was for half of what it was behind, else where the work was launched that took
 * it longest; both since its collective before.
 *
 * Memory: ARRIVAL_ROWS_MAX rows of 600 bytes, and 8 MiB for their histograms; of what comes then
 * all communicators are one. 72 bytes a place, ARRIVAL_PLACES_EACH_MAX of a process; 40 to 48 for
 * each row, device and place where it was late, ARRIVAL_LATE_MAX; later ones have none.
 */
#ifndef GPUPROF_COLLECTOR_ARRIVALS_H
#define GPUPROF_COLLECTOR_ARRIVALS_H

#include "analyse/idle_place.h"
#include "analyse/idle_ranks.h"
#include "base/histogram.h"
#include "table/table.h"

#define ARRIVAL_ROWS_MAX        4096
#define ARRIVAL_KINDS_MAX       256
#define ARRIVAL_PLACES_EACH_MAX 512
#define ARRIVAL_LATE_MAX        (1u << 20)
#define ARRIVAL_WORKED          IDLE_CAUSES /* in place of a cause of idle time */

struct idle;

struct arrival_place {
    struct idle_place place;
    uint32_t process; /* index */
    uint32_t cause;   /* up to here: what it is */
    char *text;       /* owned; NULL: not known */
};

struct arrival_row {
    uint64_t communicator; /* 0: by name, or many */
    uint32_t kind;
    uint32_t job;             /* of the device that was last; JOB_NONE */
    uint64_t count;           /* of meetings */
    uint32_t ranks;           /* at most */
    uint64_t skew_ns, max_ns; /* the last one's behind the first */
    struct histogram skews;
    uint32_t late; /* the rank that was last, by most in all: device, ... */
    uint64_t late_count, late_ns;
    uint32_t place; /* ... and where it was; 0: not known */
};

/* A device was last there, and had been at that place. */
struct arrival_late {
    uint32_t row, device, place;
    uint64_t count, ns;
};

struct arrivals {
    struct arrival_place *places; /* owned, and so are the others; numbers from 1 on */
    struct arrival_row *rows;
    struct arrival_late *late;
    char **kinds;
    uint32_t *place_counts; /* by process index */
    uint32_t place_count, row_count, late_count, kind_count;
    uint64_t missed[RANK_MISSES]; /* collectives of which nobody knows who was last */
    struct number_set place_numbers;
    struct key_map row_of, late_of, kind_of;
    uint64_t histogram_rows;
};

/* 0 or GPUPROF_NO_MEMORY; arrivals_release in both cases. */
int arrivals_init(struct arrivals *a, uint32_t process_count);
void arrivals_release(struct arrivals *a);

/* The number of what a kernel of that name does: "AllReduce". 0 or GPUPROF_NO_MEMORY. */
int arrivals_kind(struct arrivals *a, const struct kernel_name *name, uint32_t *number);
int arrivals_kind_named(struct arrivals *a, const char *name, size_t length, uint32_t *number);

/* The number of a place; 0: the process has too many. 0 or GPUPROF_NO_MEMORY. */
int arrivals_place(struct arrivals *a, const struct arrival_place *what, uint32_t *number);

/* 0 or GPUPROF_NO_MEMORY. */
int arrivals_met(struct arrivals *a, const struct rank_meeting *m, uint32_t job);

/* Of messages, which are not of all ranks, nothing is missed. */
void arrivals_missed(struct arrivals *a, const struct rank_kernel *k, enum rank_miss why);

/* Behind the last: who was late by most, and puts rows into order. `devices` by number. 0 or
 * GPUPROF_NO_MEMORY. */
int arrivals_finish(struct arrivals *a, const struct rank_device *devices);

/* After that the texts of places: of those that rows name, or of all. First their stacks, then,
 * once lines have been looked up, the texts. 0 or GPUPROF_NO_MEMORY. */
int arrivals_want(struct arrivals *a, struct place_lines *lines, bool all);
int arrivals_name(struct arrivals *a, const struct walk *w, struct place_lines *lines, bool all);

/* Why a table of several ranks is empty, where there are others. */
#define RANKS_LEFT_OUT ": needs at least two ranks, but --rank or --pid left the others out"

/* A line that says how many were missed, and why; nothing if none were. (arrivals_print.c) */
void arrivals_say_missed(const uint64_t missed[static RANK_MISSES], FILE *out);

/* Where the process cost others most, in new memory: "AllReduce of 4, last 10 times, 4.500 ms
 * behind, at load (train.py:3)"; NULL, and 0 or GPUPROF_NO_MEMORY: nowhere. (arrivals_print.c)
 */
int arrivals_late_text(const struct idle *d, const struct process *p, char **text);

/* A cause of idle time, or "work". (arrivals_print.c) */
const char *arrivals_cause(const struct arrival_place *p);

/* Of a struct idle, which may be NULL. (arrivals_print.c) */
extern const struct table_info arrivals_table;

#endif
