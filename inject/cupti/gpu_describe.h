/* SPDX-License-Identifier: Apache-2.0 */
/* Records where the device records come from, or why there are none. */
#ifndef GPUPROF_INJECT_GPU_DESCRIBE_H
#define GPUPROF_INJECT_GPU_DESCRIBE_H

#include <stdbool.h>

struct thread;

/* Writes the META records "gpu_kinds" and "gpu_rows", and the latter again when it changes. */
void gpu_describe(struct thread *writer, bool is_last);

/* The same on the thread that has just started CUPTI. If a kill follows at once, this is what says
 * that the GPU work of its launches is missing. */
void gpu_describe_now(struct thread *t);

#endif
