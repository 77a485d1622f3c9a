/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the Chrome trace writer share: chrome_writer.c calls and stacks, chrome_rows.c
 * names and rows, chrome_head.c what stands before and behind the events, chrome_gpu.c the device's
 * work and what slowed it down, chrome_nested.c ranges, PyTorch's operators and calls of libraries,
 * chrome_marks.c steps and marks, chrome_memory.c what is got and released, chrome_counters.c
 * counter tracks, chrome_host.c samples, calls that waited and what Python's interpreter did.
 *
 * The first error sticks in the writer; after it what is written does not matter.
 */
#ifndef GPUPROF_COLLECTOR_CHROME_H
#define GPUPROF_COLLECTOR_CHROME_H

#include "base/json_text.h"
#include "error.h"
#include "resolve/op_stack.h"
#include "resolve/projection.h"
#include "trace/counters.h"
#include "trace/gpu_rows.h"
#include "trace/trace_writer.h"

#define CHROME_EVENT_BYTES 2048 /* of an event without its name and texts */
#define FLOW_PROCESS_SHIFT 36   /* ids are exact in JavaScript: 16 bits of process, 36 of flow */

/* What a launch of a kernel is told to be, as text: launches of a program are alike. */
#define LAUNCH_CACHE_SLOTS 256
#define LAUNCH_TEXT_BYTES  640
#define LAUNCH_KEYS        8

struct launch_text {
    uint64_t keys[LAUNCH_KEYS]; /* grid, block, registers, shared twice, local, process, device */
    uint32_t length;            /* 0: free */
    char text[LAUNCH_TEXT_BYTES];
};

/* Whom counters of a process are of, in the order of their first values. */
enum process_counted { COUNTED_LAUNCHES, COUNTED_RESIDENT, COUNTED_LEFT_OUT, PROCESS_COUNTED };

/* Of a process: what it did in all, and its steps. */
struct process_span {
    uint64_t begin_ns; /* relative to the origin; UINT64_MAX: nothing yet */
    uint64_t end_ns;
    uint64_t step; /* number of the step that is open */
    uint64_t step_begin_ns;
    uint64_t steps; /* shown */
    bool stepping;
    struct counted *counted[PROCESS_COUNTED]; /* NULL: nothing yet */
};

/* Those that are shown, neighbours by their index, and a row for each thread (chrome_row). */
struct chrome_processes {
    struct process *const *list; /* a view */
    uint32_t count;
    uint32_t first_thread; /* index of the first of their threads */
    uint32_t thread_count;
    struct trace_row *rows;     /* owned */
    struct process_span *spans; /* owned; see chrome_span */
};

struct chrome_time {
    uint64_t origin_ns;
    uint64_t last_ns; /* UINT64_MAX: nothing is written yet */
    uint64_t from_ns; /* of a piece, where it begins and ... */
    uint64_t to_ns;   /* ... ends */
    bool is_of_piece; /* it is less than all the time */
};

struct chrome_totals {
    uint64_t calls;
    uint64_t gpu_events;
    uint64_t flows;
    uint64_t samples;                     /* of devices, that are counted */
    uint64_t sampled_ns;                  /* when the last of them was read */
    uint64_t left_out[LEFT_OUT_KINDS];    /* slices */
    uint64_t left_out_ns[LEFT_OUT_KINDS]; /* and how long they lasted */
};

/* Counter tracks (chrome_counters.c). */
struct chrome_counters {
    struct counters series;
    struct counted **list; /* owned, and so are they */
    uint32_t count;
    struct key_map places; /* (process, device) -> place + 1 */
};

/* Stack frames that are used, by node of the call tree. */
struct chrome_frames {
    uint32_t *numbers; /* owned, by node - 1; 0: not used */
    uint32_t *nodes;   /* owned, by number - 1 */
    uint32_t room;     /* of numbers */
    uint32_t count;
};

struct chrome_rows {
    struct gpu_rows all;
    struct device_pids own_pids; /* where no other trace is shown with it */
    struct key_map named;        /* (process, device), whose names are written */
    struct projections projections;
    struct op_pairs op_pairs;
    struct row_ids *forward_ids; /* owned, by slot of op_pairs: where one is shown; NULL: none */
    struct throttled *throttled; /* owned, by the place of its source (chrome_gpu.c) */
    uint32_t throttled_count;
};

