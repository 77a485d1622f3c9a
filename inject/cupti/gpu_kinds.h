/* SPDX-License-Identifier: Apache-2.0 */
/* The activity kinds that are recorded (--kinds). */
#ifndef GPUPROF_INJECT_GPU_KINDS_H
#define GPUPROF_INJECT_GPU_KINDS_H

#include <stdbool.h>

/*
 * Enables and disables kinds until they match what is to be recorded now (recorded.h). If another
 * thread is doing it, waits a limited time for it. Returns false if none of the kinds could be
 * enabled. gpu_kinds_are_due: was a change requested that no thread has started to apply?
 */
bool gpu_kinds_follow(void);
bool gpu_kinds_are_due(void);

/* CUPTI is turned off: disables all kinds. */
void gpu_kinds_end(void);

/* Writes again where the rows come from: something that limits them has changed. */
void gpu_report_source(void);

#endif
