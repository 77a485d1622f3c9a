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
 * the only one, or of a kind of its own.
 *
 * Memory: 800 bytes a thread that calls libraries; and library_kinds.h.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_CALLS_H
#define GPUPROF_COLLECTOR_LIBRARY_CALLS_H

#include "api/api.h"
#include "model/library_kinds.h"
#include "read/recording.h"

#define LIBRARIES_OPEN_MAX (API_DOMAIN_COUNT + 1) /* on a thread: of each library one */

struct library_call {
    const struct function *function;
    struct process *process;
    struct thread *thread;
    uint64_t begin_ns;
    uint64_t end_ns;  /* of one that has ended; of an open one, as the next, or the end of all */
    uint64_t seen_ns; /* the end of the last CUDA call in it */
    uint32_t kind;    /* its number in library_kinds.h */
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
    struct library_message message; /* of the first, likewise */
    uint64_t bytes;                 /* of all */
};

struct library_stack {
    struct library_call *open; /* owned; LIBRARIES_OPEN_MAX, NULL: there was none yet */
    uint32_t count;
    struct library_group group;
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

/* What work that is launched in that call belongs to: its kind, or that of its group. A number, or
 * GPUPROF_NO_MEMORY. */
int64_t library_call_kind(struct library_calls *l, const struct library_call *call,
                          struct library_message *message);

/* After the last event, whose times are by process index: takes out one that is still open,
 * innermost first; NULL when none is left. */
struct library_call *library_calls_drain(struct library_calls *l, const uint64_t *last_ns);

#endif
