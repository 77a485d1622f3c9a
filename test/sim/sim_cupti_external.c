/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_cupti.h"

/*
 * External correlation: a profiler says which of its own ranges a thread is in, and each record of
 * a call is then preceded by one that ties the two. The ids of a kind are a stack.
 */

enum { EXTERNAL_DEPTH_MAX = 256 };

static __thread struct {
    uint64_t ids[EXTERNAL_DEPTH_MAX];
    unsigned count;
} stacks[EXTERNAL_KIND_COUNT];

bool external_newest(unsigned kind, uint64_t *id)
{
    if (stacks[kind].count == 0)
        return false;
    *id = stacks[kind].ids[stacks[kind].count - 1];
    return true;
}

static CUptiResult kind_check(int kind, const char *function)
{
    CUptiResult result = cupti_ready(function);
    if (result == CUPTI_SUCCESS && (kind <= 0 || kind >= EXTERNAL_KIND_COUNT))
        result = CUPTI_ERROR_INVALID_PARAMETER;
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityPushExternalCorrelationId(int kind, uint64_t id)
{
    CUptiResult result = kind_check(kind, __func__);
    if (result == CUPTI_SUCCESS && stacks[kind].count == EXTERNAL_DEPTH_MAX)
        result = CUPTI_ERROR_OUT_OF_MEMORY;
    if (result == CUPTI_SUCCESS)
        stacks[kind].ids[stacks[kind].count++] = id;
    return cupti_error(result);
}

CUPTI_EXPORT CUptiResult cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last)
{
    CUptiResult result = kind_check(kind, __func__);
    if (result == CUPTI_SUCCESS && stacks[kind].count == 0)
        result = CUPTI_ERROR_QUEUE_EMPTY;
    if (result == CUPTI_SUCCESS) {
        stacks[kind].count--;
        if (last)
            *last = stacks[kind].ids[stacks[kind].count];
    }
    return cupti_error(result);
}
