/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Launched, not finished": the work pending on each stream when its process ended or was sampled.
 * A kernel that hangs has no record. A stream works in order, so all launches before the last one
 * with recorded work have ended, and so has all that a synchronisation waited for. The rest hangs,
 * waits behind a hang, or has ended with its record in an incomplete CUPTI buffer. Host functions
 * and values that a stream waits for have no record at all: they are reported only if a thread
 * waits for the stream.
 *
 * Processes that ended by themselves, with no call open, cost nothing. Others: the newest
 * UNFINISHED_LAUNCHES_MAX launches, 80 bytes each, 100 a stream, and up to 6 MiB for events.
 */
#ifndef GPUPROF_COLLECTOR_UNFINISHED_H
#define GPUPROF_COLLECTOR_UNFINISHED_H

#include "analyse/place_lines.h"
#include "base/key_map.h"
#include "resolve/event_walk.h"
#include "table/table.h"

#define UNFINISHED_LAUNCHES_MAX (1u << 16)
#define UNFINISHED_STREAMS_MAX  4096
#define UNFINISHED_EVENTS_MAX   (1u << 16)

/* Views of the recording. */
struct unfinished_launch {
    const struct process *process;
    const struct thread *thread;
    const struct function *function;
    const struct kernel_name *kernel; /* NULL: a graph, or not known */
    const struct kernel_name *op; /* PyTorch operator around the call; NULL: none, or not known */
    uint64_t begin_ns;
    uint32_t stream; /* index in `streams` */
    uint32_t id;     /* correlation id */
    uint32_t stack;
};

struct unfinished_stream {
    uint32_t process; /* its index */
    uint64_t handle;
    uint64_t done_ns; /* all launches up to then have ended */
    uint64_t device;  /* from the device's records, if `is_known` */
    uint64_t number;
    bool is_known;
    bool is_waited_for; /* by a call, for a second */
};

/* The state of a stream's pending work. */
enum unfinished_state {
    UNFINISHED_WAITED, /* a thread has waited for it for a second */
    UNFINISHED_MAYBE,  /* it may have ended: the device's last work is not recorded */
    UNFINISHED_HOST,   /* waited for; its device is not recorded */
};

struct unfinished_row {
    struct unfinished_launch launch; /* the likeliest to hang; see unfinished.c */
    const struct unfinished_stream *stream;
    uint64_t count;  /* pending launches, including this one */
    uint64_t age_ns; /* since it was launched */
    enum unfinished_state state;
    struct reported_stack reported;
};

/* What an event was last recorded in, and when. */
struct unfinished_event {
    uint32_t stream; /* index + 1; 0: nothing was launched into it */
    uint64_t ns;
};

struct unfinished_process {
    bool may_hang;
    bool waits;         /* a call was open for a second, ... */
    bool waits_for_all; /* ... and waited for the device, not for one stream */
    uint64_t synced_ns; /* like done_ns, for all streams of its only device */
    uint64_t device;    /* device number + 1; 0: none so far, UINT64_MAX: several */
};

struct unfinished {
    struct walk *walk;
    struct unfinished_process *processes; /* owned, by process index; NULL: none may hang */
    struct key_map streams_of; /* (process, handle, thread + 1 if the handle is the thread's) */
    struct key_map events_of;  /* (process, event) -> index + 1 in `events` */
    struct unfinished_stream *streams; /* owned */
    struct unfinished_event *events;   /* owned */
    uint32_t stream_count, event_count;
    struct unfinished_launch *launches; /* owned: a ring */
    uint32_t *by_id;             /* owned: index in `launches` + 1, by the low bits of the id */
    uint64_t launch_count;       /* so far */
    struct key_map ended;        /* (process, kernel) pairs that have ended once */
    struct unfinished_row *rows; /* owned; awaited streams first, then the oldest */
    uint32_t row_count;
};

/* `walk` must outlive `u`. */
void unfinished_init(struct unfinished *u, struct walk *walk);
void unfinished_release(struct unfinished *u);

/* True if a process may have left unfinished work. Only then is the consumer needed. */
static inline bool unfinished_may_be(const struct unfinished *u)
{
    return u->processes != NULL;
}

struct consumer unfinished_consumer(struct unfinished *u);

/* After the walk: true if that process may have left unfinished work. */
static inline bool unfinished_may_of(const struct unfinished *u, const struct process *p)
{
    return u->processes && u->processes[p->index].may_hang;
}

/* After the walk: true if one of its calls was open for a second. */
static inline bool unfinished_waits(const struct unfinished *u, const struct process *p)
{
    return u->processes && u->processes[p->index].waits;
}

/* The time up to which all that this thread launched into its stream of that handle has ended; 0 if
 * not known. *is_waited: a call has waited for the stream for a second. */
uint64_t unfinished_done_ns(const struct unfinished *u, const struct process *p,
                            const struct thread *t, uint64_t handle, bool *is_waited);

/* "gemm, or another of the 4", as new text. */
char *unfinished_text(const struct unfinished_row *row);

/* The table's state is a struct unfinished. */
extern const struct table_info unfinished_table;

#endif
