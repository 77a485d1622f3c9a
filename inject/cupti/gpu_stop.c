/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_stop.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/real_dlsym.h"
#include "base/say.h"
#include "cupti/gpu_kinds.h"
#include "cupti/gpu_parse.h"
#include "cupti/gpu_quiet.h"
#include "cupti/gpu_scope.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_subscriber.h"

/* Afterwards nothing of ours costs time in CUPTI, and another client can use it. */
static void let_go(void)
{
    struct quiet quiet = quiet_begin();
    CUpti_SubscriberHandle subscriber = gpu.subscriber;
    if (gpu_subscriber_keeps(subscriber))
        subscriber = NULL;
    else
        gpu.subscriber = NULL;
    gpu_kinds_end();
    if (gpu.has_latency)
        gpu_scope_latency(0);
    if (subscriber)
        gpu.cupti.cuptiUnsubscribe(subscriber);
    quiet_end(&quiet);
}

void gpu_fail(const char *format, ...)
{
    char reason[CUPTI_REASON_BYTES_MAX];
    if (atomic_exchange(&gpu.phase, GPU_DEAD) == GPU_DEAD)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    let_go();
    gpu_set_status("absent: %s", reason);
    if (!is_preloaded) /* otherwise the recording says so */
        say(SAY_GPU,
            "nothing is recorded: libgpuprof.so is not preloaded, and CUPTI gives no records: %s",
            reason);
}

void gpu_stop_callbacks(void)
{
    uint32_t hears = GPU_HEARS, hears_ends = GPU_HEARS_ENDS;
    if (atomic_compare_exchange_strong(&gpu.detached, &hears, GPU_HEARS_ENDS) ||
        !atomic_compare_exchange_strong(&gpu.detached, &hears_ends, GPU_DETACHED))
        return;
    struct quiet quiet = quiet_begin();
    for (unsigned d = 1; d < CUPTI_API_DOMAINS; d++)
        for (uint32_t cbid = 0; cbid < CUPTI_CBID_MAX; cbid++)
            if (gpu.callbacks.codes[d][cbid] &&
                gpu.is_called_back[gpu.callbacks.codes[d][cbid] - 1] &&
                !gpu_subscriber_wants((CUpti_CallbackDomain)d, cbid))
                gpu.cupti.cuptiEnableCallback(0, gpu.subscriber, (CUpti_CallbackDomain)d, cbid);
    quiet_end(&quiet);
}

void gpu_stop_records(void)
{
    uint32_t active = GPU_ACTIVE;
    gpu_parse_drain(gp.settings.numbers[SETTING_EXIT_WAIT]);
    if (!atomic_compare_exchange_strong(&gpu.phase, &active, GPU_DEAD))
        return;
    let_go();
    gpu_set_status("from CUPTI %u, %.600s, until %s turned them off", gpu.cupti.version,
                   gpu.cupti.path, setting_infos[SETTING_OVERHEAD_MAX].variable);
}
