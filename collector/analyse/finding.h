/* SPDX-License-Identifier: Apache-2.0 */
/* A finding with its evidence, and the data that findings are made from. findings.h makes them. */
#ifndef GPUPROF_COLLECTOR_FINDING_H
#define GPUPROF_COLLECTOR_FINDING_H

#include "analyse/finding_gpu.h"
#include "analyse/hang.h"
#include "analyse/idle.h"

#define FINDING_ROWS       3
#define FINDING_HABIT_GAPS 4      /* fewer waits, allocations or loads are no habit */
#define FINDING_BUSY       0.97   /* a device that works for this share of its time is busy */
#define FINDING_MINOR      100000 /* millionths of the work: a thread below this is a helper */

/* One piece of evidence, and where the longest part of it is. */
struct finding_row {
    char *name;  /* owned, as recorded: not safe to print */
    char *where; /* owned: the line, operator or range with most of it; NULL: not known */
    uint64_t count;
    uint64_t ns;
    uint64_t longest_ns;         /* longest single one */
    uint64_t at_ns;              /* its begin, on the clock of struct event */
    uint64_t bytes;              /* of memory, instead of times */
    const struct thread *thread; /* NULL: not known, or no thread */
    uint32_t did;                /* enum thread_did: what the thread did; 0: not known */
    bool is_of_minor;            /* the thread launches little of the devices' work */
    uint32_t work_share;         /* its share in millionths */
};

struct finding {
    const struct finding_kind *kind;
    const char *next;   /* command to run, instead of its kind's; NULL: use that */
    uint64_t ns;        /* its cost for the device */
    uint64_t window_ns; /* total time of the device (idle.h) */
    uint64_t of_ns;     /* base of its share: the recorded part of that, after start-up */
    uint64_t bytes;     /* of memory: bytes at stake; 0 for findings of time */
    uint64_t of_bytes;  /* base of their share */
    const struct process *process; /* owner of the device */
    uint64_t device;               /* UINT64_MAX: no device */
    uint64_t devices;              /* devices with this finding, including this one */
    uint64_t total_ns;             /* cost for all these devices */
    char *where;                   /* owned: as in struct finding_row, for the whole finding */
    struct finding_row rows[FINDING_ROWS];
    uint32_t row_count;
    struct {
        bool is_awaited;  /* of a hang: others wait in a call for this process */
        bool lacks_ranks; /* communication may include waits for ranks that are missing here */
    } says;               /* extra facts for its sentence */
};

/* Is its share one of the whole time? True for what happens once. */
static inline bool finding_is_of_all(const struct finding_kind *kind)
{
    return kind == &finding_kinds[FINDING_START_UP] || kind == &finding_kinds[FINDING_SLOW_IMPORT];
}

struct findings {
    struct walk *walk;
    struct idle *idle;             /* a view */
    const struct next_words *next; /* a view; NULL: nothing is known about them */
    struct finding_sums sums;
    struct finding_gpu gpu;
    uint32_t worst[FINDING_KINDS]; /* index of the device that each kind costs most ... */
    bool is_found[FINDING_KINDS];  /* ... if it is found: in a share, before ranks are compared */
    struct finding list[FINDING_KINDS]; /* highest cost first */
    uint32_t count;
};

#endif
