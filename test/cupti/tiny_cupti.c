/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcupti to be found: it tells TINY_VERSION, walks kernel and copy records of that version's
 * size, and has no other behaviour. $TINY_CUPTI_RESULT is what cuptiGetVersion answers, for a
 * library that is too new for its driver. With TINY_INCOMPLETE it lacks a function.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
    const char *result = getenv("TINY_CUPTI_RESULT");
    *version = TINY_VERSION;
    return result ? atoi(result) : 0;
}

static size_t record_bytes(const uint8_t *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    switch (kind) {
    case 1: return TINY_VERSION >= 27 ? 96 : 88;
    case 10: return TINY_VERSION >= 130000 ? 216 : TINY_VERSION >= 19 ? 208 : 200;
    default: return 0;
    }
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, uint8_t **record);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, uint8_t **record)
{
    uint8_t *at = *record ? *record + record_bytes(*record) : buffer;
    if (at == *record || valid_bytes - (size_t)(at - buffer) < 8)
        return 12;
    if (!record_bytes(at))
        return 21;
    if (valid_bytes - (size_t)(at - buffer) < record_bytes(at))
        return 12;
    *record = at;
    return 0;
}

/* The rest answers "not initialised", as the real one does without a driver. */
#define NOT_INITIALIZED(name)                                                                      \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return 15;                                                                                 \
    }
NOT_INITIALIZED(cuptiGetResultString)
NOT_INITIALIZED(cuptiSetThreadIdType)
NOT_INITIALIZED(cuptiSubscribe)
NOT_INITIALIZED(cuptiUnsubscribe)
NOT_INITIALIZED(cuptiEnableCallback)
NOT_INITIALIZED(cuptiGetCallbackName)
NOT_INITIALIZED(cuptiActivitySetAttribute)
NOT_INITIALIZED(cuptiActivityRegisterTimestampCallback)
NOT_INITIALIZED(cuptiActivityRegisterCallbacks)
NOT_INITIALIZED(cuptiActivityEnable)
NOT_INITIALIZED(cuptiActivityDisable)
NOT_INITIALIZED(cuptiActivityEnableLatencyTimestamps)
NOT_INITIALIZED(cuptiActivityGetNumDroppedRecords)
#if !TINY_INCOMPLETE
NOT_INITIALIZED(cuptiActivityFlushAll)
#endif
