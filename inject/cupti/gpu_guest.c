/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_guest.h"

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
} guest;

/* Prototypes of the exported functions; none of our headers declares CUPTI's functions. */
#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api_cupti.def"
#undef HOOK

static bool gpu_guest_is_known(int domain, uint32_t cbid)
{
    return domain > 0 && domain < DOMAIN_COUNT && cbid < CUPTI_CBID_MAX;
}

static bool is_guest(const void *subscriber)
{
    return atomic_load(&guest.callback) && subscriber == (const void *)atomic_load(&guest.handle);
}

bool gpu_guest_shares(void)
{
    return atomic_load(&guest.shares);
}

bool gpu_guest_is_served(const void *subscriber)
{
    /*
     * Before anyone has asked for records, a client with its own subscription may choose its way.
     */
    return is_guest(subscriber) && subscriber == (const void *)gpu.subscriber && !gpu.scope &&
           (!guest.is_first || gpu_has_process());
}

bool gpu_guest_would_share(void)
{
    return guest.would_share;
}

static bool gpu_guest_is_ours(int domain, uint32_t cbid)
{
    int code = cupti_callback_code(&gpu.callbacks, (CUpti_CallbackDomain)domain, cbid);
    return gpu.subscriber && gpu.subscriber == atomic_load(&guest.handle) && code >= 0 &&
           gpu.is_called_back[code] && gpu_deafness() != GPU_DEAF && !atomic_load(&gpu.rests[code]);
}

void gpu_guest_tell(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata)
{
    CUpti_CallbackFunc callback = atomic_load_explicit(&guest.callback, memory_order_acquire);
    if (callback && gpu_guest_is_known((int)domain, cbid) &&
        atomic_load_explicit(&guest.wants[domain][cbid], memory_order_relaxed))
        callback(guest.userdata, domain, cbid, cbdata);
}

bool gpu_guest_wants(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    return atomic_load(&guest.callback) && gpu_guest_is_known((int)domain, cbid) &&
           atomic_load(&guest.wants[domain][cbid]);
}

/* The function that CUPTI calls for a guest that subscribed first. */
static void guest_callback(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                           const void *cbdata)
{
    if (gpu.subscriber && gpu.subscriber == atomic_load(&guest.lent))
        /* which calls the guest's function */
        atomic_load (&guest.borrower)(userdata, domain, cbid, cbdata);
    else
        gpu_guest_tell(domain, cbid, cbdata);
}

CUpti_SubscriberHandle gpu_guest_subscription(const struct cupti_library *cupti,
                                              CUpti_CallbackFunc callback)
{
    if (!atomic_load(&guest.callback) || !guest.is_first ||
        (guest.subscribe != (const void *)cupti->cuptiSubscribe &&
         guest.subscribe != (const void *)cupti->cuptiSubscribe_v2))
        return NULL;
    atomic_store(&guest.borrower, callback);
    atomic_store(&guest.lent, atomic_load(&guest.handle));
    return atomic_load(&guest.handle);
}

bool gpu_guest_keeps(CUpti_SubscriberHandle subscriber)
{
    if (!subscriber || !atomic_load(&guest.callback) || subscriber != atomic_load(&guest.handle))
        return false;
    for (int domain = 1; domain < DOMAIN_COUNT; domain++)
        for (uint32_t cbid = 1; cbid < CUPTI_CBID_MAX; cbid++)
            if (gpu_guest_is_ours(domain, cbid) && !atomic_load(&guest.wants[domain][cbid]))
                gpu.cupti.cuptiEnableCallback(0, subscriber, (CUpti_CallbackDomain)domain, cbid);
    memset(gpu.is_called_back, 0, sizeof gpu.is_called_back);
    return true;
}

static void gpu_guest_leave(void)
{
    atomic_store(&guest.callback, NULL);
    atomic_store(&guest.handle, NULL);
    for (int domain = 0; domain < DOMAIN_COUNT; domain++)
        for (uint32_t cbid = 0; cbid < CUPTI_CBID_MAX; cbid++)
            atomic_store_explicit(&guest.wants[domain][cbid], 0, memory_order_relaxed);
    atomic_store(&guest.is_taken, 0);
}

void gpu_guest_forget(void)
{
    if (atomic_load(&guest.callback))
        gpu_guest_leave();
    gpu.subscriber = NULL;
}

/* Called before CUPTI's function, whose callbacks may come at once. Returns false if this client is
 * not ours to serve. */
static bool gpu_guest_enter(const void *subscriber, void *callback, void *userdata)
{
    uint32_t taken = 0;
    if (!subscriber || !callback || !atomic_compare_exchange_strong(&guest.is_taken, &taken, 1))
        return false;
    guest.userdata = userdata;
    atomic_store(&guest.callback, (CUpti_CallbackFunc)callback);
    return true;
}

/* Handles CUPTI's answer to the client's subscription, and enables its callbacks. */
static int gpu_guest_settle(int result, void *subscriber, const void *subscribe, bool would_share)
{
    CUpti_SubscriberHandle *handle = subscriber;
    bool is_refused = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
                      result == CUPTI_ERROR_MAX_LIMIT_REACHED;
    bool is_same = subscribe == (const void *)gpu.cupti.cuptiSubscribe ||
                   subscribe == (const void *)gpu.cupti.cuptiSubscribe_v2;
    guest.is_first = result == CUPTI_SUCCESS;
    guest.subscribe = subscribe;
    guest.would_share = would_share;
    if (guest.is_first) {
        atomic_store(&guest.handle, *handle);
    } else if (is_refused && is_same && gpu.subscriber && !gpu.scope) {
        /* Our subscription is the reason that CUPTI refused it. Functions without hooks also accept
         * our handle. */
        *handle = gpu.subscriber;
        atomic_store(&guest.handle, *handle);
        result = CUPTI_SUCCESS;
    } else {
        gpu_guest_leave();
    }
    return result;
}

