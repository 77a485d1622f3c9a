/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording says of where the device's records come from, or why there are none. */
#ifndef GPUPROF_INJECT_GPU_DESCRIBE_H
#define GPUPROF_INJECT_GPU_DESCRIBE_H

#include <stdbool.h>

struct thread;

/* META records "gpu_kinds" and "gpu_rows", and the latter again when that changes. */
void gpu_describe(struct thread *writer, bool is_last);

/* The same, from the thread that has just started CUPTI: after a kill in the next moment, it is
 * what tells that its launches' work is missing. */
void gpu_describe_now(struct thread *t);

#endif
