/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to record, as --schedule, --capture-range, --delay and --duration say: in windows, between
 * which only what later calls are understood by goes on. Each process has its own, the child of a
 * fork too. The program's thread opens and closes a window where its step or range begins and ends;
 * what takes time (CUPTI's kinds, PyTorch's callbacks) the writer turns on at the warm-up's begin,
 * or, without one, when it comes to it: then the window opens late and says so. It turns them off
 * LINGER_NS after the end, since the device comes later.
 *
 * Any thread, from inside our own code. Nothing here starts a recording.
 */
#ifndef GPUPROF_INJECT_WINDOWS_H
#define GPUPROF_INJECT_WINDOWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "range/range_event.h"

struct thread;

/* What a step may be, the first of which is one once it is seen; STEPS_OF_RANGE is any that
 * --step-by names. */
enum step_source {
    STEPS_UNKNOWN,
    STEPS_OF_PROGRAM,   /* gpuprof_step() */
    STEPS_OF_PROFILER,  /* a label ProfilerStep# begins */
    STEPS_OF_OPTIMIZER, /* the outermost label Optimizer.step# has ended */
    STEPS_OF_LOADER,    /* a label enumerate(DataLoader)# begins */
    STEPS_OF_NAME,      /* a range or label of that name begins */
};

/* What somebody has to be told of, a bit each. */
enum windows_watch { WATCH_STEPS = 1, WATCH_LABELS = 2, WATCH_RANGES = 4, WATCH_DOORS = 8 };
extern HIDDEN _Atomic uint32_t windows_watched;

static inline bool windows_watch(uint32_t what)
{
    return unlikely(atomic_load_explicit(&windows_watched, memory_order_relaxed) & what);
}

/* By the constructor. */
void windows_load(void);

/* A step begins, if steps are these. `t` takes part, or NULL. False: this is none. */
bool windows_step(struct thread *t, enum step_source source, uint64_t number);

/* What the begin of a label of PyTorch's means; of an optimizer's, what its end does. */
enum step_source windows_label(const char *text);

/* A range begins, or has ended: a pushed one's `level` as range_push has it, a started one's id. */
void windows_range_begins(struct thread *t, const struct range_event *e, bool is_pushed,
                          uint64_t level);
void windows_range_ended(struct thread *t, uint32_t domain, bool is_pushed, uint64_t level);

/* cudaProfilerStart or ...Stop is about to be called. */
void windows_door(bool opens);

/* The writer's part, in each pass. */
void windows_describe(struct thread *writer, bool is_last);
/* A recording begins; ends. */
void windows_start(void);
void windows_end(uint64_t ns);

#endif
