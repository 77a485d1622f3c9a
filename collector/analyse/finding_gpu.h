/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what the work of devices shows: matrix products in FP32, chains of element-wise kernels,
 * tiny kernels, exposed copies and communication. Each nanosecond of a device is charged at most
 * once.
 *
 * Kernels are classified by name. Memory: 5 KB a device up to FOUND_DEVICES_MAX, 150 bytes a stream
 * up to FOUND_STREAMS_MAX, 80 bytes a kernel's name; the sums, and idle_rows.h. Uploaded
 * contents: 12 MiB, FOUND_UPLOADS_MAX of them; when full, all are forgotten, and those of each step
 * are soon known again. Communication is spooled: only the end shows how much of it was a wait for
 * another rank. Functions that return an int return 0 or an error.
 */
#ifndef GPUPROF_COLLECTOR_FINDING_GPU_H
#define GPUPROF_COLLECTOR_FINDING_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/idle.h"
#include "analyse/idle_rows.h"
#include "base/key_map.h"
#include "record/gpu_record.h"
#include "resolve/event_walk.h"
#include "resolve/kernel_class.h"

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

/*
 * Evidence by name and place: how often and for how long something was charged to a finding on a
 * device. Memory: 160 bytes a row; FINDING_SUMS_FREE rows and one more for each FINDING_SUM_BYTES
 * of the files, FINDING_SUMS_MAX at most. Rows beyond that are left out.
 */
#define FINDING_SUMS_FREE   4096u
#define FINDING_SUM_BYTES   64u
#define FINDING_SUMS_MAX    (1u << 18)
#define FINDING_SUMS_RECENT 64

struct finding_sum {
    uint32_t device; /* index among the devices of findings */
    uint32_t kind;   /* enum finding_id */
    uint64_t what;   /* for the caller: number of a name ... */
    uint32_t where;  /* ... and of a place; 0: not known, or no room */
    uint64_t count;
    uint64_t ns;
    uint64_t longest_ns;
    uint64_t at_ns; /* begin of the longest one */
};

struct finding_sums {
    struct finding_sum *rows; /* owned */
    uint32_t count;
    uint32_t rows_max;
    struct key_map places;                /* index of rows + 1 */
    uint32_t recent[FINDING_SUMS_RECENT]; /* likewise, of recent rows: most sums repeat */
};

/* Finds or adds the row of `sum`; *recent is the row + 1, 0 if there is no room. */
int finding_sums_find(struct finding_sums *s, const struct finding_sum *sum, uint32_t *recent);

/* Adds to the row of the same keys. */
static inline int finding_sums_add(struct finding_sums *s, const struct finding_sum *sum)
{
    uint64_t of = sum->what ^ sum->what >> 8 ^ sum->where ^ sum->device ^ sum->kind << 4;
    uint32_t *recent = &s->recent[of % FINDING_SUMS_RECENT];
    struct finding_sum *row = *recent ? &s->rows[*recent - 1] : NULL;
    if (!row || row->kind != sum->kind || row->device != sum->device || row->what != sum->what ||
        row->where != sum->where) {
        int error = finding_sums_find(s, sum, recent);
        if (error < 0 || !*recent)
            return error;
        row = &s->rows[*recent - 1];
    }
    if (sum->longest_ns > row->longest_ns || row->count == 0) {
        row->longest_ns = sum->longest_ns;
        row->at_ns = sum->at_ns;
    }
    row->count += sum->count;
    row->ns += sum->ns;
    return 0;
}

#define FOUND_DEVICES_MAX 4096 /* more are not looked at; likewise streams */
#define FOUND_STREAMS_MAX (1u << 16)
#define FOUND_NAMES_MAX   (1u << 16)
#define FOUND_UPLOADS_MAX (1u << 17)
#define FOUND_RECENT      256 /* entries for names, and for streams */

#define CHAIN_MIN    3       /* kernels; fusing fewer gains nothing */
#define CHAIN_GAP_NS 1000000 /* a longer gap ends a chain */
#define TINY_NS      5000    /* a shorter kernel takes about as long to start as to run */
#define START_NS     2000    /* an empty kernel: what merging saves for each kernel replaced */

