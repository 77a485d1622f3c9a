/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_driver.h"
#include "sim_driver_trace.h"
#include "sim_entry.h"
#include "sim_nvml.h"

enum { COPY_LATENCY_NS = 1000 };

uint64_t copy_duration(uint64_t bytes, bool is_pageable)
{
    uint64_t bytes_per_us =
        is_pageable ? sim_config.pageable_bytes_per_us : sim_config.copy_bytes_per_us;
    return COPY_LATENCY_NS + bytes * 1000 / bytes_per_us;
}

uint64_t kernel_duration(CUfunction function, const unsigned *grid)
{
    return function->duration_ns + sim_config.block_ns * grid[0] * grid[1] * grid[2];
}

void host_spend(uint64_t duration_ns)
{
    if (SIM_UNLIKELY(duration_ns))
        time_wait(sim_now_ns() + duration_ns);
}

/* Of a call that makes, registers or frees memory, or destroys a stream. */
void host_spend_on_memory(void)
{
    CUcontext context;
    if (sim_config.alloc_waits && context_current(&context) == CUDA_SUCCESS)
        context_wait(context);
    host_spend(sim_config.alloc_ns);
}

static void time_raise(uint64_t *time_ns, uint64_t value_ns)
{
    uint64_t old_ns = __atomic_load_n(time_ns, __ATOMIC_RELAXED);
    while (old_ns < value_ns && !__atomic_compare_exchange_n(time_ns, &old_ns, value_ns, true,
                                                             __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

/* Work in the legacy stream comes after all blocking streams, and these after it. */
static uint64_t stream_barrier(CUstream stream)
{
    CUcontext context = stream->context;
    if (stream == context->legacy)
        return __atomic_load_n(&context->blocking_tail_ns, __ATOMIC_ACQUIRE);
    if (stream->flags & CU_STREAM_NON_BLOCKING)
        return 0;
    return __atomic_load_n(&context->legacy_tail_ns, __ATOMIC_ACQUIRE);
}

uint64_t stream_start(CUstream stream, uint64_t now_ns)
{
    uint64_t start_ns = __atomic_load_n(&stream->tail_ns, __ATOMIC_ACQUIRE);
    uint64_t barrier_ns = stream_barrier(stream);
    if (start_ns < barrier_ns)
        start_ns = barrier_ns;
    return start_ns < now_ns ? now_ns : start_ns;
}

void stream_advance(CUstream stream, uint64_t end_ns)
{
    time_raise(&stream->tail_ns, end_ns);
    if (stream == stream->context->legacy)
        time_raise(&stream->context->legacy_tail_ns, end_ns);
    else if (!(stream->flags & CU_STREAM_NON_BLOCKING))
        time_raise(&stream->context->blocking_tail_ns, end_ns);
}

void work_enqueue(CUstream stream, struct work *work)
{
    if (!sim_config.timeline) {
        if (work_wanted())
            work->queued_ns = work->start_ns = work->end_ns = sim_now_ns();
        return;
    }
    uint64_t now_ns = work->queued_ns = sim_now_ns();
    uint64_t tail_ns = __atomic_load_n(&stream->tail_ns, __ATOMIC_ACQUIRE);
    uint64_t barrier_ns = stream_barrier(stream);
    if (now_ns < barrier_ns)
        now_ns = barrier_ns;
    do {
        work->start_ns = tail_ns > now_ns ? tail_ns : now_ns;
        work->end_ns = work->start_ns + work->duration_ns;
    } while (!__atomic_compare_exchange_n(&stream->tail_ns, &tail_ns, work->end_ns, true,
                                          __ATOMIC_RELEASE, __ATOMIC_ACQUIRE));
    stream_advance(stream, work->end_ns);
    meter_work(stream, work->start_ns, work->end_ns);
}

void work_log(CUstream stream, const struct work *work, const struct sim_arg *args, unsigned count)
{
    if (!sim_log_gpu_wanted())
        return;
    enum { ARGS_MAX = 12 };
    struct sim_arg all[ARGS_MAX] = {
        A_KU("device", stream->context->device->ordinal),
        A_KX("ctx", stream->context),
        A_KX("stream", stream),
        A_KU("stream_id", stream->id),
    };
    unsigned all_count = 4;
    for (unsigned i = 0; i < count && all_count < ARGS_MAX; i++)
        all[all_count++] = args[i];
    const struct sim_note note = {.layer = 'G',
                                  .what = work->what,
                                  .start_ns = work->start_ns,
                                  .end_ns = work->end_ns,
                                  .args = all,
                                  .arg_count = all_count};
    sim_log_note(&note);
}
