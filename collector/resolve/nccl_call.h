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

#include "base/key_map.h"
#include "resolve/range_stack.h"
#include "resolve/timeline.h"

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

/*
 * What a thread has told NCCL and NCCL does next: from the calls of NCCL that are recorded it is
 * known of which communicator a kernel is that is launched in them, or at the end of their group,
 * and which number the collective has that it is the kernel of: each rank counts its calls on a
 * communicator from its creation on.
 */
struct nccl_talk {
    uint64_t communicator; /* of all calls so far; 0: none, or several */
    uint64_t number;       /* of the first collective; 0: none whose kernel would be known */
    uint64_t stream;       /* of that one */
    uint32_t depth;        /* of groups */
    bool is_mixed;         /* several communicators */
    bool is_other;         /* not only collectives of one communicator on one stream */
    bool is_rooted;        /* there is one that has a root */
    bool is_open;          /* a call of NCCL's has not returned */
};

/* The begin or the end of a library's call; `handles`: (process, handle) -> communicator. */
void nccl_talk_call(struct nccl_talk *t, const struct key_map *handles, const struct event *e);

/* The number of the collective whose kernel that call launches; 0: not known, or of none. */
uint64_t nccl_talk_launch(struct nccl_talk *t, const struct event *e);

#endif
