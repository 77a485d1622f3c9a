/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL says of its calls in the payloads of its ranges (domain "NCCL"), from version 2.26 on:
 * each kind of call has a fixed number and layout there. The communicator's number is the same on
 * all of its ranks.
 */
#ifndef GPUPROF_COLLECTOR_NCCL_CALL_H
#define GPUPROF_COLLECTOR_NCCL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "resolve/range_stack.h"

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
    uint64_t bytes; /* of the message, as the call counts them */
    unsigned has;   /* a bit for each of `numbers` */
    int32_t numbers[NCCL_NUMBERS];
};

/* False: the range is none of NCCL's, or has no payload of a form that is known. */
bool nccl_call_of(const struct range *range, struct nccl_call *call);

/* Is this a kernel of NCCL's: ncclDevKernel_..., ncclKernel_...? */
bool nccl_is_kernel(const struct kernel_name *name);

/* "sum", or NULL: an operation of the program's own. */
const char *nccl_reduction_text(int32_t reduction);

#endif
