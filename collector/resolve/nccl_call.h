/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads NCCL's payloads of its ranges (domain "NCCL"), from version 2.26 on: each kind of call has
 * a fixed number and layout there. A communicator has the same number on all of its ranks.
 */
#ifndef GPUPROF_COLLECTOR_NCCL_CALL_H
#define GPUPROF_COLLECTOR_NCCL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "resolve/spans.h"

enum nccl_number {
    NCCL_REDUCTION, /* ncclRedOp_t */
    NCCL_ROOT,
    NCCL_PEER,
    NCCL_RANKS,
    NCCL_RANK,
    NCCL_DEVICE,
    NCCL_NUMBERS
};

struct nccl_call {
    uint64_t communicator;
    bool has_bytes;
    uint64_t bytes; /* size of the message, as the call counts it */
    unsigned has;   /* bit set of the valid `numbers` */
    int32_t numbers[NCCL_NUMBERS];
};

/* False: not a range of NCCL, or its payload has no known form. */
bool nccl_call_of(const struct host_span *range, struct nccl_call *call);

/* Whether it is a kernel of NCCL (ncclDevKernel_..., ncclKernel_...). */
bool nccl_is_kernel(const struct kernel_name *name);

/* "sum" and the like; NULL for a user-defined operation. */
const char *nccl_reduction_text(int32_t reduction);

#endif
