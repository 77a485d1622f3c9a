/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the Chrome trace writer share (chrome.c): chrome_writer.c the calls,
 * chrome_head.c what stands before and behind the events, chrome_gpu.c the device's work,
 * chrome_ranges.c ranges, marks and steps, chrome_ops.c PyTorch's operators, chrome_libraries.c
 * calls of libraries, chrome_stacks.c stacks, chrome_memory.c what is got and released,
 * chrome_counters.c counter tracks, chrome_throttle.c what slowed a device down, chrome_host.c
 * samples, calls that waited and what Python's interpreter did.
 */
#ifndef GPUPROF_COLLECTOR_CHROME_H
#define GPUPROF_COLLECTOR_CHROME_H

#include "base/json_text.h"
#include "model/op_stack.h"
#include "model/projection.h"
#include "trace/counters.h"
#include "trace/gpu_rows.h"
#include "trace/trace_writer.h"

#define CHROME_EVENT_BYTES 2048 /* of an event without its name and texts */
#define FLOW_PROCESS_SHIFT 36   /* ids are exact in JavaScript: 16 bits of process, 36 of flow */

/* Texts of values of arguments: grids, blocks and streams are few and come millions of times. */
#define VALUE_SLOTS    256
#define VALUE_TEXT_MAX 32 /* of these, and room for json_copy */

struct value_slot {
    uint64_t value;
    uint8_t kind;
    uint8_t length; /* 0: free */
    char text[VALUE_TEXT_MAX];
};

/* Of a process: what it did in all, and its steps. */
struct process_span {
    uint64_t begin_ns; /* relative to the origin; UINT64_MAX: nothing yet */
    uint64_t end_ns;
    uint64_t step; /* number of the step that is open */
    uint64_t step_begin_ns;
    uint64_t steps; /* shown */
    bool stepping;
    struct counted *launches; /* NULL: none yet, and so the next two */
    struct counted *resident;
    struct counted *left_out; /* calls and ranges */
};

/* What a launch of a kernel is told to be, as text: launches of a program are alike. */
#define LAUNCH_CACHE_SLOTS 256
#define LAUNCH_TEXT_BYTES  640
#define LAUNCH_KEYS        8

struct launch_text {
    uint64_t keys[LAUNCH_KEYS]; /* grid, block, registers, shared twice, local, process, device */
    uint32_t length;            /* 0: free */
    char text[LAUNCH_TEXT_BYTES];
};

/* Where a forward operator is shown, by its slot of struct op_pairs. */
struct forward_ids {
    uint32_t bytes;
    char text[48]; /* struct trace_row */
};

struct chrome_memory;

struct trace_writer {
    struct output *out;
    struct walk *walk;
    struct recording *rec;
    struct trace_scope scope;
    struct function_pieces **functions; /* owned, by function index */
    uint32_t function_count;
    struct process *const *processes; /* a view: those that are shown, neighbours by their index */
    uint32_t process_count;
    uint32_t first_thread; /* index of the first of their threads */
    uint32_t thread_count;
    struct trace_row *rows;     /* owned; see chrome_row */
    struct process_span *spans; /* owned, as `processes`; see chrome_span */
    uint64_t origin_ns;
    uint64_t last_ns;
    uint64_t from_ns; /* of a piece, where it begins and ... */
    uint64_t to_ns;   /* ... ends */
    bool is_of_time;  /* it is less than all the time */
    uint64_t calls;
    struct value_slot values[VALUE_SLOTS];
    struct launch_text launches[LAUNCH_CACHE_SLOTS];
    struct gpu_rows gpu_rows;
    struct device_pids own_pids;  /* where no other trace is shown with it */
    struct key_map named_devices; /* (process, device), whose names are written */
    struct projections projections;
    struct op_pairs op_pairs;
    struct forward_ids *forward_ids; /* owned, OP_PAIRS_MAX; NULL: there was none yet */
    uint64_t flows;
    struct counters counters;
    struct counted **counted; /* owned, and so are they (chrome_counters.c) */
    uint32_t counted_count;
    struct key_map counted_places; /* (process, device) -> place + 1 */
    struct chrome_memory *memory;  /* owned */
    struct throttled *throttled;   /* owned, by the place of its source (chrome_throttle.c) */
    uint32_t throttled_count;
    uint64_t gpu_events;
    char *arguments;                      /* of the slice that is being written: where they begin */
    uint64_t samples;                     /* of devices, that are counted */
    uint64_t sampled_ns;                  /* when the last of them was read */
    uint64_t left_out[LEFT_OUT_KINDS];    /* slices */
    uint64_t left_out_ns[LEFT_OUT_KINDS]; /* and how long they lasted */
    uint32_t *frame_numbers;              /* owned, by node of the call tree - 1; 0: not used */
    uint32_t *frame_nodes;                /* owned, by number - 1 */
    uint32_t frame_room;                  /* of numbers */
    uint32_t frame_count;
};

