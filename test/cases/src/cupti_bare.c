/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUPTI can do without a driver: sizes of records, walks, names, its version, and what every
 * function answers. The same is asked of the simulated one and of a real one.
 */
#include <stdint.h>

#include "cupti_functions.h"

static void on_request(uint8_t **buffer, size_t *size, size_t *record_count_max)
{
    *buffer = NULL;
    *size = *record_count_max = 0;
}

static void on_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size,
                        size_t valid)
{
    printf("completed %p %u %p %zu %zu\n", context, stream_id, (void *)buffer, size, valid);
}

static uint64_t own_clock(void)
{
    return 1;
}

static void on_callback(void *userdata, int domain, uint32_t cbid, const void *data)
{
    printf("callback %p %d %u %p\n", userdata, domain, cbid, data);
}

static void step_sizes(void)
{
    for (int kind = 0; kind < 70; kind++)
        printf("size %d %u\n", kind, record_bytes(kind));
}

/* One walk after another, over kernels and what is none. */
static void step_walk(void)
{
    enum { KERNEL = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL };
    uint64_t buffer[512];
    unsigned bytes = record_bytes(KERNEL);
    const size_t sizes[] = {0, 4, 7, 100, bytes - 1, bytes, 2 * bytes + 50, 3 * bytes};
    for (unsigned i = 0; i < 512; i++)
        buffer[i] = KERNEL;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *record = NULL;
        unsigned count = 0;
        CUptiResult result;
        while ((result = cuptiActivityGetNextRecord((uint8_t *)buffer, sizes[i], &record)) == 0)
            count++;
        printf("walk %u %u %d %td\n", i, count, result,
               record ? (char *)record - (char *)buffer : -1);
    }
    void *record = NULL;
    buffer[bytes / 8] = 0;
    CUptiResult first = cuptiActivityGetNextRecord((uint8_t *)buffer, sizeof buffer, &record);
    CUptiResult second = cuptiActivityGetNextRecord((uint8_t *)buffer, sizeof buffer, &record);
    printf("walk zero %d %d\n", first, second);
    printf("walk null %d %d\n", cuptiActivityGetNextRecord(NULL, 100, &record),
           cuptiActivityGetNextRecord((uint8_t *)buffer, 100, NULL));
}

static void step_names(void)
{
    for (int domain = 1; domain <= 2; domain++)
        for (uint32_t cbid = 0; cbid < 1000; cbid++) {
            const char *name = NULL;
            if (cuptiGetCallbackName(domain, cbid, &name) == CUPTI_SUCCESS)
                printf("name %d %u %s\n", domain, cbid, name);
        }
}

/* What each function answers to a first call. */
static void step_codes(void)
{
    CUpti_SubscriberHandle subscriber = NULL;
    uint32_t id = 0;
    const char *text = NULL;
    int type = 0;
    for (int code = -1; code < 50; code++) {
        CUptiResult result = cuptiGetResultString(code, &text);
        printf("code %d %d %s\n", code, result, text);
    }
    for (int kind = 0; kind < 70; kind++)
        printf("code kind-%d %d %d\n", kind, cuptiActivityEnable(kind), cuptiActivityDisable(kind));
    printf("code flush %d %d\n", cuptiActivityFlushAll(0), cuptiActivityFlushPeriod(10));
    printf("code type %d %d\n", cuptiSetThreadIdType(1), cuptiGetThreadIdType(&type));
    printf("code ids %d %d %d %d\n", cuptiGetContextId(NULL, &id), cuptiGetDeviceId(NULL, &id),
           cuptiGetStreamIdEx(NULL, NULL, 0, &id), cuptiGetGraphId(NULL, &id));
    printf("code none %d %d\n", cuptiUnsubscribe(NULL), cuptiEnableCallback(1, NULL, 2, 211));
    printf("code null %d %d\n", cuptiActivityRegisterCallbacks(NULL, NULL),
           cuptiActivityRegisterTimestampCallback(NULL));
    printf("code register %d %d\n", cuptiActivityRegisterCallbacks(on_request, on_complete),
           cuptiActivityRegisterTimestampCallback(own_clock));
    printf("code subscribe %d\n", cuptiSubscribe(&subscriber, on_callback, NULL));
    printf("code last %d\n", cuptiGetLastError());
    for (int number = 0; number < 12; number++) {
        uint64_t value = 7;
        size_t bytes = sizeof value;
        CUptiResult get = cuptiActivityGetAttribute(number, &bytes, &value);
        CUptiResult set = cuptiActivitySetAttribute(number, &bytes, &value);
        printf("code attribute-%d %d %d %llu\n", number, get, set, (unsigned long long)value);
    }
}

int main(void)
{
    uint32_t version = 0;
    library_load();
    printf("version %d %u\n", cuptiGetVersion(&version), cuptiGetVersion(NULL));
    printf("version %u\n", version);
    step_sizes();
    step_walk();
    step_names();
    step_codes();
    return 0;
}
