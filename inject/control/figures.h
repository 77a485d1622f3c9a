/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures that `gpuprof top` shows for this process. The writer counts them from the records
 * that it seals, so calls cost nothing more. It counts only while somebody watches, except memory,
 * whose total needs every call. Called by the writer, except figures_start.
 */
#ifndef GPUPROF_INJECT_FIGURES_H
#define GPUPROF_INJECT_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

/* Call it when a recording starts, on the thread that starts it. */
void figures_start(void);

/* Fills in the figures. `is_watched`: also those that are counted only while watched, from the
 * first such call on. */
struct control_status;
void figures_fill(struct control_status *status, bool is_watched);

#endif
