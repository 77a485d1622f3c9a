/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of each device of each process went: computing, communication, copies or idle, and
 * the idle time by cause and place, exact to the nanosecond. formats/answers.md, "Idle time", has
 * the rules. Work outside the selection only makes the device not idle.
 *
 * Memory: idle_rows.h, thread_time.h, idle_ranks.h, place_lines.h; 8 bytes a thread, 352 a process,
 * 1 KB a device of a process (IDLE_DEVICES_MAX at most) and 16 bytes a gpuprof_stop()
 * (IDLE_PAUSES_MAX at most; later ones are ignored). Waits for other ranks lie in a spool.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_H
#define GPUPROF_COLLECTOR_IDLE_H

#include <regex.h>

#include "analyse/idle_ranks.h"
#include "analyse/idle_rows.h"
#include "analyse/place_lines.h"
#include "analyse/thread_time.h"
#include "base/key_map.h"
#include "query/sums.h"
#include "record/gpu_record.h"
#include "resolve/event_walk.h"
#include "resolve/kernel_class.h"
#include "resolve/steps.h"
#include "table/table.h"

#define IDLE_DEVICES_MAX (1u << 16)
#define IDLE_PAUSES_MAX  (1u << 17)
#define IDLE_NAMES       256 /* cached names of kernels */
#define IDLE_RECENT      64  /* cached devices */

/* What a device does: at each moment the first of these in progress. */
enum idle_part {
    IDLE_COMPUTE,
    IDLE_COMMUNICATING,
    IDLE_COPYING,
    IDLE_BUSY_PARTS,
    IDLE_OTHER = IDLE_BUSY_PARTS, /* outside the selection */
    IDLE_PARTS
};

/*
 * The last calls of a thread in order, and what it was in during them if that says more: data
 * loading, a capture, a range that ended before the next call. Memory: 96 bytes a call or time
 * between two. Of twice IDLE_ENTRIES_MAX entries of a thread the older half is forgotten.
 */
#define IDLE_ENTRIES_MAX 128

/* Calls of a thread that are closer than this count as consecutive. */
#define IDLE_NEAR_NS 50000u

/* A thread without a call for this long does something else. */
#define IDLE_NOTHING_NS 5000000000u

#define IDLE_SPENT_MAX 8 /* distinct range names between two calls */

struct idle_entry {
    uint64_t begin_ns, end_ns;
    uint64_t since_ns; /* begin of the operator or range in `place`; 0: none */
    struct idle_place place;
    struct silence_look look; /* of the time before it, without what the previous entry covers */
    uint8_t cause;            /* enum idle_cause */
    bool is_around;           /* the stack also belongs to an operator around it */
};

/* How long ranges or operators of one name were open since the last call. */
struct idle_spent {
    struct idle_place place;
    uint64_t ns;
};

/* The last silence after which the thread was sampled. Sampling has a limit: a later silence
 * between calls of the same functions that was not sampled is assumed to be like this one. */
struct idle_silence {
    uint64_t ns; /* duration; 0: none yet */
    struct silence_look look;
    uint32_t stack;    /* of the call that ended it, ... */
    uint32_t function; /* ... the function of that call, ... */
    uint32_t from;     /* ... and of the call before it */
    bool is_pending;   /* the call that ended it is not recorded yet */
};

struct idle_thread {
    uint32_t index; /* of its struct thread */
    struct idle_silence silence;
    struct idle_entry *entries; /* owned; in time order, and no two overlap */
    uint32_t capacity, count;
    bool has_forgotten;
    uint32_t depth; /* nesting depth of what it is in; 0: nothing */
    struct idle_entry in;
    struct idle_spent spent[IDLE_SPENT_MAX];
    uint32_t spent_count;
    uint64_t spent_since_ns; /* end of the call before `spent` */
    uint64_t work_ns;        /* device time of the work that its calls launched */
};

static inline struct idle_entry *idle_thread_last(const struct idle_thread *t)
{
    return t->count ? &t->entries[t->count - 1] : NULL;
}

