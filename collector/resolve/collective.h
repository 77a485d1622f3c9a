/* SPDX-License-Identifier: Apache-2.0 */
/* Which collective a kernel is of, by the call of NCCL's that launched it (library_calls.h) or,
 * where these are not recorded, by NCCL's range around the launch (nccl_call.h). */
#ifndef GPUPROF_COLLECTOR_COLLECTIVE_H
#define GPUPROF_COLLECTOR_COLLECTIVE_H

#include "resolve/slice.h"

struct collective {
    uint64_t communicator; /* 0: not known, and so are the others */
    uint64_t number;       /* on it; 0: not known, or not the first kernel of its call */
    uint32_t ranks;        /* of the communicator; 0: not known */
};

/* Of a kernel, in a walk with WALK_WORK. 0 or an error of the spool. */
int collective_of(const struct slice *s, struct collective *what);

#endif
