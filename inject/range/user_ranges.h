/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program reports: ranges, marks, steps, and pauses. NVTX (nvtx.c) and gpuprof.h
 * (public.c) call these functions.
 *
 * None of them starts a recording: a process without CUDA calls leaves no file. Until a recording
 * begins, and while it is paused, open ranges are kept in bounded memory; they are written with
 * their own begin when recording begins or resumes. Ranges that end before are not recorded.
 *
 * Any thread, also inside CUDA calls. Calls from a signal handler that interrupted our own code are
 * not recorded, but counted.
 */
#ifndef GPUPROF_INJECT_USER_RANGES_H
#define GPUPROF_INJECT_USER_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "range/range_event.h"

struct thread;

#define RANGE_NO_LEVEL  -2 /* the level is not known; NVTX uses the same value */
#define RANGE_NONE_OPEN -1

/* Returns the number of bytes of `text` (NULL: 0) to keep, in whole UTF-8 characters; counts cut
 * texts. */
uint32_t range_text_bytes(const char *text);

/* Returns the range's level among the domain's open ones on this thread, from 0, or one of the
 * values above. */
int range_push(const struct range_event *e);
int range_pop(uint32_t domain);

/* Ranges that may overlap and end on another thread. An id is never 0. */
uint64_t range_start(const struct range_event *e);
void range_end(uint64_t id);

void range_mark(const struct range_event *e);
void range_step(uint64_t number);

/* No call is recorded between range_pause(true) and range_pause(false). */
void range_pause(bool paused);

/* Writes labels that were just defined, if this process records. */
void range_labels_changed(void);

/* The thread takes part now. */
void ranges_attached(struct thread *t);

/* The process ends: writes a step whose thread has not come back since. */
void ranges_end(uint64_t ns);

#endif
