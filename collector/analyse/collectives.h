/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives that do not come to their end: of each communicator the first one that not all ranks
 * have called, or whose kernels do not finish, and which ranks that are; and those at which ranks
 * have called different things. Calls belong together by the number that each rank counts them by
 * (`sequence`), messages by the number between their two ranks, the making of a communicator by its
 * id.
 *
 * Nothing is said of what nobody has waited a second for, nor against a rank whose process has lost
 * records or did not record when it was seen last.
 *
 * Memory: COMMUNICATORS_FOUND_MAX communicators, CHANNELS_MAX orders of calls and PARTS_MAX ranks
 * in them, 100 bytes each, and at most CALLS_KEPT_MAX calls of 64 bytes: of each rank up to the
 * newest CALLS_EACH_MAX. What is beyond is not followed.
 */
#ifndef GPUPROF_COLLECTOR_COLLECTIVES_H
#define GPUPROF_COLLECTOR_COLLECTIVES_H

#include <stdio.h>

#include "analyse/told_stacks.h"
#include "analyse/unfinished.h"
#include "base/key_map.h"
#include "resolve/event_walk.h"
#include "table/table.h"

#define COMMUNICATORS_FOUND_MAX (1u << 13)
#define CHANNELS_MAX            (1u << 16)
#define PARTS_MAX               (1u << 18)
#define CALLS_KEPT_MAX          (1u << 20)
#define CALLS_EACH_MAX          256u
#define QUEUED_MAX              256u /* calls of one group that are tied to their kernels */
#define PENDING_MAX             64u  /* that are told */
#define RANK_LATER              UINT32_MAX
#define PENDING_ROWS_MAX        4096u /* of ranks in these */

enum collective_kind { COLLECTIVE_ALL, COLLECTIVE_MESSAGE, COLLECTIVE_MAKING, COLLECTIVE_SPLIT };

/* One rank's call. */
struct collective_call {
    uint64_t sequence;
    const struct function *function;
    const struct thread *thread;
    uint64_t begin_ns;
    uint64_t launch_ns; /* of its newest kernel; 0: none was seen */
    uint64_t stream;
    uint64_t count;
    int64_t root;
    uint8_t type, op; /* UINT8_MAX: it has none */
    bool is_over;     /* it has returned */
    bool goes_on;     /* and said that it is still in progress: its communicator does not block */
};

/* A rank in a communicator. */
struct communicator_rank {
    const struct process *process; /* NULL: not known */
    uint32_t communicator;
    uint32_t rank;  /* RANK_LATER: it is not known yet */
    uint32_t next;  /* of the same communicator, + 1 */
    bool is_ended;  /* it was destroyed there */
    bool is_absent; /* there is no recording of it */
};

struct found_communicator {
    uint64_t id;
    uint32_t ranks;       /* 0: not known */
    uint32_t first, last; /* ranks, + 1 */
    uint32_t rank_count;
    bool is_shrunk; /* some of its ranks split it without the others */
};

/* An order of calls: of all ranks, or of two. */
struct channel {
    uint32_t communicator;
    enum collective_kind kind;
    uint32_t from, to;    /* of messages */
    uint32_t first, last; /* parts, + 1 */
    uint32_t leader;   /* the part that has called most, + 1: others' calls are compared to its */
    uint64_t mismatch; /* the first number at which two ranks have called different things; 0 */
    uint32_t mismatch_parts[2];
    struct collective_call mismatch_calls[2]; /* the leader's, and the other's */
};

/* What a rank has called in a channel. */
struct channel_part {
    uint32_t channel;
    uint32_t rank; /* place in `ranks` */
    uint32_t next; /* of the same channel, + 1 */
    uint32_t capacity;
    uint64_t called;               /* the newest number */
    uint64_t hash;                 /* of all that it has called, in their order */
    struct collective_call *calls; /* owned: a ring, by number */
};

/* Where a process is: what it has called last, and from where. */
struct process_place {
    const struct thread *thread; /* NULL: nothing */
    const struct function *function;
    uint64_t begin_ns;
    uint64_t end_ns; /* of the call that ended last ... */
    uint64_t gap_ns; /* ... and the longest time between two */
    bool is_begun;   /* `function` is a library's, which has not returned */
    bool has_worked; /* it has launched or copied */
    bool is_open;
    uint32_t stack;    /* its own if it is open, else the process's newest; 0: none */
    uint64_t stack_ns; /* of the call that it is of: of an earlier one, if before begin_ns */
    bool is_paused;
};