struct trace_writer {
    struct output *out;
    struct walk *walk;
    struct trace_scope scope;
    int error;                          /* the first; 0: none */
    struct function_pieces **functions; /* owned, and so are they; by function index */
    uint32_t function_count;
    struct chrome_processes shown;
    struct chrome_time time;
    struct chrome_totals totals;
    struct launch_text launches[LAUNCH_CACHE_SLOTS];
    struct chrome_rows rows;
    struct chrome_counters counters;
    struct chrome_memory *memory; /* owned */
    struct chrome_frames frames;
    char *arguments; /* of the slice that is being written: where they begin */
};

/* Where something is shown: its row, and its times there, relative to the origin. */
struct shown {
    struct trace_row *row;
    uint64_t begin_ns;
    uint64_t end_ns;
};

static inline char *chrome_put(char *out, const char *text, size_t length)
{
    memcpy(out, text, length);
    return out + length;
}
#define PUT(out, literal)          chrome_put(out, literal, sizeof(literal) - 1)
#define PUT_FIELD(out, key, value) json_number(PUT(out, ",\"" key "\":"), value)

static inline bool chrome_ok(struct trace_writer *w, int error)
{
    w->error = w->error ? w->error : error;
    return !w->error;
}

/* The ids of a row: fewer instructions than copying as many bytes as there are. */
static inline char *chrome_put_ids(char *out, const struct row_ids *ids)
{
    memcpy(out, ids->text, sizeof ids->text);
    return out + ids->bytes;
}

/* A time of the timeline relative to the origin. Only a damaged file has one before it. */
static inline uint64_t chrome_time(const struct trace_writer *w, uint64_t ns)
{
    return ns > w->time.origin_ns ? ns - w->time.origin_ns : 0;
}

/* Of a process that is shown: the row of a thread, by its index. */
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

/* ---- chrome_writer.c ---- */

/* Remembers how far the trace and the process reach. */
void chrome_reach(struct trace_writer *w, const struct process *p, uint64_t begin_ns,
                  uint64_t end_ns);

/* The same of what is shown with its whole length where it reaches into a piece: only what of it is
 * in that counts. */
void chrome_reach_into(struct trace_writer *w, const struct process *p, const struct shown *at);

/* A slice, up to its arguments; `name` is JSON. Each member of these begins with a comma, the first
 * of which chrome_end_slice, or what it calls, replaces. */
char *chrome_begin_slice(struct trace_writer *w, char *out, const char *category, const char *name,
                         size_t name_bytes, const struct shown *at);

/* Likewise, of a moment: `where` is what stands up to its name, "t\",\"cat\":\"kind", of a thread.
 */
char *chrome_begin_instant(struct trace_writer *w, char *out, const char *where, const char *name,
                           size_t name_bytes, const struct row_ids *ids, uint64_t at_ns);

/* Its stack, if any (0: none), is its last argument. The second one leaves the event open. */
void chrome_end_slice(struct trace_writer *w, char *out, uint32_t stack);
char *chrome_end_arguments(const struct trace_writer *w, char *out, uint32_t stack);

/* Of a call what it returned, unless that is 0; such members. */
char *chrome_put_result(char *out, const struct function *f, int32_t result);

/* The label of a call's argument: HTA takes what has args.stream for GPU work. */
static inline const char *chrome_label(const char *label)
{
    return strcmp(label, "stream") == 0 ? "cuda_stream" : label;
}

#define STACK_TEXT_BYTES   4096 /* of a stack's text; what is deeper is left out */
#define CHROME_STACK_BYTES (STACK_TEXT_BYTES + 64)

/* The node of a process's stack in a range (NULL: in none), 0: it has none to show. It will be
 * among the stackFrames. */
uint32_t chrome_stack(struct trace_writer *w, const struct process *p, uint32_t stack,
                      const struct range *range);

/* Its member of args, innermost frame first: what is more than `bytes` is left out. At most 64
 * more. */
char *chrome_put_stack(const struct trace_writer *w, char *out, const char *key, uint32_t node,
                       size_t bytes);

/* ---- chrome_head.c ---- */

/* Everything up to the first event, and everything behind the last. */
void chrome_head(struct trace_writer *w);
void chrome_tail(struct trace_writer *w);

/* A metadata event: a name, or, where that is NULL, the place of a row or process. */
void chrome_put_metadata(struct trace_writer *w, const char *what, uint32_t pid, uint32_t tid,
                         const char *name, uint32_t sort_index);

/* ---- chrome_rows.c ---- */

/* Names a process and its threads, and gives them their rows. */
void chrome_name_process(struct trace_writer *w, const struct process *p);

