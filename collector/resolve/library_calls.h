/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows calls of libraries that make CUDA calls (cuBLAS, cuDNN, NCCL), in the order of the
 * timeline: which are open on each thread. Only a library's outermost call is recorded, so a thread
 * has one open call per library. If another begins, the earlier call was left (longjmp, a cancelled
 * thread), as are calls inside a call that ends. A call that was left counts up to the last CUDA
 * call in it. Ends without a begin are ignored.
 *
 * NCCL does the calls of a group when the outermost group ends. Work launched there belongs to the
 * earlier calls on the thread that launched nothing themselves: to the only one, or to a kind of
 * its own. If these are collectives of one communicator on one stream, the first kernel is that of
 * the first of them.
 *
 * Memory: 800 bytes a thread that calls libraries, and that of the kinds, below.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_CALLS_H
#define GPUPROF_COLLECTOR_LIBRARY_CALLS_H

#include "api/api.h"
#include "base/key_map.h"
#include "flops/library_flops.h"
#include "read/recording.h"
#include "resolve/timeline.h"
#include "symbol/kernel_names.h"

/*
 * Kinds of library calls: a function and how much there is to do. Each combination is stored once,
 * numbered from 1 on, with the communicators that calls name. Memory: 150 bytes a kind, at most
 * KINDS_FREE and one more for each KIND_BYTES of the files, up to KINDS_MAX; beyond that, all calls
 * of a function are one kind. 150 bytes a communicator, up to COMMUNICATORS_MAX.
 */
#define KINDS_FREE        4096
#define KIND_BYTES        64
#define KINDS_MAX         (1u << 18)
#define COMMUNICATORS_MAX (1u << 16)

struct library_kind {
    const struct function *function;
    struct library_shape shape;
    bool is_others;                 /* all further calls of the function, beyond the maximum */
    bool is_group;                  /* a group of shape.batch calls */
    const struct kernel_name *text; /* NULL: library_kind_text did not make it yet */
};

/* One entry for all ranks with the same id; its number is its place + 1. */
struct communicator {
    uint64_t id;
    uint32_t ranks; /* 0: not known */
};

/* What a call, or all calls of a group, has beside its kind. */
struct library_message {
    uint32_t communicator; /* number of the communicator; 0: none, several, or not known */
    bool is_collective;    /* a later kernel is that of the collective with this sequence */
    bool is_rooted;        /* one of them has a root */
    uint64_t sequence;     /* number of the first collective, equal on all ranks; 0: not known */
};

struct library_form;

struct library_kinds {
    struct kernel_names *texts; /* a view */
    struct library_kind *list;  /* owned; number n is list[n - 1] */
    uint32_t count;
    uint32_t count_max;
    struct number_set numbers;
    struct library_form **forms; /* owned, by function index */
    uint32_t form_count;
    struct communicator *communicators; /* owned */
    uint32_t communicator_count;
    struct key_map communicator_ids; /* id, ranks -> number */
    struct key_map handles;          /* (process, handle) -> number | rank << 32 */
    struct kernel_handles *plans;    /* owned, by process index: texts of LIBRARY_PLAN records */
    uint32_t process_count;
};

/* For files of `bytes` bytes in all; `texts` must stay. Returns 0 or GPUPROF_NO_MEMORY;
 * library_kinds_release in both cases. */
int library_kinds_init(struct library_kinds *k, struct kernel_names *texts, uint64_t bytes,
                       uint32_t process_count);
void library_kinds_release(struct library_kinds *k);

/* Takes a LIBRARY_PLAN or COMMUNICATOR record. Returns 0 or GPUPROF_NO_MEMORY. */
int library_kinds_learn(struct library_kinds *k, const struct event *e);

static inline const struct library_kind *library_kind(const struct library_kinds *k,
                                                      uint32_t number)
{
    return &k->list[number - 1];
}

/* The work of a call of that kind; with a plan, only once the plan is known. */
struct library_work library_kind_work(const struct library_kinds *k, uint32_t number);

