/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of idle time (idle.h) while the walk lasts and behind it, and what idle.c has it
 * made by: waits for other ranks, what threads do, what devices do. The functions that return an
 * int return 0 or an error.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_STATE_H
#define GPUPROF_COLLECTOR_IDLE_STATE_H

#include "base/key_map.h"
#include "find/arrivals.h"
#include "find/idle_gap.h"
#include "find/idle_place.h"
#include "find/idle_ranks.h"
#include "find/place_lines.h"
#include "find/thread_time.h"
#include "model/event_walk.h"
#include "model/steps.h"

#define IDLE_DEVICES_MAX (1u << 16)
#define IDLE_PAUSES_MAX  (1u << 17)
#define IDLE_KERNELS_MAX (1u << 16) /* numbers of kernels of a process; others compute */

/* At each moment the first of these that is under way. */
enum idle_part {
    IDLE_COMPUTE,
    IDLE_COMMUNICATING,
    IDLE_COPYING,
    IDLE_BUSY_PARTS,
    IDLE_OTHER = IDLE_BUSY_PARTS, /* not in the piece */
    IDLE_PARTS
};

/* Of a device in steps, ranges or windows: its time ends with them, or with the last work in them.
 * What comes behind that counts if more of their work follows, and is forgotten else. */
struct idle_aside {
    struct idle_rows rows;
    uint64_t idle_ns; /* this and what follows: as the device had it */
    uint64_t stopped_ns;
    uint64_t other_ns;
    uint64_t causes[IDLE_CAUSES];
    struct idle_row own;
    bool is_open;
};

struct idle_device {
    const struct process *process;
    uint64_t device;
    uint32_t ranked;   /* its number for idle_ranks.h */
    uint64_t begin_ns; /* the window */
    uint64_t end_ns;
    uint64_t to_ns;    /* of steps, ranges and windows: so far */
    uint64_t first_ns; /* begin of its first work: devices are in this order, then by process */
    uint64_t parts[IDLE_PARTS];   /* ns */
    uint64_t idle_ns;             /* with those they are the window, but for: */
    uint64_t stopped_ns;          /* nothing was recorded, and nothing is known to have run */
    uint64_t causes[IDLE_CAUSES]; /* of idle_ns, which they add up to */
    uint64_t collectives;         /* that another rank took part in */
    uint64_t late;                /* of these it was the last to begin */
    uint64_t late_ns;             /* behind the first one, added up */
    uint64_t awaited_ns;          /* for which other devices only waited for it */
    uint64_t at_ns;               /* this and what follows: while the walk lasts */
    uint64_t until_ns[IDLE_PARTS];
    uint64_t kernel_ns; /* end of the last kernel or graph, whether it is in the piece or not */
    struct idle_aside *aside; /* owned; NULL: no other work yet */
    uint32_t pause;           /* place of the first one that may matter, ... */
    uint32_t blind;           /* ... and of the first of these times */
    uint64_t unknown_ns;      /* the end of the last of both that is over */
    struct idle_maker before;
    struct idle_maker launcher; /* of its last kernel or graph, if it is known */
    struct idle_held *held;     /* owned; NULL: nothing yet */
    uint32_t once;              /* number of its last gap in idle_early; 0: none */
    uint32_t once_count;        /* how many it has there */
    uint64_t first_wait;        /* place of its first wait for another rank, ... */
    uint64_t next_wait;         /* ... of the first one that idle_waited has not passed, ... */
    uint64_t waits_end;         /* ... and behind the last one; 0: none */
    uint64_t gap;               /* of the collective in which it waits: number for idle_rows.h */
    struct idle_row own;        /* short gaps before work that was queued, which are most of them */
    uint64_t rested_ns;         /* the longest gap since its last collective, ... */
    uint32_t rested;            /* ... and its row */
    uint64_t worked_ns; /* likewise its longest work but for collectives, and what launched it */
    struct idle_place worked;
    bool loses_work; /* as struct idle_ranked has it */
    bool is_split;   /* it has rows of what threads did (idle_host.h) */
};

/* A time in which a device waited for another rank; those of a device lie together. */
struct idle_wait {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t process; /* index of the one that is waited for; IDLE_NONE: not known */
};

