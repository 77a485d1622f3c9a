/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds collectives that hang. On each communicator that is the first one that some rank has not
 * called, or whose kernels do not finish; and which ranks those are. Finds collectives for which
 * ranks made different calls, too. Calls match by the number that each rank counts (`sequence`),
 * messages by the number between their two ranks. Creation of a communicator matches by its id.
 *
 * A hang is reported only if a rank has waited for a second. A rank is not blamed if its process
 * lost records or was not recording when it was last seen.
 *
 * Memory: COMMUNICATORS_FOUND_MAX communicators, CHANNELS_MAX orders of calls and PARTS_MAX ranks
 * in them, 100 bytes each; CALLS_KEPT_MAX calls of 64 bytes, the newest CALLS_EACH_MAX of each
 * rank. More are not followed.
 */
#ifndef GPUPROF_COLLECTOR_COLLECTIVES_H
#define GPUPROF_COLLECTOR_COLLECTIVES_H

#include "analyse/place_lines.h"
#include "analyse/unfinished.h"
#include "base/key_map.h"
#include "query/sums.h"
#include "resolve/event_walk.h"
#include "table/screen.h"
#include "table/table.h"

#define COMMUNICATORS_FOUND_MAX (1u << 13)
#define CHANNELS_MAX            (1u << 16)
#define PARTS_MAX               (1u << 18)
#define CALLS_KEPT_MAX          (1u << 20)
#define CALLS_EACH_MAX          256u
#define QUEUED_MAX              256u /* calls of one group that are matched with their kernels */
#define PENDING_MAX             64u  /* collectives that are reported */
#define RANK_LATER              UINT32_MAX
#define PENDING_ROWS_MAX        4096u /* ranks of these */

enum collective_kind { COLLECTIVE_ALL, COLLECTIVE_MESSAGE, COLLECTIVE_MAKING, COLLECTIVE_SPLIT };

/* One rank's call. */
struct collective_call {
    uint64_t sequence;
    const struct function *function;
    const struct thread *thread;
    uint64_t begin_ns;
    uint64_t launch_ns; /* launch of its newest kernel; 0: none was seen */
    uint64_t stream;
    uint64_t count;
    int64_t root;
    uint8_t type, op; /* UINT8_MAX: none */
    bool is_over;     /* it has returned */
    bool goes_on;     /* it returned "in progress": the communicator is non-blocking */
};

/* A rank in a communicator. */
struct communicator_rank {
    const struct process *process; /* NULL: not known */
    uint32_t communicator;
    uint32_t rank; /* RANK_LATER: not known yet */
    uint32_t next; /* next rank of the communicator, + 1 */
    bool is_ended; /* the rank destroyed its communicator */
};

struct found_communicator {
    uint64_t id;
    uint32_t ranks;       /* 0: not known */
    uint32_t first, last; /* ranks, + 1 */
    uint32_t rank_count;
};

/* An order of calls that all ranks, or two, must agree on. */
struct channel {
    uint32_t communicator;
    enum collective_kind kind;
    uint32_t from, to;    /* of messages: sender and receiver */
    uint32_t first, last; /* parts, + 1 */
};

/* The calls of a rank in a channel. */
struct channel_part {
    uint32_t channel;
    uint32_t rank; /* index in `ranks` */
    uint32_t next; /* next part of the channel, + 1 */
    uint32_t capacity;
    uint64_t called;               /* the newest number */
    uint64_t hash;                 /* of all its calls, in order */
    struct collective_call *calls; /* owned: a ring, by number */
};

/* Where a process is: its newest call and stack. */
struct process_place {
    const struct thread *thread; /* NULL: nothing */
    const struct function *function;
    uint64_t begin_ns;
    uint64_t end_ns; /* end of the call that ended last */
    uint64_t gap_ns; /* longest time between two calls */
    bool is_begun;   /* `function` is a library's and has not returned */
    bool has_worked; /* it has launched kernels or copied */
    bool is_open;
    uint32_t stack;    /* of this call if it is open, else the process's newest; 0: none */
    uint64_t stack_ns; /* begin of the stack's call; before begin_ns: an earlier call's */
    bool is_paused;
};

enum collective_state {
    COLLECTIVE_NOT_CALLED,
    COLLECTIVE_CALLED,       /* not launched yet */
    COLLECTIVE_NOT_FINISHED, /* its kernel has not finished */
    COLLECTIVE_FINISHED,
    COLLECTIVE_NOT_KNOWN,    /* called; the device's work is not recorded */
    COLLECTIVE_NOT_RECORDED, /* this rank's calls are not recorded */
    COLLECTIVE_DIFFERENT     /* it made a different call */
};

