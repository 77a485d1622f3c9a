/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows spans of threads, event by event, in the order of the timeline: NVTX ranges, PyTorch's
 * operators and labels, and calls of libraries that make CUDA calls (cuBLAS, cuDNN, NCCL). The open
 * ones of a thread are on one stack. They usually nest but may cross: a span is removed wherever it
 * is in the stack, and what ends lies inside those still open.
 *
 * How a span ends: a push at the next pop of its domain; a free range (start, end) and an operator
 * at the end with its number or object, on any thread. Only a library's outermost call is recorded,
 * so a thread has one open call per library; if another begins, the earlier one was left (longjmp,
 * a cancelled thread), as are calls inside a call that ends. A call that was left counts up to the
 * last CUDA call in it. An operator whose object begins another one has lost its end.
 *
 * At most SPANS_DEPTH_MAX ranges and operators are followed on a thread, and in all as many free
 * ranges and operators as the size of the files allows (some 350 bytes each). Further ones are
 * counted in the process's losses, like ends without a begin. Operators of PyTorch's emit_nvtx are
 * ranges in the file, and operators here, unless gpuprof recorded PyTorch's operators itself: then
 * they are ranges.
 */
#ifndef GPUPROF_COLLECTOR_SPANS_H
#define GPUPROF_COLLECTOR_SPANS_H

#include "base/key_map.h"
#include "read/recording.h"
#include "record/op_record.h"
#include "resolve/library_calls.h"
#include "resolve/timeline.h"
#include "symbol/kernel_names.h"

#define SPANS_DEPTH_MAX  512
#define SPANS_OPEN_FREE  (1u << 14) /* open free ranges and operators in all threads together; */
#define SPANS_OPEN_BYTES 32         /* one more for each so many bytes of files */
#define RANGE_DATA_WORDS 4

enum span_type { SPAN_RANGE, SPAN_OP, SPAN_LIBRARY, SPAN_TYPES };

struct host_span {
    const struct kernel_name *text; /* NULL: none, not known, or a library's call */
    uint64_t begin_ns;
    uint64_t
        end_ns; /* of one that has ended; of an open library call, end of the last call in it */
    uint64_t domain; /* of a range */
    uint64_t object; /* of an operator; of a free range, its number */
    struct process *process;
    struct thread *thread; /* on which it began */
    uint32_t number;       /* in its process: the same in every pass; 0: a library's call */
    uint32_t node;         /* number in the survey; 0: no call was made in it */
    uint32_t stack;        /* number of a STACK record; 0: none; outermost operators have one */
    uint32_t row;          /* for its user */
    uint32_t mark;         /* for steps.h */
    uint32_t entry;        /* index entry of the record that began it */
    uint8_t type;          /* enum span_type */
    bool nested;           /* push and pop */
    bool used;             /* for its user */
    bool is_kept;          /* for crossings.h */
    union {
        struct {                                   /* a range or mark */
            const struct kernel_name *domain_text; /* NULL: the default domain */
            uint64_t category;
            uint64_t color;
            uint64_t payload_type;
            uint64_t payload;
            uint64_t schema;     /* schema of a payload of NVTX's extension; 0: none */
            uint64_t data_bytes; /* bytes of that payload; `data` has the first */
            uint64_t data[RANGE_DATA_WORDS];
            bool is_duplicate; /* duplicates the library call around it; not reported */
        };
        struct {               /* an operator or label */
            uint64_t name;     /* number of an OP_NAME record; 0: the event has the name itself */
            uint64_t inputs;   /* number of an OP_INPUTS record; 0: none */
            uint64_t sequence; /* autograd sequence number + 1; 0: none */
            uint64_t forward_thread;
            uint64_t inner_ns; /* time covered by ended operators directly inside it */
            uint64_t inner_end_ns;
            uint32_t inside;    /* number of operators that began directly in it */
            uint32_t duplicate; /* the last of them with the same name as this */
            uint16_t scope;     /* enum op_scope */
            uint8_t region;     /* for op_phases.h */
            bool is_traced;     /* traced by torch.compile: it does no work */
            bool is_moved;      /* ended on another thread */
            bool is_nvtx;       /* from emit_nvtx: no inputs, no forward thread */
        };
        struct { /* a library's call */
            const struct function *function;
            uint64_t stream;  /* of a message */
            uint64_t seen_ns; /* end of the last CUDA call in one that was left open */
            uint32_t kind;    /* number of its kind */
            int32_t result;   /* of an ended call */
            uint8_t arg_count;
            bool has_work; /* something was launched or copied in it */
            struct library_message message;
            uint64_t args[RECORD_ARGS_MAX]; /* those known on return, too, once it has ended */
        };
    };
};

