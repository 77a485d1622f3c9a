/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "sim_cupti.h"

/* Which kinds are wanted, who gets them, and when. The last one to say so is who counts. */

static uint8_t wanted[SCOPE_COUNT][SIM_CUPTI_KIND_COUNT]; /* atomic */
/* Functions whose calls are recorded; atomic. */
static uint8_t drivers[SCOPE_COUNT][CALLBACK_COUNT_MAX];
static uint8_t runtimes[SCOPE_COUNT][CALLBACK_COUNT_MAX];
static bool has_latency[SCOPE_COUNT];
static bool has_event_times;
static uint64_t flush_count; /* atomic */
static unsigned session_count;

bool activity_wanted(unsigned scope, uint32_t kind)
{
    return __atomic_load_n(&wanted[scope][kind], __ATOMIC_RELAXED) != 0;
}

bool activity_wanted_by_any(uint32_t kind)
{
    for (unsigned scope = 0; scope < SCOPE_COUNT; scope++)
        if (activity_wanted(scope, kind))
            return true;
    return false;
}

bool activity_wants_call(unsigned scope, int domain, uint32_t cbid)
{
    const uint8_t *calls = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtimes[scope] : drivers[scope];
    return cbid < CALLBACK_COUNT_MAX && __atomic_load_n(&calls[cbid], __ATOMIC_RELAXED) != 0;
}

static bool scope_is_on(unsigned scope)
{
    for (unsigned i = 0; i < SIM_CUPTI_KIND_COUNT; i++)
        if (activity_wanted(scope, i))
            return true;
    for (unsigned i = 0; i < CALLBACK_COUNT_MAX; i++)
        if (activity_wants_call(scope, CUPTI_CB_DOMAIN_DRIVER_API, i) ||
            activity_wants_call(scope, CUPTI_CB_DOMAIN_RUNTIME_API, i))
            return true;
    return false;
}

bool activity_is_on(void)
{
    for (unsigned scope = 0; scope < SCOPE_COUNT; scope++)
        if (scope_is_on(scope))
            return true;
    return false;
}

unsigned activity_sessions(void)
{
    return __atomic_load_n(&session_count, __ATOMIC_RELAXED);
}

/* The kind speaks for all functions, until one is named. */
static void wanted_set(unsigned scope, int kind, uint8_t is_wanted)
{
    uint8_t *calls = kind == CUPTI_ACTIVITY_KIND_RUNTIME  ? runtimes[scope]
                     : kind == CUPTI_ACTIVITY_KIND_DRIVER ? drivers[scope]
                                                          : NULL;
    if (is_wanted && !activity_is_on())
        __atomic_add_fetch(&session_count, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&wanted[scope][kind], is_wanted, __ATOMIC_RELAXED);
    for (unsigned i = 0; calls && i < CALLBACK_COUNT_MAX; i++)
        __atomic_store_n(&calls[i], is_wanted, __ATOMIC_RELAXED);
}

void activity_forget(unsigned scope)
{
    for (int kind = 0; kind < SIM_CUPTI_KIND_COUNT; kind++)
        wanted_set(scope, kind, 0);
    has_latency[scope] = false;
}

void activity_latency_set(unsigned scope, bool on)
{
    has_latency[scope] = on;
}

bool activity_latency(unsigned scope)
{
    return has_latency[scope];
}

bool activity_event_times(void)
{
    return has_event_times;
}

