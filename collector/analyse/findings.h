/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what is worth fixing in a recording: each finding with its cost, place, evidence, advice
 * and next command. finding_kinds.def has what each measures, and its threshold.
 *
 * finding_memory.c finds those about memory, which cost bytes instead of time.
 *
 * A finding is about one device of one process, the one that it costs most, and counts the others
 * that have it. Each nanosecond of a device is charged to one finding at most: work by
 * evidence.h, idle time by idle.h.
 */
#ifndef GPUPROF_COLLECTOR_FINDINGS_H
#define GPUPROF_COLLECTOR_FINDINGS_H

#include "analyse/evidence.h"
#include "analyse/hang.h"
#include "analyse/idle.h"
#include "memory/memory_report.h"
#include "table/table.h"

#define FINDING_ROWS 3

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

static inline enum finding_id finding_id_of(const struct finding *f)
{
    return (enum finding_id)(f->kind - finding_kinds);
}

/* Is its share one of the whole time? True for what happens once. */
static inline bool finding_is_of_all(const struct finding_kind *kind)
{
    return kind == &finding_kinds[FINDING_START_UP] || kind == &finding_kinds[FINDING_SLOW_IMPORT];
}

struct findings {
    struct walk *walk;
    struct idle *idle;                    /* a view */
    const struct next_words *const *next; /* a view; it may be NULL: nothing is known about them */
    struct finding_gpu *gpu;              /* owned */
    struct evidences work;                /* of devices, by evidence.h or from parts */
    struct finding list[FINDING_KINDS];   /* by kind; once finished, highest cost first */
    uint32_t count;
};

/* Is the cost above both thresholds of the kind? `of_ns` is the base of its share, `part` the
 * recorded time as a share of the whole run. */
bool finding_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t of_ns, double part);

/*
 * The time of a device that costs are compared with: without start-up and without time that was not
 * recorded. That also suits a few steps after a long import, the last second of a flight recorder,
 * and a single training step.
 */
struct judged_time {
    uint64_t window_ns; /* total time of the device (idle.h) */
    uint64_t judged_ns;
    double part; /* that as a share of the whole run, recorded or not, up to 1: thresholds shrink */
};

/* Call it after the walk that measured idle time. */
struct judged_time judged_time_of(const struct walk *walk, const struct idle_device *device);

/* What each kind costs each device of idle.h, in new memory. */
struct finding_charges *finding_costs_make(const struct findings *f);

/* Makes the list of a combination, or of a report. Names the places of findings and idle time
 * together, so that each file is searched once. A share gets no list: all shares together do. */
void findings_finish(struct findings *f, const struct hang *hang, const char *symbol_folder);

/* Adds its evidence to a finding of time, once places are named: by name, the rows with most time
 * on its device, and the main line. For a straggler these are of the devices that waited for its
 * process. (finding_evidence.c) */
void finding_add_evidence(struct findings *f, struct finding *to);

/* Highest cost first. */
void findings_sort(struct findings *f);

/* Its source is a struct findings or NULL. (findings_print.c) */
extern const struct table_info findings_table;

/* The title for people; the base of its share in brackets after a space, or "" if that is the
 * device's time after start-up; and the command to run next, with its words filled in, in new
 * memory. NULL: none. */
const char *finding_title(const struct finding *f);
const char *finding_base(const struct finding *f);
char *finding_next_line(const struct findings *f, const struct finding *found);

/* Adds the findings about memory: owners that grow from step to step; owners of short-lived blocks
 * that make the peak; memory that PyTorch's allocator reserved and cannot use. The last two matter
 * only if the device is nearly full. memory_peaks.h has the thresholds. */
void findings_add_memory(struct findings *f, const struct memory_report *m);

#endif
