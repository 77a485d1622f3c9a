/* SPDX-License-Identifier: Apache-2.0 */
/* One record of a recording, with whose it is and when it was. */
#ifndef GPUPROF_COLLECTOR_EVENT_H
#define GPUPROF_COLLECTOR_EVENT_H

#include <stdint.h>

#include "read/process.h"

struct event {
    const struct record *record; /* times on the process's scale; a view until the next event */
    uint64_t begin_ns;           /* shared by all processes: CLOCK_REALTIME */
    uint64_t end_ns;
    struct process *process;
    struct thread *thread;
    const struct function *function; /* of a CALL or of a library's call; never NULL there */
};

#endif
