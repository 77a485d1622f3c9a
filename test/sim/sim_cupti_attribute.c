/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim_cupti.h"

/* The attributes, with each version's standard values. */

enum { VALUE_BYTE = 1, VALUE_SIZE = 8 };

static struct attribute {
    uint8_t bytes;
    uint64_t value;
} attributes[] = {
    {VALUE_SIZE, 3200000},                  /* device buffer size */
    {VALUE_SIZE, 8388608},                  /* the same for CDP */
    {VALUE_SIZE, 250},                      /* device buffer pool limit */
    {VALUE_SIZE, 25000},                    /* semaphore pool size */
    {VALUE_SIZE, 250},                      /* semaphore pool limit */
    {VALUE_BYTE, 0},                        /* zeroed out activity buffer */
    {VALUE_SIZE, 3},                        /* device buffers allocated in advance */
    {VALUE_SIZE, 3},                        /* semaphore pools allocated in advance */
    {VALUE_BYTE, SIM_CUPTI >= 130 ? 0 : 1}, /* host pinned */
#if SIM_CUPTI >= 124
    {VALUE_BYTE, SIM_CUPTI >= 130 ? 1 : 0}, /* activity buffer per thread */
#endif
#if SIM_CUPTI >= 130
    {VALUE_SIZE, 16777216}, /* device buffer size of device graphs */
#endif
#if SIM_CUPTI >= 133
    {VALUE_BYTE, 0}, /* user-defined records: not simulated */
    {VALUE_BYTE, 2}, /* whether there may be several subscribers */
    {VALUE_BYTE, 0}, /* HES */
    {VALUE_BYTE, 0}, /* source of allocations */
    {VALUE_BYTE, 0}, /* latency timestamps */
    {VALUE_BYTE, 0}, /* all synchronisation records */
    {VALUE_BYTE, 0}, /* event device timestamps */
    {VALUE_BYTE, 0}, /* launch attributes */
    {VALUE_BYTE, 0}, /* device graph trace */
    {VALUE_BYTE, 0}, /* graphs as a whole, for all subscribers */
    {4, 0},          /* thread id type */
    {VALUE_SIZE, 0}, /* timestamp callback */
    {VALUE_BYTE, 0}, /* CUDA in graphics */
    {VALUE_SIZE, 128},
#endif
};

enum { ATTRIBUTE_COUNT = sizeof attributes / sizeof attributes[0] };

static bool is_frozen;
static bool is_graph_level_set; /* the first value holds for the process */

bool attribute_zeroed(void)
{
    return attributes[CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER].value != 0;
}

bool attribute_per_thread(void)
{
#if SIM_CUPTI >= 124
    return attributes[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER].value != 0;
#else
    return false;
#endif
}

bool attribute_graphs_whole(void)
{
#if SIM_CUPTI >= 133
    return attributes[CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE].value != 0;
#else
    return false;
#endif
}

void attribute_freeze(void)
{
    is_frozen = true;
}

static CUptiResult attribute_check(int number, size_t *bytes, const void *value)
{
    if (!bytes || !value || number < 0 || number >= ATTRIBUTE_COUNT)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (*bytes < attributes[number].bytes)
        return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
    *bytes = attributes[number].bytes;
    return CUPTI_SUCCESS;
}

static CUptiResult attribute_get(int number, size_t *bytes, void *value)
{
    CUptiResult result = cupti_error(attribute_check(number, bytes, value));
    uint64_t found = result == CUPTI_SUCCESS ? attributes[number].value : 0;
    if (result != CUPTI_SUCCESS)
        return result;
    if (SIM_CUPTI >= 133 && number == CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE)
        found = callback_sharing();
    memcpy(value, &found, attributes[number].bytes);
    return result;
}

