/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the collective of a kernel: by the NCCL call that launched it (library_calls.h) or, if
 * those are not recorded, by NCCL's range around the launch (nccl_call.h). */
#ifndef GPUPROF_COLLECTOR_COLLECTIVE_H
#define GPUPROF_COLLECTOR_COLLECTIVE_H

#include "resolve/slice.h"

struct collective {
    uint64_t communicator; /* 0: nothing is known */
    uint64_t number;       /* on it; 0: not known, or not the first kernel of its call */
    uint32_t ranks;        /* size of the communicator; 0: not known */
    bool is_rooted;
};

/* For a kernel, in a walk with WALK_WORK. Returns 0 or an error of the spool. */
int collective_of(const struct slice *s, struct collective *what);

#endif
