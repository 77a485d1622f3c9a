/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_cupti.h"

/* The subscribers, of whom there is one up to 13.2, and their callbacks on the application's
 * threads. */

enum { SOLE, SHARED, NOT_SAID };

static struct subscriber {
    CUpti_CallbackFunc callback; /* atomic */
    void *userdata;
    uint64_t generation; /* part of the handle: an old one is no good */
    bool is_v1;
    char name[64];
    uint8_t enabled[DOMAIN_COUNT][CALLBACK_COUNT_MAX]; /* atomic */
} subscribers[SCOPE_COUNT == 1 ? 1 : SCOPE_COUNT - 1];

enum { SUBSCRIBER_COUNT = sizeof subscribers / sizeof subscribers[0] };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned sharing = NOT_SAID;
static uint32_t correlation_count; /* atomic */

static CUpti_SubscriberHandle handle(const struct subscriber *subscriber)
{
    uintptr_t number = (uintptr_t)(subscriber - subscribers);
    return (CUpti_SubscriberHandle)(subscriber->generation << 8 | number << 4 | 0x5u);
}

unsigned callback_subscriber(CUpti_SubscriberHandle given)
{
    for (unsigned i = 0; i < SUBSCRIBER_COUNT; i++)
        if (subscribers[i].callback && given == handle(&subscribers[i]))
            return i + 1;
    return 0;
}

static struct subscriber *find(CUpti_SubscriberHandle given)
{
    unsigned number = callback_subscriber(given);
    return number ? &subscribers[number - 1] : NULL;
}

unsigned callback_subscriber_count(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SUBSCRIBER_COUNT; i++)
        count += subscribers[i].callback != NULL;
    return count;
}

unsigned callback_sharing(void)
{
    return __atomic_load_n(&sharing, __ATOMIC_ACQUIRE);
}

static void tell_holder(char *old, size_t old_bytes)
{
    if (!old || !old_bytes)
        return;
    if (cupti_switches.holder)
        snprintf(old, old_bytes, "CUPTI for %s", cupti_switches.holder);
    for (unsigned i = SUBSCRIBER_COUNT; !cupti_switches.holder && i > 0; i--)
        if (subscribers[i - 1].callback)
            snprintf(old, old_bytes, "%s", subscribers[i - 1].name);
}

/* Whom the first one lets come beside him, nobody ever changes; v1 does not say, and is alone. */
static bool may_come(unsigned wish)
{
    if (cupti_switches.holder || (wish == SHARED && cupti_switches.is_sole))
        return false;
    if (sharing != NOT_SAID && sharing != (wish == NOT_SAID ? SOLE : wish))
        return false;
    return wish == SHARED ? sharing == SHARED || callback_subscriber_count() == 0
                          : callback_subscriber_count() == 0;
}

static CUptiResult subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
                             void *userdata, const CUpti_SubscriberParams *params, unsigned wish)
{
    CUptiResult result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    struct subscriber *subscriber = subscribers;
    if (cupti_switches.subscribe_code)
        return cupti_switches.subscribe_code;
    pthread_mutex_lock(&lock);
    while (subscriber < subscribers + SUBSCRIBER_COUNT && subscriber->callback)
        subscriber++;
    if (params)
        tell_holder(params->oldSubscriberName, params->oldSubscriberSize);
    if (may_come(wish) && subscriber < subscribers + SUBSCRIBER_COUNT) {
        memset(subscriber->enabled, 0, sizeof subscriber->enabled);
        subscriber->generation++;
        subscriber->userdata = userdata;
        snprintf(subscriber->name, sizeof subscriber->name, "CUPTI for %.53s",
                 params && params->subscriberName ? params->subscriberName : "unknown");
        if (wish != NOT_SAID)
            __atomic_store_n(&sharing, wish, __ATOMIC_RELEASE);
        __atomic_store_n(&subscriber->callback, callback, __ATOMIC_RELEASE);
        *out = handle(subscriber);
        result = CUPTI_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUPTI_EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
                                        void *userdata)
{
    CUptiResult result = out ? cupti_ready(__func__) : CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_SUCCESS)
        result = subscribe(out, callback, userdata, NULL, NOT_SAID);
    CUPTI_NOTE(result);
    return cupti_error(result);
}