/* The work of a device before its first in a piece. */
struct idle_before {
    uint64_t until_ns;  /* the end of the last one, ... */
    uint64_t kernel_ns; /* ... and of the last kernel or graph */
    struct idle_maker last, launcher;
};

/* A device as idle_ranks.h numbers them: in a piece also those without work in it. */
struct idle_ranked {
    const struct process *process;
    uint64_t device;
    uint32_t place;  /* in `devices`; IDLE_NONE */
    bool loses_work; /* its last may be lost: behind the walk */
};

struct idle_pause {
    uint64_t begin_ns;
    uint64_t end_ns;
};

/*
 * Of a process that did not end by itself: what it launched last, and what of that CUPTI had not
 * handed over. While its device may have done that nothing is known of it: until the process's end
 * or, if it launched nothing for a second before that, until its last launch. What hangs, in a call
 * that has been open for a second, is not of these.
 */
struct idle_lost {
    bool may_be;
    bool has_hung;
    uint64_t worked_ns;   /* end of the last work of any device */
    uint64_t made_ns;     /* begin of the last launch whose work there is */
    uint64_t last_ns;     /* of the last launch, ... */
    uint64_t returned_ns; /* ... and its end */
    uint64_t queued_ns;   /* begin of the last one before worked_ns, ... */
    uint64_t behind_ns;   /* ... and, if it is later than that, of the first one behind it */
};

struct idle_process {
    uint64_t begin_ns;       /* 0: no event yet */
    uint64_t first_call_ns;  /* UINT64_MAX: none yet */
    struct idle_maker maker; /* of the last call that submits work, ... */
    uint64_t call_begin_ns;  /* ... and that call */
    uint64_t call_end_ns;
    struct idle_lost lost;
    struct idle_gap first;     /* before its first work, of the device that did it */
    struct idle_pause *pauses; /* owned */
    uint32_t pause_count;
    struct idle_early early;
    struct blind_time *blind; /* owned: there were calls, and nothing of the devices */
    uint32_t blind_count;
    uint64_t sampled_ns; /* from here on not all launches are recorded */
    uint8_t *kernels;    /* owned, by number: what it is */
    uint32_t kernel_count;
    uint64_t work_ns; /* when all is there: that its threads have made, as each of them has it */
    bool is_paused;
    bool has_worked;
};

struct idle {
    struct walk *walk;
    const struct steps *steps;   /* a view; NULL: none are known */
    uint64_t marks_made;         /* of these so many are in `early` of their processes */
    struct idle_device *devices; /* owned */
    uint32_t device_count;
    struct idle_rows rows;
    struct place_lines lines;  /* of its places, and of who adds to them before idle_name */
    struct idle_total *totals; /* owned; the largest first, once named */
    uint32_t total_count;
    uint64_t window_ns; /* of all devices, and so the next ones */
    uint64_t parts[IDLE_PARTS];
    uint64_t idle_ns;
    uint64_t stopped_ns;
    uint64_t causes[IDLE_CAUSES];
    /* While the walk lasts. */
    struct idle_process *processes; /* owned, by index */
    struct idle_thread **threads;   /* owned, and so are they; by index; NULL: no call */
    struct key_map device_of;       /* (process, device) -> place + 1 */
    struct idle_before *befores;    /* owned: of steps, ranges or windows, by (process, device) */
    uint32_t before_count;
    struct key_map before_of; /* -> place + 1 */
    struct idle_ranks ranks;
    struct idle_ranked *ranked; /* owned */
    uint32_t ranked_count;
    struct key_map ranked_of; /* (process, device) -> number + 1 */
    struct arrivals arrivals;
    struct thread_times host; /* what threads did between calls */
    struct spool waits;       /* for other ranks; device by device, each in the order of time */
    struct key_map loaders;   /* text of a range -> 1, or 2 if it says data loading */
    uint32_t last_device;     /* that was asked for */
    uint64_t last_gap;        /* number that was given to a wait for another rank */
    uint32_t held_serial;     /* the last one's */
    uint32_t held_count;      /* gaps that are held, of all devices */
    uint32_t pause_count;
    bool follows_ranks;
    bool leaves_out_ranks; /* devices that are not wanted communicate, too */
};

