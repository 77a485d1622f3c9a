/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_cupti.h"

/* The one subscriber, and its callbacks on the application's threads. */

static struct {
    pthread_mutex_t lock;
    CUpti_CallbackFunc callback; /* atomic */
    void *userdata;
    uint64_t generation; /* part of the handle: an old one is no good */
    char name[64];
} subscriber = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint8_t enabled[DOMAIN_COUNT][CALLBACK_COUNT_MAX]; /* atomic */
static uint32_t correlation_count;                        /* atomic */

static CUpti_SubscriberHandle handle(void)
{
    return (CUpti_SubscriberHandle)(uintptr_t)(subscriber.generation << 4 | 0x5u);
}

static bool handle_check(CUpti_SubscriberHandle given)
{
    return subscriber.callback && given == handle();
}

static CUptiResult subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
                             void *userdata, const char *name, char *old, size_t old_bytes)
{
    CUptiResult result = CUPTI_SUCCESS;
    if (cupti_switches.subscribe_code)
        return cupti_switches.subscribe_code;
    pthread_mutex_lock(&subscriber.lock);
    if (cupti_switches.holder || subscriber.callback) {
        result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
        if (old && old_bytes && cupti_switches.holder)
            snprintf(old, old_bytes, "CUPTI for %s", cupti_switches.holder);
        else if (old && old_bytes)
            snprintf(old, old_bytes, "%s", subscriber.name);
    } else {
        memset(enabled, 0, sizeof enabled);
        subscriber.generation++;
        subscriber.userdata = userdata;
        snprintf(subscriber.name, sizeof subscriber.name, "CUPTI for %.53s",
                 name ? name : "unknown");
        __atomic_store_n(&subscriber.callback, callback, __ATOMIC_RELEASE);
        *out = handle();
    }
    pthread_mutex_unlock(&subscriber.lock);
    return result;
}

CUPTI_EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
                                        void *userdata)
{
    CUptiResult result = out ? cupti_ready(__func__) : CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_SUCCESS)
        result = subscribe(out, callback, userdata, NULL, NULL, 0);
    CUPTI_NOTE(result);
    return cupti_error(result);
}

#if SIM_CUPTI >= 130
CUPTI_EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
                                           void *userdata, CUpti_SubscriberParams *params)
{
    CUptiResult result = out ? cupti_ready(__func__) : CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_SUCCESS && params && params->structSize < sizeof *params)
        result = CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_SUCCESS)
        result = subscribe(out, callback, userdata, params ? params->subscriberName : NULL,
                           params ? params->oldSubscriberName : NULL,
                           params ? params->oldSubscriberSize : 0);
    CUPTI_NOTE(result,
               NOTE_S("name", params && params->subscriberName ? params->subscriberName : ""));
    return cupti_error(result);
}
#endif

void callback_unsubscribe_all(void)
{
    pthread_mutex_lock(&subscriber.lock);
    __atomic_store_n(&subscriber.callback, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&subscriber.lock);
}

CUPTI_EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle given)
{
    CUptiResult result = CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&subscriber.lock);
    if (handle_check(given) && (result = cupti_failure(__func__)) == CUPTI_SUCCESS)
        __atomic_store_n(&subscriber.callback, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&subscriber.lock);
    CUPTI_NOTE(result);
    return cupti_error(result);
}

static CUptiResult enable_check(CUpti_SubscriberHandle given, int domain, const char *function)
{
    if (!handle_check(given) || domain <= 0 || domain >= DOMAIN_COUNT)
        return cupti_error(CUPTI_ERROR_INVALID_PARAMETER);
    return cupti_ready(function);
}

