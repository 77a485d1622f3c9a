/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_other_client.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/ticks.h"
#include "cuda/cuda_abi.h"
#include "cupti/gpu_buffers.h"
#include "cupti/gpu_client.h"
#include "cupti/gpu_drain.h"
#include "cupti/gpu_kinds.h"
#include "cupti/gpu_scope.h"
#include "cupti/gpu_state.h"
#include "hook/call.h"
#include "hook/hook_real.h"
#include "record/recorded.h"

/* how long after its last call we take over; more of its calls may follow */
#define QUIET_NS 100000000u

/* Changed by the other client's calls on any thread. */
static struct {
    _Atomic(CUpti_BuffersCallbackRequestFunc) requested;
    _Atomic(CUpti_BuffersCallbackCompleteFunc) completed;
    _Atomic(CUpti_BuffersCallbackRequestFunc_v2) requested_v2; /* in place of the others */
    _Atomic(CUpti_BuffersCallbackCompleteFunc_v2) completed_v2;
    _Atomic uint64_t kinds; /* kinds that it has enabled, one bit each */
    _Atomic uint64_t acted_ns;
} other;

/* Prototypes of the exported functions; none of our headers declares CUPTI's functions. */
#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api_cupti.def"
#undef HOOK

#define NO_CUPTI CUPTI_ERROR_NOT_INITIALIZED

bool gpu_other_client_is_at_work(void)
{
    return atomic_load(&other.kinds) != 0 &&
           (atomic_load(&other.requested) || atomic_load(&other.requested_v2));
}

void gpu_other_client_requested(uint8_t **buffer, size_t *size, size_t *record_count_max)
{
    CUpti_BuffersCallbackRequestFunc requested = atomic_load(&other.requested);
    CUpti_BuffersCallbackRequestFunc_v2 requested_v2 = atomic_load(&other.requested_v2);
    CUpti_BufferCallbackRequestInfo info = {sizeof info};
    uint32_t phase = atomic_load(&gpu.phase);
    bool is_ours = phase == GPU_ACTIVE || phase == GPU_STARTING ||
                   (phase != GPU_YIELDED && !atomic_load(&other.kinds));
    if (is_ours || !(requested || requested_v2)) {
        gpu_buffers_requested(buffer, size, record_count_max);
        return;
    }
    if (requested_v2)
        requested_v2(buffer, size, record_count_max, &info);
    else
        requested(buffer, size, record_count_max);
    if (*buffer) /* CUPTI expects zeroed buffers, since we promised that for ours */
        memset(*buffer, 0, *size);
}

void gpu_other_client_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                size_t valid_bytes)
{
    CUpti_BuffersCallbackCompleteFunc completed = atomic_load(&other.completed);
    CUpti_BuffersCallbackCompleteFunc_v2 completed_v2 = atomic_load(&other.completed_v2);
    CUpti_BufferCallbackCompleteInfo info = {.structSize = sizeof info,
                                             .threadId = (uint64_t)pthread_self()};
    if (gpu_buffers_has(buffer))
        gpu_buffers_completed(context, stream, buffer, size, valid_bytes);
    else if (completed_v2)
        completed_v2(buffer, size, valid_bytes, &info);
    else if (completed)
        completed(context, stream, buffer, size, valid_bytes);
}

void gpu_other_client_has(bool has)
{
    struct thread *t = &this_thread;
    struct call *outside = t->inside;
    struct call here;
    here.mark = call_mark(&here, CALL_PASS);
    call_enter(t, &here);
    recorded_ask(epoch_now() != EPOCH_NONE && thread_attach(t) ? t : NULL, ASKER_CLIENT,
                 has ? OFF_DEVICE : 0, NULL);
    call_leave(t);
    if (outside)
        call_enter(t, outside);
}

/* The other client receives the records from here on; earlier ones are ours. */
static void yield(void)
{
    uint32_t active = GPU_ACTIVE;
    if (!gpu_is_active() || gpu.scope) /* as a subscriber we have records of our own */
        return;
    gpu_drain(gp.settings.numbers[SETTING_EXIT_WAIT]);
    gpu_other_client_has(true);
    gpu_kinds_follow(); /* another thread may be changing the kinds: wait until they are off */
    gpu_scope_thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT); /* the format that it expects */
    if (!atomic_compare_exchange_strong(&gpu.phase, &active, GPU_YIELDED))
        return;
    gpu_flush_wake(); /* which now checks more often */
    counter_add(COUNTER_GPU_YIELDS, 1);
}

void gpu_other_client_look(void)
{
    uint32_t yielded = GPU_YIELDED;
    if (atomic_load(&gpu.phase) != GPU_YIELDED || gpu_other_client_is_at_work() ||
        clock_ns(CLOCK_MONOTONIC) - atomic_load(&other.acted_ns) < QUIET_NS)
        return;
    gpu.cupti.cuptiActivityFlushAll(1); /* delivers all of its records to its own buffers */
    gpu_scope_thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    gpu_other_client_has(false);
    atomic_compare_exchange_strong(&gpu.phase, &yielded, GPU_ACTIVE);
}