static inline char *chrome_put(char *out, const char *text, size_t length)
{
    memcpy(out, text, length);
    return out + length;
}
#define PUT(out, literal)          chrome_put(out, literal, sizeof(literal) - 1)
#define PUT_FIELD(out, key, value) json_number(PUT(out, ",\"" key "\":"), value)

/* The ids of a row: fewer instructions than copying as many bytes as there are. */
static inline char *chrome_put_ids(char *out, const struct trace_row *row)
{
    memcpy(out, row->ids, sizeof row->ids);
    return out + row->ids_bytes;
}

/* A time of the timeline relative to the origin. Only a damaged file has one before it. */
static inline uint64_t chrome_time(const struct trace_writer *w, uint64_t ns)
{
    return ns > w->origin_ns ? ns - w->origin_ns : 0;
}

/* The row of a thread, by its index, of a process that is shown. */
static inline struct trace_row *chrome_row(const struct trace_writer *w, uint32_t thread_index)
{
    return &w->rows[thread_index - w->first_thread];
}

static inline struct process_span *chrome_span(const struct trace_writer *w,
                                               const struct process *p)
{
    return &w->spans[p->index - w->processes[0]->index];
}

/* Another id of an arrow, the same for both its ends. */
static inline uint64_t chrome_flow_id(struct trace_writer *w, const struct process *p)
{
    return (uint64_t)p->index << FLOW_PROCESS_SHIFT |
           (++w->flows & ((1ull << FLOW_PROCESS_SHIFT) - 1));
}

/* ---- chrome.c ---- */

/* As argument_json, of a kind whose texts are short: a handle or a dim3. */
char *chrome_put_value(struct trace_writer *w, char *out, unsigned kind, uint64_t value);

/* Remembers how far the trace and the process reach */
void chrome_reach(struct trace_writer *w, const struct process *p, uint64_t begin_ns,
                  uint64_t end_ns);

/* The same of what is shown with its whole length where it reaches into a piece: only what of it is
 * in that counts. */
void chrome_reach_into(struct trace_writer *w, const struct process *p, uint64_t begin_ns,
                       uint64_t end_ns);

/* A slice, up to its arguments; `name` is JSON. Each member of these begins with a comma, the first
 * of which chrome_end_slice, or what it calls, replaces. */
char *chrome_begin_slice(struct trace_writer *w, char *out, const char *category, const char *name,
                         size_t name_bytes, const struct trace_row *row, uint64_t begin_ns,
                         uint64_t end_ns);

/* Its stack, if any (0: none), is its last argument. The second one leaves the event open. */
void chrome_end_slice(struct trace_writer *w, char *out, uint32_t stack);
char *chrome_end_arguments(const struct trace_writer *w, char *out, uint32_t stack);

/* Of a call what it returned, unless that is 0; such members. */
char *chrome_put_result(char *out, const struct function *f, int32_t result);

/* Opens a slice of a thread that ends later; by how much its begin moved. */
uint32_t chrome_open_nested(struct trace_writer *w, const struct thread *thread, uint64_t begin_ns);

/* ---- chrome_head.c ---- */

/* Everything up to the first event, and everything behind the last. 0 or an error. */
int chrome_head(struct trace_writer *w);
int chrome_tail(struct trace_writer *w);

/* Names what stands for a device, at the first use, and says its pid. 0 or GPUPROF_NO_MEMORY. */
int chrome_name_device(struct trace_writer *w, struct process *p, uint64_t device, uint32_t *pid);

/* Names a row that is no thread, and its device, at the first use. 0 or GPUPROF_NO_MEMORY. */
int chrome_name_row(struct trace_writer *w, struct gpu_row *row);
int chrome_name_thread(struct trace_writer *w, const struct process *p, uint32_t tid,
                       const char *name);

/* ---- chrome_gpu.c ---- */

/* A KERNEL, COPY, SET, SYNC, GRAPH or OVERHEAD record. 0 or an error. */
int chrome_gpu(struct trace_writer *w, const struct slice *s);

/* Is an arrow from calls of the function said by what stands at its ends? Else it is an event. */
static inline bool chrome_binds(const struct trace_writer *w, const struct function *f)
{
    return w->scope.binds_slices && w->scope.survey &&
           (f->class == API_LAUNCH || f->class == API_COPY || f->class == API_GRAPH_LAUNCH ||
            f->does == API_DOES_SYNC);
}

