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
};

enum { ATTRIBUTE_COUNT = sizeof attributes / sizeof attributes[0] };

static bool is_frozen;

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

CUPTI_EXPORT CUptiResult cuptiActivityGetAttribute(int number, size_t *bytes, void *value)
{
    CUptiResult result = cupti_ready(__func__);
    if (result == CUPTI_SUCCESS)
        result = cupti_error(attribute_check(number, bytes, value));
    if (result == CUPTI_SUCCESS)
        memcpy(value, &attributes[number].value, attributes[number].bytes);
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivitySetAttribute(int number, size_t *bytes, void *value)
{
    CUptiResult result = cupti_ready(__func__);
    if (result == CUPTI_SUCCESS)
        result = cupti_error(attribute_check(number, bytes, value));
    if (result == CUPTI_SUCCESS) {
        uint64_t wanted = 0;
        memcpy(&wanted, value, attributes[number].bytes);
        cupti_lock(__func__);
        if (is_frozen && wanted != attributes[number].value && activity_is_on())
            cupti_misuse("attribute %d changed after cuptiActivityRegisterCallbacks", number);
        attributes[number].value = wanted;
        cupti_unlock();
    }
    uint64_t now = result == CUPTI_SUCCESS ? attributes[number].value : 0;
    CUPTI_NOTE(result, NOTE_U("attribute", number), NOTE_U("value", now));
    return result;
}
