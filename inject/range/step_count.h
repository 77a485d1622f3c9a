/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step of this process is, and how many there were: counted while anybody may ask, recorded
 * or not. Each process has its own, the child of a fork too. Any thread, from inside our own code.
 */
#ifndef GPUPROF_INJECT_STEP_COUNT_H
#define GPUPROF_INJECT_STEP_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct thread;

/* What a step may be, the first of which is one once it is seen. */
enum step_source {
    STEPS_UNKNOWN,
    STEPS_OF_PROGRAM,   /* gpuprof_step() */
    STEPS_OF_PROFILER,  /* a label ProfilerStep# begins */
    STEPS_OF_OPTIMIZER, /* the outermost label Optimizer.step# has ended */
    STEPS_OF_LOADER,    /* a label enumerate(DataLoader)# begins */
    STEPS_OF_NAME,      /* a range or label of the name in --step-by begins */
};

/* What somebody has to be told of, a bit each: steps of ours; windows.h has the others. */
enum step_watch { WATCH_STEPS = 1, WATCH_LABELS = 2, WATCH_RANGES = 4, WATCH_DOORS = 8 };
extern HIDDEN _Atomic uint32_t steps_watched;

static inline bool steps_watch(uint32_t what)
{
    return unlikely(atomic_load_explicit(&steps_watched, memory_order_relaxed) & what);
}

struct step_sight {
    enum step_source source;
    uint64_t count;     /* that have begun; 0: the rest is 0, too */
    uint64_t number;    /* of the last one, ... */
    uint64_t begin_ns;  /* ... which began then (CLOCK_MONOTONIC) */
    uint64_t last_ns;   /* how long the one before took, ... */
    uint64_t median_ns; /* ... and the last 64 */
};

/* By the constructor. `is_scheduled`: there is a --schedule. */
void step_count_load(void);
/* Are there any to be told of? */
bool step_count_is_on(void);

struct step_sight step_count_now(void);

/* A step begins, if steps are these. `t` takes part, or NULL. True: it was, and whoever follows has
 * seen to its record. */
bool step_begins(struct thread *t, enum step_source source, uint64_t number);

/* What the begin of a label of PyTorch's means; of an optimizer's, what its end does. */
enum step_source step_of_label(const char *text);

/* A range of this name begins. */
void step_of_range(struct thread *t, const char *name);

/*
 * Is called as each step begins, by the thread that begins it: `t` takes part in the recording, or
 * is NULL; `may_wait`: it may turn the features. True: it has seen to the record of it. Those that
 * were added first are called first; by the constructor or who begins a recording.
 */
typedef bool step_follower(struct thread *t, const struct step_sight *step, bool may_wait);
void step_count_follow(unsigned place, step_follower *follower);
#define STEP_FOLLOWERS_MAX 2u
#define STEP_PLACE_ORDERS  0u /* what gpuprof ctl has asked for */
#define STEP_PLACE_WINDOWS 1u

#endif
