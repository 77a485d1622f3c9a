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
} stacks[SCOPE_COUNT][EXTERNAL_KIND_COUNT];

bool external_newest(unsigned scope, unsigned kind, uint64_t *id)
{
    if (stacks[scope][kind].count == 0)
        return false;
    *id = stacks[scope][kind].ids[stacks[scope][kind].count - 1];
    return true;
}

static CUptiResult kind_check(int kind, const char *function)
{
    CUptiResult result = cupti_ready(function);
    if (result == CUPTI_SUCCESS && (kind <= 0 || kind >= EXTERNAL_KIND_COUNT))
        result = CUPTI_ERROR_INVALID_PARAMETER;
    return result;
}

static CUptiResult push(unsigned scope, int kind, uint64_t id)
{
    if (stacks[scope][kind].count == EXTERNAL_DEPTH_MAX)
        return cupti_error(CUPTI_ERROR_OUT_OF_MEMORY);
    stacks[scope][kind].ids[stacks[scope][kind].count++] = id;
    return CUPTI_SUCCESS;
}

static CUptiResult pop(unsigned scope, int kind, uint64_t *last)
{
    if (stacks[scope][kind].count == 0)
        return cupti_error(CUPTI_ERROR_QUEUE_EMPTY);
    stacks[scope][kind].count--;
    if (last)
        *last = stacks[scope][kind].ids[stacks[scope][kind].count];
    return CUPTI_SUCCESS;
}

CUPTI_EXPORT CUptiResult cuptiActivityPushExternalCorrelationId(int kind, uint64_t id)
{
    CUptiResult result = kind_check(kind, __func__);
    if (result == CUPTI_SUCCESS)
        result = scope_global();
    return result == CUPTI_SUCCESS ? push(0, kind, id) : cupti_error(result);
}

CUPTI_EXPORT CUptiResult cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last)
{
    CUptiResult result = kind_check(kind, __func__);
    if (result == CUPTI_SUCCESS)
        result = scope_global();
    return result == CUPTI_SUCCESS ? pop(0, kind, last) : cupti_error(result);
}

#if SIM_CUPTI >= 133
CUPTI_EXPORT CUptiResult cuptiActivityPushExternalCorrelationId_v2(CUpti_SubscriberHandle given,
                                                                   int kind, uint64_t id)
{
    unsigned scope;
    CUptiResult result = kind_check(kind, __func__);
    if (result == CUPTI_SUCCESS)
        result = scope_of(given, &scope, NULL);
    return result == CUPTI_SUCCESS ? push(scope, kind, id) : cupti_error(result);
}

CUPTI_EXPORT CUptiResult cuptiActivityPopExternalCorrelationId_v2(CUpti_SubscriberHandle given,
                                                                  int kind, uint64_t *last)
{
    unsigned scope;
    CUptiResult result = kind_check(kind, __func__);
    if (result == CUPTI_SUCCESS)
        result = scope_of(given, &scope, NULL);
    return result == CUPTI_SUCCESS ? pop(scope, kind, last) : cupti_error(result);
}
#endif