/* The members of a slice that say so: the call is the one of that id of the process. */
char *chrome_put_binding(char *out, uint32_t process, uint32_t call, bool is_call);

/* ---- chrome_memory.c ---- */

/* Each slice, before anything is written of it; then the end. 0 or an error. */
int chrome_memory_create(struct trace_writer *w);
int chrome_memory_take(struct trace_writer *w, const struct slice *s);
int chrome_memory_end(struct trace_writer *w);
void chrome_memory_free(struct chrome_memory *m);

/* ---- chrome_counters.c ---- */

/* Work that is shown in that row; what a device has now; a launch,
 * which begins then. 0 or GPUPROF_NO_MEMORY. */
int chrome_count_work(struct trace_writer *w, const struct slice *s, struct gpu_row *row);
struct place_totals;
int chrome_count_memory(struct trace_writer *w, const struct place_totals *now, uint64_t at_ns);
int chrome_count_launch(struct trace_writer *w, const struct event *e, uint64_t begin_ns);

/* What --max-size leaves out, `ns` long: it counts as if it were shown, and as left out. 0 or
 * GPUPROF_NO_MEMORY. */
int chrome_count_left_out(struct trace_writer *w, const struct slice *s, enum left_out kind,
                          uint64_t ns);

/* A RESIDENT record. 0 or GPUPROF_NO_MEMORY. */
int chrome_count_resident(struct trace_writer *w, const struct event *e);

/* What the driver said of a device. Likewise. */
int chrome_count_device(struct trace_writer *w, const struct slice *s);

/* ---- chrome_throttle.c ---- */

/* A DEVICE_CLOCKS record: what slowed the device down since the one before. 0 or an error. */
int chrome_throttle(struct trace_writer *w, const struct slice *s);

/* The slices that are open. Likewise. */
int chrome_throttle_end(struct trace_writer *w);

/* All counters, behind the last event. */
void chrome_put_counters(struct trace_writer *w);
void chrome_counters_release(struct trace_writer *w);

/* ---- chrome_ops.c ---- */

/* What became of an operator. 0 or an error. */
int chrome_op(struct trace_writer *w, const struct slice *s);

/* The External id of the operator that a piece of work belongs to; 0: there is none. 0 or an error.
 */
int chrome_op_of(struct trace_writer *w, const struct slice *s, uint32_t *external_id);

/* ---- chrome_libraries.c ---- */

/* What became of a call of a library. 0 or an error. */
int chrome_library(struct trace_writer *w, const struct slice *s);

/* The call that a piece of work was launched in, "cublasGemmEx 4096x4096x4096 bf16"; NULL in *text:
 * in none. 0 or an error. */
int chrome_launched_by(struct trace_writer *w, const struct slice *s,
                       const struct kernel_name **text);

/* ---- chrome_stacks.c ---- */

#define CHROME_STACK_BYTES (STACK_TEXT_BYTES + 64)
#define STACK_TEXT_BYTES   4096 /* of a stack's text; what is deeper is left out */

/*
 * The node of a process's stack in a range (NULL: in none), 0: it has none to show. It will be
 * among the stackFrames. 0 or GPUPROF_NO_MEMORY.
 */
int chrome_stack(struct trace_writer *w, const struct process *p, uint32_t stack,
                 const struct range *range, uint32_t *node);

/* Its member of args, innermost frame first: what is more than `bytes` is left out. At most 64
 * more.
 */
char *chrome_put_stack(const struct trace_writer *w, char *out, const char *key, uint32_t node,
                       size_t bytes);

/* The member stackFrames of the trace, if any event has a stack. */
void chrome_stack_frames(struct trace_writer *w);

/* ---- chrome_host.c ---- */

/* A SAMPLE, OS_CALL, GIL or GC record. 0 or an error. */
int chrome_host(struct trace_writer *w, const struct slice *s);

/* ---- chrome_ranges.c ---- */

/* Any record that is no call and no work of a device, and ranges that are left. 0 or an error. */
int chrome_range(struct trace_writer *w, const struct slice *s);

/*
 * The row of something that was nested on its thread, whose row is `row` (NULL: it was not nested),
 * and its times as they are shown: on that row if it closes there, or else on one beside it.
 * `moved_ns`: how far its begin had to move when it opened. NULL: no memory.
 */
struct trace_row *chrome_close_nested(struct trace_writer *w, struct process *p,
                                      struct trace_row *row, bool was_innermost, uint64_t moved_ns,
                                      uint64_t *begin_ns, uint64_t *end_ns);

/* A projection_fn whose context is the writer. */
projection_fn chrome_projected;

/* Closes what is open: projections, steps. */
int chrome_ranges_end(struct trace_writer *w);

#endif
