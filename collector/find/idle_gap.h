/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gap, in which a device of a process did nothing, is cut into pieces, each of one cause and one
 * place: by what the thread did that made the work which ends it (GUIDE.md, "Why is the GPU
 * idle?").
 */
#ifndef GPUPROF_COLLECTOR_IDLE_GAP_H
#define GPUPROF_COLLECTOR_IDLE_GAP_H

#include "find/idle_thread.h"

struct idle_maker {
    const struct idle_thread *thread; /* NULL: not known */
    uint32_t index;
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

/* Some of a gap, between busy times. */
struct idle_span {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t
        call_end_ns;   /* of one that is held: of the call that made the copy which ended it, ... */
    uint32_t rows_end; /* ... behind the last of its rows, ... */
    bool is_given;     /* ... and whether they are added */
};

struct thread_times;

struct idle_gap {
    uint64_t begin_ns; /* of what is to be charged */
    uint64_t end_ns;
    uint64_t busy_ns;    /* until then the device was busy ... */
    uint64_t compute_ns; /* ... and computed; before begin_ns */
    uint64_t from_ns;    /* what is before it and behind to_ns is charged to nobody */
    uint64_t to_ns;
    uint32_t process;
    uint32_t device;
    struct idle_maker maker;  /* of the work that ends it */
    struct idle_maker before; /* and of the work before it */
    uint64_t call_begin_ns;   /* of the call that made the work */
    uint64_t call_end_ns;
    uint32_t function; /* of that call, and its stack, if they are known */
    uint32_t stack;
    bool is_first;          /* the process had done no work */
    uint64_t first_call_ns; /* then: begin of the process's first call */
    uint64_t *unknown_ns;   /* not NULL: nothing of it is known before that work, so that waits are
                               for work that is not, and added there */
    const struct idle_early *early;  /* of the process */
    const struct thread_times *host; /* what its threads did; NULL: nothing is recorded of that */
    const struct idle_span *spans;   /* what of it is to be charged; NULL: all */
    uint32_t span_count;
};

/* Charges all of it that is between from_ns and to_ns, but for what is added to *unknown_ns.
 * `causes`: ns by cause, added to. 0 or GPUPROF_NO_MEMORY. */
int idle_gap_charge(struct idle_rows *rows, uint64_t causes[static IDLE_CAUSES],
                    const struct idle_gap *gap);

/* The same of a gap that no work ends. */
int idle_gap_charge_last(struct idle_rows *rows, uint64_t causes[static IDLE_CAUSES],
                         const struct idle_gap *gap);

/*
 * Gaps of a device between two kernels that copies and sets of another thread ended than the one
 * that launched the last kernel. Whose they are is known when the next kernel comes: of the thread
 * that launches that one, as if there had been no copy; of the copies' where it may have waited for
 * these (GUIDE.md, "Why is the GPU idle?"). Until then they are held. Memory: 40 bytes a
 * gap, IDLE_HELD_MAX of all devices at most, and 96 a row of each; then they are the copies'.
 */
#define IDLE_HELD_MAX (1u << 16)

struct idle_held {
    struct idle_gap gap;     /* the first one, to the end of the last one */
    struct idle_span *spans; /* owned: those gaps */
    uint32_t span_count;
    uint32_t span_capacity;
    struct idle_row *rows; /* owned: what they are of the threads' that copied, gap by gap */
    uint32_t row_count;
    uint32_t row_capacity;
    uint32_t serial; /* that these threads have in `held` (idle_thread.h) */
};

void idle_held_release(struct idle_held *h);

/* One more. 0 or GPUPROF_NO_MEMORY. */
int idle_held_add(struct idle_held *h, const struct idle_gap *gap);

/* Of a gap that a copy ends: does the thread that launched the last kernel not wait for that? */
bool idle_held_may_hold(const struct idle_gap *gap, const struct idle_maker *launcher);

/*
 * The device was busy until then, and the next kernel's call begins at call_ns (0: whatever it is):
 * what is the copies' is added to the rows and causes; the others stay, without rows. 0 or
 * GPUPROF_NO_MEMORY.
 */
int idle_held_give(struct idle_held *h, uint64_t busy_ns, uint64_t call_ns, struct idle_rows *rows,
                   uint64_t causes[static IDLE_CAUSES]);

/* After that: those that stay are of the call that `of` says, which made the kernel. 0 or
 * GPUPROF_NO_MEMORY. */
int idle_held_charge(struct idle_held *h, const struct idle_gap *of, struct idle_rows *rows,
                     uint64_t causes[static IDLE_CAUSES]);

#endif