CUPTI_EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle given,
                                             int domain, uint32_t cbid)
{
    CUptiResult result = enable_check(given, domain, __func__);
    if (result == CUPTI_SUCCESS && (cbid == 0 || cbid >= callback_count(domain)))
        result = cupti_error(CUPTI_ERROR_INVALID_PARAMETER);
    if (result == CUPTI_SUCCESS)
        __atomic_store_n(&enabled[domain][cbid], enable != 0, __ATOMIC_RELEASE);
    CUPTI_NOTE(result, NOTE_U("enable", enable), NOTE_U("domain", domain), NOTE_U("cbid", cbid));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle given,
                                           int domain)
{
    CUptiResult result = enable_check(given, domain, __func__);
    for (uint32_t i = 1; result == CUPTI_SUCCESS && i < callback_count(domain); i++)
        __atomic_store_n(&enabled[domain][i], enable != 0, __ATOMIC_RELEASE);
    CUPTI_NOTE(result, NOTE_U("enable", enable), NOTE_U("domain", domain));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle given)
{
    CUptiResult result = CUPTI_SUCCESS;
    for (int domain = 1; result == CUPTI_SUCCESS && domain < DOMAIN_COUNT; domain++)
        result = cuptiEnableDomain(enable, given, domain);
    return result;
}

CUPTI_EXPORT CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle given,
                                               int domain, uint32_t cbid)
{
    CUptiResult result =
        enable ? enable_check(given, domain, __func__) : cupti_error(CUPTI_ERROR_INVALID_PARAMETER);
    if (result == CUPTI_SUCCESS && (cbid == 0 || cbid >= callback_count(domain)))
        result = cupti_error(CUPTI_ERROR_INVALID_PARAMETER);
    if (result == CUPTI_SUCCESS)
        *enable = __atomic_load_n(&enabled[domain][cbid], __ATOMIC_ACQUIRE);
    return result;
}

static void dispatch(int domain, uint32_t cbid, const char *what, const void *data)
{
    CUpti_CallbackFunc callback = __atomic_load_n(&subscriber.callback, __ATOMIC_ACQUIRE);
    if (!callback || !__atomic_load_n(&enabled[domain][cbid], __ATOMIC_ACQUIRE))
        return;
    cupti_thread.callback = what;
    callback(subscriber.userdata, domain, cbid, data);
    cupti_thread.callback = NULL;
}

static const char *kernel_name(const struct sim_api_call *call)
{
    for (unsigned i = 0; i < call->arg_count; i++)
        if (strcmp(call->args[i].key, "kernel") == 0)
            return (const char *)(uintptr_t)call->args[i].value;
    return NULL;
}

static void api_dispatch(struct sim_api_call *call, int site, int *result)
{
    uint32_t callback = call->symbol->callback - 1;
    int domain = (int)(callback >> 16);
    uint32_t cbid = callback & 0xffff, context_id = 0;
    if (!__atomic_load_n(&enabled[domain][cbid], __ATOMIC_ACQUIRE))
        return;
    void *context = cupti_driver->current_context();
    if (context)
        cupti_driver->context_id(context, &context_id);
    const CUpti_CallbackData data = {
        .callbackSite = site,
        .functionName = call->symbol->name,
        .functionParams = call->params,
        .functionReturnValue = site == CUPTI_API_EXIT ? result : NULL,
        .symbolName = call->kernel,
        .context = context,
        .contextUid = context_id,
        .correlationData = &call->correlation_data,
        .correlationId = call->correlation,
    };
    dispatch(domain, cbid, call->symbol->name, &data);
}

static void drop_newest(void)
{
    unsigned left = --cupti_thread.call_count;
    cupti_thread.call = left ? cupti_thread.calls[left - 1] : NULL;
}

/*
 * A frame here or below belongs to a call that was left by siglongjmp. What it held was perhaps
 * written over.
 */
static void drop_stale(const struct sim_api_call *call)
{
    while (cupti_thread.call && (uintptr_t)cupti_thread.call <= (uintptr_t)call)
        drop_newest();
    if (cupti_thread.call_count == OPEN_CALLS_MAX)
        abort();
}

