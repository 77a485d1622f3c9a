/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_subscriber.h"

#include <stdatomic.h>
#include <string.h>

#include "cuda/cuda_abi.h"
#include "cupti/gpu_client.h"
#include "cupti/gpu_state.h"
#include "hook/hook_real.h"

#define DOMAIN_COUNT 8 /* 13.5 has domains 1 to 6 */
#define NO_CUPTI     CUPTI_ERROR_NOT_INITIALIZED

/*
 * Changed by the other client's calls on any thread; `lent` and `borrower` are set when we start.
 */
static struct {
    /* only one client can be served: as in CUPTI, a second one is refused */
    _Atomic uint32_t is_taken;
    _Atomic(CUpti_CallbackFunc) callback;
    void *userdata;
    _Atomic(CUpti_SubscriberHandle) handle; /* the handle it was given */
    const void *subscribe;                  /* the real function that it subscribed with */
    /* it subscribed before us; otherwise our subscription serves it */
    bool is_first;
    /* its subscription, which we use; ours when it has left, with its callback */
    _Atomic(CUpti_SubscriberHandle) lent;
    _Atomic(CUpti_CallbackFunc) borrower; /* our function that is called for it then */
    bool would_share;
    _Atomic uint32_t shares; /* the program's first subscription allows others */
    _Atomic uint8_t wants[DOMAIN_COUNT][CUPTI_CBID_MAX];
} other;

/* Prototypes of the exported functions; none of our headers declares CUPTI's functions. */
#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api_cupti.def"
#undef HOOK

static bool gpu_subscriber_is_known(int domain, uint32_t cbid)
{
    return domain > 0 && domain < DOMAIN_COUNT && cbid < CUPTI_CBID_MAX;
}

static bool is_other(const void *subscriber)
{
    return atomic_load(&other.callback) && subscriber == (const void *)atomic_load(&other.handle);
}

bool gpu_subscriber_shares(void)
{
    return atomic_load(&other.shares);
}

bool gpu_subscriber_is_served(const void *subscriber)
{
    /*
     * Before anyone has asked for records, a client with its own subscription may choose its way.
     */
    return is_other(subscriber) && subscriber == (const void *)gpu.subscriber && !gpu.scope &&
           (!other.is_first || gpu_has_process());
}

bool gpu_subscriber_would_share(void)
{
    return other.would_share;
}

static bool gpu_subscriber_is_ours(int domain, uint32_t cbid)
{
    int code = cupti_callback_code(&gpu.callbacks, (CUpti_CallbackDomain)domain, cbid);
    return gpu.subscriber && gpu.subscriber == atomic_load(&other.handle) && code >= 0 &&
           gpu.is_called_back[code] && gpu_detachment() != GPU_DETACHED &&
           !atomic_load(&gpu.rests[code]);
}

void gpu_subscriber_tell(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata)
{
    CUpti_CallbackFunc callback = atomic_load_explicit(&other.callback, memory_order_acquire);
    if (callback && gpu_subscriber_is_known((int)domain, cbid) &&
        atomic_load_explicit(&other.wants[domain][cbid], memory_order_relaxed))
        callback(other.userdata, domain, cbid, cbdata);
}

bool gpu_subscriber_wants(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    return atomic_load(&other.callback) && gpu_subscriber_is_known((int)domain, cbid) &&
           atomic_load(&other.wants[domain][cbid]);
}

/* The function that CUPTI calls for a guest that subscribed first. */
static void other_callback(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                           const void *cbdata)
{
    if (gpu.subscriber && gpu.subscriber == atomic_load(&other.lent))
        /* which calls the guest's function */
        atomic_load (&other.borrower)(userdata, domain, cbid, cbdata);
    else
        gpu_subscriber_tell(domain, cbid, cbdata);
}

CUpti_SubscriberHandle gpu_subscriber_subscription(const struct cupti_library *cupti,
                                                   CUpti_CallbackFunc callback)
{
    if (!atomic_load(&other.callback) || !other.is_first ||
        (other.subscribe != (const void *)cupti->cuptiSubscribe &&
         other.subscribe != (const void *)cupti->cuptiSubscribe_v2))
        return NULL;
    atomic_store(&other.borrower, callback);
    atomic_store(&other.lent, atomic_load(&other.handle));
    return atomic_load(&other.handle);
}

