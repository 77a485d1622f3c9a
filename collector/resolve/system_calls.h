/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the system in which a thread may be seen waiting, by their numbers on this machine. */
#ifndef GPUPROF_COLLECTOR_SYSTEM_CALLS_H
#define GPUPROF_COLLECTOR_SYSTEM_CALLS_H

#include <stdint.h>

#include "record.h"

struct system_call {
    int32_t number;
    enum os_class class; /* 0: of a file, a pipe, a socket: nobody knows */
    const char *name;
};

/* NULL: it is none of these. */
const struct system_call *system_call_of(int32_t number);

#endif