struct span_stack {
    struct host_span *open; /* owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t beyond; /* pushes beyond SPANS_DEPTH_MAX, not yet popped */
    uint32_t counts[SPAN_TYPES];
    uint8_t seen; /* for crossings.h */
    struct library_group group;
};

struct spans {
    struct kernel_names *texts; /* views, like the losses, which are by process index */
    struct losses *losses;
    struct library_kinds *kinds;
    struct span_stack *stacks; /* owned; see span_stack */
    uint32_t first_thread;     /* index of the thread with the first stack ... */
    uint32_t thread_count;     /* ... and number of stacks */
    uint32_t *numbers;         /* owned, by process index */
    struct key_map labels;     /* (process and kind, domain, handle) -> struct kernel_name */
    struct key_map begun;      /* (process, object, type) -> thread index + 1 */
    struct host_span result;   /* the copy that spans_take returns */
};

static inline struct span_stack *span_stack(const struct spans *s, uint32_t thread_index)
{
    return &s->stacks[thread_index - s->first_thread];
}

/* SPAN_LOST: its end is missing, but something after it is recorded. SPAN_LEFT, for users: still
 * open after the last event. */
enum span_change { SPAN_SAME, SPAN_OPENED, SPAN_CLOSED, SPAN_LOST, SPAN_LEFT, SPAN_MARKED };

/* Follows the events of process `only`, or, if that is NULL, of all. All arguments must stay. */
void spans_init(struct spans *s, struct recording *rec, const struct process *only,
                struct kernel_names *texts, struct losses *losses, struct library_kinds *kinds);
void spans_release(struct spans *s);

/*
 * Takes a record of a range, label, operator or library call. Call it until it returns something
 * other than SPAN_LOST: several spans may be lost before the record itself applies. `op_names` has
 * the names of the process's operators. *span is the span that changed: the original if it is open,
 * else a copy that the next call overwrites.
 */
enum span_change spans_take(struct spans *s, const struct event *event,
                            const struct kernel_handles *op_names, struct host_span **span);

/* Notes the end of a CUDA call on its thread, for the library calls around it. */
void spans_see_call(struct spans *s, const struct event *e);

/* The innermost open span of that type on the thread, or NULL. */
static inline struct host_span *spans_innermost(const struct spans *s, const struct thread *thread,
                                                enum span_type type)
{
    const struct span_stack *stack = span_stack(s, thread->index);
    for (uint32_t i = stack->counts[type] ? stack->count : 0; i-- > 0;)
        if (stack->open[i].type == type)
            return &stack->open[i];
    return NULL;
}

/* The next open span of the same type around an open one; NULL: none. */
struct host_span *spans_around(const struct spans *s, const struct host_span *span);

/* The innermost open operator on the thread that works (op_works), or NULL. */
const struct host_span *spans_innermost_op(const struct spans *s, const struct thread *thread);

/* The outermost open operator on the thread with a stack, or NULL. That is the stack of each call
 * in it, without PyTorch's own frames. */
const struct host_span *spans_with_stack(const struct spans *s, const struct thread *thread);

/* The innermost module around `op`, which may have ended; NULL: none. */
const struct host_span *spans_module(const struct spans *s, const struct host_span *op);

/* After the last event: removes a span of that type still open on the thread, innermost first. It
 * ends at its process's time in last_ns. NULL: none is left. */
struct host_span *spans_drain(struct spans *s, uint32_t thread_index, enum span_type type,
                              const uint64_t *last_ns);

/* The text of a label record; NULL: none. */
const struct kernel_name *spans_label(const struct spans *s, const struct process *p, uint64_t kind,
                                      uint64_t domain, uint64_t handle);

static inline bool op_is_label(const struct host_span *op)
{
    return op->scope == OP_SCOPE_LABEL;
}

static inline bool op_is_module(const struct host_span *op)
{
    return op->scope == OP_SCOPE_MODULE;
}

/* An operator that does work: not a label or module, and not traced by torch.compile. */
static inline bool op_works(const struct host_span *op)
{
    return op_scope_works(op->scope) && !op->is_traced;
}

#endif
