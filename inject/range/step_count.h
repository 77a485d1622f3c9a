/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step of this process is, and how many there were: counted while anything needs them,
 * recorded or not. Each process has its own count, also the child of a fork. Any thread, inside our
 * own code.
 */
#ifndef GPUPROF_INJECT_STEP_COUNT_H
#define GPUPROF_INJECT_STEP_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct thread;

/* What a step may be, in order of preference. */
enum step_source {
    STEPS_UNKNOWN,
    STEPS_OF_PROGRAM,   /* gpuprof_step() */
    STEPS_OF_PROFILER,  /* a label ProfilerStep# begins */
    STEPS_OF_OPTIMIZER, /* the outermost label Optimizer.step# ends */
    STEPS_OF_LOADER,    /* a label enumerate(DataLoader)# begins */
    STEPS_OF_NAME,      /* a range or label with the name in --step-by begins */
};

/* What must be reported here, one bit each: steps of the program; windows.h has the others. */
enum step_watch { WATCH_STEPS = 1, WATCH_LABELS = 2, WATCH_RANGES = 4, WATCH_DOORS = 8 };
extern HIDDEN _Atomic uint32_t steps_watched;

static inline bool steps_watch(uint32_t what)
{
    return unlikely(atomic_load_explicit(&steps_watched, memory_order_relaxed) & what);
}

struct step_snapshot {
    enum step_source source;
    uint64_t count;     /* steps that have begun; if 0, the rest is 0, too */
    uint64_t number;    /* number of the last one, ... */
    uint64_t begin_ns;  /* ... and when it began (CLOCK_MONOTONIC) */
    uint64_t last_ns;   /* duration of the previous one, ... */
    uint64_t median_ns; /* ... and median of the last 64 */
};

/* Called by the constructor. `is_scheduled`: --schedule is set. */
void step_count_load(void);
/* Are steps counted? */
bool step_count_is_on(void);

struct step_snapshot step_count_now(void);

/* A step begins, if this source counts as steps. `t` takes part, or is NULL. Returns true if it was
 * a step, and a follower has written its record. */
bool step_begins(struct thread *t, enum step_source source, uint64_t number);

/* Returns what the begin of a PyTorch label means; for an optimizer's label, what its end means. */
enum step_source step_of_label(const char *text);

/* A range of this name begins. */
void step_of_range(struct thread *t, const char *name);

/*
 * Called as each step begins, by its thread. `t` takes part in the recording, or is NULL;
 * `may_wait`: it may turn features on and off. Returns true if it has written the step's record.
 * Followers are called in the order in which they were added, by the constructor or the thread that
 * starts a recording.
 */
typedef bool step_follower(struct thread *t, const struct step_snapshot *step, bool may_wait);
void step_count_follow(unsigned place, step_follower *follower);
#define STEP_FOLLOWERS_MAX 2u
#define STEP_PLACE_ORDERS  0u /* the commands of gpuprof ctl */
#define STEP_PLACE_WINDOWS 1u

#endif
