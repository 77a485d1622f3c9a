/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank the others waited for: the kernels of each collective on all ranks, and who came last
 * (formats/answers.md, "Ranks"). Kernels of messages and groups are counted from the last one with
 * a number. Processes without a rank, or with one that another process of their job has too, have
 * no known job. In a recording of one process nobody waits for another.
 *
 * Memory: 8 MiB for kernels, for times in which nothing else ran, and for waits, which lie in two
 * spools; 140 bytes a device; 330 for each communicator or name on each device, and up to 600 more
 * while kernels are matched, IDLE_SEQUENCES_MAX of them. Later ones have no waits.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_RANKS_H
#define GPUPROF_COLLECTOR_IDLE_RANKS_H

#include "analyse/idle_rows.h"
#include "base/histogram.h"
#include "base/key_map.h"
#include "base/span_stream.h"
#include "resolve/event_walk.h"
#include "table/table.h"

struct idle;

#define IDLE_SEQUENCES_MAX (1u << 19)

/* The numbers of a communication kernel's span. */
enum {
    KERNEL_NUMBER,     /* number of the collective on its communicator; 0: not known */
    KERNEL_IDLE_NS,    /* longest idle time of its device since its last collective, ... */
    KERNEL_IDLE_PLACE, /* ... its place, */
    KERNEL_WORK_PLACE, /* and the place of the longest other work; 0: not known */
    KERNEL_KIND,       /* in the lower half */
    KERNEL_NUMBERS
};

static const struct span_kind kernel_kind = {KERNEL_NUMBERS, 1u << KERNEL_NUMBER};

/* A flag above all numbers of kinds: the kernel is outside the selection. */
#define KERNEL_FILTERED UINT64_C(0x100000000)

/* The meaning of numbers in a part's kernels. */
struct rank_numbers {
    uint32_t *kinds, *places; /* owned by the holder of this struct */
    uint32_t kind_count, place_count;
    bool has_failed; /* a number is unknown, or kernels are malformed */
};

/* Kernels, or times of a device, in order. Those of a part are read where they are: copying them
 * takes as long as the rest of a table that comes from parts. */
struct rank_spans {
    struct span_stream spans;
    struct stored_spans stored;   /* of a part; if .at is 0 they are in the spool */
    struct rank_numbers *numbers; /* a view; NULL: numbers are this process's own */
};

/* The kernels of a communicator or name on a device, in order. */
struct rank_sequence {
    uint64_t communicator; /* 0: identified by name */
    const char *name;      /* a view */
    struct rank_spans kernels;
    struct span_stream waits;
    uint32_t device;
    uint32_t next;    /* of its device with waits: sequence + 1; 0: none */
    uint32_t ranks;   /* size of its communicator; 0: not known */
    bool is_numbered; /* some kernels have a number */
};

struct idle_ranks {
    struct rank_sequence *list; /* owned, like devices */
    uint32_t count;
    struct key_map numbers; /* (device, communicator or name) -> place in list + 1 */
    struct spool spool, waits;
    bool lacks_some; /* set at the end: a communicator or name lacks ranks */
};

void idle_ranks_init(struct idle_ranks *r);
void idle_ranks_release(struct idle_ranks *r);

/* The index of a sequence + 1, created if new; 0 if there is no room. `key` distinguishes names. */
uint32_t idle_ranks_sequence(struct idle_ranks *r, uint32_t device, uint64_t communicator,
                             const char *name, uint64_t key);

/* A collective in which several devices took part together. */
struct rank_meeting {
    const struct rank_sequence *sequence; /* of the kernel that began last */
    struct span last;
    uint64_t first_ns; /* begin of the kernel that began first */
    uint32_t count;
};

/* Why the last rank of a collective is not known. */
enum rank_miss {
    RANK_MISS_KERNEL,    /* a rank has no kernel of that number */
    RANK_MISS_NUMBER,    /* a rank has fewer kernels than others, and kernels have no numbers */
    RANK_MISS_TIME,      /* they did not run at one moment: the clocks may differ */
    RANK_MISS_SELECTION, /* some ranks are missing or were left out */
    RANK_MISS_LOST, /* a rank's last kernels may be lost, and this comes after the known ones */
    RANK_MISSES
};

/* ---- arrivals -------------------------------------------------------------------------------- */

/*
 * How ranks arrive at collectives. A row for each kind of collective on each communicator: how far
 * the last rank was behind the first, the rank that was late by most in total, and its place then.
 * That place is where its device was idle since its collective before, if it was idle for half of
 * the delay or more. Otherwise it is where its longest work since then was launched.
 *
 * Memory: ARRIVAL_ROWS_MAX rows of 600 bytes, and 8 MiB for their histograms; after that all
 * communicators share a row. Places as idle_rows.h has them; 40 to 48 for each row, device
 * and place of a late rank, ARRIVAL_LATE_MAX. Later ones are not recorded.
 */
#define ARRIVAL_ROWS_MAX 4096
#define ARRIVAL_LATE_MAX (1u << 20)
#define ARRIVAL_WORKED   IDLE_CAUSES /* in place of a cause of idle time: work */

struct arrival_row {
    uint64_t communicator; /* 0: unknown (matched by kernels' names), or several */
    uint32_t kind;
    uint32_t job;             /* job of the device that was last; JOB_NONE */
    uint64_t count;           /* collectives that were compared */
    uint32_t ranks;           /* largest number of ranks */
    uint64_t skew_ns, max_ns; /* delay of the last rank after the first: total, longest */
    struct histogram skews;
    /* The device that was last by most in total (NULL: none): times, delay, and its place then. */
    const struct process *process;
    uint64_t device; /* UINT64_MAX: none */
    uint64_t late_count, late_ns;
    const struct work_place *at; /* NULL: not known */
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

void arrivals_init(struct arrivals *a, struct walk *walk);
void arrivals_release(struct arrivals *a);

/* The number of the collective in a kernel's name ("AllReduce"). */
uint32_t arrivals_kind(struct arrivals *a, const struct kernel_name *name);
uint32_t arrivals_kind_named(struct arrivals *a, const char *name, size_t length);

/* Adds one collective that all ranks ran. */
void arrivals_met(struct arrivals *a, const struct rank_meeting *m, uint32_t job);

/* Counts a collective without a known last rank, by one of its kernels. Ignores those outside the
 * selection, and messages: they are not of all ranks. */
void arrivals_missed(struct arrivals *a, const struct span *kernel, enum rank_miss why);

/* Finds the rank that was late by most in each row, and sorts the rows. */
void arrivals_finish(struct idle *d);

/* Why a table that compares ranks is empty although the recording has several. */
#define RANKS_LEFT_OUT ": needs at least two ranks, but --rank or --pid left the others out"

/* Prints how many collectives were missed, and why; nothing if none. */
void arrivals_say_missed(const uint64_t missed[static RANK_MISSES], FILE *out);

/* New text: where the process delayed the others most: "AllReduce of 4, last 10 times, 4.500 ms
 * behind, at load (train.py:3)". NULL: nowhere. */
char *arrivals_late_text(const struct idle *d, const struct process *p);

/* The word for a cause of idle time, or "work". */
const char *arrivals_cause(const struct work_place *p);

/* Its source is a struct idle or NULL. */
extern const struct table_info arrivals_table;

#endif
