/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Launched, not finished": what each stream had before it when its process ended or was looked at.
 * A kernel that hangs has no record of its own. A stream does one thing after another, so that all
 * that was launched into it before the last launch whose work is recorded has ended, and so has all
 * that a synchronisation waited for. What is left hangs, waits behind what hangs, or has ended, and
 * its record lay in a buffer that CUPTI keeps until all of its records are complete. A function of
 * the host that a stream calls, or a value that it waits for, has no record at all: it is told
 * where somebody waits for the stream.
 *
 * Processes that came to their end by themselves, with no call open, cost nothing. For the others:
 * the newest UNFINISHED_LAUNCHES_MAX launches, 80 bytes each, 200 a stream, and up to 8 MiB for
 * events.
 */
#ifndef GPUPROF_COLLECTOR_UNFINISHED_H
#define GPUPROF_COLLECTOR_UNFINISHED_H

#include "analyse/told_stacks.h"
#include "base/key_map.h"
#include "resolve/event_walk.h"
#include "table/table.h"

#define UNFINISHED_LAUNCHES_MAX (1u << 16)
#define UNFINISHED_STREAMS_MAX  4096
#define UNFINISHED_WAITS_MAX    256
#define UNFINISHED_EVENTS_MAX   (1u << 16) /* when there are more all are forgotten */
#define UNFINISHED_ROWS_MAX     256

/* Views of the recording. */
struct unfinished_launch {
    const struct process *process;
    const struct thread *thread;
    const struct function *function;
    const struct kernel_name *kernel; /* NULL: a graph, or not known */
    const struct kernel_name *op;     /* of PyTorch, around the call; NULL: none, or not known */
    uint64_t begin_ns;
    uint32_t stream; /* place in `streams` */
    uint32_t id;     /* correlation id */
    uint32_t stack;
};

struct unfinished_stream {
    uint32_t process; /* its index */
    uint64_t handle;
    uint64_t done_ns; /* what was launched up to then has ended */
    uint64_t device;  /* as the device's records have it, if `is_known` */
    uint64_t number;
    bool is_known;
    struct unfinished_launch oldest; /* that found no room any more, and may hang */
};

/* Where and when an event was recorded. */
struct unfinished_mark {
    uint64_t stream; /* place + 1; 0: a whole context, or a stream without work */
    uint64_t at_ns;
};

/* What is to be said of a stream. */
enum unfinished_state {
    UNFINISHED_WAITED, /* a thread has waited for it for a second */
    UNFINISHED_MAYBE,  /* it may have ended: what the device did last is not recorded */
    UNFINISHED_HOST,   /* waited for; what the device does is not recorded at all */
};

struct unfinished_row {
    struct unfinished_launch launch; /* the likeliest to hang; see unfinished.c */
    const struct unfinished_stream *stream;
    uint64_t count;  /* of launches, this one included */
    uint64_t age_ns; /* since it was launched */
    enum unfinished_state state;
    struct told_stack told;
};

/* An open call that waits for the device. */
struct unfinished_wait {
    const struct process *process;
    uint64_t handle;
    bool is_any; /* for no certain stream */
};

struct unfinished_process {
    bool may_hang;
    uint64_t synced_ns; /* as done_ns, for all streams of its one device */
    uint64_t device;    /* one more than its number; 0: none so far, UINT64_MAX: several */
};

struct unfinished {
    struct walk *walk;
    struct unfinished_process *processes; /* owned, by process index; NULL: none may hang */
    struct key_map streams_of; /* (process, handle, thread + 1 if the handle is the thread's) */
    struct {
        struct key_map places;        /* (process, event) -> place in `list` + 1 */
        struct unfinished_mark *list; /* owned */
        uint32_t count;
    } events;                          /* where they were recorded last */
    struct unfinished_stream *streams; /* owned */
    uint32_t stream_count;
    struct unfinished_launch *launches; /* owned: a ring */
    uint32_t *by_id;                    /* owned: place in it + 1, by the low bits of the id */
    uint64_t launch_count;              /* so far */
    struct key_map ended;               /* (process, kernel): it has ended before */
    struct {
        struct unfinished_wait list[UNFINISHED_WAITS_MAX];
        uint32_t count;
    } waits;
    struct unfinished_row *rows; /* owned; those that are waited for first, the oldest first */
    uint32_t row_count;
    uint64_t total; /* with those that are not kept */
    const struct told_stacks *stacks;
};

/* `walk` must stay, `stacks` too. 0 or GPUPROF_NO_MEMORY; unfinished_release in both cases. */
int unfinished_init(struct unfinished *u, struct walk *walk, const struct told_stacks *stacks);
void unfinished_release(struct unfinished *u);

/* May a process have left anything? Only then its consumer is needed. */
static inline bool unfinished_may_be(const struct unfinished *u)
{
    return u->processes != NULL;
}

struct consumer unfinished_consumer(struct unfinished *u);

/* After the walk: may that process have left anything? */
static inline bool unfinished_may_of(const struct unfinished *u, const struct process *p)
{
    return u->processes && u->processes[p->index].may_hang;
}

/* Up to when all that this thread launched into its stream of that handle has ended: 0 if nothing
 * says so. *is_waited: a call has waited for the stream for a second. */
uint64_t unfinished_done_ns(const struct unfinished *u, const struct process *p,
                            const struct thread *t, uint64_t handle, bool *is_waited);

/* Is it a kernel that waits for other ranks? */
bool unfinished_waits_for_ranks(const struct unfinished_launch *l);

/* "gemm, or another of the 4", in new memory. */
char *unfinished_text(const struct unfinished_row *row);

/* Of a struct unfinished. */
extern const struct table_info unfinished_table;

#endif
