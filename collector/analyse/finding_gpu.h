/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What work of devices tells: products of matrices in FP32, chains of element-wise kernels, tiny
 * kernels, copies that nothing hides. Each nanosecond of a device is charged at most once
 * (device_lanes.h).
 *
 * What a kernel does is known by its name. Memory: 5 KB a device up to FOUND_DEVICES_MAX, 150 bytes
 * a stream up to FOUND_STREAMS_MAX, 80 bytes a kernel's name; and the sums, and work_places.h.
 * Contents that were uploaded: 12 MiB, FOUND_UPLOADS_MAX of them; when there are more all are
 * forgotten, and what is uploaded each step is soon known again. Communication, of which it is
 * known at the end what was a wait for another rank, lies in a spool.
 */
#ifndef GPUPROF_COLLECTOR_FINDING_GPU_H
#define GPUPROF_COLLECTOR_FINDING_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/device_lanes.h"
#include "analyse/idle.h"
#include "analyse/work_places.h"
#include "base/key_map.h"
#include "record/gpu_record.h"
#include "resolve/event_walk.h"
#include "resolve/kernel_class.h"

/* What can be found: the rows of finding_kinds.def. */
enum finding_id {
#define FINDING(NAME, ...) FINDING_##NAME,
#include "analyse/finding_kinds.def"
    FINDING_KINDS
};

struct finding_kind {
    const char *id;    /* stable */
    uint32_t share;    /* in percent of the window, and ... */
    uint64_t floor_ns; /* ... so long: only if it takes more than both; of the whole run */
    const char *title;
    const char *advice;
    const char *next;
    const char *measures; /* what its cost is */
};

extern const struct finding_kind finding_kinds[FINDING_KINDS];

/*
 * What findings are made of, by name and place: how often and for how long something was charged to
 * a finding on a device. Memory: 160 bytes a row, of which there are FINDING_SUMS_FREE and one more
 * for each FINDING_SUM_BYTES of the files, FINDING_SUMS_MAX at most; what is beyond has no place
 * or, where there is no room for that either, no name.
 */
#define FINDING_SUMS_FREE   4096u
#define FINDING_SUM_BYTES   64u
#define FINDING_SUMS_MAX    (1u << 18)
#define FINDING_SUMS_RECENT 64

struct finding_sum {
    uint32_t device; /* its place among those of findings */
    uint32_t kind;   /* enum finding_id */
    uint64_t what;   /* for its user: what it is the name of, ... */
    uint32_t where;  /* ... and its place; 0: not known, and of those without room */
    uint64_t count;
    uint64_t ns;
    uint64_t longest_ns;
    uint64_t at_ns; /* the longest one began then */
};

struct finding_sums {
    struct finding_sum *rows; /* owned */
    uint32_t count;
    uint32_t rows_max;
    struct key_map places; /* of rows + 1 */
    uint32_t
        recent[FINDING_SUMS_RECENT]; /* likewise; most are of rows that were asked for before */
};

/* For files of so many bytes. */
void finding_sums_init(struct finding_sums *s, uint64_t bytes);
void finding_sums_release(struct finding_sums *s);

/* The row + 1 of what is not in *recent, which it is then; 0: there is no room for another one. 0
 * or GPUPROF_NO_MEMORY. */
int finding_sums_find(struct finding_sums *s, uint32_t kind, uint32_t device, uint64_t what,
                      uint32_t where, uint32_t *recent, uint32_t *place);

/* `count` more, which took `ns` and began at `at_ns`. 0 or GPUPROF_NO_MEMORY. */
static inline int finding_sums_add(struct finding_sums *s, uint32_t kind, uint32_t device,
                                   uint64_t what, uint32_t where, uint32_t count, uint64_t ns,
                                   uint64_t at_ns)
{
    uint32_t *recent =
        &s->recent[(what ^ what >> 8 ^ where ^ device ^ kind << 4) % FINDING_SUMS_RECENT];
    uint32_t place = *recent;
    struct finding_sum *row = place ? &s->rows[place - 1] : NULL;
    if (!row || row->kind != kind || row->device != device || row->what != what ||
        row->where != where) {
        int error = finding_sums_find(s, kind, device, what, where, recent, &place);
        if (error == 0 && !place && where)
            error = finding_sums_find(s, kind, device, what, 0, recent, &place);
        if (error < 0 || !place)
            return error;
        row = &s->rows[place - 1];
    }
    if (ns > row->longest_ns || row->count == 0) {
        row->longest_ns = ns;
        row->at_ns = at_ns;
    }
    row->count += count;
    row->ns += ns;
    return 0;
}

