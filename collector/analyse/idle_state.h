/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of idle time (idle.h) while the walk lasts and behind it, and what idle.c has it
 * made by: waits for other ranks, what threads do, what devices do. The functions that return an
 * int return 0 or an error.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_STATE_H
#define GPUPROF_COLLECTOR_IDLE_STATE_H

#include "analyse/arrivals.h"
#include "analyse/idle_place.h"
#include "analyse/idle_ranks.h"
#include "analyse/idle_thread.h"
#include "analyse/place_lines.h"
#include "analyse/thread_time.h"
#include "base/key_map.h"
#include "resolve/event_walk.h"
#include "resolve/steps.h"

#define IDLE_DEVICES_MAX (1u << 16)
#define IDLE_PAUSES_MAX  (1u << 17)
#define IDLE_NAMES       256 /* of kernels, that were asked for last */
#define IDLE_RECENT      64  /* devices, likewise */

/* At each moment the first of these that is under way. */
enum idle_part {
    IDLE_COMPUTE,
    IDLE_COMMUNICATING,
    IDLE_COPYING,
    IDLE_BUSY_PARTS,
    IDLE_OTHER = IDLE_BUSY_PARTS, /* not in the piece */
    IDLE_PARTS
};

/* A call that submits work. */
struct idle_submit {
    const struct idle_thread *thread; /* NULL: not known, and so is the rest */
    uint64_t begin_ns, end_ns;
    uint32_t function, stack;
};

struct idle_gap {
    uint64_t begin_ns; /* of what is to be charged */
    uint64_t end_ns;
    uint64_t busy_ns;    /* until then the device was busy ... */
    uint64_t compute_ns; /* ... and computed; before begin_ns */
    uint32_t process;
    uint32_t device;
    struct idle_submit call;          /* that made the work which ends it */
    const struct idle_thread *before; /* that made the work before it; NULL: not known */
    bool is_first;                    /* the process had done no work */
    bool is_behind_unknown; /* there is work before it that nobody knows: waits are for that */
    bool is_given;          /* of one that is held: the copy's after all */
    const struct idle_gap *parts; /* what of it is to be charged; NULL: all */
    uint32_t part_count;
};

/*
 * Gaps of a device between two kernels that copies and sets of another thread ended than the one
 * that launched the last kernel. Whose they are is known when the next kernel comes: of the thread
 * that launches that one, as if there had been no copy; of the copies' where it may have waited for
 * these (formats/answers.md, "Idle time"). Until then they are held. Memory: 112 bytes a gap,
 * IDLE_HELD_MAX of a device at most; then they are the copies'.
 */
#define IDLE_HELD_MAX (1u << 14)

struct idle_held {
    struct idle_gap *gaps; /* owned */
    uint32_t count, capacity;
    uint64_t busy_ns, compute_ns; /* of the first one, be it given or not */
};

/* The waits of a device for other ranks, which lie together in a spool. */
struct idle_waits {
    uint64_t first; /* place of the first one, ... */
    uint64_t next;  /* ... of the first one that idle_waited has not passed, ... */
    uint64_t end;   /* ... and behind the last one; 0: none */
    uint64_t gap;   /* of the collective in which it waits: number for idle_rows.h */
};

/* A device of a process that has work in the piece. */
struct idle_device {
    const struct process *process;
    uint64_t device;
    uint64_t begin_ns; /* the window */
    uint64_t end_ns;
    uint64_t first_ns; /* begin of its first work: devices are in this order, then by process */
    uint64_t parts[IDLE_PARTS];   /* ns */
    uint64_t idle_ns;             /* with those they are the window, but for: */
    uint64_t stopped_ns;          /* nothing was recorded, and nothing is known to have run */
    uint64_t causes[IDLE_CAUSES]; /* of idle_ns, which they add up to */
    uint64_t collectives;         /* that another rank took part in */
    uint64_t late;                /* of these it was the last to begin */
    uint64_t late_ns;             /* behind the first one, added up */
    uint64_t awaited_ns;          /* for which other devices only waited for it */
    struct idle_waits waits;
    bool loses_work; /* as struct idle_track has it */
    bool is_split;   /* it has rows of what threads did (idle_host.c) */
};

/* A time in which a device waited for another rank. */
struct idle_wait {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t process; /* index of the one that is waited for; IDLE_NONE: not known */
};

/* Of a device in steps, ranges or windows: its time ends with them, or with the last work in them.
 * What comes behind that counts if more of their work follows, and is forgotten else. */
struct idle_aside {
    struct idle_rows rows;
    uint64_t other_ns; /* this and what follows: as the device had it */
    struct idle_row own;
    bool is_open;
};

/* What a device did since its last collective: its longest gap, and its longest work but for
 * collectives, with what launched it. */
struct idle_since {
    struct idle_rest rest;
    uint64_t worked_ns;
    struct idle_place worked;
};

/* The way through the time of a device; idle_ranks.h numbers them by their places. In a piece also
 * of those without work in it. */