/* Those of one subscriber. True: it was one, and `result` is what came of it. */
static bool set_scoped(unsigned scope, int number, uint64_t wanted, CUptiResult *result)
{
    *result = CUPTI_SUCCESS;
    switch (SIM_CUPTI >= 133 ? number : -1) {
    case CUPTI_ACTIVITY_ATTR_THREAD_ID_TYPE:
        *result = cupti_thread_id_type(scope, (int)wanted);
        return true;
    case CUPTI_ACTIVITY_ATTR_ENABLE_KERNEL_LATENCY_TIMESTAMPS:
        activity_latency_set(scope, wanted != 0);
        return true;
    case CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK:
        if (cupti_switches.is_sole_clock && scope_is_shared()) /* as 13.3 answers */
            *result = CUPTI_ERROR_NOT_SUPPORTED;
        else
            clock_register(scope, (CUpti_TimestampCallbackFunc)(uintptr_t)wanted);
        return true;
    case CUPTI_ACTIVITY_ATTR_USER_DEFINED_RECORDS:
    case CUPTI_ACTIVITY_ATTR_ENABLE_HES:
        *result = wanted ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_SUCCESS;
        return true;
    case CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE:
        *result = CUPTI_ERROR_INVALID_PARAMETER;
        return true;
    default: return false;
    }
}

static CUptiResult set_graph_level(uint64_t wanted)
{
    uint64_t *value = &attributes[CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE].value;
    if (!scope_is_shared())
        return CUPTI_SUCCESS; /* without any effect */
    if (activity_is_on() || (is_graph_level_set && wanted != *value))
        return CUPTI_ERROR_INVALID_OPERATION;
    is_graph_level_set = true;
    *value = wanted;
    return CUPTI_SUCCESS;
}

static CUptiResult attribute_set(unsigned scope, int number, size_t *bytes, const void *given)
{
    CUptiResult result = attribute_check(number, bytes, given);
    uint64_t wanted = 0;
    if (result != CUPTI_SUCCESS)
        return cupti_error(result);
    memcpy(&wanted, given, attributes[number].bytes);
    cupti_lock(__func__);
    if (SIM_CUPTI >= 133 && number == CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE) {
        result = set_graph_level(wanted);
    } else if (!set_scoped(scope, number, wanted, &result)) {
        if (is_frozen && wanted != attributes[number].value && activity_is_on())
            cupti_misuse("attribute %d changed after cuptiActivityRegisterCallbacks", number);
        attributes[number].value = wanted;
    }
    cupti_unlock();
    return cupti_error(result);
}

CUPTI_EXPORT CUptiResult cuptiActivityGetAttribute(int number, size_t *bytes, void *value)
{
    CUptiResult result = cupti_ready(__func__);
    return result == CUPTI_SUCCESS ? attribute_get(number, bytes, value) : result;
}

CUPTI_EXPORT CUptiResult cuptiActivitySetAttribute(int number, size_t *bytes, void *value)
{
    CUptiResult result = cupti_ready(__func__);
    if (result == CUPTI_SUCCESS)
        result = scope_global();
    if (result == CUPTI_SUCCESS)
        result = attribute_set(0, number, bytes, value);
    uint64_t now = result == CUPTI_SUCCESS ? attributes[number].value : 0;
    CUPTI_NOTE(result, NOTE_U("attribute", number), NOTE_U("value", now));
    return result;
}

#if SIM_CUPTI >= 133
CUPTI_EXPORT CUptiResult cuptiActivityGetAttribute_v2(CUpti_SubscriberHandle given, int number,
                                                      size_t *bytes, void *value)
{
    unsigned scope;
    CUptiResult result = cupti_ready(__func__);
    /* Whether one may come beside the others is asked before one has a handle. */
    if (result == CUPTI_SUCCESS && number != CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE)
        result = scope_of(given, &scope, NULL);
    return result == CUPTI_SUCCESS ? attribute_get(number, bytes, value) : result;
}

CUPTI_EXPORT CUptiResult cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle given, int number,
                                                      size_t *bytes, void *value)
{
    unsigned scope = 0;
    CUptiResult result = scope_of(given, &scope, __func__);
    if (result == CUPTI_SUCCESS)
        result = attribute_set(scope, number, bytes, value);
    CUPTI_NOTE(result, NOTE_U("attribute", number), NOTE_U("scope", scope));
    return result;
}
#endif
