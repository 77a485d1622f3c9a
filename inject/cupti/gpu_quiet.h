/* SPDX-License-Identifier: Apache-2.0 */
/* Around what we ask of CUPTI on the program's threads. errno is kept. */
#ifndef GPUPROF_INJECT_GPU_QUIET_H
#define GPUPROF_INJECT_GPU_QUIET_H

#include <stdint.h>

struct call;

/* Our own calls, and those that CUPTI makes of the driver, pass through; no signal comes between,
 * and no thread is cancelled where CUPTI waits. */
struct quiet {
    struct call *outside;
    uint64_t mask;
    int cancel_state;
    int error;
};

struct quiet quiet_begin(void);
void quiet_end(const struct quiet *quiet);

#endif
