/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State that the files of the Chrome trace writer share: chrome_writer.c (calls, stacks,
 * allocations), chrome_rows.c (names and rows), chrome_head.c (the text around the events),
 * chrome_gpu.c (device activities and throttling), chrome_nested.c (ranges, PyTorch operators,
 * library calls), chrome_host.c (steps, marks, samples, waits, the Python interpreter),
 * chrome_counters.c (counter tracks).
 */
#ifndef GPUPROF_COLLECTOR_CHROME_H
#define GPUPROF_COLLECTOR_CHROME_H

#include "base/json_text.h"
#include "memory/ledger.h"
#include "resolve/op_names.h"
#include "resolve/projection.h"
#include "trace/trace_writer.h"

#define CHROME_EVENT_BYTES 2048 /* of an event without its name and other texts */
#define FLOW_PROCESS_SHIFT 36   /* JavaScript's exact ids: 16 bits of process, 36 of flow */

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

/*
 * Rows that are not threads: streams, synchronisations, projected ranges and throttling of devices;
 * overheads, free ranges, steps, crossing waits and Python's lock holders of processes. Each kind
 * has lanes, so that overlapping slices get rows of their own. Pids and tids are unique in the
 * trace and fit 32 bits; a stream's row has the stream's number if possible.
 */
#define GPU_ROWS_MAX    65536
#define GPU_LANES_MAX   64
#define GPU_TID_VIRTUAL (1u << 30) /* real threads have smaller tids */

enum row_kind {
    ROW_STREAM,
    ROW_SYNC,
    ROW_ANNOTATION,
    ROW_THROTTLE,
    ROW_RANGE, /* from here on of the host */
    ROW_STEP,
    ROW_GIL,
    ROW_OVERHEAD,
    ROW_HOST /* `stream` is the thread's index + 1; 0: the process */
};

/* A process, or one of its devices, which viewers show as a process. */
struct trace_place {
    struct process *process;
    uint64_t device; /* PROCESS_ITSELF: the process */
    uint32_t pid;
    struct counted *counted; /* owned; NULL: nothing yet */
};

#define PROCESS_ITSELF UINT64_MAX

struct gpu_row {
    struct trace_row row;
    struct trace_place *place;
    uint64_t stream;
    enum row_kind kind;
    uint32_t tid;
    uint32_t lane;   /* 0: first of its kind */
    uint64_t end_ns; /* of the last slice */
};

#define FREE_LANE UINT32_MAX

/* The extent of a process in the trace. */
struct process_span {
    uint64_t begin_ns; /* relative to the origin; UINT64_MAX: no events yet */
    uint64_t end_ns;
    uint64_t steps; /* steps shown */
};

/* The processes shown, neighbours by index, with a row for each thread (chrome_row). */
struct chrome_processes {
    struct process *const *list; /* a view */
    uint32_t count;
    uint32_t first_thread; /* index of their first thread */
    uint32_t thread_count;
    struct trace_row *rows;     /* owned */
    struct process_span *spans; /* owned; see chrome_reach */
};

struct chrome_time {
    uint64_t origin_ns;
    uint64_t last_ns; /* UINT64_MAX: nothing is written yet */
    uint64_t from_ns; /* of a selection; else 0 ... */
    uint64_t to_ns;   /* ... and UINT64_MAX */
};

struct chrome_totals {
    uint64_t calls;
    uint64_t gpu_events;
    uint64_t flows;
    uint64_t samples;                     /* device readings in counters */
    uint64_t left_out[LEFT_OUT_KINDS];    /* slices left out */
    uint64_t left_out_ns[LEFT_OUT_KINDS]; /* and their total duration */
};

struct chrome_counters {
    struct series **series; /* owned, with their elements */
    uint32_t count;
    unsigned shift;   /* a bucket has 1 << shift ns */
    uint64_t from_ns; /* begin of the first bucket */
};

struct chrome_memory {
    struct ledger ledger;
    struct consumer books;     /* the ledger's */
    const struct slice *slice; /* the current slice; NULL: none */
};

/* Stack frames in use, by node of the call tree. */
struct chrome_frames {
    uint32_t *numbers; /* owned, by node - 1; 0: unused */
    uint32_t *nodes;   /* owned, by number - 1 */
    uint32_t room;     /* capacity of numbers */
    uint32_t count;
};

