/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a trace that are no thread of a program: streams, synchronisations, ranges projected
 * on a device, what slowed it down, and beside a process's threads its overheads, free ranges and
 * steps. Each kind has lanes, so that slices which overlap get rows of their own. Pids and tids are
 * unique in the trace and fit into 32 bits; a stream's row has the stream's number, if it can.
 */
#ifndef GPUPROF_COLLECTOR_GPU_ROWS_H
#define GPUPROF_COLLECTOR_GPU_ROWS_H

#include "base/key_map.h"
#include "read/recording.h"
#include "trace/trace_row.h"

#define GPU_ROWS_MAX    65536
#define GPU_LANES_MAX   64
#define PID_ORDINALS    4096       /* a device's pid is its ordinal, if it is free */
#define GPU_TID_VIRTUAL (1u << 30) /* tids from here on are nobody's */

enum row_kind {
    ROW_STREAM,
    ROW_SYNC,
    ROW_ANNOTATION,
    ROW_THROTTLE,
    ROW_OVERHEAD,
    ROW_RANGE,
    ROW_STEP
};

struct gpu_row {
    struct trace_row row;
    struct process *process;
    uint64_t device;
    uint64_t stream;
    enum row_kind kind;
    uint32_t pid;
    uint32_t tid;
    uint32_t lane;      /* 0: the first of its kind */
    uint32_t next_lane; /* place of the next + 1, 0 = none */
    uint64_t end_ns;    /* of the last slice */
    uint32_t thread;    /* for its user: whose it is, of several in one place */
    bool named;         /* for its user, and so is `counted` */
    struct counted *counted;
};

/* The pids of devices, of one trace or of several that are shown as one. */
struct device_pids {
    struct process *const *processes; /* a view: of these traces */
    uint32_t process_count;
    struct key_map known;                 /* (process, device) -> pid + 1 */
    uint64_t ordinals[PID_ORDINALS / 64]; /* bits of those that are pids */
    uint32_t next;
};

void device_pids_init(struct device_pids *d, struct process *const *processes,
                      uint32_t process_count);
void device_pids_release(struct device_pids *d);

struct gpu_rows {
    struct gpu_row **rows; /* owned, and so are they */
    uint32_t count;
    uint32_t capacity;
    struct key_map places; /* (process and kind, device, stream) -> place + 1 */
    struct key last;       /* that was asked for, and its place; 0: none */
    uint64_t last_place;
    struct device_pids *pids; /* a view */
};

/* `pids` must stay. */
void gpu_rows_init(struct gpu_rows *g, struct device_pids *pids);
void gpu_rows_release(struct gpu_rows *g);

/* The pid that stands for a device of a process. 0 or GPUPROF_NO_MEMORY. */
int gpu_rows_pid(struct gpu_rows *g, const struct process *p, uint64_t device, uint32_t *pid);

/*
 * The row of that kind for a slice that begins at `begin_ns`: the first lane that is free then.
 * Kinds beside threads have device and stream 0. NULL: no memory.
 */
struct gpu_row *gpu_rows_get(struct gpu_rows *g, struct process *p, enum row_kind kind,
                             uint64_t device, uint64_t stream, uint64_t begin_ns);

/* The same, but the lane of that number. */
struct gpu_row *gpu_rows_lane(struct gpu_rows *g, struct process *p, enum row_kind kind,
                              uint64_t device, uint64_t stream, uint32_t lane);

/* Fits the slice in and remembers its end. */
void gpu_row_fit(struct gpu_row *row, uint64_t *begin_ns, uint64_t *end_ns);

#endif