/* Names what stands for a device, at the first use, and returns its pid. */
uint32_t chrome_name_device(struct trace_writer *w, struct process *p, uint64_t device);

/* The lane of that number, or the first that is free at at->begin_ns, of a row that is no thread.
 * Names it, for a thread if it is one's, and its device, at the first use. NULL: no memory. */
struct gpu_row *chrome_lane(struct trace_writer *w, struct process *p, enum row_kind kind,
                            uint64_t device, uint64_t stream, uint32_t lane, uint32_t thread,
                            const struct shown *at);

/* The same, and fits it in there. */
struct gpu_row *chrome_place(struct trace_writer *w, struct process *p, enum row_kind kind,
                             uint64_t device, uint64_t stream, uint32_t lane, struct shown *at);

/* An arrow from one slice to another. */
void chrome_put_arrow(struct trace_writer *w, const struct process *p, const char *category,
                      const struct row_ids *from, uint64_t from_ns, const struct shown *to);

/* ---- chrome_gpu.c ---- */

/* A KERNEL, COPY, SET, SYNC, GRAPH or OVERHEAD record. */
void chrome_gpu(struct trace_writer *w, const struct slice *s);

/* Is an arrow from calls of the function said by what stands at its ends? Else it is an event. */
static inline bool chrome_binds(const struct trace_writer *w, const struct function *f)
{
    return w->scope.binds_slices && w->scope.survey &&
           (f->class == API_LAUNCH || f->class == API_COPY || f->class == API_GRAPH_LAUNCH ||
            f->does == API_DOES_SYNC);
}

/* The members of a slice that say so: the call is the one of that id of the process. */
char *chrome_put_binding(char *out, uint32_t process, uint32_t call, bool is_call);

/* A DEVICE_CLOCKS record: what slowed the device down since the one before; and all that is open at
 * the end. */
void chrome_throttle(struct trace_writer *w, const struct slice *s);
void chrome_throttle_end(struct trace_writer *w);

/* ---- chrome_memory.c: each slice, before anything is written of it; then the end. 0 or an error
 * -- */

int chrome_memory_create(struct trace_writer *w);
int chrome_memory_take(struct trace_writer *w, const struct slice *s);
int chrome_memory_end(struct trace_writer *w);
void chrome_memory_free(struct chrome_memory *m);

/* ---- chrome_counters.c ---- */

/* Work that is shown in that row; what a device has now; a launch, which begins then; a RESIDENT
 * record; what the driver said of a device. */
void chrome_count_work(struct trace_writer *w, const struct slice *s, struct gpu_row *row);
struct place_totals;
void chrome_count_memory(struct trace_writer *w, const struct place_totals *now, uint64_t at_ns);
void chrome_count_launch(struct trace_writer *w, const struct event *e, uint64_t begin_ns);
void chrome_count_resident(struct trace_writer *w, const struct event *e);
void chrome_count_device(struct trace_writer *w, const struct slice *s);

/* What --max-size leaves out, `ns` long: it counts as if it were shown, and as left out. */
void chrome_count_left_out(struct trace_writer *w, const struct slice *s, enum left_out kind,
                           uint64_t ns);

/* All counters, behind the last event. */
void chrome_put_counters(struct trace_writer *w);
void chrome_counters_release(struct trace_writer *w);

/* ---- chrome_nested.c ---- */

/* What became of a range, an operator or a call of a library. A range that was left has no event.
 */
void chrome_range(struct trace_writer *w, const struct slice *s);
void chrome_op(struct trace_writer *w, const struct slice *s);
void chrome_library(struct trace_writer *w, const struct slice *s);

/* The attributes of a range or mark; each begins with a comma. */
#define STEP_NAME        "ProfilerStep#"
#define RANGE_TEXT_BYTES (6 * RECORD_BYTES_MAX + 2)
char *chrome_put_attributes(struct trace_writer *w, char *out, const struct range *range);

/* The External id of the operator that a piece of work belongs to; 0: there is none. */
uint32_t chrome_op_of(struct trace_writer *w, const struct slice *s);

/* A slice of a range on a stream. */
projection_fn chrome_projected;

/* ---- chrome_marks.c ---- */

/* Any record that is nothing of the others, and steps that are open at the end. */
void chrome_mark(struct trace_writer *w, const struct slice *s);
void chrome_steps_end(struct trace_writer *w);

/* ---- chrome_host.c ---- */

/* A SAMPLE, OS_CALL, GIL or GC record. */
void chrome_host(struct trace_writer *w, const struct slice *s);

#endif
