/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libraries that enclose CUDA's (cuBLAS, cuDNN, NCCL), followed event by event in the
 * order of the timeline: which are open on each thread. Only a library's outermost call is
 * recorded, so that one of it is open on a thread at most; when another begins, the one before was
 * left (longjmp, a cancelled thread), as are those inside of a call, a range or an operator that
 * ends. Such a call counts up to the last CUDA call that was made in it. Ends without a begin say
 * nothing.
 *
 * What NCCL is told within a group it does when the outermost group ends: work that is launched in
 * the end of a group is of the calls before it on the thread that launched nothing themselves, of
 * the only one, or of a kind of its own. If these are collectives of one communicator on one
 * stream, the first kernel is that of the first of them.
 *
 * Memory: 800 bytes a thread that calls libraries; and what kinds take, below.
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
 * What calls of libraries are calls of: a function and how much there is to do, each combination
 * once for all calls that are alike (a *kind*, numbered from 1 on), and the communicators that
 * they name. Memory: 150 bytes a kind, of which there are KINDS_FREE and one more for each
 * KIND_BYTES of the files, KINDS_MAX at most, beyond which a function's calls are one kind; 150
 * bytes a communicator up to COMMUNICATORS_MAX.
 */
#define KINDS_FREE        4096
#define KIND_BYTES        64
#define KINDS_MAX         (1u << 18)
#define COMMUNICATORS_MAX (1u << 16)

struct library_kind {
    const struct function *function;
    struct library_shape shape;
    bool is_others;                 /* all of the function's for which there was no room */
    bool is_group;                  /* shape.batch calls at once */
    const struct kernel_name *text; /* NULL: library_kind_text was not asked for it yet */
};

/* Of all ranks that have the same id, one number: its place + 1. */
struct communicator {
    uint64_t id;
    uint32_t ranks; /* 0: not known */
};

/* What a call has beside its kind, or all calls of a group. */
struct library_message {
    uint32_t communicator; /* its number; 0: none, several, or it is not known */
    bool is_collective;    /* a kernel to come is that of the collective of this sequence */
    bool is_rooted;        /* one of them has a root */
    uint64_t sequence;     /* of the first in it, on all ranks alike; 0: not known */
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

/* For files of so many bytes and processes; `texts` must stay. 0 or GPUPROF_NO_MEMORY;
 * library_kinds_release in both cases. */
int library_kinds_init(struct library_kinds *k, struct kernel_names *texts, uint64_t bytes,
                       uint32_t process_count);
void library_kinds_release(struct library_kinds *k);

/* A LIBRARY_PLAN or COMMUNICATOR record. 0 or GPUPROF_NO_MEMORY. */
int library_kinds_learn(struct library_kinds *k, const struct event *e);

static inline const struct library_kind *library_kind(const struct library_kinds *k,
                                                      uint32_t number)
{
    return &k->list[number - 1];
}

/* What it computes; of one with a plan only when that is known. */
struct library_work library_kind_work(const struct library_kinds *k, uint32_t number);

/* "cublasGemmEx 4096x4096x4096 bf16"; NULL: no room for another text, or GPUPROF_NO_MEMORY in
 * *error, which is 0 before. To be asked for when plans are known. */
const struct kernel_name *library_kind_text(struct library_kinds *k, uint32_t number, int *error);

#define LIBRARIES_OPEN_MAX (API_DOMAIN_COUNT + 1) /* on a thread: of each library one */
struct library_call {
    const struct function *function;
    struct process *process;
    struct thread *thread;
    uint64_t begin_ns;
    uint64_t stream;  /* of a message */
    uint64_t end_ns;  /* of one that has ended; of an open one, as the next, or the end of all */
    uint64_t seen_ns; /* the end of the last CUDA call in it */
    uint32_t kind;    /* its number, below */
    uint32_t node;    /* the survey's number of it; 0: no call of CUDA was made in it so far */
    uint32_t row;     /* for its user */
    uint32_t stack;   /* number of a STACK record; 0: none */
    int32_t result;   /* of one that has ended */
    uint8_t arg_count;
    bool has_work; /* something was launched or copied in it */
    struct library_message message;
    uint64_t args[RECORD_ARGS_MAX]; /* what is known afterwards, once it has ended */
};

/* What NCCL was told and has not done yet. */
struct library_group {
    uint32_t calls;
    uint32_t kind;                  /* of the first of these */
    uint32_t depth;                 /* of groups in groups */
    struct library_message message; /* of all */
    uint64_t stream;                /* of the first */
    uint64_t bytes;                 /* of all */
};

struct library_stack {
    struct library_call *open;   /* owned; LIBRARIES_OPEN_MAX, NULL: there was none yet */
    struct library_group *group; /* behind them */
    uint32_t count;
};

/* LIBRARY_LEFT: it did not return. LIBRARY_OPEN: nor had it at the end of all. */
enum library_change { LIBRARY_SAME, LIBRARY_OPENED, LIBRARY_CLOSED, LIBRARY_LEFT, LIBRARY_OPEN };

struct library_calls {
    struct library_kinds *kinds;  /* a view */
    struct library_stack *stacks; /* owned; see library_stack */
    uint32_t first_thread;        /* as struct ranges */
    uint32_t thread_count;
    struct library_call result; /* what is handed out of those that are open no more */
    uint32_t drained;
};

static inline struct library_stack *library_stack(const struct library_calls *l,
                                                  uint32_t thread_index)
{
    return &l->stacks[thread_index - l->first_thread];
}

/* Of the events of one process `only`, or, if that is NULL, of all. `kinds` must stay. 0 or
 * GPUPROF_NO_MEMORY; library_calls_release in both cases. */
int library_calls_init(struct library_calls *l, struct recording *rec, const struct process *only,
                       struct library_kinds *kinds);
void library_calls_release(struct library_calls *l);

/*
 * Takes a LIBRARY_BEGIN or LIBRARY_END. To be called until it returns something else than
 * LIBRARY_LEFT, of which there may be several before what the record says. An enum library_change
 * and the call in *call (of an open one the original, of others a copy that the next call
 * overwrites), or GPUPROF_NO_MEMORY.
 */
int library_calls_take(struct library_calls *l, const struct event *e, struct library_call **call);

/* What began on that thread then has ended: takes out the innermost call if it began later, or
 * NULL. */
struct library_call *library_calls_leave(struct library_calls *l, const struct thread *thread,
                                         uint64_t begin_ns);

/* A call of CUDA's on that thread ended then. */
void library_calls_see(struct library_calls *l, const struct event *e);

/* The innermost call that is open on the thread, or NULL. */
struct library_call *library_innermost(const struct library_calls *l, const struct thread *thread);

/* Does this call of CUDA's, made in the innermost call on its thread, launch the kernel of the
 * collective that library_call_kind has in *message? Each has one kernel. */
bool library_calls_launch(struct library_calls *l, const struct event *e);

/* What work that is launched in that call belongs to: its kind, or that of its group. A number, or
 * GPUPROF_NO_MEMORY. */
int64_t library_call_kind(struct library_calls *l, const struct library_call *call,
                          struct library_message *message);

/* After the last event, whose times are by process index: takes out one that is still open,
 * innermost first; NULL when none is left. */
struct library_call *library_calls_drain(struct library_calls *l, const uint64_t *last_ns);

#endif
