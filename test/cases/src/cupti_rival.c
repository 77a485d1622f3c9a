/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other users of CUPTI in the same process, linked with libcupti as they are:
 *
 *     kineto   what PyTorch's profiler does: takes over the buffer callbacks, registers a clock of
 *              its own and enables its kinds, all without subscribing; disables them in the end
 *     holder   what Nsight Systems does: subscribes early and stays
 *
 * A library with rival_start and rival_stop, which acts by itself when it is loaded if RIVAL names
 * one of them; with -DRIVAL_PROGRAM a program: work, start, work, stop, work (argv[2] ms
 * later).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim_cupti_abi.h"

#define FUNCTION(name, params) CUptiResult name params;
SIM_CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION
#pragma weak cuptiSubscribe_v2

void rival_start(const char *which);
void rival_stop(const char *which);

enum { BUFFER_BYTES = 1 << 20 };

static const int kineto_kinds[] = {
    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_OVERHEAD};
enum { KINETO_KIND_COUNT = sizeof kineto_kinds / sizeof kineto_kinds[0] };

static CUpti_SubscriberHandle subscriber;
static unsigned buffer_count, record_count, kernel_count, callback_count;

static void on_request(uint8_t **buffer, size_t *size, size_t *record_count_max)
{
    *buffer = aligned_alloc(64, BUFFER_BYTES);
    if (*buffer)
        memset(*buffer, 0, BUFFER_BYTES);
    *size = BUFFER_BYTES;
    *record_count_max = 0;
}

static void on_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size,
                        size_t valid)
{
    void *record = NULL;
    (void)context;
    (void)stream_id;
    (void)size;
    buffer_count++;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        int kind;
        memcpy(&kind, record, sizeof kind);
        record_count++;
        kernel_count += kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD) {
            /* Where the data of an overhead is, since 12.2; a 11.8 record ends before it. */
            void *data;
            uint32_t version = 0;
            cuptiGetVersion(&version);
            memcpy(&data, (char *)record + 48, sizeof data);
            if (version >= 20)
                free(data);
        }
    }
    free(buffer);
}

static uint64_t kineto_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void on_callback(void *userdata, int domain, uint32_t cbid, const void *data)
{
    (void)userdata;
    (void)domain;
    (void)cbid;
    (void)data;
    __atomic_add_fetch(&callback_count, 1, __ATOMIC_RELAXED);
}

static int hold(void)
{
    if (!cuptiSubscribe_v2)
        return cuptiSubscribe(&subscriber, on_callback, NULL);
    char old[64] = "";
    CUpti_SubscriberParams params = {sizeof params, "the holder", old, sizeof old};
    return cuptiSubscribe_v2(&subscriber, on_callback, NULL, &params);
}

void rival_start(const char *which)
{
    int result;
    if (strcmp(which, "holder") == 0) {
        result = hold();
        if (result == CUPTI_SUCCESS)
            cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
    } else if (strcmp(which, "finalizer") == 0) {
        result = cuptiFinalize();
    } else {
        result = cuptiActivityRegisterCallbacks(on_request, on_complete);
        cuptiActivityRegisterTimestampCallback(kineto_clock);
        for (int i = 0; i < KINETO_KIND_COUNT && result == CUPTI_SUCCESS; i++)
            result = cuptiActivityEnable(kineto_kinds[i]);
    }
    printf("%s started %d\n", which, result);
}

void rival_stop(const char *which)
{
    if (strcmp(which, "holder") == 0) {
        cuptiUnsubscribe(subscriber);
        printf("holder stopped callbacks=%u\n", callback_count);
        return;
    }
    if (strcmp(which, "finalizer") == 0)
        return;
    for (int i = 0; i < KINETO_KIND_COUNT; i++)
        cuptiActivityDisable(kineto_kinds[i]);
    cuptiActivityFlushAll(0);
    printf("kineto stopped buffers=%u records=%u kernels=%u\n", buffer_count, record_count,
           kernel_count);
}

#ifdef RIVAL_PROGRAM
#include "cupti_work.h"

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "kineto";
    cupti_work_launches();
    cupti_work_sync();
    rival_start(which);
    cupti_work_launches();
    cupti_work_sync();
    rival_stop(which);
    if (argc > 2)
        usleep((unsigned)atoi(argv[2]) * 1000);
    cupti_work_launches();
    cupti_work_sync();
    return 0;
}
#else
__attribute__((constructor)) static void rival_loaded(void)
{
    const char *which = getenv("RIVAL");
    if (which && *which)
        rival_start(which);
}
#endif