bool activity_graphs_whole(void)
{
    if (scope_is_shared())
        return attribute_graphs_whole();
    return activity_wanted_by_any(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

/* Kinds that have a record and cannot be asked for; seen with 11.8, before there is a driver. */
static bool kind_is_refused(int kind)
{
    static const uint8_t refused[] = {0, 6, 7, 14, 21, 23, 27, 31, 36, 41, 42, 43, 44};
    for (unsigned i = 0; i < sizeof refused; i++)
        if (kind == refused[i])
            return true;
    return kind < 0 || kind >= SIM_CUPTI_KIND_COUNT || cupti_record_bytes((uint32_t)kind) == 0;
}

static CUptiResult kind_check(int kind, const char *function)
{
    /* 11.8 looks at the kind first. */
    bool is_early = SIM_CUPTI == 118 && kind > 0 && kind <= 52 && kind_is_refused(kind);
    CUptiResult result = is_early ? CUPTI_ERROR_INVALID_KIND : cupti_ready(function);
    if (result == CUPTI_SUCCESS && kind_is_refused(kind))
        result = CUPTI_ERROR_INVALID_KIND;
    if (result == CUPTI_SUCCESS && cupti_switches.unsupported[kind])
        result = CUPTI_ERROR_NOT_SUPPORTED;
    return cupti_error(result);
}

static CUptiResult kind_enable(unsigned scope, int kind)
{
    usleep((useconds_t)cupti_switches.enable_us);
    if (kind == CUPTI_ACTIVITY_KIND_KERNEL)
        cupti_misuse("kind KERNEL serialises all kernels; CONCURRENT_KERNEL does not");
    if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE && scope_is_shared() && !attribute_graphs_whole())
        return cupti_error(CUPTI_ERROR_NOT_COMPATIBLE);
    cupti_lock(__func__);
    cupti_worker_start();
    wanted_set(scope, kind, 1); /* nothing tells of what is there already (seen on an H200) */
    clock_anchor();
    cupti_unlock();
    return CUPTI_SUCCESS;
}

CUPTI_EXPORT CUptiResult cuptiActivityEnable(int kind)
{
    CUptiResult result = kind_check(kind, __func__);
    if (result == CUPTI_SUCCESS)
        result = scope_global();
    if (result == CUPTI_SUCCESS)
        result = kind_enable(0, kind);
    CUPTI_NOTE(result, NOTE_U("kind", kind));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityDisable(int kind)
{
    CUptiResult result = kind_check(kind, __func__);
    if (result == CUPTI_SUCCESS)
        result = scope_global();
    if (result == CUPTI_SUCCESS)
        wanted_set(0, kind, 0);
    CUPTI_NOTE(result, NOTE_U("kind", kind));
    return result;
}

/* What became an attribute of each subscriber is refused where there may be several. */
static CUptiResult sole_check(const char *function)
{
    CUptiResult result = cupti_ready(function);
    if (result == CUPTI_SUCCESS && scope_is_shared())
        result = cupti_error(CUPTI_ERROR_NOT_SUPPORTED);
    return result == CUPTI_SUCCESS ? scope_global() : result;
}

CUPTI_EXPORT CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
    CUptiResult result = sole_check(__func__);
    if (result == CUPTI_SUCCESS)
        activity_latency_set(0, enable != 0);
    CUPTI_NOTE(result, NOTE_U("enable", enable));
    return result;
}

#if SIM_CUPTI >= 130
/* Of the versions here; the real ones have had it since 12.9. */
static CUptiResult call_enable(uint8_t *calls, int domain, uint32_t cbid, uint8_t enable,
                               const char *function)
{
    CUptiResult result = cupti_ready(function);
    if (result == CUPTI_SUCCESS && (cbid == 0 || cbid >= callback_count(domain)))
        result = cupti_error(CUPTI_ERROR_INVALID_PARAMETER);
    if (result == CUPTI_SUCCESS) {
        cupti_lock(function);
        cupti_worker_start();
        __atomic_store_n(&calls[cbid], enable != 0, __ATOMIC_RELAXED);
        cupti_unlock();
    }
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
    CUptiResult result = scope_global();
    if (result == CUPTI_SUCCESS)
        result = call_enable(drivers[0], CUPTI_CB_DOMAIN_DRIVER_API, cbid, enable, __func__);
    CUPTI_NOTE(result, NOTE_U("cbid", cbid), NOTE_U("enable", enable));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
    CUptiResult result = scope_global();
    if (result == CUPTI_SUCCESS)
        result = call_enable(runtimes[0], CUPTI_CB_DOMAIN_RUNTIME_API, cbid, enable, __func__);
    CUPTI_NOTE(result, NOTE_U("cbid", cbid), NOTE_U("enable", enable));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable)
{
    CUptiResult result = sole_check(__func__);
    if (result == CUPTI_SUCCESS)
        has_event_times = enable != 0;
    CUPTI_NOTE(result, NOTE_U("enable", enable));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityEnableAllocationSource(uint8_t enable)
{
    CUptiResult result = sole_check(__func__);
    CUPTI_NOTE(result, NOTE_U("enable", enable));
    return result;
}
#endif

#if SIM_CUPTI >= 133
CUPTI_EXPORT CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle given, int kind,
                                                void *config)
{
    unsigned scope = 0;
    CUptiResult result = scope_of(given, &scope, __func__);
    if (result == CUPTI_SUCCESS)
        result = kind_check(kind, __func__);
    /* Records of chosen fields are not simulated; the attribute that asks for them is refused. */
    if (result == CUPTI_SUCCESS && config)
        result = cupti_error(CUPTI_ERROR_NOT_SUPPORTED);
    if (result == CUPTI_SUCCESS)
        result = kind_enable(scope, kind);
    CUPTI_NOTE(result, NOTE_U("kind", kind), NOTE_U("scope", scope));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle given, int kind,
                                                 void *config)
{
    unsigned scope = 0;
    CUptiResult result = scope_of(given, &scope, __func__);
    (void)config;
    if (result == CUPTI_SUCCESS)
        result = kind_check(kind, __func__);
    if (result == CUPTI_SUCCESS)
        wanted_set(scope, kind, 0);
    CUPTI_NOTE(result, NOTE_U("kind", kind), NOTE_U("scope", scope));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle given,
                                                         uint32_t cbid, uint8_t enable)
{
    unsigned scope = 0;
    CUptiResult result = scope_of(given, &scope, __func__);
    if (result == CUPTI_SUCCESS)
        result = call_enable(drivers[scope], CUPTI_CB_DOMAIN_DRIVER_API, cbid, enable, __func__);
    CUPTI_NOTE(result, NOTE_U("cbid", cbid), NOTE_U("scope", scope));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle given,
                                                          uint32_t cbid, uint8_t enable)
{
    unsigned scope = 0;
    CUptiResult result = scope_of(given, &scope, __func__);
    if (result == CUPTI_SUCCESS)
        result = call_enable(runtimes[scope], CUPTI_CB_DOMAIN_RUNTIME_API, cbid, enable, __func__);
    CUPTI_NOTE(result, NOTE_U("cbid", cbid), NOTE_U("scope", scope));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityRegisterCallbacks_v2(
    CUpti_SubscriberHandle given, CUpti_BuffersCallbackRequestFunc_v2 request,
    CUpti_BuffersCallbackCompleteFunc_v2 complete)
{
    unsigned scope = 0;
    CUptiResult result = scope_of(given, &scope, __func__);
    if (result == CUPTI_SUCCESS && (!request || !complete))
        result = cupti_error(CUPTI_ERROR_INVALID_PARAMETER);
    if (result == CUPTI_SUCCESS) {
        cupti_lock(__func__);
        buffer_register_v2(scope, request, complete);
        attribute_freeze();
        cupti_unlock();
    }
    CUPTI_NOTE(result, NOTE_U("scope", scope));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle given,
                                                              void *context, uint32_t stream_id,
                                                              size_t *dropped)
{
    unsigned scope = 0;
    CUptiResult result = scope_of(given, &scope, NULL);
    (void)context;
    (void)stream_id;
    if (result == CUPTI_SUCCESS && !dropped)
        result = CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_SUCCESS)
        *dropped = buffer_dropped(scope);
    return result;
}
#endif

/* Works without a driver: what it takes is only kept. */
CUPTI_EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                        CUpti_BuffersCallbackCompleteFunc complete)
{
    if (!request || !complete)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_thread.buffer_callback)
        cupti_misuse("%s called inside the client's %s callback", __func__,
                     cupti_thread.buffer_callback);
    CUptiResult result = cupti_failure(__func__);
    if (result == CUPTI_SUCCESS)
        result = scope_global();
    if (result == CUPTI_SUCCESS) {
        cupti_lock(__func__);
        buffer_register(request, complete);
        attribute_freeze();
        cupti_unlock();
    }
    CUPTI_NOTE(result);
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc now)
{
    if (!now)
        return cupti_error(CUPTI_ERROR_INVALID_PARAMETER);
    CUptiResult result = cupti_ready(__func__);
    if (result == CUPTI_SUCCESS && scope_is_shared())
        result = cupti_error(CUPTI_ERROR_NOT_SUPPORTED);
    if (result == CUPTI_SUCCESS)
        result = scope_global();
    if (result == CUPTI_SUCCESS) {
        cupti_lock(__func__);
        clock_register(0, now);
        cupti_unlock();
    }
    CUPTI_NOTE(result);
    return result;
}

