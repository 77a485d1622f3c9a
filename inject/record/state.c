/* SPDX-License-Identifier: Apache-2.0 */
#include "record/state.h"

struct fork_page fork_page; /* in anonymous memory, as MADV_WIPEONFORK requires; fills its pages */

struct state gp = {
    .next_epoch = EPOCH_THREAD + 1,
    .off = true,
    .counters = (_Atomic uint64_t *)(void *)(gp.spare_head + LIVE_OFFSET_COUNTERS),
};
