/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps our calls of CUPTI on the program's threads. Keeps errno. */
#ifndef GPUPROF_INJECT_GPU_QUIET_H
#define GPUPROF_INJECT_GPU_QUIET_H

#include <stdint.h>

struct call;

/* Our own calls, and those that CUPTI makes of the driver, pass through unrecorded. Signals are
 * blocked, and no thread is cancelled while CUPTI waits. */
struct quiet {
    struct call *outside;
    uint64_t mask;
    int cancel_state;
    int error;
};

struct quiet quiet_begin(void);
void quiet_end(const struct quiet *quiet);

#endif
