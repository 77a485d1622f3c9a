/* SPDX-License-Identifier: Apache-2.0 */
#include "record/synced.h"

struct synced synced;

void synced_report(uint32_t state)
{
    if (atomic_compare_exchange_strong(&synced.state, &state, SYNCED_DUE) && state == SYNCED_ASLEEP)
        synced.wake();
}
