/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the correlation id of a GPU record to the call that caused it. Calls are added, and work is
 * looked up, in the order of time. Of several calls with one id (a driver call inside a runtime
 * call) the outermost is meant; of two uses of an id (it has 32 bits) the newest.
 *
 * The last one to two times CORRELATION_RUN calls are found by a table of their ids; of more than
 * 64 processes so many times CORRELATION_AHEAD. What leaves this buffer is forgotten, unless work
 * of it may still come: launches and copies that no work has found, launches of graphs, and links.
 * These are sorted, and stay: beyond CORRELATION_RUN of them in runs of as many in a spool
 * (spool.h). Memory is bounded by 3.7 MB of calls, 0.8 MB for the table, and 2 MB for what stays
 * (or 180 KB a process for all of it, up to 16 times as much), the spool's 4 MiB and 40 bytes a
 * run.
 */
#ifndef GPUPROF_COLLECTOR_CORRELATION_H
#define GPUPROF_COLLECTOR_CORRELATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spool.h"

#define CORRELATION_RUN     (1u << 15) /* entries sorted at a time, */
#define CORRELATION_AHEAD   1024 /* or so many for each process, which launches ahead of work, */
#define CORRELATION_RUN_MAX (1u << 20) /* and at most */
#define CORRELATION_LINKS   4          /* links followed from one GPU record */
#define CORRELATION_SAME    64         /* calls in one slot of the table that are looked at */

enum correlation_flag {
    CORRELATION_LINK = 1,         /* no call: stands for the one with the id in `target` */
    CORRELATION_LAUNCH = 2,       /* a launch that should have made work of its own */
    CORRELATION_MATCHED = 4,      /* its work has found it */
    CORRELATION_NESTED = 8,       /* inside another call, which goes before */
    CORRELATION_COUNTED = 16,     /* for the report: a kernel of its was there before */
    CORRELATION_MOVES = 32,       /* a copy or a fill, and */
    CORRELATION_GRAPH = 64,       /* the launch of a graph, likewise; announced.h */
    CORRELATION_WORKS = 128,      /* may have work, whether it is expected to or not */
    CORRELATION_COLLECTIVE = 256, /* a kernel, that of the collective of its library's call */
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
    const uint64_t *last_ns; /* begin of their last launch */
};

struct correlation_run {
    uint64_t first_key;
    uint64_t last_key;
    uint64_t offset; /* in the spool */
    uint32_t count;
};

struct correlation {
    struct correlated_call *buffer; /* owned: room for two runs */
    uint32_t counts[2];             /* of entries in each half of the buffer */
    uint32_t young;                 /* the half that is being filled */
    uint32_t added;                 /* calls, modulo 2^32; their numbers count from 1 on */
    uint32_t lap;                   /* number of the one at place 0, or that comes there */
    uint32_t *slots;                /* owned: a table by id: the number of the last that has it */
    uint32_t *next;                 /* owned, by place: the number before in the same slot */
    uint32_t slot_mask;
    uint32_t run_max;              /* entries of half the buffer, and of a run */
    struct correlated_call *aside; /* owned: what stays, sorted, run_max at most; NULL: none */
    uint32_t aside_count;
    struct correlation_run *runs; /* owned: what stays, but for that; the newest come last */
    uint32_t run_count;
    struct spool spool;
};

void correlation_init(struct correlation *c);

/* Before the first addition: of so many processes. */
void correlation_expect(struct correlation *c, uint32_t process_count);
void correlation_release(struct correlation *c);

/* Forgets all calls. */
void correlation_forget(struct correlation *c);

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
    uint32_t *slot = correlation_slot(c, process, id);
    c->next[place] = *slot;
    *slot = c->added;
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
    call->flags |= (uint16_t)marks;
    call->work += !!(marks & CORRELATION_MATCHED);
}

/* correlation_find where several calls in the buffer have one slot, or none. */
int correlation_find_among(struct correlation *c, uint32_t process, uint32_t id, unsigned marks,
                           struct correlated_call *found);

/*
 * Looks up the call of that id and gives it the flags `marks`, too: CORRELATION_MATCHED for work of
 * the device, 0 for others. 1 and a copy in *found, with the flags it had before; 0 if there is
 * none so far, or an error.
 */
static inline int correlation_find(struct correlation *c, uint32_t process, uint32_t id,
                                   unsigned marks, struct correlated_call *found)
{
    uint32_t buffered = c->counts[0] + c->counts[1];
    uint32_t number = c->slots ? *correlation_slot(c, process, id) : c->added - buffered;
    if (c->added - number < buffered) {
        uint32_t place = correlation_place(c, number);
        struct correlated_call *e = &c->buffer[place];
        if (c->added - c->next[place] >= buffered && e->process == process && e->id == id &&
            !(e->flags & CORRELATION_LINK)) {
            *found = *e;
            correlation_mark(e, marks);
            return 1;
        }
    }
    return correlation_find_among(c, process, id, marks, found);
}

typedef void correlation_visit_fn(const struct correlated_call *e, void *data);

/* Behind the last look-up: puts all aside that stays. 0 or an error. */
int correlation_finish(struct correlation *c);

/* After that: each call of the process's that stays, with one of these flags, and is neither a link
 * nor nested. 0 or an error. */
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