/* Are devices of several processes followed, here or where this part is added to others? */
static inline bool idle_follows_ranks(const struct idle *d)
{
    return d->follows_ranks;
}

/* The device's number for idle_ranks.h + 1, and a new one if need be; 0: there are too many, or
 * *error is not 0. (idle_waits.c) */
uint32_t idle_ranked(struct idle *d, const struct process *p, uint64_t device, int *error);

/* For idle.c: begins; and when all communication is known, what was a wait for another rank becomes
 * idle time, with rows, and is kept for idle_waited. 0 or an error. (idle_waits.c) */
void idle_waits_init(struct idle *d);
int idle_waits_charge(struct idle *d);

/*
 * After idle_finish: for how much of the time between the two the device at that place
 * communicated, as its work has it, but only waited for another rank. Of each device these times
 * must come one after another, and each once; idle_waited_begin makes them begin anew. 0 or an
 * error.
 */
int idle_waited(struct idle *d, uint32_t device, uint64_t begin_ns, uint64_t end_ns, uint64_t *ns);

/* Likewise, one by one: the wait at `place`, from 0 on, of the device at place `device`. 1, 0 if it
 * has not as many, or an error. */
int idle_wait_at(struct idle *d, uint32_t device, uint64_t place, struct idle_wait *wait);

static inline void idle_waited_begin(struct idle_device *device)
{
    device->next_wait = device->first_wait;
}

/* For idle.c: what it makes of a slice. Each that returns an int returns 0 or an error. */

/* NULL: no memory. */
struct idle_thread *idle_thread_of(struct idle *d, const struct thread *thread);

static inline struct idle_maker idle_maker_of(const struct idle *d, uint32_t thread)
{
    return (struct idle_maker){.thread = d->threads[thread], .index = thread};
}

/* Of start-up (idle_start.c): begins, where the steps are complete before the walk; one more mark
 * of a step was made; and behind the walk, charges to it what was idle until then. */
int idle_start_begin(struct idle *d);
void idle_start_mark(struct idle *d);
int idle_start_charge(struct idle *d);

/* A gap is about to be charged: it may be start-up. And: in a gap that ended at end_ns the
 * program's own code ran, or could have, for so long; device->once is set. */
void idle_start_gap(struct idle *d, struct idle_device *device, const struct idle_gap *gap);
void idle_start_host(struct idle *d, const struct idle_device *device, uint64_t end_ns,
                     uint64_t ns);

/* What the device has done so far. */
static inline uint64_t idle_work_ns(const struct idle_device *device)
{
    uint64_t ns = 0;
    for (unsigned part = 0; part < IDLE_BUSY_PARTS; part++)
        ns += device->parts[part];
    return ns;
}

/* Of what did not end by itself: which of its work is lost. To be told all calls and all work, in
 * the order of time. (idle_lost.c) */
void idle_lost_begin(struct idle_lost *lost, const struct process *p);
void idle_lost_call(struct idle_lost *lost, const struct event *e);
void idle_lost_work(struct idle_lost *lost, const struct slice *s);

/* Behind the last: from when on, and until when, what its devices did is not known; false: that is
 * known up to end_ns. (idle_lost.c) */
bool idle_lost_span(const struct idle_lost *lost, uint64_t end_ns, struct time_span *span);

/* Behind the walk: of which devices the last work may be lost. */
void idle_lost_end(struct idle *d);

/* Of threads: calls, what the driver did inside them, operators, and ranges. (idle_calls.c) */
int idle_take_call(struct idle *d, struct idle_process *p, const struct slice *s);
int idle_take_overhead(struct idle *d, const struct idle_process *p, const struct slice *s);
int idle_take_op(struct idle *d, const struct slice *s);
int idle_take_range(struct idle *d, const struct slice *s);

/* A SILENCE record. (idle_calls.c) */
int idle_take_silence(struct idle *d, const struct slice *s);

/* Of devices: their work, that which is not in the piece, and what is behind the last of it.
 * (idle_device.c) */
int idle_take_work(struct idle *d, struct idle_process *p, const struct slice *s);
int idle_take_hidden_work(struct idle *d, struct idle_process *p, const struct slice *s);
int idle_device_end(struct idle *d, struct idle_device *device);

#endif
