/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge --cycle: of each process only one window of what was recorded (run --schedule and the
 * like). Memory: 24 bytes for each process.
 */
#ifndef GPUPROF_COLLECTOR_TRACE_CYCLE_H
#define GPUPROF_COLLECTOR_TRACE_CYCLE_H

#include "model/event_walk.h"

struct cycle_span;

struct trace_cycle {
    uint64_t number;          /* of the window that is shown; 0: all that there is */
    struct cycle_span *spans; /* owned, by process index: where it was */
    uint64_t *windows;        /* owned, likewise: how many there were */
    uint32_t count;           /* of processes */
};

/* Finds how many windows each process had, as the walk's survey has seen them, of which there must
 * be one of `number` (CYCLE_ALL: any). EXIT_OK, or another code after one line. */
enum exit_code trace_cycle_init(struct trace_cycle *c, const struct walk *w, uint64_t number);
void trace_cycle_release(struct trace_cycle *c);

/* The most windows that a process had. */
uint64_t trace_cycle_last(const struct trace_cycle *c);

/* A walk begins. */
void trace_cycle_begin(struct trace_cycle *c);

/* Is the slice, the next one of the walk, in the window? Ranges, operators and calls of libraries
 * that reach into it are; work is if its call is. */
bool trace_cycle_has(struct trace_cycle *c, const struct slice *s);

#endif
