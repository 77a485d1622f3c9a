/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a trace that are no thread of a program: streams, synchronisations, ranges projected
 * on a device, what slowed it down, and beside a process's threads its overheads, free ranges,
 * steps, waits that would cross something else, and who holds Python's lock. Each kind has lanes,
 * so that slices which overlap get rows of their own. Pids and tids are unique in the trace and fit
 * into 32 bits; a stream's row has the stream's number, if it can.
 */
#ifndef GPUPROF_COLLECTOR_GPU_ROWS_H
#define GPUPROF_COLLECTOR_GPU_ROWS_H

#include "base/key_map.h"
#include "read/recording.h"

/*
 * One row of a trace, a thread or a stream: keeps its slices from overlapping. Viewers swallow or
 * drop slices of a row that neither nest nor stay 1 ns apart, and take the one that is first in the
 * file for the outer one where two begin at the same time. An inner slice ends at least 1 ns before
 * the outer one: readers add begin and duration as doubles, whose sums, rounded, would else cross.
 */
#define ROW_DEPTH_MAX 64         /* slices open at a time in a row */
#define ROW_OPEN_END  UINT64_MAX /* of a slice whose end is not known yet */

struct open_slice {
    uint64_t end_ns;
    uint64_t inner_ns; /* what is inside of it ends by then */
};

/* A row's pid and tid, and the name of ts, as text. */
struct row_ids {
    char text[48];
    uint32_t bytes;
};

struct trace_row {
    struct row_ids ids;
    uint32_t depth;
    uint64_t begin_ns; /* of the last slice */
    struct open_slice open[ROW_DEPTH_MAX];
};

struct row_ids row_ids_of(uint32_t pid, uint32_t tid);

/* Fits a slice into its row: inside the one that is open, or at least 1 ns behind it. */
void trace_row_fit(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns);

/* Would it fit as it is? Else it crosses a slice that is open. */
bool trace_row_holds(const struct trace_row *row, uint64_t begin_ns, uint64_t end_ns);

/*
 * The same for one whose end will be known later; what comes next begins later than it. Returns its
 * begin.
 */
uint64_t trace_row_open(struct trace_row *row, uint64_t begin_ns);

/*
 * Ends the innermost open slice: *end_ns is moved so that the slice holds what came into it and
 * stays in what is around it. False if none is open.
 */
bool trace_row_close(struct trace_row *row, uint64_t *end_ns);

/* Forgets an open slice that is not the innermost: it will be shown elsewhere. */
void trace_row_forget(struct trace_row *row);

/* ---- rows that are no threads ---- */

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
    ROW_STEP,
    ROW_HOST, /* of a thread: `stream` is its index + 1; 0: of the process */
    ROW_GIL
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
 * The lane of that number of the row of that kind, or the first that is free at `begin_ns`. Kinds
 * beside threads have device and stream 0. NULL: no memory.
 */
#define FREE_LANE UINT32_MAX
struct gpu_row *gpu_rows_get(struct gpu_rows *g, struct process *p, enum row_kind kind,
                             uint64_t device, uint64_t stream, uint32_t lane, uint64_t begin_ns);

/* Fits the slice in and remembers its end. */
void gpu_row_fit(struct gpu_row *row, uint64_t *begin_ns, uint64_t *end_ns);

#endif
