/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other users of CUPTI in the same process, linked with libcupti as they are:
 *
 *     kineto   what PyTorch's profiler does: subscribes, and does nothing more if it may not; then
 *              registers a clock of its own, takes over the buffer callbacks, with buffers that
 *              are not zeroed, and enables its kinds; disables them in the end and stays subscribed
 *     thief    the same without subscribing
 *     holder   what Nsight Systems does: subscribes early and stays
 *     xla      what XLA's profiler does: subscribes, wants buffers for each thread, takes the
 * records shared   the same by the functions of 13.3, as a subscriber that lets others come beside
 * it alone    and as one that does not monitor  as shared, with records of its own layout, as
 * PyTorch's CUPTI monitor has them switcher subscribes, turns all callbacks on, off and some on
 * again; then leaves, and comes again with none
 *
 * A library with other_client_start and other_client_stop, which acts by itself when it is loaded
 * if OTHER_CLIENT names one of them; with -DOTHER_CLIENT_PROGRAM a program: work, start, work,
 * stop, work (argv[2] ms later). With argv[3] gpuprof pauses during the session, for a further
 * piece of work after it. With OTHER_CLIENT_FIRST it starts before all else, and with "gone" has
 * left by then; with OTHER_CLIENT_WHOLE it wants graphs as single records; OTHER_CLIENT_GRAPHS
 * makes graphs a part of the work, and with OTHER_CLIENT_ABRUPT it leaves without turning its kinds
 * off.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim_cupti_abi.h"

#define FUNCTION(name, params) CUptiResult name params;
SIM_CUPTI_FUNCTIONS(FUNCTION)
SIM_CUPTI_SCOPED_FUNCTIONS(FUNCTION)
#undef FUNCTION
#pragma weak cuptiSubscribe_v2
#pragma weak cuptiActivityRegisterCallbacks_v2
#pragma weak cuptiActivityEnable_v2
#pragma weak cuptiActivityDisable_v2
#pragma weak cuptiActivityEnableDriverApi_v2
#pragma weak cuptiActivityEnableRuntimeApi_v2
#pragma weak cuptiActivityGetAttribute_v2
#pragma weak cuptiActivitySetAttribute_v2
#pragma weak cuptiActivityGetNextRecord_v2
#pragma weak cuptiActivityGetNumDroppedRecords_v2
#pragma weak cuptiActivityPushExternalCorrelationId_v2
#pragma weak cuptiActivityPopExternalCorrelationId_v2
#pragma weak cuptiGetTimestamp_v2

void other_client_start(const char *which);
void other_client_stop(const char *which);

enum { BUFFER_BYTES = 1 << 20, API_THREAD_AT = 28, START_AT = 16, EXTERNAL_ID = 77 };

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
static unsigned off_clock_count, tied_count;
static bool is_scoped; /* by the functions of a subscriber */

static void on_request(uint8_t **buffer, size_t *size, size_t *record_count_max)
{
    *buffer = aligned_alloc(64, BUFFER_BYTES);
    if (*buffer)
        memset(*buffer, 0xa5, BUFFER_BYTES);
    *size = BUFFER_BYTES;
    *record_count_max = 0;
}

static uint64_t realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void record_see(char *record)
{
    int kind;
    memcpy(&kind, record, sizeof kind);
    record_count++;
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        uint64_t start_ns;
        memcpy(&start_ns, record + START_AT, sizeof start_ns);
        kernel_count++;
        off_clock_count += realtime_ns() - start_ns > 100000000000u;
    }
    tied_count += kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
        uint32_t thread;
        memcpy(&thread, record + API_THREAD_AT, sizeof thread);
        stranger_count += thread != own_thread;
    }
    if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD) {
        /* Where the data of an overhead is, since 12.2; a 11.8 record ends before it. */
        void *data;
        uint32_t version = 0;
        cuptiGetVersion(&version);
        memcpy(&data, record + 48, sizeof data);
        if (version >= 20)
            free(data);
    }
}

static CUptiResult next(uint8_t *buffer, size_t valid, void **record)
{
    return is_scoped ? cuptiActivityGetNextRecord_v2(subscriber, buffer, valid, record)
                     : cuptiActivityGetNextRecord(buffer, valid, record);
}