struct chrome_rows {
    struct gpu_row **list; /* owned, with their elements */
    uint32_t count;
    struct key_map numbers;      /* (place, kind and lane, stream) -> index + 1 */
    struct trace_place **places; /* owned, with their elements */
    uint32_t place_count;
    struct key_map place_numbers;      /* (process, device) -> index + 1 */
    uint32_t owners[DEVICES_NUMBERED]; /* see struct trace_scope */
    struct projections projections;
    struct op_pairs op_pairs;
    struct row_ids *forward_ids; /* owned, by slot of op_pairs: the row of its operator; NULL:
                                  * none */
    struct throttled *throttled; /* owned, by index of its source (chrome_gpu.c) */
    uint32_t throttled_count;
};

struct trace_writer {
    struct output *out;
    struct walk *walk;
    struct trace_scope scope;
    struct chrome_processes shown;
    struct chrome_time time;
    struct chrome_totals totals;
    struct chrome_rows rows;
    struct chrome_counters counters;
    struct chrome_memory memory;
    struct chrome_frames frames;
    char *arguments; /* where the arguments of the current slice begin */
};

/* Where a slice is shown: its row, and its times there, relative to the origin. */
struct shown {
    struct trace_row *row;
    uint64_t begin_ns;
    uint64_t end_ns;
};

#define PUT(out, literal)          ((char *)mempcpy(out, literal, sizeof(literal) - 1))
#define PUT_FIELD(out, key, value) json_number(PUT(out, ",\"" key "\":"), value)
#define PUT_SOME(out, key, value)  ((value) ? PUT_FIELD(out, key, value) : (out))

/* Writes the ids of a row, with fewer instructions than an exact copy. */
static inline char *chrome_put_ids(char *out, const struct row_ids *ids)
{
    memcpy(out, ids->text, sizeof ids->text);
    return out + ids->bytes;
}

/* Returns a time relative to the origin. Only a damaged file has times before the origin. */
static inline uint64_t chrome_time(const struct trace_writer *w, uint64_t ns)
{
    return ns > w->time.origin_ns ? ns - w->time.origin_ns : 0;
}

/* Returns the row of a thread of a shown process, by the thread's index. */
static inline struct trace_row *chrome_row(const struct trace_writer *w, uint32_t thread_index)
{
    return &w->shown.rows[thread_index - w->shown.first_thread];
}

static inline bool chrome_has_row(const struct trace_writer *w, uint32_t thread_index)
{
    return thread_index - w->shown.first_thread < w->shown.thread_count;
}

static inline struct process_span *chrome_span(const struct trace_writer *w,
                                               const struct process *p)
{
    return &w->shown.spans[p->index - w->shown.list[0]->index];
}

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

/* ---- chrome_writer.c ---- */

/* Extends the time of the trace and the process. The second one is for a slice shown at full
 * length: only its part inside the selection counts. */
void chrome_reach(struct trace_writer *w, const struct process *p, uint64_t begin_ns,
                  uint64_t end_ns);
void chrome_reach_into(struct trace_writer *w, const struct process *p, const struct shown *at);

/* Begins a slice, up to its arguments, named `name`, or `text` if that is NULL. Every member begins
 * with a comma; chrome_end_slice, or what it calls, replaces the first one. The members have room
 * for CHROME_EVENT_BYTES and `bytes` more. */
char *chrome_begin_slice(struct trace_writer *w, const char *category,
                         const struct kernel_name *name, const char *text, const struct shown *at,
                         size_t bytes);

/* Begins an instant likewise; `where` is the text up to its name, for a thread
 * "t\",\"cat\":\"kind". */
char *chrome_begin_instant(struct trace_writer *w, const char *where,
                           const struct kernel_name *name, const char *text,
                           const struct row_ids *ids, uint64_t at_ns, size_t bytes);

/* Ends a slice with its stack (0: none) as last argument. The second one leaves the event open. */
void chrome_end_slice(struct trace_writer *w, char *out, uint32_t stack);
char *chrome_end_arguments(const struct trace_writer *w, char *out, uint32_t stack);

/* Writes the key of a call's argument. HTA takes every event with args.stream for GPU work, so that
 * label changes. */
char *chrome_put_key(char *out, const char *label);

/* Writes the result of a call, unless it is 0, as a member. */
char *chrome_put_result(char *out, const struct function *f, int32_t result);

#define STACK_TEXT_BYTES   4096 /* per stack text; deeper frames are left out */
#define CHROME_STACK_BYTES (STACK_TEXT_BYTES + 64)

/* Returns the node of a process's stack inside a range (NULL: none) and adds it to stackFrames; 0:
 * nothing to show. */
uint32_t chrome_stack(struct trace_writer *w, const struct process *p, uint32_t stack,
                      const struct host_span *range);