/* True if it may wait for all earlier work of the device. */
static inline bool idle_entry_waits(const struct idle_entry *e)
{
    return e->cause == IDLE_SYNC || e->cause == IDLE_COPY || e->cause == IDLE_ALLOCATION;
}

/* A call that submits work. */
struct idle_submit {
    const struct idle_thread *thread; /* NULL: the call is not known */
    uint64_t begin_ns, end_ns;
    uint32_t function, stack;
};

struct idle_gap {
    uint64_t begin_ns; /* of the time to charge */
    uint64_t end_ns;
    uint64_t busy_ns;    /* the device was busy until then ... */
    uint64_t compute_ns; /* ... and computed until then; before begin_ns */
    uint32_t process;
    uint32_t device;
    struct idle_submit call;          /* that launched the work that ends it */
    const struct idle_thread *before; /* that launched the work before it; NULL: not known */
    bool is_first;                    /* the process had done no work before */
    bool is_last;                     /* no work ends it */
    bool is_behind_unknown;           /* unknown work precedes it: waits are for that */
    uint16_t once;                    /* number in its device's `once`, from 1 on; 0: none */
};

/*
 * Held gaps: gaps of a device between two kernels that end with a copy or a set by another thread
 * than the one that launched the last kernel. The next kernel decides. Its thread gets the gap, as
 * if there had been no copy, unless the kernel may have waited for the copies: then they do
 * (formats/answers.md, "Idle time"). Memory: 88 bytes a gap, IDLE_HELD_MAX a device; beyond that
 * gaps are the copies'.
 */
#define IDLE_HELD_MAX (1u << 14)

struct idle_held {
    struct idle_gap *gaps; /* owned */
    uint32_t count, capacity;
};

/* The waits of a device for other ranks, stored consecutively in a spool. */
struct idle_waits {
    uint64_t first, end; /* place of the first one, and after the last one; 0: none */
};

/* Collectives of a device. */
struct idle_meetings {
    uint64_t collectives; /* that another rank joined */
    uint64_t late;        /* those where it began last */
    uint64_t late_ns;     /* total lag behind the first rank */
    uint64_t awaited_ns;  /* time in which other devices only waited for it */
};

/* A device of a process with work in the selection. */
struct idle_device {
    const struct process *process;
    uint64_t device;
    uint64_t begin_ns; /* the window */
    uint64_t end_ns;
    uint64_t first_ns; /* begin of its first work, by which devices are sorted, then by process */
    uint64_t parts[IDLE_PARTS];   /* ns */
    uint64_t idle_ns;             /* with `parts` and stopped_ns this adds up to the window */
    uint64_t stopped_ns;          /* nothing was recorded, and no work is known */
    uint64_t causes[IDLE_CAUSES]; /* these add up to idle_ns */
    struct idle_meetings met;
    struct idle_waits waits;
    uint32_t start_gaps; /* a bit for each number in `once` that is start-up */
    bool loses_work;     /* from struct idle_track */
    bool is_split;       /* it has rows by thread activity (idle_host.c) */
};

static inline bool idle_device_communicates(const struct idle_device *device)
{
    return device->parts[IDLE_COMMUNICATING] || device->causes[IDLE_COMMUNICATION];
}

/* A time in which a device waited for another rank. */
struct idle_wait {
    uint64_t begin_ns, end_ns;
    uint32_t process; /* index of the awaited process; IDLE_NONE: not known */
};

/* The longest gap of a device since its last collective, and its longest other work with the place
 * of the launch. */
struct idle_since {
    struct idle_rest rest;
    uint64_t worked_ns;
    struct idle_place worked;
};

#define IDLE_ONCE_MAX  8
#define IDLE_ONCE_NS   50000000u
#define IDLE_ONCE_PART 4 /* of the gap: work before it at most, all work at least */

/* A long gap of a device that has done little work so far. In a program without steps it is
 * start-up unless a similar gap follows. */
