/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest is another client that subscribes to CUPTI's callbacks in this process, as PyTorch's
 * profiler does first of all. CUPTI serves one subscriber, so the second one would get nothing. So
 * there is one subscription, that of the first client, and its callbacks go to both.
 */
#ifndef GPUPROF_INJECT_GPU_SUBSCRIBER_H
#define GPUPROF_INJECT_GPU_SUBSCRIBER_H

#include <stdbool.h>

#include "cupti/cupti_library.h"

/* Passes a callback of our subscription to the guest if it wants it. */
void gpu_subscriber_tell(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata);

/* Returns the subscription that the guest made with that libcupti before us; it also serves us,
 * through `callback`. NULL if there is none. */
CUpti_SubscriberHandle gpu_subscriber_subscription(const struct cupti_library *cupti,
                                                   CUpti_CallbackFunc callback);

/* The program has a subscription that allows others beside it; nothing of it passes through us. */
bool gpu_subscriber_shares(void);

/* Is this the subscription of a guest that we use for the process's records? Then what the guest
 * requests as a subscriber must be requested with the process's functions. */
bool gpu_subscriber_is_served(const void *subscriber);

/* Did it ask in cuptiSubscribe_v2 to share CUPTI with others? */
bool gpu_subscriber_would_share(void);

/* Does a guest receive this callback through our subscription, or we through its? */
bool gpu_subscriber_wants(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);

/* We unsubscribe. Returns whether the guest keeps our subscription; callbacks that only we used are
 * off then. */
bool gpu_subscriber_keeps(CUpti_SubscriberHandle subscriber);

/* Does what cuptiUnsubscribe does, for any caller. */
int gpu_subscriber_unsubscribe(void *subscriber);

/* CUPTI was finalized: nobody is subscribed. */
void gpu_subscriber_forget(void);

#endif