/* Writes the stack as a member of args, innermost frame first, cut to `bytes`. Adds at most 64
 * bytes to that. */
char *chrome_put_stack(const struct trace_writer *w, char *out, const char *key, uint32_t node,
                       size_t bytes);

/* ---- chrome_head.c ---- */

void chrome_head(struct trace_writer *w);
void chrome_tail(struct trace_writer *w);

/* Writes a metadata event: a name, or, if that is NULL, the sort index of a row or process. */
void chrome_put_metadata(struct trace_writer *w, const char *what, uint32_t pid, uint32_t tid,
                         const char *name, uint32_t sort_index);

/* ---- chrome_rows.c ---- */

void chrome_rows_release(struct trace_writer *w);

/* Writes the names of a process and its threads, whose rows it creates. */
void chrome_name_process(struct trace_writer *w, const struct process *p);

/* Returns the place of a process (PROCESS_ITSELF) or device, whose name it writes at first use. */
struct trace_place *chrome_place_of(struct trace_writer *w, struct process *p, uint64_t device);

/* Returns lane `lane` of a row that is not a thread, or the first lane free at at->begin_ns. Writes
 * its name (for a thread's lane, the thread's) and its device's at first use. Kinds of the host
 * have device 0 and, but for ROW_HOST, stream 0. */
struct gpu_row *chrome_lane(struct trace_writer *w, struct process *p, enum row_kind kind,
                            uint64_t device, uint64_t stream, uint32_t lane, uint32_t thread,
                            const struct shown *at);

/* The same, and fits the slice into the row. */
struct gpu_row *chrome_place(struct trace_writer *w, struct process *p, enum row_kind kind,
                             uint64_t device, uint64_t stream, uint32_t lane, uint32_t thread,
                             struct shown *at);

void chrome_put_arrow(struct trace_writer *w, const struct process *p, const char *category,
                      const struct row_ids *from, uint64_t from_ns, const struct shown *to);

/* ---- chrome_gpu.c ---- */

void chrome_gpu(struct trace_writer *w, const struct slice *s);

/* Returns true if the slices at both ends encode the arrow from calls of the function; else the
 * arrow is an event. */
static inline bool chrome_binds(const struct trace_writer *w, const struct function *f)
{
    return w->scope.for_perfetto && w->scope.survey &&
           (f->class == API_LAUNCH || f->class == API_COPY || f->class == API_GRAPH_LAUNCH ||
            f->does == API_DOES_SYNC);
}

/* Writes the members of a slice that encode its arrow, from the process's call of that id, before
 * its arguments. */
char *chrome_put_binding(struct trace_writer *w, char *out, uint32_t process, uint32_t call,
                         bool is_call);

/* Writes the throttling since the last DEVICE_CLOCKS record; the second one writes open slices at
 * the end. */
void chrome_throttle(struct trace_writer *w, const struct slice *s);
void chrome_throttle_end(struct trace_writer *w);

/* ---- chrome_counters.c ---- */

/* Add to counters: device work; a device's memory; a launch at its begin; a RESIDENT
 * record; a device reading. */
void chrome_count_work(struct trace_writer *w, const struct slice *s);
void chrome_count_memory(struct trace_writer *w, const struct place_totals *now, uint64_t at_ns);
void chrome_count_launch(struct trace_writer *w, const struct event *e, uint64_t begin_ns);
void chrome_count_resident(struct trace_writer *w, const struct event *e);
void chrome_count_device(struct trace_writer *w, const struct slice *s);

void chrome_put_counters(struct trace_writer *w);
void chrome_counters_release(struct trace_writer *w);

/* ---- chrome_nested.c ---- */

/* Writes a range, operator or library call that ends; takes one that opens. */
void chrome_nested(struct trace_writer *w, const struct slice *s);

/* Writes the attributes of a range or mark as members, each with a comma before it. */
#define STEP_NAME        "ProfilerStep#"
#define RANGE_TEXT_BYTES (6 * RECORD_BYTES_MAX + 2)
char *chrome_put_attributes(struct trace_writer *w, char *out, const struct host_span *range);

projection_fn chrome_projected;

/* ---- chrome_host.c ---- */

/* Write a SAMPLE, OS_CALL, GIL or GC record; any other record; and at the end the open steps. */
void chrome_host(struct trace_writer *w, const struct slice *s);
void chrome_mark(struct trace_writer *w, const struct slice *s);
void chrome_steps_end(struct trace_writer *w);

#endif
