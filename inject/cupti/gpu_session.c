/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_session.h"

#include "base/ticks.h"
#include "cupti/gpu_state.h"

#define WRONG_FIRST 130000
#define WRONG_LAST  130100

/*
 * Changed by the thread that changes our kinds: at the start, at a pause, or the flushing thread.
 */
static struct {
    atomic_bool is_on; /* our session is on */
    atomic_bool was_on;
    /* in ticks: since then our session is not CUPTI's first; 0: it is the first */
    _Atomic uint64_t wrong_from;
} session;

static bool is_wrong(void)
{
    return gpu.cupti.version >= WRONG_FIRST && gpu.cupti.version <= WRONG_LAST;
}

bool gpu_session_is_precious(void)
{
    return is_wrong() && atomic_load(&session.is_on);
}

bool gpu_session_changes(bool enable)
{
    bool was_on = atomic_exchange(&session.is_on, enable);
    if (!enable || was_on || !is_wrong())
        return false;
    bool is_later = atomic_exchange(&session.was_on, true) || atomic_load(&gpu.other_has_been);
    uint64_t known = 0; /* older work may still arrive */
    return is_later && atomic_compare_exchange_strong(&session.wrong_from, &known, ticks_now());
}

bool gpu_session_unties(uint64_t begin)
{
    uint64_t from = atomic_load_explicit(&session.wrong_from, memory_order_relaxed);
    return unlikely(from) && begin >= from;
}

bool gpu_session_is_limited(void)
{
    return gpu_session_unties(UINT64_MAX);
}
