/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other users of CUPTI in the same process, linked with libcupti as they are:
 *
 *     kineto   what PyTorch's profiler does: subscribes, and does nothing more if it may not; then
 *              registers a clock of its own, takes over the buffer callbacks, with buffers that
 *              are not zeroed, and enables its kinds; disables them in the end and stays subscribed
 *     thief    the same without subscribing
 *     holder   what Nsight Systems does: subscribes early and stays
 *     switcher subscribes, turns all callbacks on, off and some on again; then leaves, and comes
 *              again with none
 *
 * A library with rival_start and rival_stop, which acts by itself when it is loaded if RIVAL names
 * one of them; with -DRIVAL_PROGRAM a program: work, start, work, stop, work (argv[2] ms
 * later). With argv[3] gpuprof pauses during the session, for a further piece of work after it.
 */
#include <pthread.h>
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

enum { BUFFER_BYTES = 1 << 20, API_THREAD_AT = 28 };

static const int kineto_kinds[] = {
    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_OVERHEAD};
enum { KINETO_KIND_COUNT = sizeof kineto_kinds / sizeof kineto_kinds[0] };

static CUpti_SubscriberHandle subscriber;
static unsigned buffer_count, record_count, kernel_count, callback_count;
static uint32_t own_thread;     /* as CUPTI names it if nobody asks for another way */
static unsigned stranger_count; /* calls of another thread: there is none */

static void on_request(uint8_t **buffer, size_t *size, size_t *record_count_max)
{
    *buffer = aligned_alloc(64, BUFFER_BYTES);
    if (*buffer)
        memset(*buffer, 0xa5, BUFFER_BYTES);
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
        if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
            uint32_t thread;
            memcpy(&thread, (char *)record + API_THREAD_AT, sizeof thread);
            stranger_count += thread != own_thread;
        }
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

#ifdef RIVAL_PROGRAM
#include "cupti_work.h"
#include "gpuprof.h"

static void cupti_work(void)
{
    cupti_work_launches();
    cupti_work_sync();
}
#else
static void cupti_work(void)
{
}
#endif

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

enum { DRIVER_LAUNCH = 307, DRIVER_COPY = 279 };

/* Is one on that was turned on, one that was turned off? */
static void states_print(void)
{
    uint32_t on = 9, off = 9;
    cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_LAUNCH);
    cuptiGetCallbackState(&off, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_COPY);
    printf("states %u %u\n", on, off);
}

/* What nobody may be called back for any more is what it had turned off. */
static int switch_on_and_off(void)
{
    int result = cuptiSubscribe(&subscriber, on_callback, NULL);
    if (result != CUPTI_SUCCESS)
        return result;
    printf("second %d\n", cuptiSubscribe(&subscriber, on_callback, NULL) != CUPTI_SUCCESS);
    cuptiEnableAllDomains(1, subscriber);
    cupti_work();
    cuptiEnableAllDomains(0, subscriber);
    unsigned before = callback_count;
    cupti_work();
    printf("off %d %d\n", before > 0, callback_count == before);
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_LAUNCH);
    states_print();
    cupti_work();
    printf("on %d\n", callback_count > before);
    cuptiUnsubscribe(subscriber);
    before = callback_count;
    cupti_work();
    printf("left %d\n", callback_count == before);
    result = cuptiSubscribe(&subscriber, on_callback, NULL);
    cupti_work();
    printf("again %d\n", callback_count == before);
    return result;
}

void rival_start(const char *which)
{
    int result;
    own_thread = (uint32_t)pthread_self();
    if (strcmp(which, "switcher") == 0) {
        result = switch_on_and_off();
    } else if (strcmp(which, "holder") == 0) {
        result = hold();
        if (result == CUPTI_SUCCESS)
            cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
    } else if (strcmp(which, "finalizer") == 0) {
        result = cuptiFinalize();
    } else {
        enum { CONTEXT_CREATED = 1 };
        result = CUPTI_SUCCESS;
        if (strcmp(which, "thief") != 0)
            result = cuptiSubscribe(&subscriber, on_callback, NULL);
        if (result == CUPTI_SUCCESS && subscriber)
            result = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CONTEXT_CREATED);
        if (result == CUPTI_SUCCESS)
            result = cuptiActivityRegisterTimestampCallback(kineto_clock);
        if (result == CUPTI_SUCCESS)
            result = cuptiActivityRegisterCallbacks(on_request, on_complete);
        for (int i = 0; i < KINETO_KIND_COUNT && result == CUPTI_SUCCESS; i++)
            result = cuptiActivityEnable(kineto_kinds[i]);
    }
    printf("%s started %d\n", which, result);
}

void rival_stop(const char *which)
{
    if (strcmp(which, "finalizer") == 0)
        return;
    if (strcmp(which, "kineto") != 0 && strcmp(which, "thief") != 0) {
        cuptiUnsubscribe(subscriber);
        printf("%s stopped callbacks=%u\n", which, callback_count);
        return;
    }
    for (int i = 0; i < KINETO_KIND_COUNT; i++)
        cuptiActivityDisable(kineto_kinds[i]);
    cuptiActivityFlushAll(0);
    printf("%s stopped buffers=%u records=%u kernels=%u strangers=%u\n", which, buffer_count,
           record_count, kernel_count, stranger_count);
}

#ifdef RIVAL_PROGRAM
int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "kineto";
    cupti_work_launches();
    cupti_work_sync();
    rival_start(which);
    cupti_work_launches();
    cupti_work_sync();
    if (argc > 3)
        gpuprof_stop();
    rival_stop(which);
    if (argc > 2)
        usleep((unsigned)atoi(argv[2]) * 1000);
    if (argc > 3) {
        cupti_work_launches();
        cupti_work_sync();
        gpuprof_start();
    }
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