#if SIM_CUPTI >= 130
/* What 13.3 and newer take from the larger structure. */
static unsigned request_of(const CUpti_SubscriberParams *params)
{
    if (SIM_CUPTI < 133 || !params ||
        params->structSize <= offsetof(CUpti_SubscriberParams, allowMultipleSubscribers))
        return NOT_SAID;
    return params->allowMultipleSubscribers ? SHARED : SOLE;
}

CUPTI_EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
                                           void *userdata, CUpti_SubscriberParams *params)
{
    CUptiResult result = out ? cupti_ready(__func__) : CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_SUCCESS && params && params->structSize < SIM_SUBSCRIBER_PARAMS_13_0)
        result = CUPTI_ERROR_INVALID_PARAMETER;
    if (result == CUPTI_SUCCESS)
        result = subscribe(out, callback, userdata, params, request_of(params));
    CUPTI_NOTE(result,
               NOTE_S("name", params && params->subscriberName ? params->subscriberName : ""),
               NOTE_U("wish", request_of(params)));
    return cupti_error(result);
}
#endif

static void forget(struct subscriber *subscriber)
{
    unsigned scope = (unsigned)(subscriber - subscribers) + 1;
    __atomic_store_n(&subscriber->callback, NULL, __ATOMIC_RELEASE);
    if (SCOPE_COUNT == 1)
        return;
    cupti_lock("cuptiUnsubscribe");
    activity_forget(scope);
    buffer_unregister(scope);
    cupti_unlock();
}

void callback_unsubscribe_all(void)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < SUBSCRIBER_COUNT; i++)
        forget(&subscribers[i]);
    pthread_mutex_unlock(&lock);
}

CUPTI_EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle given)
{
    CUptiResult result = CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    struct subscriber *subscriber = find(given);
    if (subscriber && (result = cupti_failure(__func__)) == CUPTI_SUCCESS)
        forget(subscriber);
    pthread_mutex_unlock(&lock);
    CUPTI_NOTE(result);
    return cupti_error(result);
}

static CUptiResult enable_check(CUpti_SubscriberHandle given, int domain, const char *function)
{
    if (!find(given) || domain <= 0 || domain >= DOMAIN_COUNT)
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
        __atomic_store_n(&find(given)->enabled[domain][cbid], enable != 0, __ATOMIC_RELEASE);
    CUPTI_NOTE(result, NOTE_U("enable", enable), NOTE_U("domain", domain), NOTE_U("cbid", cbid));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle given,
                                           int domain)
{
    CUptiResult result = enable_check(given, domain, __func__);
    for (uint32_t i = 1; result == CUPTI_SUCCESS && i < callback_count(domain); i++)
        __atomic_store_n(&find(given)->enabled[domain][i], enable != 0, __ATOMIC_RELEASE);
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
        *enable = __atomic_load_n(&find(given)->enabled[domain][cbid], __ATOMIC_ACQUIRE);
    return result;
}

static bool is_wanted(const struct subscriber *subscriber, int domain, uint32_t cbid)
{
    return __atomic_load_n(&subscriber->callback, __ATOMIC_ACQUIRE) &&
           __atomic_load_n(&subscriber->enabled[domain][cbid], __ATOMIC_ACQUIRE);
}

static void dispatch(int domain, uint32_t cbid, const char *what, const void *data)
{
    for (struct subscriber *s = subscribers; s < subscribers + SUBSCRIBER_COUNT; s++) {
        CUpti_CallbackFunc callback = __atomic_load_n(&s->callback, __ATOMIC_ACQUIRE);
        if (!callback || !is_wanted(s, domain, cbid))
            continue;
        cupti_thread.callback = what;
        callback(s->userdata, domain, cbid, data);
        cupti_thread.callback = NULL;
    }
}

static bool is_wanted_by_any(int domain, uint32_t cbid)
{
    for (unsigned i = 0; i < SUBSCRIBER_COUNT; i++)
        if (is_wanted(&subscribers[i], domain, cbid))
            return true;
    return false;
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
    if (!is_wanted_by_any(domain, cbid))
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
        for (unsigned scope = 0; !is_nested && scope < SCOPE_COUNT; scope++)
            if (activity_wants_call(scope, domain, callback & 0xffff)) {
                cupti_lock(call->symbol->name);
                record_external(scope, call);
                record_api(scope, call, domain, callback & 0xffff, result);
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