/*
 * What a device does at each moment, counted once: it computes; or communicates without computing;
 * or copies and does neither. Where work of a lane overlaps, the time belongs to the one that began
 * first (its *own* part). The share of that during which no earlier lane is busy is its time
 * *alone*. Memory: LANE_PARTS_MAX own parts that reach beyond the last begin; more are merged with
 * the last.
 */
#define LANE_PARTS_MAX 32

enum lane { LANE_COMPUTE, LANE_COMMUNICATION, LANE_COPIES, LANES };

/* The own part of a piece of work, in a lane other than LANE_COMPUTE. */
struct lane_part {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t known_ns; /* everything before this time is counted */
    uint64_t alone_ns; /* nanoseconds of it alone */
    uint64_t what;     /* for the caller: which work, and where it was launched */
    uint32_t where;
};

struct lane_parts {
    struct lane_part list[LANE_PARTS_MAX];
    uint32_t first;
    uint32_t count;
};

struct device_lanes {
    uint64_t at_ns;                 /* everything before this time is counted */
    uint64_t end_ns[LANES];         /* end of the work that has begun */
    uint64_t alone_ns[LANES];       /* alone so far */
    struct lane_parts parts[LANES]; /* none for LANE_COMPUTE */
};

/* By the index of idle.h's devices. */
struct found_device {
    struct device_lanes lanes;
    uint64_t ns[FINDING_KINDS]; /* charged to each kind */
    bool has_copy_stream;       /* a stream copies and runs no kernels */
    struct span_stream exposed; /* communication that other work does not hide entirely */
};

/* The numbers stored with that communication. */
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
    uint32_t process; /* index */
    uint32_t place;   /* index of its device in `devices` */
    uint64_t device;
    uint64_t stream;
    bool has_kernels;
    uint64_t copies_alone_ns; /* of copies that could run beside kernels */
    uint64_t end_ns;          /* end of the chain's last kernel */
    uint32_t chain_count;
    struct chain_link links[CHAIN_MIN - 1]; /* the first kernels; later the longest so far */
};

struct found_name {
    const struct kernel_name *name; /* NULL: not known */
    enum kernel_class class;
};

/* A kernel's name that was looked up. */
struct found_recent {
    uint32_t process;
    uint32_t name; /* index; 0: free */
    uint64_t number;
};

struct finding_gpu {
    struct walk *walk;
    struct finding_sums sums;
    const struct idle *idle; /* a view */
    struct work_places wheres;
    struct spool exposed;         /* stored until waits for other ranks are known */
    struct found_device *devices; /* owned, like the pointers below */
    uint32_t device_count;
    struct key_map uploads; /* (process and device, bytes, hash) -> first upload and its place */
    struct found_stream *streams;
    uint32_t stream_count;
    struct found_name *names;
    uint32_t name_count;
    struct key_map places; /* index + 1 by stream or name */
    struct found_recent recent[FOUND_RECENT];
    uint32_t recent_streams[FOUND_RECENT]; /* indices in `streams` */
};

/* `walk` and `idle` must outlive it; `idle` gets each slice first (NULL: no slices come). Call
 * finding_gpu_release in any case. */
int finding_gpu_init(struct finding_gpu *g, struct walk *walk, const struct idle *idle);
void finding_gpu_release(struct finding_gpu *g);

/* For its consumer, whose context is the struct finding_gpu: takes device work; ends. */
int finding_gpu_take(void *context, const struct slice *s);
int finding_gpu_end(void *context);

/* Then, after idle_finish: completes the sums. In a share exposed communication stays stored; only
 * its places are requested. */
int finding_gpu_settle(struct finding_gpu *g, struct idle *idle);

/* For merging shares: adds exposed communication of a device, in the order of time. */
int finding_gpu_add_exposed(struct finding_gpu *g, struct idle *idle, uint32_t device,
                            const struct span *exposed);

/* Makes `count` devices, FOUND_DEVICES_MAX at most. */
int finding_gpu_devices(struct finding_gpu *g, uint32_t count);

/* For merging shares: is `what` a copy rather than a name? And the number of a name (NULL: no
 * name). */
bool finding_gpu_is_copy(uint64_t what);
int finding_gpu_name(struct finding_gpu *g, const char *raw, uint32_t *what);

/* The name for people of a sum's `what`; a view, or `text`. */
const char *finding_gpu_text(const struct finding_gpu *g, uint64_t what,
                             char text[static GPU_TITLE_BYTES]);

#endif