struct idle_once {
    uint64_t end_ns;
    uint64_t work_ns;  /* work that the device had done */
    uint64_t host_ns;  /* part of the gap in which the program's own code ran, or could have */
    uint64_t later_ns; /* largest host_ns of a later gap, up to the device's next entry here */
};

/* How far a device is followed. */
struct idle_front {
    uint64_t at_ns;     /* all time before it is counted */
    uint64_t to_ns;     /* end of the steps, ranges and windows so far */
    uint64_t kernel_ns; /* end of the last kernel or graph, selected or not */
    uint64_t until_ns[IDLE_PARTS];
};

/* The walk's state of a device, numbered by place for idle_ranks.h. With a selection, devices
 * without work in it have one, too. */
struct idle_track {
    const struct process *process;
    uint64_t device;
    uint32_t place;  /* index in `devices`; IDLE_NONE: no selected work so far */
    uint32_t job;    /* JOB_NONE: not known; set when ranks are compared */
    bool loses_work; /* its last work may be lost; set after the walk */
    struct idle_front front;
    const struct idle_thread *before;   /* that launched the last work, if known, ... */
    const struct idle_thread *launcher; /* ... and the last kernel or graph */
    struct idle_held held;
    struct idle_row own; /* sum of short gaps before queued work, the most frequent ones */
    struct idle_since since;
    struct rank_spans alone; /* the times in which only communication ran */
    uint32_t waiting;        /* its first sequence with waits + 1; 0: none */
    struct idle_once once[IDLE_ONCE_MAX];
    uint32_t once_count;
};

/*
 * What a killed process launched last, and what CUPTI had not delivered of it. The device may have
 * run that until the process's end; or until its last launch, if that was a second earlier. That
 * time is unknown. A hang, a call open for a second, is not such a loss.
 */
struct idle_lost {
    bool may_be;
    bool has_hung;
    uint64_t worked_ns;   /* end of the last work of any device */
    uint64_t made_ns;     /* begin of the last launch with recorded work */
    uint64_t last_ns;     /* begin of the last launch, ... */
    uint64_t returned_ns; /* ... and its end */
    uint64_t pending_ns;  /* begin of a launch without work yet, the first one after worked_ns; 0 */
};

#define IDLE_EARLY_STEPS 5
#define IDLE_EARLY_MAX   12

/* When the first steps of a process may have begun, in time order, since steps are known only after
 * the walk. */
struct idle_early {
    uint64_t at_ns[IDLE_EARLY_MAX];
    uint32_t count;
    uint32_t of_kind; /* marks so far of the kind with the highest priority */
    unsigned kind;    /* enum step_kind */
};

/* An epoch: the number of steps begun so far, and above IDLE_EPOCH_BITS the number of the gap in
 * its device's `once`; 0: it is not there. */
#define IDLE_EPOCH_BITS 4
#define IDLE_EPOCH_MASK ((1u << IDLE_EPOCH_BITS) - 1)
_Static_assert(IDLE_EARLY_MAX < IDLE_EPOCH_MASK, "no epoch is IDLE_LATE");

static inline uint16_t idle_epoch(const struct idle_early *early, uint64_t ns)
{
    uint32_t count = early->count;
    while (count && early->at_ns[count - 1] > ns)
        count--;
    return (uint16_t)count;
}

struct idle_process {
    uint64_t begin_ns;       /* 0: no event yet */
    uint64_t first_call_ns;  /* UINT64_MAX: none yet */
    struct idle_submit call; /* the last call that submits work */
    uint64_t sampled_ns;     /* some launches are missing from here on */
    struct idle_lost lost;
    struct idle_gap first;    /* before its first work, on the device that did it */
    struct time_span *pauses; /* owned */
    uint32_t pause_count;
    struct idle_early early;
    struct blind_time *blind; /* owned: times with calls and no device records */
    uint32_t blind_count;
    uint64_t work_ns; /* sum over its threads of work_ns; set after the walk */
    bool is_paused;
    bool has_worked;
};

