/* SPDX-License-Identifier: Apache-2.0 */
/* A finding with its evidence, and what findings are made of. Who makes them is findings.h. */
#ifndef GPUPROF_COLLECTOR_FINDING_H
#define GPUPROF_COLLECTOR_FINDING_H

#include "analyse/finding_gpu.h"
#include "analyse/hang.h"
#include "analyse/idle.h"

#define FINDING_ROWS       3
#define FINDING_HABIT_GAPS 4      /* fewer waits, allocations, loads are no loop's */
#define FINDING_BUSY       0.97   /* of its time: a device is kept busy */
#define FINDING_MINOR      100000 /* millionths of the work: a thread that makes less is a helper */

/* What a finding is made of, and where the longest of it is. */
struct finding_row {
    char *name;  /* owned, as recorded: whoever prints it cleans it */
    char *where; /* owned: the line, operator or range that has most of it; NULL: not known */
    uint64_t count;
    uint64_t ns;
    uint64_t longest_ns;         /* of one of them, ... */
    uint64_t at_ns;              /* ... which began then; as struct event has it */
    uint64_t bytes;              /* of memory, instead of times */
    const struct thread *thread; /* NULL: not known, or of no thread */
    uint32_t did;                /* enum thread_did: what the thread did; 0: it is not known */
    bool is_of_minor;            /* of one that makes little of the devices' work, ... */
    uint32_t work_share;         /* ... so many millionths */
};

struct finding {
    const struct finding_kind *kind;
    const char *next;   /* to run, rather than what its kind has; NULL: that */
    uint64_t ns;        /* that it costs the device */
    uint64_t window_ns; /* of all that the device had (idle.h) */
    uint64_t of_ns;     /* what it is a share of: of that, what was recorded after start-up */
    uint64_t bytes;     /* of memory: how many are at stake; of time 0 */
    uint64_t of_bytes;  /* of so many */
    const struct process *process; /* whose device it is */
    uint64_t device;               /* UINT64_MAX: of none */
    uint64_t devices;              /* that have it, this one included */
    uint64_t total_ns;             /* of all these */
    char *where;                   /* owned: likewise, of all of the device's */
    struct finding_row rows[FINDING_ROWS];
    uint32_t row_count;
    struct {
        bool is_awaited;  /* of a hang: its process has not come; others wait in a call for it */
        bool is_lineless; /* the program's code was compiled without what tells lines */
        bool lacks_ranks; /* communication may be waits for ranks that are not here */
    } says;               /* what its sentence says beside */
};

struct findings {
    struct walk *walk;
    struct idle *idle;             /* a view */
    const struct next_words *next; /* likewise; NULL: nothing is known of them */
    struct finding_sums sums;
    struct finding_gpu gpu;
    uint32_t worst[FINDING_KINDS]; /* place of the device that each costs most; of those with ... */
    bool is_found[FINDING_KINDS];  /* ... that are found: in a share, before ranks are compared */
    struct finding list[FINDING_KINDS]; /* those that cost most first */
    uint32_t count;
};

#endif