void callback_enter(struct sim_api_call *call)
{
    if (cupti_thread.is_inside || cupti_is_dead()) {
        call->symbol = NULL; /* nobody's: leave passes it over, too */
        return;
    }
    if (cupti_thread.callback || cupti_thread.buffer_callback)
        cupti_misuse("%s called inside the %s callback", call->symbol->name,
                     cupti_thread.callback ? cupti_thread.callback : cupti_thread.buffer_callback);
    uint32_t callback = __atomic_load_n(&call->symbol->callback, __ATOMIC_ACQUIRE);
    if (!callback) {
        callback = callback_find(call->symbol) + 1;
        __atomic_store_n(&call->symbol->callback, callback, __ATOMIC_RELEASE);
    }
    drop_stale(call);
    call->outer = cupti_thread.call;
    call->is_outermost = call->outer == NULL;
    call->correlation = call->outer ? call->outer->correlation
                                    : __atomic_add_fetch(&correlation_count, 1, __ATOMIC_RELAXED);
    call->kernel = kernel_name(call);
    call->args = NULL;
    cupti_thread.call = cupti_thread.calls[cupti_thread.call_count++] = call;
    call->begin_ns = sim_now_ns();
    if (callback > 1)
        api_dispatch(call, CUPTI_API_ENTER, NULL);
}

void callback_leave(struct sim_api_call *call, int result)
{
    if (!call->symbol)
        return;
    uint32_t callback = call->symbol->callback - 1;
    if (callback && !cupti_is_dead()) {
        int domain = (int)(callback >> 16);
        api_dispatch(call, CUPTI_API_EXIT, &result);
        /* A driver call inside a runtime call has callbacks and no record: PyTorch's profiler */
        /* takes it for wrong if two calls have one correlation id. */
        bool is_nested = call->outer && domain == CUPTI_CB_DOMAIN_DRIVER_API;
        if (!is_nested && activity_wants_call(domain, callback & 0xffff)) {
            cupti_lock(call->symbol->name);
            record_external(call);
            record_api(call, domain, callback & 0xffff, result);
            cupti_unlock();
        }
    }
    while (cupti_thread.call_count && cupti_thread.call != call) /* left by siglongjmp as well */
        drop_newest();
    if (cupti_thread.call_count)
        drop_newest();
}

void callback_resource(const struct sim_trace_resource *resource)
{
    static const char *const names[] = {
        [SIM_CONTEXT_CREATED] = "CONTEXT_CREATED", [SIM_CONTEXT_DESTROY] = "CONTEXT_DESTROY",
        [SIM_STREAM_CREATED] = "STREAM_CREATED",   [SIM_STREAM_DESTROY] = "STREAM_DESTROY",
        [SIM_INIT_FINISHED] = "CU_INIT_FINISHED",  [SIM_MODULE_LOADED] = "MODULE_LOADED",
        [SIM_MODULE_UNLOAD] = "MODULE_UNLOAD",
    };
    const CUpti_ModuleResourceData module = {resource->module_id, 0, resource->image};
    bool is_module = resource->kind == SIM_MODULE_LOADED || resource->kind == SIM_MODULE_UNLOAD;
    const CUpti_ResourceData data = {resource->context, resource->stream,
                                     is_module ? (void *)(uintptr_t)&module : NULL};
    dispatch(CUPTI_CB_DOMAIN_RESOURCE, resource->kind, names[resource->kind], &data);
}

void callback_sync(const struct sim_trace_sync *sync)
{
    enum { STREAM_SYNCHRONIZED = 1, CONTEXT_SYNCHRONIZED = 2 };
    const CUpti_SynchronizeData data = {sync->context, sync->stream};
    if (sync->kind == SIM_SYNC_STREAM)
        dispatch(CUPTI_CB_DOMAIN_SYNCHRONIZE, STREAM_SYNCHRONIZED, "STREAM_SYNCHRONIZED", &data);
    else if (sync->kind == SIM_SYNC_CONTEXT)
        dispatch(CUPTI_CB_DOMAIN_SYNCHRONIZE, CONTEXT_SYNCHRONIZED, "CONTEXT_SYNCHRONIZED", &data);
}