/* A collective that is reported, and a rank of it. */
struct pending_collective {
    const struct channel *of;
    struct found_communicator *in;
    uint64_t sequence;
    const struct collective_call *call; /* the first rank's call; NULL: not stored */
    uint64_t waited_ns;                 /* longest wait of a rank; 0: the calls only differ */
    uint64_t now_ns;                    /* newest time at which one of its ranks is known */
    uint32_t job;                       /* job of the ranks; JOB_NONE: there is only one job */
    struct pending_row *rows;           /* a view; late ones come first */
    uint32_t row_count;
    uint32_t late_count; /* late ranks among the rows; they come first */
    bool is_mismatch;
    bool has_own_numbers; /* ranks in the communicator have other numbers than in the job */
};

struct pending_row {
    const struct pending_collective *pending;
    uint32_t rank;                 /* number in the communicator */
    const struct process *process; /* NULL: not known */
    enum collective_state state;
    const struct collective_call *call; /* its call; NULL: none */
    const struct process_place *place;  /* NULL: not known */
    struct reported_stack reported;     /* stack of that place */
};

/* The calls of the group that is open on a thread. */
struct thread_calls {
    uint32_t depth; /* nesting of groups */
    uint32_t count;
    struct queued_call {
        uint32_t part;
        uint64_t sequence;
    } * queued; /* owned; NULL: none so far */
};

struct collectives {
    struct walk *walk;
    const struct unfinished *unfinished;
    struct {
        struct key_map ids;     /* id -> communicator + 1 */
        struct key_map handles; /* (process, handle) -> rank + 1 */
        struct key_map ranks;   /* (communicator, rank, process) -> rank + 1 */
        struct key_map channels, parts;
    } keys;
    struct found_communicator *communicators; /* owned, like the other pointers */
    struct communicator_rank *ranks;
    struct channel *channels;
    struct channel_part *parts;
    uint32_t communicator_count, rank_count, channel_count, part_count, call_count;
    struct process_place *places; /* owned, by process index */
    struct thread_calls *threads; /* owned, by thread index */
    uint64_t looks;               /* ranks examined for messages so far */
    struct {
        struct pending_collective list[PENDING_MAX];
        uint32_t count;
        uint64_t total; /* with those that are not in the list */
        struct pending_row *rows;
        uint32_t row_count;
    } pending;
};

/* `walk` and `unfinished` must outlive it. */
void collectives_init(struct collectives *c, struct walk *walk,
                      const struct unfinished *unfinished);
void collectives_release(struct collectives *c);

struct consumer collectives_consumer(struct collectives *c, bool needs_stacks);

/* Makes the rows, after the walk. (collectives_pending.c) */
void collectives_judge(struct collectives *c);

/* The calls of the rank (index in `ranks`) in the channel; NULL: it called nothing there. */
const struct channel_part *collectives_part(const struct collectives *c, const struct channel *of,
                                            uint32_t rank);

/* The first rank that has not joined the collective that is reported first; NULL: not known. */
static inline const struct pending_row *collectives_late(const struct collectives *c)
{
    const struct pending_collective *p = c->pending.count ? &c->pending.list[0] : NULL;
    const struct pending_row *late = p && p->late_count && !p->is_mismatch ? p->rows : NULL;
    return late && late->process ? late : NULL;
}

/* Is it the creation of a communicator, rather than a call on one? */
static inline bool collectives_is_made(enum collective_kind kind)
{
    return kind == COLLECTIVE_MAKING || kind == COLLECTIVE_SPLIT;
}

/* Can any rank wait for another? False if no rank's process has work that may be unfinished. */
bool collectives_may_wait(const struct collectives *c);

/* The call of that number; NULL: it is not stored. */
const struct collective_call *collectives_call(const struct channel_part *part, uint64_t sequence);

/* Are the calls of two ranks parts of the same collective or message? */
bool collectives_agree(const struct collective_call *a, const struct collective_call *b);

/* Of a part: adds what the ranks called to collective_calls_sums. */
void collectives_add_calls(const struct collectives *c, struct sums *s);

/* Did two ranks of those that called make different calls? */
bool collective_calls_differ(const struct sums *s);

/* Its source is a struct collectives. (collectives_print.c) */
extern const struct table_info collectives_table;

/* The first hanging collective in one line, and how many more there are; in new memory. NULL: none.
 */
char *collectives_text(const struct collectives *c);

#endif