#define FOUND_DEVICES_MAX 4096 /* more are one with the last, and so the others */
#define FOUND_STREAMS_MAX (1u << 16)
#define FOUND_NAMES_MAX   (1u << 16)
#define FOUND_UPLOADS_MAX (1u << 17)
#define FOUND_RECENT      256 /* names, and so many streams */

#define CHAIN_MIN    3       /* kernels: of fewer nothing is to be had */
#define CHAIN_GAP_NS 1000000 /* what is that far apart is not one chain */
#define TINY_NS      5000    /* a kernel that is shorter takes about as long to start as to run */
#define START_NS     2000    /* an empty one: what a longer kernel saves of each that it replaces */

struct found_device {
    struct process *process;
    uint64_t device;
    struct device_lanes lanes;
    uint64_t ns[FINDING_KINDS]; /* that is charged to each */
    struct span_stream exposed; /* communication that no other work hides, or not all of it */
};

/* What numbers of that communication are. */
enum { EXPOSED_HIDDEN_NS, EXPOSED_WHAT, EXPOSED_WHERE, EXPOSED_NUMBERS };

static const struct span_kind exposed_kind = {EXPOSED_NUMBERS, 0};

/* A kernel of a chain. */
struct chain_link {
    uint32_t name;
    uint32_t where;
    uint64_t own_ns;
    uint64_t duration_ns;
    uint64_t begin_ns;
};

struct found_stream {
    uint32_t device;
    uint64_t stream;
    bool has_kernels;
    uint64_t copies_alone_ns; /* of those that could run beside kernels */
    uint64_t end_ns;          /* of the last kernel of the chain */
    uint32_t chain_count;
    struct chain_link links[CHAIN_MIN - 1]; /* the first ones; then the longest so far */
};

struct found_name {
    const struct kernel_name *name; /* NULL: nobody knows */
    enum kernel_class class;
};

/* A kernel's name that was asked for. */
struct found_recent {
    uint32_t process;
    uint32_t name; /* its place + 1; 0: free */
    uint64_t number;
};

struct finding_gpu {
    struct walk *walk;
    struct finding_sums *sums; /* a view */
    const struct idle *idle;   /* a view */
    struct work_places wheres;
    struct spool exposed;         /* until it is known what of it was a wait for another rank */
    bool is_alone;                /* there is nobody to wait for */
    struct found_device *devices; /* owned, and so what follows */
    uint32_t device_count;
    struct key_map uploads; /* (process and device, bytes, hash) -> who was first, and where */
    struct found_stream *streams;
    uint32_t stream_count;
    struct found_name *names;
    uint32_t name_count;
    struct key_map places; /* of all three: device, stream and name; + 1 */
    struct found_recent recent[FOUND_RECENT];
    uint32_t recent_streams[FOUND_RECENT]; /* places */
};

/* `walk`, `sums` and `idle`, which is to be told of each slice first (NULL: no slice will come),
 * must stay. 0 or GPUPROF_NO_MEMORY; finding_gpu_release in both cases. */
int finding_gpu_init(struct finding_gpu *g, struct walk *walk, struct finding_sums *sums,
                     const struct idle *idle);
void finding_gpu_release(struct finding_gpu *g);

/* Each slice with work of a device, in the order of time. 0 or an error. */
int finding_gpu_take(struct finding_gpu *g, const struct slice *s);

/* Likewise of what is not in the piece: in one from one time to another, for which all work is
 * read, it is known what was uploaded before. 0 or an error. */
int finding_gpu_pass(struct finding_gpu *g, const struct slice *s);

/* Behind the last one. 0 or an error. */
int finding_gpu_end(struct finding_gpu *g);

/* After that, and after idle_finish: the sums are complete; of a part, but for exposed
 * communication, whose places are known then. 0 or an error. */
int finding_gpu_settle(struct finding_gpu *g, struct idle *idle);

/* For who adds findings up: exposed communication of a device, in the order of time. 0 or an error.
 */
int finding_gpu_add_exposed(struct finding_gpu *g, struct idle *idle, uint32_t device,
                            const struct span *exposed);

/* For who adds findings up: the devices are those of `idle`. 0 or GPUPROF_NO_MEMORY. */
int finding_gpu_devices(struct finding_gpu *g, const struct idle *idle);

/* Likewise: is that a copy, and not a name? And the number of a name (NULL: of none).
 * 0 or GPUPROF_NO_MEMORY. */
bool finding_gpu_is_copy(uint64_t what);
int finding_gpu_name(struct finding_gpu *g, const char *raw, uint32_t *what);

/* The name of what a sum of these findings is of, as people know it; a view or `text`. */
const char *finding_gpu_text(const struct finding_gpu *g, uint64_t what,
                             char text[static GPU_TITLE_BYTES]);

#endif
