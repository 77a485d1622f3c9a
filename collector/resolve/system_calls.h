/* SPDX-License-Identifier: Apache-2.0 */
/* System calls in which a sampled thread may wait, by their numbers on this machine. */
#ifndef GPUPROF_COLLECTOR_SYSTEM_CALLS_H
#define GPUPROF_COLLECTOR_SYSTEM_CALLS_H

#include <stdint.h>

#include "record.h"

struct system_call {
    int32_t number;
    enum os_class class; /* 0: a file, a pipe or a socket, which is not known */
    const char *name;
};

/* The system call of that number; NULL: not in this list. */
const struct system_call *system_call_of(int32_t number);

#endif
