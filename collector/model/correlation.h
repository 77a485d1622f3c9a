/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the correlation id of a GPU record to the call that caused it. Calls are added in the order
 * of time, and work may be looked up between them: usually its call is there, and surely the right
 * one. Where it is not (by the noise of two clocks work may begin before its call; an id may be
 * that of a call inside another; ids have 32 bits, so a process of many hours has them again),
 * whoever asks must ask again when all are added. Then any record finds its call, however late its
 * block and however many records a launch has. Nothing is ever retired or guessed.
 *
 * The last one to two times CORRELATION_RUN calls are found by a table of their ids; of more than
 * 64 processes so many times CORRELATION_AHEAD. Older ones are sorted by process and id, as runs of
 * as many in a spool (spool.h): so memory is bounded by 7 MB of calls, 1.5 MB for the table (or
 * 120 KB a process for both, up to 16 times as much), the spool's 4 MiB, 40 bytes a run and 8 a
 * process. Ids rise with time, so the runs hardly overlap, and a look-up begins where the one
 * before it of the same process ended.
 */
#ifndef GPUPROF_COLLECTOR_CORRELATION_H
#define GPUPROF_COLLECTOR_CORRELATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spool.h"

#define CORRELATION_RUN     (1u << 16) /* entries sorted at a time, */
#define CORRELATION_AHEAD   1024 /* or so many for each process, which launches ahead of work, */
#define CORRELATION_RUN_MAX (1u << 20) /* and at most */
#define CORRELATION_LINKS   4          /* links followed from one GPU record */
#define CORRELATION_SAME    64         /* calls with one id that are looked at in a run */
/* An id is not used again before: 2^32 calls take longer. */
#define CORRELATION_REUSE_NS 120000000000u

enum correlation_flag {
    CORRELATION_LINK = 1,     /* no call: stands for the one with the id in `target` */
    CORRELATION_LAUNCH = 2,   /* a launch that should have made work of its own */
    CORRELATION_MATCHED = 4,  /* its work has found it */
    CORRELATION_NESTED = 8,   /* inside another call, which goes before */
    CORRELATION_COUNTED = 16, /* for the report: a kernel of its was there before */
    CORRELATION_MOVES = 32,   /* a copy or a fill, and */
    CORRELATION_GRAPH = 64,   /* the launch of a graph, likewise; announced.h */
    CORRELATION_COUNTS = 128, /* a mark alone: its work is to be counted */
};

struct correlated_call {
    uint32_t process; /* struct process index */
    uint32_t id;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t thread;   /* struct thread index */
    uint32_t range;    /* innermost range at its begin (survey.h); 0 = none */
    uint32_t library;  /* likewise: innermost call of a library */
    uint16_t function; /* struct function index */
    uint16_t flags;    /* enum correlation_flag */
    union {
        uint32_t target; /* of a link */
        uint32_t op;     /* of a call: innermost operator or label at its begin, likewise */
    };
    uint32_t stack; /* its stack id; 0 = none */
    uint32_t work;  /* pieces of work that have found it */
    uint32_t graph; /* of the launch of one: announced_graph's index + 1; 0 = not known */
};

/* A time in which launches may have left no work: of what came to pass in it, little is recorded.
 */
struct correlation_gap {
    uint64_t begin_ns;
    uint64_t end_ns;
};

/* Threads that wait for the device at the end of all that is known of them, by thread index. */
struct correlation_hangs {
    const bool *is_hung;
    uint64_t *last_ns; /* begin of their last launch; zeros, filled in here */
};

struct correlation_run {
    uint64_t first_key;
    uint64_t last_key;
    uint64_t offset; /* in the spool */
    uint32_t count;
    uint32_t unmatched; /* launches that no work has found */
};

/* Where the last look-up of a process found its call, the first entry with that key. */
struct correlation_hint {
    uint32_t run;
    uint32_t index;
};

struct correlation {
    struct correlated_call *buffer; /* owned: room for two runs; when all are added, the only one */
    uint32_t counts[2];             /* of entries in each half of the buffer */
    uint32_t young;                 /* the half that is being filled */
    uint32_t added;                 /* calls, modulo 2^32; their numbers count from 1 on */
    uint32_t lap;                   /* number of the one at place 0, or that comes there */
    uint32_t *slots;                /* owned: a table by id: the number of the last that has it */
    uint32_t *next;                 /* owned, by place: the number before in the same slot */
    uint32_t slot_mask;
    uint32_t buffered;            /* entries of the only run */
    uint32_t run_max;             /* entries sorted at a time */
    bool is_late;                 /* nobody asks before all are added: there is no table */
    struct correlation_run *runs; /* owned */
    uint32_t run_count;
    struct correlation_hint *hints; /* owned, by process index */
    uint32_t hint_count;
    struct spool spool;
    uint64_t calls; /* added, links left out */
};

void correlation_init(struct correlation *c);

/* Before the first addition: of so many processes. */
void correlation_expect(struct correlation *c, uint32_t process_count);
void correlation_release(struct correlation *c);

/* Makes room where there is none: in the half of the buffer that is filled next, or a buffer. 0 or
 * an error. */
int correlation_make_room(struct correlation *c);

/* Ids that follow each other have slots that do. */
static inline uint32_t *correlation_slot(const struct correlation *c, uint32_t process, uint32_t id)
{
    return &c->slots[(process * 0x9E3779B1u + id) & c->slot_mask];
}