static void on_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size,
                        size_t valid)
{
    void *record = NULL;
    (void)context;
    (void)stream_id;
    (void)size;
    buffer_count++;
    while (next(buffer, valid, &record) == CUPTI_SUCCESS)
        record_see(record);
    free(buffer);
}

static void on_request_v2(uint8_t **buffer, size_t *size, size_t *record_count_max,
                          CUpti_BufferCallbackRequestInfo *info)
{
    if (info->structSize < sizeof *info)
        abort();
    on_request(buffer, size, record_count_max);
}

static void on_complete_v2(uint8_t *buffer, size_t size, size_t valid,
                           CUpti_BufferCallbackCompleteInfo *info)
{
    if (info->structSize < sizeof *info)
        abort();
    on_complete(NULL, 0, buffer, size, valid);
}

static uint64_t kineto_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef OTHER_CLIENT_PROGRAM
#include "cupti_work.h"
#include "range/gpuprof.h"

static void cupti_work(void)
{
    cupti_work_launches();
    if (getenv("OTHER_CLIENT_GRAPHS"))
        cupti_work_graph();
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

static const int xla_kinds[] = {CUPTI_ACTIVITY_KIND_MEMCPY,
                                CUPTI_ACTIVITY_KIND_MEMSET,
                                CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                CUPTI_ACTIVITY_KIND_OVERHEAD,
                                CUPTI_ACTIVITY_KIND_RUNTIME,
                                CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
enum { XLA_KIND_COUNT = sizeof xla_kinds / sizeof xla_kinds[0], EXTERNAL_CUSTOM = 3 };

static CUptiResult kind_enable(int kind, bool enable)
{
    if (is_scoped)
        return enable ? cuptiActivityEnable_v2(subscriber, kind, NULL)
                      : cuptiActivityDisable_v2(subscriber, kind, NULL);
    return enable ? cuptiActivityEnable(kind) : cuptiActivityDisable(kind);
}

static CUptiResult attribute_set(int number, uint8_t value)
{
    size_t bytes = sizeof value;
    return is_scoped ? cuptiActivitySetAttribute_v2(subscriber, number, &bytes, &value)
                     : cuptiActivitySetAttribute(number, &bytes, &value);
}

static CUptiResult scoped_subscribe(bool allow)
{
    char old[64] = "";
    CUpti_SubscriberParams params = {.structSize = sizeof params,
                                     .subscriberName = "the scoped one",
                                     .oldSubscriberName = old,
                                     .oldSubscriberSize = sizeof old,
                                     .allowMultipleSubscribers = allow};
    CUptiResult result = cuptiSubscribe_v2(&subscriber, on_callback, NULL, &params);
    uint8_t state = 9;
    size_t bytes = sizeof state;
    if (result == CUPTI_SUCCESS)
        result = cuptiActivityGetAttribute_v2(
            subscriber, CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE, &bytes, &state);
    printf("state %d\n", state);
    return result;
}

/* Takes the records: as the process, or as a subscriber. */
static CUptiResult take(bool sets_per_thread)
{
    CUptiResult result = CUPTI_SUCCESS;
    if (sets_per_thread)
        result = attribute_set(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1);
    if (result == CUPTI_SUCCESS && getenv("OTHER_CLIENT_WHOLE"))
        result = attribute_set(CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE, 1);
    if (result == CUPTI_SUCCESS)
        result = is_scoped
                     ? cuptiActivityRegisterCallbacks_v2(subscriber, on_request_v2, on_complete_v2)
                     : cuptiActivityRegisterCallbacks(on_request, on_complete);
    for (int i = 0; i < XLA_KIND_COUNT && result == CUPTI_SUCCESS; i++)
        result = kind_enable(xla_kinds[i], true);
    if (result == CUPTI_SUCCESS)
        result = is_scoped ? cuptiActivityPushExternalCorrelationId_v2(subscriber, EXTERNAL_CUSTOM,
                                                                       EXTERNAL_ID)
                           : cuptiActivityPushExternalCorrelationId(EXTERNAL_CUSTOM, EXTERNAL_ID);
    if (result == CUPTI_SUCCESS)
        result = cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
    return result;
}

static CUptiResult take_as(const char *which)
{
    CUptiResult result;
    is_scoped = strcmp(which, "xla") != 0;
    if (!is_scoped)
        result = cuptiSubscribe(&subscriber, on_callback, NULL);
    else
        result = scoped_subscribe(strcmp(which, "alone") != 0);
    if (result == CUPTI_SUCCESS && strcmp(which, "monitor") == 0)
        result = attribute_set(CUPTI_ACTIVITY_ATTR_USER_DEFINED_RECORDS, 1);
    return result == CUPTI_SUCCESS ? take(!is_scoped) : result;
}

static void leave(const char *which)
{
    uint64_t last = 0, now = 0;
    size_t dropped = 99;
    for (int i = 0; i < XLA_KIND_COUNT && !getenv("OTHER_CLIENT_ABRUPT"); i++)
        kind_enable(xla_kinds[i], false);
    if (is_scoped) {
        cuptiActivityPopExternalCorrelationId_v2(subscriber, EXTERNAL_CUSTOM, &last);
        cuptiGetTimestamp_v2(subscriber, &now);
    } else {
        cuptiActivityPopExternalCorrelationId(EXTERNAL_CUSTOM, &last);
        cuptiGetTimestamp(&now);
    }
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (is_scoped)
        cuptiActivityGetNumDroppedRecords_v2(subscriber, NULL, 0, &dropped);
    else
        cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
    cuptiUnsubscribe(subscriber);
    printf("%s stopped buffers=%d kernels=%u tied=%d strangers=%u dropped=%zu last=%d time=%d "
           "callbacks=%d\n",
           which, buffer_count > 0, kernel_count, tied_count > 0, stranger_count, dropped,
           (int)last, now > 0, callback_count > 0);
    fprintf(stderr, "off the clock: %u\n", off_clock_count);
}

static bool is_taker(const char *which)
{
    return strcmp(which, "xla") == 0 || strcmp(which, "shared") == 0 ||
           strcmp(which, "alone") == 0 || strcmp(which, "monitor") == 0;
}

static int hold(void)
{
    if (!cuptiSubscribe_v2)
        return cuptiSubscribe(&subscriber, on_callback, NULL);
    char old[64] = "";
    CUpti_SubscriberParams params = {.structSize = sizeof params,
                                     .subscriberName = "the holder",
                                     .oldSubscriberName = old,
                                     .oldSubscriberSize = sizeof old};
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

void other_client_start(const char *which)
{
    int result;
    own_thread = (uint32_t)pthread_self();
    if (strcmp(which, "switcher") == 0) {
        result = switch_on_and_off();
    } else if (strcmp(which, "holder") == 0) {
        result = hold();
        if (result == CUPTI_SUCCESS)
            cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
    } else if (is_taker(which)) {
        result = take_as(which);
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

void other_client_stop(const char *which)
{
    if (strcmp(which, "finalizer") == 0)
        return;
    if (is_taker(which)) {
        leave(which);
        return;
    }
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

#ifdef OTHER_CLIENT_PROGRAM
int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "kineto";
    const char *first = getenv("OTHER_CLIENT_FIRST");
    if (first)
        other_client_start(which);
    if (first && strcmp(first, "gone") == 0) {
        other_client_stop(which);
        cupti_work();
        return 0;
    }
    cupti_work();
    if (getenv("OTHER_CLIENT_STOPPED"))
        gpuprof_stop();
    if (!first)
        other_client_start(which);
    if (getenv("OTHER_CLIENT_STOPPED"))
        gpuprof_start();
    cupti_work();
    if (argc > 3)
        gpuprof_stop();
    other_client_stop(which);
    if (argc > 2)
        usleep((unsigned)atoi(argv[2]) * 1000);
    if (argc > 3) {
        cupti_work();
        gpuprof_start();
    }
    cupti_work();
    return 0;
}
#else
__attribute__((constructor)) static void other_client_loaded(void)
{
    const char *which = getenv("OTHER_CLIENT");
    if (which && *which)
        other_client_start(which);
}
#endif
