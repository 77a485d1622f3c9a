/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what gpuprof costs within the setting --overhead-max, as far as that can be had: asks the
 * program's threads to time calls, looks at the sums in one window after another, and gives up one
 * thing after another (ladder.h). The cost is measured and stored even where there is no budget.
 * The writer's.
 */
#ifndef GPUPROF_INJECT_GOVERNOR_H
#define GPUPROF_INJECT_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* A recording begins. */
void governor_start(struct thread *writer);

/* In each pass: asks for times where that is due. True: a window ends, and so all is to be sealed.
 */
bool governor_is_due(uint64_t now_ns);

/* All is sealed: closes the window. Appends what is to be known of it to the writer's records. */
void governor_look(struct thread *writer, uint64_t now_ns, bool is_last);

#endif