struct idle_track {
    const struct process *process;
    uint64_t device;
    uint32_t place;     /* in `devices`; IDLE_NONE: no work in the piece so far */
    bool loses_work;    /* its last may be lost: behind the walk */
    uint64_t at_ns;     /* before that all is counted */
    uint64_t to_ns;     /* of steps, ranges and windows: so far */
    uint64_t kernel_ns; /* end of the last kernel or graph, whether it is in the piece or not */
    uint64_t until_ns[IDLE_PARTS];
    const struct idle_thread *before;   /* that made the last work, if it is known, ... */
    const struct idle_thread *launcher; /* ... and the last kernel or graph */
    struct idle_held held;
    struct idle_row own; /* short gaps before work that was queued, which are most of them */
    struct idle_since since;
    uint32_t once;       /* number of its last gap in idle_early; 0: none */
    uint32_t once_count; /* how many it has there */
    struct idle_aside aside;
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

#define IDLE_EARLY_STEPS 5
#define IDLE_EARLY_MAX   12
#define IDLE_ONCE_MAX    64 /* of all devices of a process */
#define IDLE_ONCE_DEVICE 8  /* what a device waits for more often does not come once */

/* A long gap of a device that has done little work so far. Where a program has no steps, it is
 * start-up if nothing like it comes again. */
struct idle_once {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t work_ns;  /* that the device had done */
    uint64_t host_ns;  /* of the gap: the program's own code ran, or could have */
    uint64_t later_ns; /* the most of that in a later gap, up to the device's next one of these */
    uint32_t device;   /* place in struct idle's devices */
    bool is_start_up;  /* behind the walk */
};

/* When the first steps of a process may have begun, in the order of time: what its steps are is
 * known behind the walk. And what may be start-up if it has none. */
struct idle_early {
    uint64_t at_ns[IDLE_EARLY_MAX];
    struct idle_once once[IDLE_ONCE_MAX];
    uint64_t once_until_ns; /* no such gap is later */
    uint32_t once_count;
    uint32_t count;
    uint32_t of_kind; /* how many of those are marks of the kind that goes before others so far */
    unsigned kind;    /* enum step_kind */
};

/* An epoch: how many of the steps had begun, and above IDLE_EPOCH_BITS the number, from 1 on, of
 * the gap that the time is in. */
#define IDLE_EPOCH_BITS 4
#define IDLE_EPOCH_MASK ((1u << IDLE_EPOCH_BITS) - 1)
_Static_assert(IDLE_EARLY_MAX<IDLE_EPOCH_MASK && IDLE_ONCE_MAX<IDLE_LATE>> IDLE_EPOCH_BITS,
               "no epoch is IDLE_LATE");

static inline uint16_t idle_epoch(const struct idle_early *early, uint64_t ns)
{
    uint32_t count = early->count, once = ns < early->once_until_ns ? early->once_count : 0;
    while (count && early->at_ns[count - 1] > ns)
        count--;
    while (once && (ns < early->once[once - 1].begin_ns || ns >= early->once[once - 1].end_ns))
        once--;
    return (uint16_t)(once << IDLE_EPOCH_BITS | count);
}

struct idle_process {
    uint64_t begin_ns;       /* 0: no event yet */
    uint64_t first_call_ns;  /* UINT64_MAX: none yet */
    struct idle_submit call; /* the last one that submits work */
    uint64_t sampled_ns;     /* from here on not all launches are recorded */
    struct idle_lost lost;
    struct idle_gap first;    /* before its first work, of the device that did it */
    struct time_span *pauses; /* owned */
    uint32_t pause_count;
    struct idle_early early;
    struct blind_time *blind; /* owned: there were calls, and nothing of the devices */
    uint32_t blind_count;
    uint64_t work_ns; /* when all is there: that its threads have made, as each of them has it */
    bool is_paused;
    bool has_worked;
};

/* A kernel's name that was asked for. */
struct idle_name {
    const struct process *process;
    uint64_t number;
    const struct kernel_name *name;
    bool communicates;
};

/* What is known while the walk lasts. */
struct idle_way {
    const struct steps *steps;      /* a view; NULL: none are known */
    uint64_t marks_made;            /* of these so many are in `early` of their processes */
    struct idle_process *processes; /* owned, by index */
    struct idle_thread **threads;   /* owned, and so are they; by index; NULL: no call */
    struct key_map track_of;        /* (process, device) -> place + 1 */
    uint32_t recent[IDLE_RECENT];   /* places + 1 of those that were asked for */
    struct idle_name names[IDLE_NAMES];
    struct key_map loaders; /* text of a range -> 1, or 2 if it says data loading */
    uint64_t last_gap;      /* number that was given to a wait for another rank */
    uint32_t pause_count;
    bool leaves_out_ranks; /* devices that are not wanted communicate, too */
};

struct idle {
    struct walk *walk;
    bool follows_ranks; /* devices of several processes, here or where this part is added to others
                         */
    struct idle_way way;
    struct idle_device *devices; /* owned */
    uint32_t device_count;
    struct idle_track *tracks; /* owned */
    uint32_t track_count;
    struct idle_rows rows;
    struct place_lines lines; /* of its places, and of who adds to them before idle_name */
    struct {
        struct idle_total *list; /* owned; the largest first, once named */
        uint32_t count;
    } totals;
    uint64_t window_ns;     /* of all devices */
    struct idle_device all; /* their times: of its members the sums */
    struct idle_ranks ranks;
    struct arrivals arrivals;
    struct thread_times host; /* what threads did between calls */
    struct spool waits;       /* for other ranks; device by device, each in the order of time */
};

/* Of a piece from one time to another devices are followed as in the whole, and what is before and
 * behind it is not counted. */
static inline uint64_t idle_cut(const struct idle *d, uint64_t ns)
{
    const struct walk_filter *f = d->walk->filter;
    return !f || !f->is_span ? ns : ns < f->from_ns ? f->from_ns : ns < f->to_ns ? ns : f->to_ns;
}

/* The place + 1 of a device that has work in the piece; 0: it has none so far. */
static inline uint32_t idle_device_place(const struct idle *d, const struct process *p,
                                         uint64_t device)
{
    uint64_t track = key_map_get(&d->way.track_of, (struct key){p->index, device, 0});
    return track ? d->tracks[track - 1].place + 1 : 0; /* IDLE_NONE + 1 is 0 */
}

/* For idle.c: begins; and when all communication is known, what was a wait for another rank becomes
 * idle time, with rows, and is kept for idle_waited. (idle_waits.c) */
void idle_waits_init(struct idle *d);
int idle_waits_charge(struct idle *d);

/*
 * After idle_finish: for how much of the time between the two the device at that place
 * communicated, as its work has it, but only waited for another rank. Of each device these times
 * must come one after another, and each once; idle_waited_begin makes them begin anew.
 */
int idle_waited(struct idle *d, uint32_t device, uint64_t begin_ns, uint64_t end_ns, uint64_t *ns);

/* Likewise, one by one: the wait at `place`, from 0 on, of the device at place `device`. 1, 0 if it
 * has not as many, or an error. */
int idle_wait_at(struct idle *d, uint32_t device, uint64_t place, struct idle_wait *wait);

static inline void idle_waited_begin(struct idle_device *device)
{
    device->waits.next = device->waits.first;
}

/* For idle.c: what it makes of a slice. */

/* NULL: no memory. */
struct idle_thread *idle_thread_of(struct idle *d, const struct thread *thread);

/* A gap, in which a device did nothing, is cut into pieces, each of one cause and one place: by
 * what the thread did that made the work which ends it. (idle_gap.c) */

/* Adds rows for what of the gap is in the piece of time that is looked at, but for waits in one
 * that is behind what is unknown. */
typedef int idle_charge_fn(const struct idle *d, struct idle_rows *rows,
                           const struct idle_gap *gap);
idle_charge_fn idle_gap_charge, idle_gap_charge_last; /* ... of a gap that no work ends */

/* Of a gap that a copy ends: does the thread that launched the last kernel not wait for that?
 * (idle_held.c, and so are those below) */
bool idle_held_may_hold(const struct idle_gap *gap, const struct idle_thread *launcher);

int idle_held_add(struct idle_held *h, const struct idle_gap *gap);

/*
 * The device was busy until then, and the next kernel is of that call (NULL: not known). Charges
 * those that are the copies'; the others stay.
 */
int idle_held_give(const struct idle *d, struct idle_held *h, uint64_t busy_ns,
                   const struct idle_submit *call, struct idle_rows *rows);

/* After that: those that stay are of that call, which made the kernel; `before` made the one before
 * them. */
int idle_held_charge(const struct idle *d, struct idle_held *h, const struct idle_submit *call,
                     const struct idle_thread *before, struct idle_rows *rows);

/* Of start-up (idle_start.c): begins, where the steps are complete before the walk; one more mark
 * of a step was made; and behind the walk, charges to it what was idle until then. */
int idle_start_begin(struct idle *d);
void idle_start_mark(struct idle *d);
int idle_start_charge(struct idle *d);

/* A gap is about to be charged: it may be start-up. And: in a gap that ended at end_ns the
 * program's own code ran, or could have, for so long; t->once is set. */
void idle_start_gap(struct idle *d, struct idle_track *t, const struct idle_gap *gap);
void idle_start_host(struct idle *d, const struct idle_track *t, uint64_t end_ns, uint64_t ns);

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

/* Behind the walk, when start-up is charged: splits idle time in which the thread that fed the
 * device made no call by what it did (idle_host.c). */
int idle_host_settle(struct idle *d);

/* Of threads: calls, what the driver did inside them, operators, ranges, and a SILENCE record.
 * (idle_calls.c) */
int idle_take_call(struct idle *d, struct idle_process *p, const struct slice *s);
int idle_take_overhead(struct idle *d, const struct idle_process *p, const struct slice *s);
int idle_take_op(struct idle *d, const struct slice *s);
int idle_take_range(struct idle *d, const struct slice *s);
int idle_take_silence(struct idle *d, const struct slice *s);

/* Of devices: their work, whether it is in the piece or not; and what is behind the last of it, and
 * the sums. (idle_device.c) */
int idle_take_work(struct idle *d, struct idle_process *p, const struct slice *s);
int idle_devices_end(struct idle *d);

#endif