/* "cublasGemmEx 4096x4096x4096 bf16"; call it once plans are known. NULL: too many texts, or
 * GPUPROF_NO_MEMORY in *error, which the caller sets to 0 first. */
const struct kernel_name *library_kind_text(struct library_kinds *k, uint32_t number, int *error);

#define LIBRARIES_OPEN_MAX (API_DOMAIN_COUNT + 1) /* on a thread: one for each library */
struct library_call {
    const struct function *function;
    struct process *process;
    struct thread *thread;
    uint64_t begin_ns;
    uint64_t stream;  /* of a message */
    uint64_t end_ns;  /* end of an ended call; while it is open, as seen_ns */
    uint64_t seen_ns; /* end of the last CUDA call in it */
    uint32_t kind;    /* number of its kind */
    uint32_t node;    /* number in the survey; 0: no CUDA call was made in it so far */
    uint32_t row;     /* for its user */
    uint32_t stack;   /* number of a STACK record; 0: none */
    int32_t result;   /* of an ended call */
    uint8_t arg_count;
    bool has_work; /* something was launched or copied in it */
    struct library_message message;
    uint64_t args[RECORD_ARGS_MAX]; /* arguments known on return, once it has ended */
};

/* NCCL calls of a group that are not done yet. */
struct library_group {
    uint32_t calls;
    uint32_t kind;                  /* of the first of these */
    uint32_t depth;                 /* nesting of groups */
    struct library_message message; /* of all */
    uint64_t stream;                /* of the first */
    uint64_t bytes;                 /* of all */
};

struct library_stack {
    struct library_call *open; /* owned; LIBRARIES_OPEN_MAX; NULL: none so far */
    struct library_group group;
    uint32_t count;
};

/* LIBRARY_LEFT: it did not return. LIBRARY_OPEN: it was still open at the end of the recording. */
enum library_change { LIBRARY_SAME, LIBRARY_OPENED, LIBRARY_CLOSED, LIBRARY_LEFT, LIBRARY_OPEN };

struct library_calls {
    struct library_kinds *kinds;  /* a view */
    struct library_stack *stacks; /* owned; see library_stack */
    uint32_t first_thread;        /* as struct ranges */
    uint32_t thread_count;
    struct library_call result; /* the copy of a closed call that is returned */
};

static inline struct library_stack *library_stack(const struct library_calls *l,
                                                  uint32_t thread_index)
{
    return &l->stacks[thread_index - l->first_thread];
}

/* Follows the events of process `only` (NULL: of all). `kinds` must stay. Returns 0 or
 * GPUPROF_NO_MEMORY; library_calls_release in both cases. */
int library_calls_init(struct library_calls *l, struct recording *rec, const struct process *only,
                       struct library_kinds *kinds);
void library_calls_release(struct library_calls *l);

/*
 * Takes a LIBRARY_BEGIN or LIBRARY_END. Call it until it returns something other than LIBRARY_LEFT:
 * several calls may be left before the record itself applies. Returns an enum library_change and
 * the call in *call (the original if it is open, else a copy that the next call overwrites), or
 * GPUPROF_NO_MEMORY.
 */
int library_calls_take(struct library_calls *l, const struct event *e, struct library_call **call);

/* Notes the end of a CUDA call on its thread. */
void library_calls_see(struct library_calls *l, const struct event *e);

/* The innermost open library call on the thread, or NULL. */
struct library_call *library_innermost(const struct library_calls *l, const struct thread *thread);

/* Whether this CUDA call, made in the innermost library call on its thread, launches the kernel of
 * the collective that library_call_kind returns in *message. Each collective has one kernel. */
bool library_calls_launch(struct library_calls *l, const struct event *e);

/* The kind that work launched in that call belongs to: that of the call, or of its group. Returns a
 * number, or GPUPROF_NO_MEMORY. */
int64_t library_call_kind(struct library_calls *l, const struct library_call *call,
                          struct library_message *message);

/* After the last event: removes a call still open on the thread, innermost first. It ends at its
 * process's time in last_ns. NULL: none is left. */
struct library_call *library_calls_drain(struct library_calls *l, uint32_t thread_index,
                                         const uint64_t *last_ns);

#endif
