/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of findings, and what work of devices is charged to them. */
#ifndef GPUPROF_COLLECTOR_EVIDENCE_H
#define GPUPROF_COLLECTOR_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "analyse/idle.h"
#include "base/array.h"
#include "base/key_map.h"
#include "resolve/event_walk.h"

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

/* ---- work of devices (finding_gpu.c) --------------------------------------------------------- */

/*
 * Finds what the work of devices shows: matrix products in FP32, chains of element-wise kernels,
 * tiny kernels, exposed copies and communication. Each nanosecond of a device is charged at most
 * once.
 *
 * Kernels are classified by name. Memory: 400 bytes a device up to FOUND_DEVICES_MAX, 200 bytes a
 * stream up to FOUND_STREAMS_MAX, 64 bytes a kernel's name, and idle_place.h. Uploaded contents: 12
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