/* A cached name of a kernel. */
struct idle_name {
    const struct process *process;
    uint64_t number;
    const struct kernel_name *name; /* NULL: not known */
    enum kernel_class class;
};

/* State that exists only during the walk. */
struct idle_way {
    const struct steps *steps;      /* a view; NULL: not known */
    uint64_t marks_made;            /* number of marks already in `early` */
    struct idle_process *processes; /* owned, by index */
    struct idle_thread **threads;   /* owned, with their elements; by index; NULL: no call */
    struct key_map track_of;        /* (process, device) -> place + 1 */
    uint32_t recent[IDLE_RECENT];   /* places + 1 of the cached devices */
    struct idle_name names[IDLE_NAMES];
    struct key_map classes; /* address of a name -> its class + 1 */
    regex_t loading;        /* names of ranges that say data loading */
    struct key_map loaders; /* text of a range -> 1, or 2 if it matches */
    uint32_t pause_count;
    bool leaves_out_ranks; /* devices outside the selection communicate, too */
};

enum { IDLE_CAUSE, IDLE_PLACE }; /* keys of totals; their value 0 is the time */

struct idle {
    struct walk *walk;
    bool follows_ranks; /* devices of several processes, here or in the combined parts */
    struct idle_way way;
    struct idle_device *devices; /* owned */
    uint32_t device_count;
    struct idle_track *tracks; /* owned */
    uint32_t track_count;
    struct idle_rows rows;
    struct place_lines
        lines;              /* lines of its places, and of those that others add before idle_name */
    struct sums totals;     /* of rows with the same IDLE_CAUSE and IDLE_PLACE, once named */
    uint64_t window_ns;     /* of all devices */
    struct idle_device all; /* sums over all devices */
    struct idle_ranks ranks;
    struct arrivals arrivals;
    struct thread_times host; /* what threads did between calls */
    struct spool waits;       /* waits for other ranks, by device, in time order */
};

/* Clips a time to the selected span. Devices are followed outside the span, too, but not
 * counted. */
static inline uint64_t idle_cut(const struct idle *d, uint64_t ns)
{
    const struct walk_filter *f = d->walk->filter;
    return !f || !f->is_span ? ns : ns < f->from_ns ? f->from_ns : ns < f->to_ns ? ns : f->to_ns;
}

/* The name and class of the process's kernel of that number; a view until the next call. */
const struct idle_name *idle_kernel(struct idle *d, const struct process *p, uint64_t number);

/* The index + 1 of a device with selected work; 0 if it has none so far. */
static inline uint32_t idle_device_place(const struct idle *d, const struct process *p,
                                         uint64_t device)
{
    uint64_t track = key_map_get(&d->way.track_of, (struct key){p->index, device, 0});
    return track ? d->tracks[track - 1].place + 1 : 0; /* IDLE_NONE + 1 is 0 */
}

/* NULL: the track's device has no selected work. */
static inline struct idle_device *idle_device_of(const struct idle *d, uint32_t track)
{
    uint32_t place = d->tracks[track].place;
    return place == IDLE_NONE ? NULL : &d->devices[place];
}

/* ---- for its users --------------------------------------------------------------------------- */

/* `walk` and `steps` must outlive `d`. Steps are complete, or a consumer earlier in the same walk;
 * if NULL, start-up ends with the first work. */
void idle_init(struct idle *d, struct walk *walk, const struct steps *steps);
void idle_release(struct idle *d);

struct consumer idle_consumer(struct idle *d);

/* Call after the walk, when steps are complete: adds everything up. */
void idle_finish(struct idle *d);

/* Call after idle_finish: names the places, with lines found in `symbol_folder` (symbols.h). */
void idle_name(struct idle *d, const char *symbol_folder);

/* The devices' recorded time without start-up. Shares are relative to it, except the share of
 * start-up, which is relative to the whole window. */
