/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to record, by --schedule, --capture-range, --delay and --duration: in windows. Between them
 * only what later calls depend on is followed. Each process has its own windows, also the child of
 * a fork. The program's thread opens and closes a window where its step or range begins and ends.
 * The writer turns on what takes time (CUPTI's kinds, PyTorch's callbacks) at the begin of the
 * warm-up, or without one as soon as it can: then the window opens late, and says so. It turns them
 * off LINGER_NS after the end, since device records arrive late.
 *
 * Any thread, inside our own code. Nothing here starts a recording.
 */
#ifndef GPUPROF_INJECT_WINDOWS_H
#define GPUPROF_INJECT_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "range/range_event.h"
#include "schedule.h"

struct thread;

/* Called by the constructor. */
void windows_load(void);

#define STEP_NEXT UINT64_MAX

/*
 * From now on only the windows of this schedule are recorded. Its first step has the number
 * `first`, or is the next one. NULL: as the settings say. Called by the writer (`t`), or with NULL
 * by the thread that starts a recording. Returns true if its first window should have begun
 * already.
 */
bool windows_schedule(struct thread *t, const struct schedule *s, uint64_t first);

/* Returns the number of the last window that is complete in the stream file; 0: none. */
uint64_t windows_whole(void);

/* A range begins or has ended: a pushed one with the `level` of range_push, a started one with its
 * id. */
void windows_range_begins(struct thread *t, const struct range_event *e, bool is_pushed,
                          uint64_t level);
void windows_range_ended(struct thread *t, uint32_t domain, bool is_pushed, uint64_t level);

/* cudaProfilerStart (`opens`) or cudaProfilerStop is about to be called. */
void windows_door(bool opens);

/* The writer's part, in each pass. */
void windows_describe(struct thread *writer, bool is_last);
/* A recording begins; ends. */
void windows_start(void);
void windows_end(uint64_t ns);

#endif
