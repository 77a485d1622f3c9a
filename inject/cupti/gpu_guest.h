/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest: another client that subscribes to CUPTI's callbacks in this process, as PyTorch's
 * profiler does before it does anything. CUPTI serves one subscriber, so that whoever came second
 * would have nothing: there is one subscription, the first one's, and its callbacks go to both.
 */
#ifndef GPUPROF_INJECT_GPU_GUEST_H
#define GPUPROF_INJECT_GPU_GUEST_H

#include <stdbool.h>

#include "cupti/cupti_library.h"

/* A callback of our subscription, for the guest if it wants it. */
void gpu_guest_tell(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata);

/* The subscription that the guest made with that libcupti before us, which serves us as well, by
 * `callback`; NULL if there is none. */
CUpti_SubscriberHandle gpu_guest_subscription(const struct cupti_library *cupti,
                                              CUpti_CallbackFunc callback);

/* The program has a subscription that lets others come beside it: nothing of it goes by us. */
bool gpu_guest_shares(void);

/* Is it the subscription of a guest, which we use for the records of the process? What the guest
 * asks for as a subscriber must then be asked for by the process's functions. */
bool gpu_guest_is_served(const void *subscriber);

/* What it asked for in cuptiSubscribe_v2. */
bool gpu_guest_would_share(void);

/* Has a guest this callback by our subscription, or we by its? */
bool gpu_guest_wants(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);

/* We leave it: does the guest keep our subscription going? Callbacks that only we had are off then.
 */
bool gpu_guest_keeps(CUpti_SubscriberHandle subscriber);

/* What cuptiUnsubscribe does, whoever calls it. */
int gpu_guest_unsubscribe(void *subscriber);

/* CUPTI was finalized: nobody is subscribed any more. */
void gpu_guest_forget(void);

#endif
