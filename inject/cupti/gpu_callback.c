/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_callback.h"

#include <unistd.h>

#include "base/ticks.h"
#include "cupti/cupti_params.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_subscriber.h"
#include "cupti/gpu_unwanted.h"
#include "hook/call.h"
#include "hook/hook_table.h"

/*
 * Adds a further correlation id to a call. That is rare, so the call's record has no field for it.
 */
static void link_further(struct thread *t, uint32_t first, uint32_t further)
{
    struct record r = {RECORD_WITH(LINK, [LINK_FURTHER] = further), .begin = ticks_now(),
                       .correlation = first};
    thread_append(t, &r);
}

/* The newest open call of the program made work with this id. Blocks signals: a handler's calls
 * could move the record to another chunk, and its old place could then be another thread's. */
static void note_correlation(struct thread *t, uint32_t id)
{
    struct call here = {0, NULL};
    here.mark = call_mark(&here, CALL_PASS);
    call_enter(t, &here);
    uint64_t *record = call_outer_record(t, &here);
    uint32_t known = record ? (uint32_t)(record[3] >> 32) : id;
    if (known == 0)
        record[3] |= (uint64_t)id << 32;
    else if (known != id && t->further != id) {
        t->further = id;
        link_further(t, known, id);
    }
    call_leave(t);
}

/* Does the address lie in a stack frame above `here`? */
static bool on_stack(const void *at, const void *here)
{
    return (uintptr_t)at - (uintptr_t)here - 1 < CALL_STACK_BYTES_MAX;
}

static void gpu_callback_enter(struct thread *t, bool of_runtime, int code,
                               const CUpti_CallbackData *data)
{
    struct call here = {0, NULL};
    uint64_t words[API_ARGS_MAX];
    struct seen_call *seen = call_newest_seen(t);
    const void *params = on_stack(data->functionParams, &here) ? data->functionParams : NULL;
    /* Without stack addresses to compare, a runtime call means that no other call is open. */
    while (seen && (of_runtime ? !params || !seen->frame || !call_seen_is_live(seen, params)
                               : !call_seen_is_live(seen, &here))) {
        call_abandon_seen(t, seen);
        seen = call_newest_seen(t);
    }
    if (call_is_passed(t, &here, of_runtime)) {
        /* It is neither a call to record nor a correlation id of a recorded call. */
        if (call_mode(t->passed) == CALL_LEFT_OUT)
            gpu_unwanted_note(data->correlationId);
        return;
    }
    /*
     * CUDA makes no runtime calls inside a call. So the program made this one, in a signal handler.
     */
    bool on_top = of_runtime && seen && call_newest(t) == &seen->call;
    if (t->open && !on_top && (seen || call_is_part(t, &here))) {
        note_correlation(t, data->correlationId);
        return;
    }
    cupti_params_words((enum api_code)code, data->functionParams, false, words);
    seen = call_begin_seen(t, call_sites[code], words);
    if (!seen)
        return;
    if (call_mode(&seen->call) == CALL_LEFT_OUT)
        gpu_unwanted_note(data->correlationId);
    seen->correlation = data->correlationId;
    seen->code = (uint16_t)code;
    seen->frame = (uintptr_t)params;
    note_correlation(t, data->correlationId);
}

static void gpu_callback_leave(struct thread *t, int code, const CUpti_CallbackData *data)
{
    uint64_t words[API_ARGS_MAX];
    struct seen_call *seen = call_newest_seen(t);
    if (!seen || seen->correlation != data->correlationId || seen->code != code)
        return;
    int result = data->functionReturnValue ? *(const int *)data->functionReturnValue : 0;
    cupti_params_words((enum api_code)code, data->functionParams, result == 0, words);
    call_end_seen(seen, call_sites[code], result, words);
}

/* Returns false after the end, and in the child of a fork. */
static bool gpu_callback_takes_part(void)
{
    uint32_t phase = atomic_load_explicit(&gpu.phase, memory_order_relaxed);
    if (phase == GPU_WATCHING)
        return atomic_load(&gpu.cuda_pid) == (uint32_t)getpid();
    return phase == GPU_ACTIVE &&
           atomic_load_explicit(&gpu.epoch, memory_order_relaxed) == epoch_now();
}

void gpu_callback(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                  const void *cbdata)
{
    struct thread *t = &this_thread;
    const CUpti_CallbackData *data = cbdata;
    (void)userdata;
    gpu_subscriber_tell(domain, cbid, cbdata);
    if (call_thread_is_inside(t) || !gpu_callback_takes_part())
        return;
    int code = cupti_callback_code(&gpu.callbacks, domain, cbid);
    if (code < 0 || !gpu.is_called_back[code]) /* only the guest wants it */
        return;
    if (unlikely(gpu_detachment() != GPU_HEARS) && data->callbackSite == CUPTI_API_ENTER)
        return;
    uint64_t begin = t->burst ? ticks_now() : 0;
    if (data->callbackSite == CUPTI_API_ENTER)
        gpu_callback_enter(t, domain == CUPTI_CB_DOMAIN_RUNTIME_API, code, data);
    else
        gpu_callback_leave(t, code, data);
    thread_cost_count(t->cost, COST_CALLBACK);
    if (unlikely(begin))
        thread_cost_time(t->cost, COST_CALLBACK, ticks_now() - begin);
}
