/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_rival.h"

#include <stdatomic.h>

#include "call.h"
#include "cuda_abi.h"
#include "gpu.h"
#include "gpu_buffers.h"
#include "gpu_flush.h"
#include "gpu_guest.h"
#include "hook_real.h"
#include "identity.h"
#include "ticks.h"

#define QUIET_NS 100000000u /* after its last call, which may not have been its last */

static struct {
    _Atomic(CUpti_BuffersCallbackRequestFunc) requested;
    _Atomic(CUpti_BuffersCallbackCompleteFunc) completed;
    _Atomic uint64_t kinds; /* that it has enabled: a bit each */
    _Atomic uint64_t acted_ns;
} rival;

/* Prototypes of what is exported: no header of ours declares CUPTI's functions. */
#define HOOK(id, symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api_cupti.def"
#undef HOOK

#define NO_CUPTI CUPTI_ERROR_NOT_INITIALIZED

bool gpu_rival_is_at_work(void)
{
    return atomic_load(&rival.kinds) != 0 && atomic_load(&rival.requested);
}

void gpu_rival_requested(uint8_t **buffer, size_t *size, size_t *record_count_max)
{
    CUpti_BuffersCallbackRequestFunc requested = atomic_load(&rival.requested);
    if (atomic_load(&gpu.phase) == GPU_YIELDED && requested) {
        requested(buffer, size, record_count_max);
        if (*buffer) /* CUPTI believes that all are: we said so for ours */
            memset(*buffer, 0, *size);
    } else
        gpu_buffers_requested(buffer, size, record_count_max);
}

void gpu_rival_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                         size_t valid_bytes)
{
    CUpti_BuffersCallbackCompleteFunc completed = atomic_load(&rival.completed);
    if (gpu_buffers_has(buffer))
        gpu_buffers_completed(context, stream, buffer, size, valid_bytes);
    else if (completed)
        completed(context, stream, buffer, size, valid_bytes);
}

static void note(const char *text)
{
    struct thread *t = &this_thread;
    struct call *outside = t->inside;
    struct call here;
    struct record r = {.type = RECORD_NOTE,
                       .begin = ticks_now(),
                       .bytes = (const uint8_t *)text,
                       .byte_count = (uint32_t)strlen(text)};
    here.mark = call_mark(&here, CALL_PASS);
    call_enter(t, &here);
    if (thread_attach(t))
        thread_append(t, &r);
    call_leave(t);
    if (outside)
        call_enter(t, outside);
}

/* The records go to the other one from here on; those made before are ours still. */
static void yield(void)
{
    uint32_t active = GPU_ACTIVE;
    if (!gpu_is_active())
        return;
    gpu_drain(gp.settings.numbers[SETTING_EXIT_WAIT]);
    gpu_enable_kinds(false);
    gpu.cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT); /* what it expects */
    if (!atomic_compare_exchange_strong(&gpu.phase, &active, GPU_YIELDED))
        return;
    gpu_flush_wake(); /* which looks more often now */
    counter_add(COUNTER_GPU_YIELDS, 1);
    note("another client of CUPTI's has the GPU's records from here on");
}

void gpu_rival_look(void)
{
    uint32_t yielded = GPU_YIELDED;
    if (atomic_load(&gpu.phase) != GPU_YIELDED || gpu_rival_is_at_work() ||
        clock_ns(CLOCK_MONOTONIC) - atomic_load(&rival.acted_ns) < QUIET_NS)
        return;
    gpu.cupti.cuptiActivityFlushAll(1); /* its own records into its own buffers, to the last */
    gpu.cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    bool paused = atomic_load(&gp.paused);
    if (!paused && !gpu_enable_kinds(true)) {
        gpu_fail("CUPTI enables no records any more after another client of it");
        return;
    }
    if (atomic_compare_exchange_strong(&gpu.phase, &yielded, GPU_ACTIVE))
        note("the GPU's records are gpuprof's again");
    if (paused != !!atomic_load(&gp.paused)) /* whoever changed it took us for yielded */
        gpu_enable_kinds(paused);
}

EXPORT int cuptiActivityRegisterCallbacks(void *funcBufferRequested, void *funcBufferCompleted)
{
    __typeof__(&cuptiActivityRegisterCallbacks) real =
        HOOK_REAL(cuptiActivityRegisterCallbacks, API_RUNTIME);
    uint32_t phase = atomic_load(&gpu.phase);
    atomic_store(&rival.acted_ns, clock_ns(CLOCK_MONOTONIC));
    atomic_store(&rival.requested, (CUpti_BuffersCallbackRequestFunc)funcBufferRequested);
    atomic_store(&rival.completed, (CUpti_BuffersCallbackCompleteFunc)funcBufferCompleted);
    if (phase == GPU_ACTIVE || phase == GPU_YIELDED) { /* ours are registered, and serve both */
        yield();
        return CUPTI_SUCCESS;
    }
    return real ? real(funcBufferRequested, funcBufferCompleted) : (int)NO_CUPTI;
}

/* A new clock spoils the times of records that are under way: ours are fetched before. */
EXPORT int cuptiActivityRegisterTimestampCallback(void *funcTimestamp)
{
    __typeof__(&cuptiActivityRegisterTimestampCallback) real =
        HOOK_REAL(cuptiActivityRegisterTimestampCallback, API_RUNTIME);
    atomic_store(&rival.acted_ns, clock_ns(CLOCK_MONOTONIC));
    yield();
    return real ? real(funcTimestamp) : (int)NO_CUPTI;
}

EXPORT int cuptiActivityEnable(int kind)
{
    __typeof__(&cuptiActivityEnable) real = HOOK_REAL(cuptiActivityEnable, API_RUNTIME);
    atomic_store(&rival.acted_ns, clock_ns(CLOCK_MONOTONIC));
    if (atomic_load(&rival.requested))
        yield();
    int result = real ? real(kind) : (int)NO_CUPTI;
    if (result == CUPTI_SUCCESS && kind >= 0 && kind < CUPTI_KIND_MAX)
        atomic_fetch_or(&rival.kinds, 1ull << kind);
    return result;
}

EXPORT int cuptiActivityDisable(int kind)
{
    __typeof__(&cuptiActivityDisable) real = HOOK_REAL(cuptiActivityDisable, API_RUNTIME);
    atomic_store(&rival.acted_ns, clock_ns(CLOCK_MONOTONIC));
    if (kind >= 0 && kind < CUPTI_KIND_MAX)
        atomic_fetch_and(&rival.kinds, ~(1ull << kind));
    /* Of those that are ours now, none goes because another client clears up. */
    if (gpu_is_active() && kind >= 0 && kind < CUPTI_KIND_MAX && gpu.kinds >> kind & 1)
        return CUPTI_SUCCESS;
    return real ? real(kind) : (int)NO_CUPTI;
}

EXPORT int cuptiFinalize(void)
{
    __typeof__(&cuptiFinalize) real = HOOK_REAL(cuptiFinalize, API_RUNTIME);
    uint32_t phase = atomic_load(&gpu.phase);
    if (phase == GPU_ACTIVE || phase == GPU_YIELDED) {
        gpu_drain(gp.settings.numbers[SETTING_EXIT_WAIT]);
        gpu_fail("another client of CUPTI's finalized it");
    }
    gpu_guest_forget();
    return real ? real() : (int)NO_CUPTI;
}