/* Where the next entry goes, with that process and id. */
static inline struct correlated_call *correlation_room(struct correlation *c, uint32_t process,
                                                       uint32_t id)
{
    uint32_t place = ++c->added - c->lap;
    c->counts[c->young]++;
    if (!c->is_late) {
        uint32_t *slot = correlation_slot(c, process, id);
        c->next[place] = *slot;
        *slot = c->added;
    }
    return &c->buffer[place];
}

/* An id of 0 is left out. 0, GPUPROF_NO_MEMORY or GPUPROF_IO. Inline, so that a call is made where
 * it stays: to copy what was written word by word a moment before makes the processor wait. */
static inline int correlation_add(struct correlation *c, const struct correlated_call *call)
{
    if (!call->id)
        return 0;
    int error = !c->buffer || c->counts[c->young] == c->run_max ? correlation_make_room(c) : 0;
    if (error < 0)
        return error;
    *correlation_room(c, call->process, call->id) = *call;
    c->calls += !(call->flags & CORRELATION_LINK);
    return 0;
}

/* Work with the id `further` was made by the call with the id `id`, which was open at `at_ns`. */
int correlation_link(struct correlation *c, uint32_t process, uint32_t id, uint32_t further,
                     uint64_t at_ns);

/* Where the call of that number is, if it is still in the buffer. */
static inline uint32_t correlation_place(const struct correlation *c, uint32_t number)
{
    uint32_t place = number - c->lap, size = 2 * c->run_max;
    return place < size ? place : place + size;
}

/* What work says of the call that it has found. */
static inline void correlation_mark(struct correlated_call *call, unsigned marks)
{
    call->flags |= (uint16_t)(marks & ~(unsigned)CORRELATION_COUNTS);
    call->work += !!(marks & CORRELATION_COUNTS);
}

/* Surely no other call is better for what began then. */
static inline bool correlation_is_sure(const struct correlated_call *call, uint64_t at_ns)
{
    uint64_t begin_ns = call->begin_ns;
    return !(call->flags & (CORRELATION_LINK | CORRELATION_NESTED)) &&
           (begin_ns < at_ns ? at_ns - begin_ns : begin_ns - at_ns) < CORRELATION_REUSE_NS / 2;
}

/* correlation_find_early where several calls in the buffer have one slot, or none. */
int correlation_find_among(struct correlation *c, uint32_t process, uint32_t id, uint64_t at_ns,
                           unsigned marks, struct correlated_call *found);

/*
 * Between additions: the same as correlation_find, but 1 only where nothing that is added later can
 * change it, and the call is among the last added. After 0, correlation_find will tell.
 */
static inline int correlation_find_early(struct correlation *c, uint32_t process, uint32_t id,
                                         uint64_t at_ns, unsigned marks,
                                         struct correlated_call *found)
{
    uint32_t buffered = c->counts[0] + c->counts[1];
    uint32_t number = c->slots ? *correlation_slot(c, process, id) : c->added - buffered;
    if (c->added - number < buffered) {
        uint32_t place = correlation_place(c, number);
        struct correlated_call *e = &c->buffer[place];
        if (c->added - c->next[place] >= buffered && e->process == process && e->id == id &&
            correlation_is_sure(e, at_ns)) {
            *found = *e;
            correlation_mark(e, marks);
            return 1;
        }
    }
    return correlation_find_among(c, process, id, at_ns, marks, found);
}

/* Likewise: is there one of which that does not tell if it is the call? */
bool correlation_has_early(const struct correlation *c, uint32_t process, uint32_t id);

/* To be called once, between the last addition and the first correlation_find. */
int correlation_finish(struct correlation *c);

/*
 * Looks up the call of that id and gives it the flags `marks`, too: CORRELATION_MATCHED for work of
 * the device, 0 for others. Of several (a driver call inside a runtime call) the outermost; of two
 * uses of the id the last one before `at_ns`, when the work began. 1 and a copy in *found, with the
 * flags it had before; 0 if there is none, or an error.
 */
int correlation_find(struct correlation *c, uint32_t process, uint32_t id, uint64_t at_ns,
                     unsigned marks, struct correlated_call *found);

typedef void correlation_visit_fn(const struct correlated_call *e, void *data);

/* Each call of the process's with one of these flags that is neither a link nor nested; of those
 * that were added one after another as a rule in the order of ids. 0 or an error. */
int correlation_each(struct correlation *c, uint32_t process, unsigned flags,
                     correlation_visit_fn *visit, void *data);

/* Was the call open in one of the gaps, which are sorted? */
bool correlation_meets_gap(const struct correlated_call *e, const struct correlation_gap *gaps,
                           uint32_t count);

/*
 * Launches of `process` that no work has found, *count, but for those that met one of the gaps,
 * which are sorted, and for the last one of each thread in `hangs` (NULL: none): *pending. What
 * that made cannot have ended, since the thread waits; of those before it, which CUPTI may hold
 * back in the same buffer, nobody knows. 0 or an error.
 */
int correlation_unmatched(struct correlation *c, uint32_t process,
                          const struct correlation_gap *gaps, uint32_t gap_count,
                          const struct correlation_hangs *hangs, uint64_t *count,
                          uint64_t *pending);

#endif
