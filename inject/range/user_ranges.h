/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program says of itself: ranges, marks, steps, and when to pause. NVTX (nvtx.c) and
 * gpuprof.h (public.c) come here.
 *
 * None of it starts a recording: a process that makes no CUDA call leaves no file. Until a
 * recording begins, and while it is paused, ranges that are open are kept, in bounded memory; they
 * are written with their own begin when it begins or goes on. Those that end before are not
 * recorded.
 *
 * Any thread, also inside CUDA calls. From a signal handler that interrupted our own code nothing
 * is recorded; that is counted.
 */
#ifndef GPUPROF_INJECT_USER_RANGES_H
#define GPUPROF_INJECT_USER_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "range/range_event.h"

struct thread;

#define RANGE_NO_LEVEL  -2 /* the level is not known; NVTX's own word for it */
#define RANGE_NONE_OPEN -1

/* Bytes of `text` (NULL: 0) up to the longest that is kept, whole UTF-8 characters; counts a cut.
 */
uint32_t range_text_bytes(const char *text);

/* The level of the range among the domain's open ones on this thread, from 0 on, or one of above.
 */
int range_push(const struct range_event *e);
int range_pop(uint32_t domain);

/* Ranges that may overlap and end on another thread. An id is never 0. */
uint64_t range_start(const struct range_event *e);
void range_end(uint64_t id);

void range_mark(const struct range_event *e);
void range_step(uint64_t number);

/* Between range_pause(true) and range_pause(false) no call is recorded. */
void range_pause(bool paused);

/* Writes labels that were just defined, if this process records. */
void range_labels_changed(void);

/* The thread takes part now. */
void ranges_attached(struct thread *t);

/* The process ends: writes a step whose thread has not come back since it called it. */
void ranges_end(uint64_t ns);

#endif