bool gpu_subscriber_keeps(CUpti_SubscriberHandle subscriber)
{
    if (!subscriber || !atomic_load(&other.callback) || subscriber != atomic_load(&other.handle))
        return false;
    for (int domain = 1; domain < DOMAIN_COUNT; domain++)
        for (uint32_t cbid = 1; cbid < CUPTI_CBID_MAX; cbid++)
            if (gpu_subscriber_is_ours(domain, cbid) && !atomic_load(&other.wants[domain][cbid]))
                gpu.cupti.cuptiEnableCallback(0, subscriber, (CUpti_CallbackDomain)domain, cbid);
    memset(gpu.is_called_back, 0, sizeof gpu.is_called_back);
    return true;
}

static void gpu_subscriber_leave(void)
{
    atomic_store(&other.callback, NULL);
    atomic_store(&other.handle, NULL);
    for (int domain = 0; domain < DOMAIN_COUNT; domain++)
        for (uint32_t cbid = 0; cbid < CUPTI_CBID_MAX; cbid++)
            atomic_store_explicit(&other.wants[domain][cbid], 0, memory_order_relaxed);
    atomic_store(&other.is_taken, 0);
}

void gpu_subscriber_forget(void)
{
    if (atomic_load(&other.callback))
        gpu_subscriber_leave();
    gpu.subscriber = NULL;
}

/* Called before CUPTI's function, whose callbacks may come at once. Returns false if this client is
 * not ours to serve. */
static bool gpu_subscriber_enter(const void *subscriber, void *callback, void *userdata)
{
    uint32_t taken = 0;
    if (!subscriber || !callback || !atomic_compare_exchange_strong(&other.is_taken, &taken, 1))
        return false;
    other.userdata = userdata;
    atomic_store(&other.callback, (CUpti_CallbackFunc)callback);
    return true;
}

/* Handles CUPTI's answer to the client's subscription, and enables its callbacks. */
static int gpu_subscriber_settle(int result, void *subscriber, const void *subscribe,
                                 bool would_share)
{
    CUpti_SubscriberHandle *handle = subscriber;
    bool is_refused = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
                      result == CUPTI_ERROR_MAX_LIMIT_REACHED;
    bool is_same = subscribe == (const void *)gpu.cupti.cuptiSubscribe ||
                   subscribe == (const void *)gpu.cupti.cuptiSubscribe_v2;
    other.is_first = result == CUPTI_SUCCESS;
    other.subscribe = subscribe;
    other.would_share = would_share;
    if (other.is_first) {
        atomic_store(&other.handle, *handle);
    } else if (is_refused && is_same && gpu.subscriber && !gpu.scope) {
        /* Our subscription is the reason that CUPTI refused it. Functions without hooks also accept
         * our handle. */
        *handle = gpu.subscriber;
        atomic_store(&other.handle, *handle);
        result = CUPTI_SUCCESS;
    } else {
        gpu_subscriber_leave();
    }
    return result;
}

EXPORT int cuptiSubscribe(void *subscriber, void *callback, void *userdata)
{
    __typeof__(&cuptiSubscribe) real = HOOK_REAL(cuptiSubscribe);
    if (!real)
        return NO_CUPTI;
    gpu_client_calls();
    if (!gpu_subscriber_enter(subscriber, callback, userdata))
        return gpu_client_called(real(subscriber, callback, userdata));
    return gpu_client_called(gpu_subscriber_settle(real(subscriber, (void *)other_callback, NULL),
                                                   subscriber, (const void *)real, false));
}

static bool would_share(const CUpti_SubscriberParams *params)
{
    return params &&
           params->structSize > offsetof(CUpti_SubscriberParams, allowMultipleSubscribers) &&
           params->allowMultipleSubscribers;
}

