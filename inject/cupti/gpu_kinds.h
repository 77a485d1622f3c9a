/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of CUPTI's records that are recorded (--kinds). */
#ifndef GPUPROF_INJECT_GPU_KINDS_H
#define GPUPROF_INJECT_GPU_KINDS_H

#include <stdbool.h>

/* Enables or disables the kinds of records that are recorded. */
bool gpu_enable_kinds(bool enable);

/* Says anew where the rows come from: something that limits them has changed. */
void gpu_tell_source(void);

#endif
