/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what is worth fixing in a recording: each finding with its cost, place, evidence, advice
 * and next command. finding_kinds.def has what each measures, and its threshold.
 *
 * finding_memory.c finds those about memory, which cost bytes instead of time.
 *
 * A finding is about one device of one process, the one that it costs most, and counts the others
 * that have it. Each nanosecond of a device is charged to one finding at most: work by
 * finding_gpu.c, idle time by idle.h.
 */
#ifndef GPUPROF_COLLECTOR_FINDINGS_H
#define GPUPROF_COLLECTOR_FINDINGS_H

#include "analyse/hang.h"
#include "analyse/idle.h"
#include "memory/memory_report.h"
#include "table/table.h"

/* The findings: rows of finding_kinds.def. */
enum finding_id {
#define FINDING(NAME, ...) FINDING_##NAME,
#include "analyse/finding_kinds.def"
    FINDING_KINDS
};

struct finding_kind {
    const char *id;    /* stable */
    uint32_t share;    /* threshold: percent of the window ... */
    uint64_t floor_ns; /* ... and time in the whole run; both must be exceeded */
    const char *title;
    const char *advice;
    const char *next;
    const char *measures; /* what its cost measures */
};

extern const struct finding_kind finding_kinds[FINDING_KINDS];

/* Evidence: some rows are free, and one more for so many bytes of the files. 200 bytes each. Work
 * beyond that has none. */
#define EVIDENCE_FREE   4096u
#define EVIDENCE_BYTES  64u
#define EVIDENCE_MAX    (1u << 18)
#define EVIDENCE_RECENT 64

/* One piece of evidence, and where the longest part of it is. */
struct finding_row {
    char *name;  /* owned, as recorded: not safe to print */
    char *where; /* owned: the line, operator or range with most of it; NULL: not known */
    uint64_t count;
    uint64_t ns;
    uint64_t longest_ns; /* longest single one */
    uint64_t at_ns;      /* its begin, on the clock of struct event */
    uint64_t bytes;      /* of memory, instead of times */
    uint32_t tid;        /* 0: not known, or no thread */
    uint32_t did;        /* enum thread_did: what the thread did; 0: not known */
    bool is_of_minor;    /* the thread launches little of the devices' work */
    uint32_t work_share; /* its share in millionths */
};

/* What is charged to a finding on a device: work by name and place, or a row of idle time. */
struct evidence {
    uint32_t kind;              /* enum finding_id */
    uint32_t device;            /* index among the devices of idle.h */
    uint64_t what;              /* for finding_gpu.c: the work, ... */
    uint32_t place;             /* ... and where it was launched */
    const struct idle_row *row; /* NULL: it is work */
    struct finding_row is;      /* texts are set once places are named */
};

/* What is charged to each kind on a device: its work alone, or everything. */
struct finding_charges {
    uint64_t ns[FINDING_KINDS];
};

struct evidences {
    struct evidence *list; /* owned */
    uint32_t count, count_max;
    struct key_map places;            /* index + 1 */
    uint32_t recent[EVIDENCE_RECENT]; /* likewise: most work repeats */
    struct finding_charges *charged;  /* owned; by the index of the device */
    uint32_t charged_count;
    uint32_t reported[FINDING_KINDS]; /* the device that each finding is about: index + 1 */
};

static inline bool evidence_is_reported(const struct evidences *all, const struct evidence *e)
{
    return all->reported[e->kind] == e->device + 1;
}

/* Returns what is charged to the device at that index. */
static inline struct finding_charges *evidence_charged(struct evidences *all, uint32_t device)
{
    if (device >= all->charged_count)
        all->charged = array_reach(all->charged, &all->charged_count, device, sizeof *all->charged);
    return &all->charged[device];
}

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
    struct evidences work;                /* of devices, or from parts */
    struct finding list[FINDING_KINDS];   /* by kind; once finished, highest cost first */
    uint32_t count;
};

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

/* ---- work of devices (finding_gpu.c) --------------------------------------------------------- */

/*
 * Finds what the work of devices shows: matrix products in FP32, chains of element-wise kernels,
 * tiny kernels, exposed copies and communication. Each nanosecond of a device is charged at most
 * once.
 *
 * Kernels are classified by name. Memory: 400 bytes a device up to FOUND_DEVICES_MAX, 200 bytes a
 * stream up to FOUND_STREAMS_MAX, 64 bytes a kernel's name, and idle_rows.h. Uploaded contents: 12
 * MiB, FOUND_UPLOADS_MAX of them; when full, all are forgotten, and those of each step are soon
 * known again.
 */
#define FOUND_DEVICES_MAX 4096
#define FOUND_STREAMS_MAX (1u << 16)
#define FOUND_UPLOADS_MAX (1u << 17)

struct finding_gpu;

/* All must outlive it; `found` gets what it finds. */
struct finding_gpu *finding_gpu_create(struct walk *walk, struct idle *idle,
                                       struct evidences *found);
void finding_gpu_free(struct finding_gpu *g);

/* For its consumer, whose context is the struct finding_gpu: takes device work, which idle.h gets
 * first; ends. */
int finding_gpu_take(void *context, const struct slice *s);
int finding_gpu_end(void *context);

/* Then: requests the lines of the evidence that is reported and, once they are looked up, sets its
 * names and places. */
void finding_gpu_want(struct finding_gpu *g);
void finding_gpu_name(struct finding_gpu *g);

/* Was there more than fits? Something is left out then. */
bool finding_gpu_is_full(const struct finding_gpu *g);

#endif
