/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim_cupti.h"

/* Walking a buffer: without any state, and without a driver. */

unsigned cupti_record_bytes(uint32_t kind)
{
    static const uint16_t bytes[SIM_CUPTI_KIND_COUNT] = {
#define SIZE(kind_, v118, v124, v130)                                                              \
    [kind_] = SIM_CUPTI == 118 ? v118 : SIM_CUPTI == 124 ? v124 : v130,
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

CUPTI_EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                                    void **record)
{
    if (!buffer || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (buffer_is_held(buffer))
        cupti_misuse("%s on a buffer that has not been completed", __func__);
    CUptiResult failure = cupti_failure(__func__);
    if (failure != CUPTI_SUCCESS)
        return failure;
    size_t at = 0;
    if (*record) {
        size_t offset = (size_t)((uintptr_t)*record - (uintptr_t)buffer);
        if (valid_bytes && offset >= valid_bytes)
            cupti_misuse("%s with a record of another buffer", __func__);
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
