/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/nccl_call.h"

#include <string.h>

#define STATIC_SCHEMAS (1u << 24) /* first schema with a number that the library chose itself */

/* After the communicator: bytes of a transfer, then 32-bit numbers. Later versions may append. */
struct form {
    bool is_known;
    bool has_bytes;
    uint8_t count;
    uint8_t numbers[3]; /* enum nccl_number */
};

static const struct form forms[] = {
    [0] = {true, false, 3, {NCCL_RANKS, NCCL_RANK, NCCL_DEVICE}}, /* CommInitRank */
    [2] = {true, false, 3, {NCCL_RANKS, NCCL_RANK, NCCL_DEVICE}}, /* CommDestroy */
    [3] = {true, false, 3, {NCCL_RANKS, NCCL_RANK, NCCL_DEVICE}}, /* CommAbort */
    [4] = {true, true, 0, {0}},                                   /* AllGather */
    [5] = {true, true, 1, {NCCL_REDUCTION}},                      /* AllReduce */
    [6] = {true, true, 1, {NCCL_ROOT}},                           /* Broadcast */
    [7] = {true, true, 1, {NCCL_REDUCTION}},                      /* ReduceScatter */
    [8] = {true, true, 2, {NCCL_ROOT, NCCL_REDUCTION}},           /* Reduce */
    [9] = {true, true, 1, {NCCL_PEER}},                           /* Send */
    [10] = {true, true, 1, {NCCL_PEER}},                          /* Recv */
    [16] = {true, true, 0, {0}},                                  /* AlltoAll */
    [17] = {true, true, 1, {NCCL_ROOT}},                          /* Gather */
    [18] = {true, true, 1, {NCCL_ROOT}},                          /* Scatter */
};

bool nccl_call_of(const struct host_span *range, struct nccl_call *call)
{
    uint64_t number = range->schema - STATIC_SCHEMAS;
    if (!range->schema || !range->domain_text || strcmp(range->domain_text->raw, "NCCL") != 0 ||
        number >= sizeof forms / sizeof forms[0] || !forms[number].is_known)
        return false;
    const struct form *form = &forms[number];
    unsigned first = form->has_bytes ? 2 : 1; /* word of the numbers */
    /* Payloads of older versions are shorter: they have no communicator. */
    if (range->data_bytes < 8 * (first + (form->count + 1u) / 2))
        return false;
    *call = (struct nccl_call){.communicator = range->data[0],
                               .has_bytes = form->has_bytes,
                               .bytes = form->has_bytes ? range->data[1] : 0};
    for (unsigned i = 0; i < form->count; i++) {
        uint64_t word = range->data[first + i / 2] >> (i % 2 ? 32 : 0);
        call->numbers[form->numbers[i]] = (int32_t)(uint32_t)word;
        call->has |= 1u << form->numbers[i];
    }
    return true;
}

bool nccl_is_kernel(const struct kernel_name *name)
{
    return strncmp(name->shown, "nccl", 4) == 0;
}

const char *nccl_reduction_text(int32_t reduction)
{
    static const char *const texts[] = {"sum", "prod", "max", "min", "avg"};
    return reduction >= 0 && reduction < 5 ? texts[reduction] : NULL;
}