void gpu_other_client_acts(void)
{
    atomic_store(&other.acted_ns, clock_ns(CLOCK_MONOTONIC));
    yield();
}

int gpu_other_client_register_v2(CUpti_BuffersCallbackRequestFunc_v2 requested,
                                 CUpti_BuffersCallbackCompleteFunc_v2 completed)
{
    bool is_shared = gpu_has_process();
    atomic_store(&other.requested_v2, requested);
    atomic_store(&other.completed_v2, completed);
    gpu_other_client_acts();
    return is_shared ? CUPTI_SUCCESS
                     : (int)gpu.cupti.cuptiActivityRegisterCallbacks(gpu_other_client_requested,
                                                                     gpu_other_client_completed);
}

void gpu_other_client_leaves(void)
{
    uint64_t kinds = atomic_load(&other.requested_v2) ? atomic_exchange(&other.kinds, 0) : 0;
    /* buffers in use still come back to the other client */
    atomic_store(&other.requested_v2, NULL);
    for (unsigned kind = 0; kind < CUPTI_KIND_MAX; kind++)
        if (kinds >> kind & 1 && !gpu_is_active())
            gpu.cupti.cuptiActivityDisable((CUpti_ActivityKind)kind);
}

int gpu_other_client_enable(gpu_other_client_kind_fn *real, int kind)
{
    atomic_store(&other.acted_ns, clock_ns(CLOCK_MONOTONIC));
    if (atomic_load(&other.requested) || atomic_load(&other.requested_v2))
        yield();
    gpu_client_calls();
    int result = gpu_client_called(real ? real(kind) : (int)NO_CUPTI);
    if (result == CUPTI_SUCCESS && kind >= 0 && kind < CUPTI_KIND_MAX) {
        atomic_store(&gpu.other_has_been, true);
        atomic_fetch_or(&other.kinds, 1ull << kind);
    }
    return result;
}

int gpu_other_client_disable(gpu_other_client_kind_fn *real, int kind)
{
    bool is_known = kind >= 0 && kind < CUPTI_KIND_MAX;
    atomic_store(&other.acted_ns, clock_ns(CLOCK_MONOTONIC));
    if (is_known)
        atomic_fetch_and(&other.kinds, ~(1ull << kind));
    /* Kinds that are ours stay on, even if another client turns them off. */
    if (gpu_is_active() && !gpu.scope && is_known && gpu.kinds >> kind & 1)
        return CUPTI_SUCCESS;
    return real ? real(kind) : (int)NO_CUPTI;
}

/* CUPTI forbids it while kinds are enabled; XLA asks for per-thread buffers before its session. */
int gpu_other_client_set(gpu_other_client_attribute_fn *real, int attribute, size_t *bytes,
                         void *value)
{
    gpu_other_client_acts();
    gpu_client_calls();
    return gpu_client_called(real ? real(attribute, bytes, value) : (int)NO_CUPTI);
}

EXPORT int cuptiActivityRegisterCallbacks(void *funcBufferRequested, void *funcBufferCompleted)
{
    __typeof__(&cuptiActivityRegisterCallbacks) real = HOOK_REAL(cuptiActivityRegisterCallbacks);
    bool is_shared = gpu_has_process(); /* our callbacks are registered, and serve both */
    atomic_store(&other.requested_v2, NULL);
    atomic_store(&other.completed_v2, NULL);
    atomic_store(&other.requested, (CUpti_BuffersCallbackRequestFunc)funcBufferRequested);
    atomic_store(&other.completed, (CUpti_BuffersCallbackCompleteFunc)funcBufferCompleted);
    gpu_other_client_acts();
    if (is_shared)
        return CUPTI_SUCCESS;
    return real ? real(funcBufferRequested, funcBufferCompleted) : (int)NO_CUPTI;
}

/* A new clock spoils the times of records under way, so ours are flushed first. */
EXPORT int cuptiActivityRegisterTimestampCallback(void *funcTimestamp)
{
    __typeof__(&cuptiActivityRegisterTimestampCallback) real =
        HOOK_REAL(cuptiActivityRegisterTimestampCallback);
    gpu_other_client_acts();
    gpu_client_calls();
    return gpu_client_called(real ? real(funcTimestamp) : (int)NO_CUPTI);
}

EXPORT int cuptiActivityEnable(int kind)
{
    return gpu_other_client_enable(HOOK_REAL(cuptiActivityEnable), kind);
}

EXPORT int cuptiActivityDisable(int kind)
{
    return gpu_other_client_disable(HOOK_REAL(cuptiActivityDisable), kind);
}

EXPORT int cuptiActivitySetAttribute(int attr, size_t *valueSize, void *value)
{
    return gpu_other_client_set(HOOK_REAL(cuptiActivitySetAttribute), attr, valueSize, value);
}