enum collective_state {
    COLLECTIVE_NOT_CALLED,
    COLLECTIVE_CALLED,       /* not launched yet */
    COLLECTIVE_NOT_FINISHED, /* its kernel */
    COLLECTIVE_FINISHED,
    COLLECTIVE_NOT_KNOWN,    /* called; what the device does is not recorded */
    COLLECTIVE_NOT_RECORDED, /* nothing says what this rank called */
    COLLECTIVE_DIFFERENT     /* it has called something else */
};

/* A collective that is told, and a rank of it. */
struct pending_collective {
    uint32_t channel;
    uint64_t sequence;
    struct collective_call call; /* as the first rank has called it; function NULL: not kept */
    uint64_t waited_ns;          /* by the rank that has waited longest; 0: it only differs */
    uint64_t now_ns;             /* until when any process of its ranks is known */
    uint32_t job;                /* of them; JOB_NONE: there are no several */
    uint32_t first_row, row_count;
    uint32_t late_count; /* of these, which come first */
    bool is_mismatch;
    bool has_own_numbers; /* its ranks have others there than in the job */
};

struct pending_row {
    const struct pending_collective *pending;
    uint32_t rank;                 /* in the communicator, */
    const struct process *process; /* as struct communicator_rank has it */
    bool is_absent;
    enum collective_state state;
    struct collective_call call;       /* that it has made; function NULL: none */
    const struct process_place *place; /* NULL: nothing is known */
    struct told_stack told;            /* of what is told of its place */
};

/* Calls of the group that is open on a thread. */
struct thread_calls {
    const struct process *process;
    const struct thread *thread;
    const struct function *open; /* a call that has not returned; NULL: none */
    uint64_t begin_ns;
    uint32_t stack;
    uint32_t depth; /* of groups */
    uint32_t count;
    struct queued_call {
        uint32_t part;
        uint64_t sequence;
    } * queued; /* owned; NULL: none so far */
};

struct collectives {
    struct walk *walk;
    const struct told_stacks *stacks;
    struct {
        struct key_map ids;     /* id -> communicator + 1 */
        struct key_map handles; /* (process, handle) -> rank + 1 */
        struct key_map ranks;   /* (communicator, rank, process) -> rank + 1 */
        struct key_map channels, parts;
    } keys;
    struct found_communicator *communicators; /* owned, and so are the others */
    struct communicator_rank *ranks;
    struct channel *channels;
    struct channel_part *parts;
    uint32_t communicator_count, rank_count, channel_count, part_count, call_count;
    struct process_place *places; /* owned, by process index */
    struct thread_calls *threads; /* owned, by thread index */
    struct {
        struct pending_collective list[PENDING_MAX];
        uint32_t count;
        uint64_t total; /* with those that are not kept */
        struct pending_row *rows;
        uint32_t row_count;
    } pending;
};

/* `walk` and `stacks` must stay. 0 or GPUPROF_NO_MEMORY; collectives_release in both cases. */
int collectives_init(struct collectives *c, struct walk *walk, const struct told_stacks *stacks);
void collectives_release(struct collectives *c);

struct consumer collectives_consumer(struct collectives *c, bool needs_stacks);

/* After the walk: makes the rows. 0 or GPUPROF_NO_MEMORY. (collectives_pending.c) */
int collectives_judge(struct collectives *c, const struct unfinished *u);

/* The part of that rank (place in `ranks`) in the channel; NULL: it has called nothing there. */
const struct channel_part *collectives_part(const struct collectives *c, uint32_t channel,
                                            uint32_t rank);

/* Who has not come to what is told first, the first of these; NULL: nobody is known. */
static inline const struct pending_row *collectives_late(const struct collectives *c)
{
    const struct pending_collective *p = c->pending.count ? &c->pending.list[0] : NULL;
    const struct pending_row *late =
        p && p->late_count && !p->is_mismatch ? &c->pending.rows[p->first_row] : NULL;
    return late && late->process ? late : NULL;
}

/* Is it about communicators that come to be, and not about what is done on them? */
static inline bool collectives_is_made(enum collective_kind kind)
{
    return kind == COLLECTIVE_MAKING || kind == COLLECTIVE_SPLIT;
}

/* May any rank that waits have waited for another? */
bool collectives_may_wait(const struct collectives *c, const struct unfinished *u);

/* NULL: not kept. */
const struct collective_call *collectives_call(const struct channel_part *part, uint64_t sequence);

/* Do they belong together? */
bool collectives_agree(const struct collective_call *a, const struct collective_call *b);

/* Of a struct collectives. (collectives_print.c) */
extern const struct table_info collectives_table;

/* The first of them in a line, in new memory, and a line for the summary; NULL, nothing: none. */
char *collectives_text(const struct collectives *c);
void collectives_print_summary(const struct collectives *c, FILE *out);

#endif
