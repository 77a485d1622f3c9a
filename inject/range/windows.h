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

#include <stdbool.h>
#include <stdint.h>

#include "range/range_event.h"
#include "schedule.h"

struct thread;

/* By the constructor. */
void windows_load(void);

#define STEP_NEXT UINT64_MAX

/*
 * From now on only the windows of this schedule are recorded, whose first step has the number
 * `first`, or is the next one; NULL: as the settings say. By the writer, `t`, or, NULL, by who
 * begins a recording. True: its first window should have begun already.
 */
bool windows_schedule(struct thread *t, const struct schedule *s, uint64_t first);

/* The number of the last window that is whole in the stream file; 0: none is. */
uint64_t windows_whole(void);

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
