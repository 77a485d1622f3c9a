/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim_cupti.h"

/* Walking a buffer: without any state, and without a driver. */

unsigned cupti_record_bytes(uint32_t kind)
{
    static const uint16_t bytes[SIM_CUPTI_KIND_COUNT] = {
#define SIZE(kind_, v118, v124, v130, v135)                                                        \
    [kind_] = SIM_CUPTI == 118 ? v118 : SIM_CUPTI == 124 ? v124 : SIM_CUPTI == 130 ? v130 : v135,
#include "sim_cupti_sizes.def"
#undef SIZE
    };
    return kind < SIM_CUPTI_KIND_COUNT ? bytes[kind] : 0;
}

static uint32_t kind_at(const uint8_t *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    return kind;
}

static CUptiResult unknown_kind(void)
{
    return SIM_CUPTI == 118 ? CUPTI_ERROR_UNKNOWN : CUPTI_ERROR_INVALID_KIND;
}

static CUptiResult next_record(const char *function, uint8_t *buffer, size_t valid_bytes,
                               void **record)
{
    if (buffer_is_held(buffer))
        cupti_misuse("%s on a buffer that has not been completed", function);
    CUptiResult failure = cupti_failure(function);
    if (failure != CUPTI_SUCCESS)
        return failure;
    size_t at = 0;
    if (*record) {
        size_t offset = (size_t)((uintptr_t)*record - (uintptr_t)buffer);
        if (valid_bytes && offset >= valid_bytes)
            cupti_misuse("%s with a record of another buffer", function);
        unsigned bytes = valid_bytes ? cupti_record_bytes(kind_at(*record)) : 0;
        if (valid_bytes && bytes == 0)
            return unknown_kind();
        at = offset + bytes;
    }
    if (at >= valid_bytes || valid_bytes - at < sizeof(uint32_t))
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    unsigned bytes = cupti_record_bytes(kind_at(buffer + at));
    if (bytes == 0)
        return unknown_kind();
    if (valid_bytes - at < bytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = buffer + at;
    return CUPTI_SUCCESS;
}

/* Taken for a use of the process's scope: whether the real one does so is not known. */
CUPTI_EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                                    void **record)
{
    if (!buffer || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;
    CUptiResult result = scope_global();
    return result == CUPTI_SUCCESS ? next_record(__func__, buffer, valid_bytes, record) : result;
}

#if SIM_CUPTI >= 133
CUPTI_EXPORT CUptiResult cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle given,
                                                       uint8_t *buffer, size_t valid_bytes,
                                                       void **record)
{
    unsigned scope;
    if (!buffer || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;
    CUptiResult result = scope_of(given, &scope, NULL);
    return result == CUPTI_SUCCESS ? next_record(__func__, buffer, valid_bytes, record) : result;
}
#endif
