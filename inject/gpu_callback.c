/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_callback.h"

#include "call.h"
#include "cupti_params.h"
#include "gpu.h"
#include "hook_table.h"

/* One more id of a call that has one: rare, so not in its record. */
static void link_further(struct thread *t, uint32_t first, uint32_t further)
{
    struct record r = {.type = RECORD_LINK,
                       .begin = ticks_now(),
                       .correlation = first,
                       .arg_count = 1,
                       .args = {further}};
    struct call here;
    here.mark = call_mark(&here, CALL_PASS);
    call_enter(t, &here);
    thread_append(t, &r);
    call_leave(t);
}

/* The newest open call of the user's made work under this id. */
static void note_correlation(struct thread *t, uint32_t id)
{
    uint64_t *record = call_outer_record(t);
    uint32_t known = record ? (uint32_t)(record[3] >> 32) : id;
    if (known == 0)
        record[3] |= (uint64_t)id << 32;
    else if (known != id && t->further != id) {
        t->further = id;
        link_further(t, known, id);
    }
}

static void enter(struct thread *t, enum api_domain domain, int api, const CUpti_CallbackData *data)
{
    struct call here;
    uint64_t words[API_ARGS_MAX];
    if (t->seen.is_open && domain == API_RUNTIME) /* CUPTI shows no runtime call inside another */
        call_abandon_seen(t);
    if (t->open && (t->seen.is_open || call_is_live(call_unmarked(t->open), &here))) {
        note_correlation(t, data->correlationId);
        return;
    }
    cupti_params_words((enum api_index)api, data->functionParams, false, words);
    if (!call_begin_seen(t, call_sites[api], words))
        return;
    t->seen.correlation = data->correlationId;
    t->seen.api = (uint16_t)api;
    note_correlation(t, data->correlationId);
}

static void leave(struct thread *t, int api, const CUpti_CallbackData *data)
{
    uint64_t words[API_ARGS_MAX];
    if (!t->seen.is_open || t->seen.correlation != data->correlationId || t->seen.api != api)
        return;
    int result = data->functionReturnValue ? *(const int *)data->functionReturnValue : 0;
    cupti_params_words((enum api_index)api, data->functionParams, result == 0, words);
    call_end_seen(t, call_sites[api], result, words);
}

void gpu_callback(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                  const void *cbdata)
{
    struct thread *t = &this_thread;
    const CUpti_CallbackData *data = cbdata;
    (void)userdata;
    if (t->inside || atomic_load_explicit(&gpu.phase, memory_order_relaxed) != GPU_ACTIVE ||
        atomic_load_explicit(&gpu.epoch, memory_order_relaxed) != epoch_now())
        return; /* ours, or not any more, or the child of a fork */
    int api = cupti_callback_api(&gpu.callbacks, domain, cbid);
    if (api < 0)
        return;
    if (data->callbackSite == CUPTI_API_ENTER)
        enter(t, domain == CUPTI_CB_DOMAIN_RUNTIME_API ? API_RUNTIME : API_DRIVER, api, data);
    else
        leave(t, api, data);
}