/* Nothing wakes it, as nothing wakes the real one: its worker is in the parent. */
static void hang(void)
{
    for (;;)
        pause();
}

CUPTI_EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flags)
{
    if (cupti_in_child())
        hang();
    CUptiResult result = cupti_ready(__func__);
    if (result == CUPTI_SUCCESS && cupti_thread.in_stream_destroy)
        cupti_misuse("%s inside a STREAM_DESTROY_STARTING callback: a deadlock", __func__);
    CUPTI_NOTE(result, NOTE_U("flags", flags));
    if (result != CUPTI_SUCCESS)
        return result;
    uint64_t count = __atomic_add_fetch(&flush_count, 1, __ATOMIC_RELAXED);
    if (cupti_switches.flush_hang && count >= cupti_switches.flush_hang)
        hang();
    cupti_lock(__func__);
    clock_anchor();
    buffer_flush(flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED ? FLUSH_FORCED : FLUSH_COMPLETE);
    cupti_unlock();
    return result;
}

CUPTI_EXPORT CUptiResult cuptiActivityFlushPeriod(uint32_t period_ms)
{
    CUptiResult result = cupti_ready(__func__);
    if (result == CUPTI_SUCCESS && scope_is_shared())
        result = cupti_error(CUPTI_ERROR_NOT_SUPPORTED);
    if (result == CUPTI_SUCCESS)
        cupti_worker_period(period_ms);
    CUPTI_NOTE(result, NOTE_U("ms", period_ms));
    return result;
}

/* Allowed everywhere: clients ask in their buffer callback. Reading sets it to 0. */
CUPTI_EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream_id,
                                                           size_t *dropped)
{
    (void)context;
    (void)stream_id;
    if (!dropped)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (SIM_CUPTI < 130 && !cupti_driver) {
        CUptiResult result = cupti_ready(__func__);
        if (result != CUPTI_SUCCESS)
            return result;
    }
    CUptiResult result = cupti_failure(__func__);
    if (result == CUPTI_SUCCESS)
        result = scope_global();
    if (result == CUPTI_SUCCESS)
        *dropped = buffer_dropped(0);
    return result;
}
