/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a trace that are not threads: streams, synchronisations, projected ranges and throttling
 * of devices; overheads, free ranges, steps, crossing waits and Python's lock holders of processes.
 * Each kind has lanes, so that overlapping slices get rows of their own. Pids and tids are unique
 * in the trace and fit 32 bits; a stream's row has the stream's number if possible.
 */
#ifndef GPUPROF_COLLECTOR_GPU_ROWS_H
#define GPUPROF_COLLECTOR_GPU_ROWS_H

#include "base/key_map.h"
#include "read/recording.h"

/*
 * A row of a trace (a thread or stream) that keeps its slices from overlapping. Viewers swallow or
 * drop slices that neither nest nor stay 1 ns apart; of slices with equal begins, the first in the
 * file is the outer one. An inner slice ends at least 1 ns before the outer one: readers add begin
 * and duration as doubles, and the rounded sums could cross otherwise.
 */
#define ROW_DEPTH_MAX 64         /* open slices per row */
#define ROW_OPEN_END  UINT64_MAX /* for a slice whose end is unknown */

struct open_slice {
    uint64_t end_ns;
    uint64_t inner_ns; /* latest end for slices inside it */
    uint64_t since_ns; /* recorded begin, and ... */
    uint64_t begin_ns; /* ... shown begin, if the end is unknown */
};

/* A row's pid and tid, and the key "ts", as text. */
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

/* Fits a slice into its row: inside the open one, or at least 1 ns after it. */
void trace_row_fit(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns);

/* Returns true if it fits unchanged; else it crosses an open slice. */
bool trace_row_holds(const struct trace_row *row, uint64_t begin_ns, uint64_t end_ns);

/* Opens a slice whose end is not yet known; later slices begin after it. */
void trace_row_open(struct trace_row *row, uint64_t begin_ns);

/* Ends the open slice that began at *begin_ns: moves its times so that it contains its inner slices
 * and stays inside the outer one. Returns false if it must be shown elsewhere, since a slice that
 * began later is open, and drops it. */
bool trace_row_close(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns);

/* Drops the open slice that began then; it is not shown. */
void trace_row_forget(struct trace_row *row, uint64_t begin_ns);

/* ---- rows that are no threads ---- */

#define GPU_ROWS_MAX    65536
#define GPU_LANES_MAX   64
#define PID_ORDINALS    4096       /* a device's pid is its ordinal if that is free */
#define GPU_TID_VIRTUAL (1u << 30) /* real threads have smaller tids */

enum row_kind {
    ROW_STREAM,
    ROW_SYNC,
    ROW_ANNOTATION,
    ROW_THROTTLE,
    ROW_OVERHEAD,
    ROW_RANGE,
    ROW_STEP,
    ROW_HOST, /* `stream` is the thread's index + 1; 0: the process */
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
    uint32_t lane;   /* 0: first of its kind */
    uint64_t end_ns; /* of the last slice */
    uint32_t thread; /* for the user: the owner, if several share a row */
    bool named;      /* for the user, like `counted` */
    struct counted *counted;
};

/* Pids for the devices of one trace, or of several traces shown together. */
struct device_pids {
    struct process *const *processes; /* a view: of these traces */
    uint32_t process_count;
    struct key_map known;                 /* (process, device) -> pid + 1 */
    uint64_t ordinals[PID_ORDINALS / 64]; /* bits of ordinals in use as pids */
    uint32_t next;
};

void device_pids_init(struct device_pids *d, struct process *const *processes,
                      uint32_t process_count);
void device_pids_release(struct device_pids *d);

struct gpu_rows {
    struct gpu_row **rows; /* owned, with their elements */
    uint32_t count;
    uint32_t capacity;
    struct key_map places;    /* (process, kind and lane, device, stream) -> index + 1 */
    struct device_pids *pids; /* a view */
};

/* `pids` must outlive it. */
void gpu_rows_init(struct gpu_rows *g, struct device_pids *pids);
void gpu_rows_release(struct gpu_rows *g);

/* Sets the pid of a process's device. Returns 0 or GPUPROF_NO_MEMORY. */
int gpu_rows_pid(struct gpu_rows *g, const struct process *p, uint64_t device, uint32_t *pid);

/* Returns lane `lane` of the row of that kind, or the first lane free at `begin_ns`. Host kinds
 * have device and stream 0. NULL: no memory. */
#define FREE_LANE UINT32_MAX
struct gpu_row *gpu_rows_get(struct gpu_rows *g, struct process *p, enum row_kind kind,
                             uint64_t device, uint64_t stream, uint32_t lane, uint64_t begin_ns);

/* Fits the slice in and stores its end. */
void gpu_row_fit(struct gpu_row *row, uint64_t *begin_ns, uint64_t *end_ns);

#endif