static inline uint64_t idle_run_ns(const struct idle *d)
{
    return d->window_ns - d->all.causes[IDLE_START_UP] - d->all.stopped_ns;
}

static inline uint64_t idle_share_of(const struct idle *d, uint64_t cause)
{
    return cause == IDLE_START_UP ? d->window_ns : idle_run_ns(d);
}

/* True if devices may have waited for ranks that are not in the recording. */
static inline bool idle_lacks_ranks(const struct idle *d)
{
    return idle_device_communicates(&d->all) &&
           (d->follows_ranks ? d->ranks.lacks_some
                             : d->walk->rec->left_out_ranks || d->walk->rec->missing_count);
}

/* True if devices of the job communicate. */
bool idle_communicates(const struct idle *d, uint32_t job);

/* Adds up named rows. (idle_print.c) */
void idle_add_totals(struct idle *d);

/* The tables of devices' time, whose state is a struct idle, and of the totals. */
extern const struct table_info gpu_time_table;
extern const struct sums_info idle_sums;

/* After idle_finish: gets the wait number `place`, from 0 on, of the device at index `device`;
 * false if there are fewer. */
bool idle_wait_at(struct idle *d, uint32_t device, uint64_t place, struct idle_wait *wait);

/* ---- of its files ---------------------------------------------------------------------------- */

/* When all communication is known: turns waits for other ranks into idle time with rows, and stores
 * them for idle_wait_at. (idle_meetings.c) */
void idle_waits_charge(struct idle *d);

/* Cuts gaps, in which a device did nothing, into parts of one cause and one place each, by what the
 * thread did that launched the work that ends them. Adds rows for the selected time of consecutive
 * gaps that one call explains, and counts them as one. (idle_gap.c) */
void idle_gap_charge(struct idle *d, const struct idle_gap *gaps, uint32_t count);

/* A gap that a copy ends may be held if the thread that launched the last kernel did not wait for
 * the copy. */
bool idle_held_may_hold(const struct idle_gap *gap, const struct idle_thread *launcher);
void idle_held_add(struct idle_held *h, const struct idle_gap *gap);

/* Charges the held gaps that are the copies', and leaves the others. The device was busy until
 * `busy_ns`; `call` launched the next kernel (NULL: not known). */
void idle_held_give(struct idle *d, struct idle_held *h, uint64_t busy_ns,
                    const struct idle_submit *call);

/* Then charges the gaps left to `call`, which launched the next kernel; `before` launched the
 * kernel before them. */
void idle_held_charge(struct idle *d, struct idle_held *h, const struct idle_submit *call,
                      const struct idle_thread *before);

/* Adds a device's times and counts; the sum's window begins at 0. */
void idle_device_add(struct idle_device *sum, const struct idle_device *device);

/* Time that the device has worked so far. */
uint64_t idle_work_ns(const struct idle_device *device);

/* Sets *span to the time with unknown work at the end; false if all is known up to end_ns. */
bool idle_lost_span(const struct idle_lost *lost, uint64_t end_ns, struct time_span *span);

/* Call after start-up is charged: splits idle time without a call of the feeding thread by what
 * that thread did (idle_host.c). */
void idle_host_settle(struct idle *d);

/* Take slices of threads: calls, driver time inside them, operators, ranges, and a SILENCE record.
 * (idle_calls.c) */
void idle_take_call(struct idle *d, struct idle_process *p, const struct slice *s);
void idle_take_overhead(struct idle *d, const struct idle_process *p, const struct slice *s);
void idle_take_op(struct idle *d, const struct slice *s);
void idle_take_range(struct idle *d, const struct slice *s);
void idle_take_silence(struct idle *d, const struct slice *s);

/* Take device work, selected or not; then the time after the last work, and the sums.
 * (idle_device.c) */
void idle_take_work(struct idle *d, struct idle_process *p, const struct slice *s);
void idle_devices_end(struct idle *d);

#endif
