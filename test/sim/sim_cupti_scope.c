/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_cupti.h"

/*
 * Activity is asked for at the scope of the process, or from 13.3 on at that of one subscriber:
 * whichever of the two a process uses first, the other is refused from then on.
 */

static uint8_t scope_used; /* atomic: 0 neither, 1 the process's, 2 a subscriber's */

static CUptiResult scope_use(uint8_t wanted)
{
    uint8_t used = 0;
    if (SIM_CUPTI < 133 ||
        __atomic_compare_exchange_n(&scope_used, &used, wanted, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE) ||
        used == wanted)
        return CUPTI_SUCCESS;
    return cupti_error(CUPTI_ERROR_NOT_COMPATIBLE);
}

CUptiResult scope_global(void)
{
    return scope_use(1);
}

CUptiResult scope_of(CUpti_SubscriberHandle subscriber, unsigned *scope, const char *function)
{
    CUptiResult result = function ? cupti_ready(function) : CUPTI_SUCCESS;
    *scope = callback_subscriber(subscriber);
    if (result == CUPTI_SUCCESS && *scope == 0)
        result = cupti_error(CUPTI_ERROR_INVALID_PARAMETER);
    return result == CUPTI_SUCCESS ? scope_use(2) : result;
}

bool scope_is_shared(void)
{
    return callback_sharing() == 1;
}