EXPORT int cuptiSubscribe_v2(void *subscriber, void *callback, void *userdata, void *params)
{
    __typeof__(&cuptiSubscribe_v2) real = HOOK_REAL(cuptiSubscribe_v2);
    if (!real) { /* missing before 13.0: only our weak reference makes it look defined */
        __typeof__(&cuptiSubscribe) old = HOOK_REAL(cuptiSubscribe);
        if (!old || !gpu_subscriber_enter(subscriber, callback, userdata))
            return old ? old(subscriber, callback, userdata) : (int)NO_CUPTI;
        return gpu_subscriber_settle(old(subscriber, (void *)other_callback, NULL), subscriber,
                                     (const void *)old, false);
    }
    gpu_client_calls();
    /* Since 13.3 it may exist beside other subscribers, so that it does not depend on us. */
    if (would_share(params) && HOOK_REAL(cuptiActivityGetNextRecord_v2)) {
        int result = real(subscriber, callback, userdata, params);
        if (result == CUPTI_SUCCESS)
            atomic_store(&other.shares, 1);
        if (result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
            return gpu_client_called(result);
    }
    if (!gpu_subscriber_enter(subscriber, callback, userdata))
        return gpu_client_called(real(subscriber, callback, userdata, params));
    int result = real(subscriber, (void *)other_callback, NULL, params);
    return gpu_client_called(
        gpu_subscriber_settle(result, subscriber, (const void *)real, would_share(params)));
}

typedef int enable_function(uint32_t enable, void *subscriber, int domain, uint32_t cbid);

static int enable_one(enable_function *real, uint32_t enable, int domain, uint32_t cbid)
{
    void *handle = (void *)atomic_load(&other.handle);
    int result = CUPTI_SUCCESS;
    uint8_t before =
        gpu_subscriber_is_known(domain, cbid) ? atomic_load(&other.wants[domain][cbid]) : 0;
    /* set first: whoever turns ours off checks it (gpu_rest.c) */
    if (enable && gpu_subscriber_is_known(domain, cbid))
        atomic_store(&other.wants[domain][cbid], 1);
    if (enable || !gpu_subscriber_is_ours(domain, cbid))
        result = real(enable, handle, domain, cbid);
    if (gpu_subscriber_is_known(domain, cbid))
        atomic_store(&other.wants[domain][cbid], result == CUPTI_SUCCESS ? enable != 0 : before);
    if (!enable && gpu_subscriber_is_ours(domain, cbid)) /* ours was turned on meanwhile */
        real(1, handle, domain, cbid);
    return result;
}

EXPORT int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t cbid)
{
    enable_function *real = HOOK_REAL(cuptiEnableCallback);
    if (!real)
        return NO_CUPTI;
    return is_other(subscriber) ? enable_one(real, enable, domain, cbid)
                                : real(enable, subscriber, domain, cbid);
}

/* One by one, so that ours stay on. CUPTI refuses ids that it does not have. */
static void enable_each(enable_function *real, uint32_t enable, int domain)
{
    for (uint32_t cbid = 1; cbid < CUPTI_CBID_MAX; cbid++)
        if (enable || atomic_load(&other.wants[domain][cbid]))
            enable_one(real, enable, domain, cbid);
}

EXPORT int cuptiEnableDomain(uint32_t enable, void *subscriber, int domain)
{
    __typeof__(&cuptiEnableDomain) real = HOOK_REAL(cuptiEnableDomain);
    enable_function *one = HOOK_REAL(cuptiEnableCallback);
    if (!real || !one)
        return NO_CUPTI;
    if (!is_other(subscriber))
        return real(enable, subscriber, domain);
    if (!gpu_subscriber_is_known(domain, 0))
        return CUPTI_ERROR_INVALID_PARAMETER;
    enable_each(one, enable, domain);
    return CUPTI_SUCCESS;
}

EXPORT int cuptiEnableAllDomains(uint32_t enable, void *subscriber)
{
    __typeof__(&cuptiEnableAllDomains) real = HOOK_REAL(cuptiEnableAllDomains);
    enable_function *one = HOOK_REAL(cuptiEnableCallback);
    if (!real || !one)
        return NO_CUPTI;
    if (!is_other(subscriber))
        return real(enable, subscriber);
    for (int domain = 1; domain < DOMAIN_COUNT; domain++)
        enable_each(one, enable, domain);
    return CUPTI_SUCCESS;
}

EXPORT int cuptiGetCallbackState(uint32_t *enable, void *subscriber, int domain, uint32_t cbid)
{
    __typeof__(&cuptiGetCallbackState) real = HOOK_REAL(cuptiGetCallbackState);
    if (!real)
        return NO_CUPTI;
    if (!is_other(subscriber))
        return real(enable, subscriber, domain, cbid);
    if (!enable || !gpu_subscriber_is_known(domain, cbid))
        return CUPTI_ERROR_INVALID_PARAMETER;
    *enable = atomic_load(&other.wants[domain][cbid]);
    return CUPTI_SUCCESS;
}

int gpu_subscriber_unsubscribe(void *subscriber)
{
    __typeof__(&cuptiUnsubscribe) real = HOOK_REAL(cuptiUnsubscribe);
    enable_function *one = HOOK_REAL(cuptiEnableCallback);
    if (!real || !one)
        return NO_CUPTI;
    if (!is_other(subscriber))
        return real(subscriber);
    int result = CUPTI_SUCCESS;
    if (gpu.subscriber && gpu.subscriber == atomic_load(&other.handle))
        for (int domain = 1; domain < DOMAIN_COUNT; domain++)
            enable_each(one, 0, domain);
    else
        result = real(subscriber);
    gpu_subscriber_leave();
    return result;
}
