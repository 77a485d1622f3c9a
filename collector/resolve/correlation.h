/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the call that caused a GPU record, by its correlation id. Calls are added, and work is
 * looked up, in the order of time. If several calls have one id (a driver call inside a runtime
 * call), the outermost is returned. If an id (32 bits) was used twice, the newest call is returned.
 *
 * A table of ids finds the last one to two times CORRELATION_RUN calls; with more than 4 processes,
 * so many times CORRELATION_AHEAD. They fit into a processor's second cache. Calls that leave this
 * buffer are forgotten, unless work may still arrive for them: launches and copies without work so
 * far, graph launches, and links. A second table finds these in a spool (spool.h). Memory is
 * bounded by 0.7 MB of calls and 0.6 MB for the table (or 300 KB a process for both,
 * CORRELATION_RUN_MAX times 150 bytes at most), and for stored calls a table of 4 MB and the
 * spool's 4 MiB.
 */
#ifndef GPUPROF_COLLECTOR_CORRELATION_H
#define GPUPROF_COLLECTOR_CORRELATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spool.h"

#define CORRELATION_RUN     (1u << 13) /* calls that leave the buffer at a time, */
#define CORRELATION_SLOTS   (1u << 17) /* least size of the table: ids of processes cross there */
#define CORRELATION_AHEAD   2048 /* or this many for each process, as launches run ahead of work, */
#define CORRELATION_RUN_MAX (1u << 20) /* and at most */
#define CORRELATION_STORED  (1u << 20) /* slots of the table of stored calls */
#define CORRELATION_LINKS   4          /* links followed from one GPU record */
#define CORRELATION_SAME    64         /* calls in one slot of a table that are compared */

enum correlation_flag {
    CORRELATION_LINK = 1,         /* not a call: points to the one with the id in `target` */
    CORRELATION_LAUNCH = 2,       /* a launch that should have work */
    CORRELATION_MATCHED = 4,      /* its work was found */
    CORRELATION_NESTED = 8,       /* inside another call, which is preferred */
    CORRELATION_COUNTED = 16,     /* for the report: an earlier kernel of this call was counted */
    CORRELATION_MOVES = 32,       /* a copy or a fill that should have work */
    CORRELATION_GRAPH = 64,       /* the launch of a graph */
    CORRELATION_WORKS = 128,      /* may have work, even if none is expected */
    CORRELATION_COLLECTIVE = 256, /* launches the kernel of a collective */
};

struct correlated_call {
    uint32_t process; /* struct process index */
    uint32_t id;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t thread;   /* struct thread index */
    uint16_t function; /* struct function index */
    uint16_t flags;    /* enum correlation_flag */
    union {
        uint32_t target; /* of a link */
        uint32_t span;   /* of a call: innermost span at its begin (survey.h); 0: none */
    };
    uint32_t stack; /* its stack id; 0 = none */
};

/* An interval in which little was recorded, so that launches in it may have no work. */
struct correlation_gap {
    uint64_t begin_ns;
    uint64_t end_ns;
};

struct correlation_thread {
    uint64_t last_launch_ns; /* begin of its last launch */
    bool is_hung;            /* it was still waiting for the device when its recording ended */
};

/* Which calls of a process without work have lost it, and how many have. */
struct correlation_losses {
    unsigned kinds;               /* flags of the calls that count */
    uint64_t late_ns;             /* copies and graph launches before it made none */
    struct correlation_gap *gaps; /* sorted */
    uint32_t gap_count;
    uint64_t count;
    uint64_t pending; /* last launches of threads that hang: their work cannot have ended */
};

struct correlation {
    struct correlated_call *buffer; /* owned: the last calls, by the low bits of their numbers */
    uint32_t *next;                 /* owned, likewise: the previous number in the same slot */
    uint32_t *slots;                /* owned: hash table by id: the number of the newest entry */
    uint32_t place_mask, slot_mask;
    uint32_t added;     /* number of the last call, modulo 2^32 */
    uint32_t count;     /* calls in the buffer, at most twice run_max */
    uint32_t run_max;   /* calls that leave it at a time */
    uint32_t *stored;   /* owned: hash table by id: number of the newest stored call */
    struct spool spool; /* struct stored_call; number n is item n - 1 */
};

void correlation_init(struct correlation *c, uint32_t process_count);
void correlation_release(struct correlation *c);

/* Forgets all calls. */
void correlation_forget(struct correlation *c);

/* Allocates the buffer, or removes its older half. */
void correlation_make_room(struct correlation *c);

/* Consecutive ids get consecutive slots. */
static inline uint32_t *correlation_slot(const struct correlation *c, uint32_t process, uint32_t id)
{
    return &c->slots[(process * 0x9E3779B1u + id) & c->slot_mask];
}

/*
 * Makes room for a call, which the caller then writes to the result, with the same process and id;
 * NULL for id 0, which is ignored. Not copied from a struct of the caller: copying words that were
 * just written stalls the processor.
 */
static inline struct correlated_call *correlation_add(struct correlation *c, uint32_t process,
                                                      uint32_t id)
{
    if (!id)
        return NULL;
    if (!c->buffer || c->count == 2 * c->run_max)
        correlation_make_room(c);
    uint32_t place = ++c->added & c->place_mask;
    c->count++;
    uint32_t *slot = correlation_slot(c, process, id);
    c->next[place] = *slot;
    *slot = c->added;
    return &c->buffer[place];
}

/* Adds a link: work with id `further` belongs to the call `id` that was open at `at_ns`. */
void correlation_link(struct correlation *c, uint32_t process, uint32_t id, uint32_t further,
                      uint64_t at_ns);

/* The slow path of correlation_find: several calls share the slot, or the buffer has none. */
bool correlation_find_among(struct correlation *c, uint32_t process, uint32_t id, unsigned marks,
                            struct correlated_call *found);

/*
 * Looks up the call of that id and adds the flags `marks` to it: CORRELATION_MATCHED for work of
 * the device, otherwise 0. Returns true and a copy in *found, with the flags before the change;
 * false if there is no such call so far.
 */
static inline bool correlation_find(struct correlation *c, uint32_t process, uint32_t id,
                                    unsigned marks, struct correlated_call *found)
{
    uint32_t number = c->count ? *correlation_slot(c, process, id) : c->added;
    if (c->added - number < c->count) {
        uint32_t place = number & c->place_mask;
        struct correlated_call *e = &c->buffer[place];
        if (c->added - c->next[place] >= c->count && e->process == process && e->id == id &&
            !(e->flags & CORRELATION_LINK)) {
            *found = *e;
            e->flags |= (uint16_t)marks;
            return true;
        }
    }
    return correlation_find_among(c, process, id, marks, found);
}

/* Stores all calls that remain; call it after the last look-up. */
void correlation_finish(struct correlation *c);

/*
 * After correlation_finish: counts the calls that lost their work into `losses`, by process index,
 * except those that were open in a gap. `threads` are by thread index. CUPTI may hold back earlier
 * work of a thread that hangs, in the same buffer.
 */
void correlation_missing(struct correlation *c, struct correlation_losses *losses,
                         const struct correlation_thread *threads);

#endif