EXPORT int cuptiSubscribe(void *subscriber, void *callback, void *userdata)
{
    __typeof__(&cuptiSubscribe) real = HOOK_REAL(cuptiSubscribe);
    if (!real)
        return NO_CUPTI;
    gpu_client_calls();
    if (!gpu_guest_enter(subscriber, callback, userdata))
        return gpu_client_called(real(subscriber, callback, userdata));
    return gpu_client_called(gpu_guest_settle(real(subscriber, (void *)guest_callback, NULL),
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
        if (!old || !gpu_guest_enter(subscriber, callback, userdata))
            return old ? old(subscriber, callback, userdata) : (int)NO_CUPTI;
        return gpu_guest_settle(old(subscriber, (void *)guest_callback, NULL), subscriber,
                                (const void *)old, false);
    }
    gpu_client_calls();
    /* Since 13.3 it may exist beside other subscribers, so that it does not depend on us. */
    if (would_share(params) && HOOK_REAL(cuptiActivityGetNextRecord_v2)) {
        int result = real(subscriber, callback, userdata, params);
        if (result == CUPTI_SUCCESS)
            atomic_store(&guest.shares, 1);
        if (result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
            return gpu_client_called(result);
    }
    if (!gpu_guest_enter(subscriber, callback, userdata))
        return gpu_client_called(real(subscriber, callback, userdata, params));
    int result = real(subscriber, (void *)guest_callback, NULL, params);
    return gpu_client_called(
        gpu_guest_settle(result, subscriber, (const void *)real, would_share(params)));
}

typedef int enable_function(uint32_t enable, void *subscriber, int domain, uint32_t cbid);

static int enable_one(enable_function *real, uint32_t enable, int domain, uint32_t cbid)
{
    void *handle = (void *)atomic_load(&guest.handle);
    int result = CUPTI_SUCCESS;
    uint8_t before = gpu_guest_is_known(domain, cbid) ? atomic_load(&guest.wants[domain][cbid]) : 0;
    /* set first: whoever turns ours off checks it (gpu_rest.c) */
    if (enable && gpu_guest_is_known(domain, cbid))
        atomic_store(&guest.wants[domain][cbid], 1);
    if (enable || !gpu_guest_is_ours(domain, cbid))
        result = real(enable, handle, domain, cbid);
    if (gpu_guest_is_known(domain, cbid))
        atomic_store(&guest.wants[domain][cbid], result == CUPTI_SUCCESS ? enable != 0 : before);
    if (!enable && gpu_guest_is_ours(domain, cbid)) /* ours was turned on meanwhile */
        real(1, handle, domain, cbid);
    return result;
}

EXPORT int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t cbid)
{
    enable_function *real = HOOK_REAL(cuptiEnableCallback);
    if (!real)
        return NO_CUPTI;
    return is_guest(subscriber) ? enable_one(real, enable, domain, cbid)
                                : real(enable, subscriber, domain, cbid);
}

/* One by one, so that ours stay on. CUPTI refuses ids that it does not have. */
static void enable_each(enable_function *real, uint32_t enable, int domain)
{
    for (uint32_t cbid = 1; cbid < CUPTI_CBID_MAX; cbid++)
        if (enable || atomic_load(&guest.wants[domain][cbid]))
            enable_one(real, enable, domain, cbid);
}

EXPORT int cuptiEnableDomain(uint32_t enable, void *subscriber, int domain)
{
    __typeof__(&cuptiEnableDomain) real = HOOK_REAL(cuptiEnableDomain);
    enable_function *one = HOOK_REAL(cuptiEnableCallback);
    if (!real || !one)
        return NO_CUPTI;
    if (!is_guest(subscriber))
        return real(enable, subscriber, domain);
    if (!gpu_guest_is_known(domain, 0))
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
    if (!is_guest(subscriber))
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
    if (!is_guest(subscriber))
        return real(enable, subscriber, domain, cbid);
    if (!enable || !gpu_guest_is_known(domain, cbid))
        return CUPTI_ERROR_INVALID_PARAMETER;
    *enable = atomic_load(&guest.wants[domain][cbid]);
    return CUPTI_SUCCESS;
}

int gpu_guest_unsubscribe(void *subscriber)
{
    __typeof__(&cuptiUnsubscribe) real = HOOK_REAL(cuptiUnsubscribe);
    enable_function *one = HOOK_REAL(cuptiEnableCallback);
    if (!real || !one)
        return NO_CUPTI;
    if (!is_guest(subscriber))
        return real(subscriber);
    int result = CUPTI_SUCCESS;
    if (gpu.subscriber && gpu.subscriber == atomic_load(&guest.handle))
        for (int domain = 1; domain < DOMAIN_COUNT; domain++)
            enable_each(one, 0, domain);
    else
        result = real(subscriber);
    gpu_guest_leave();
    return result;
}
