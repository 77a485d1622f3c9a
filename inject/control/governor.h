/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps gpuprof's cost within --overhead-max as far as possible. It asks the program's threads to
 * time calls, compares the sums of each window with the budget, and turns features off one by one
 * (ladder.h). The cost is measured and stored even without a budget. Only the writer calls it.
 */
#ifndef GPUPROF_INJECT_GOVERNOR_H
#define GPUPROF_INJECT_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Call it when a recording starts. */
void governor_start(struct thread *writer);

/* Call it in each pass of the writer. Asks for timings when they are due. Returns true if a window
 * ends, so that everything must be sealed. */
bool governor_is_due(uint64_t now_ns);

/* Closes the window; everything is sealed then. Appends the results to the writer's records. */
void governor_look(struct thread *writer, uint64_t now_ns, bool is_last);

#endif
