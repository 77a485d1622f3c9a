/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_parse.h"

#include "base/futex.h"
#include "base/ticks.h"
#include "cupti/gpu_buffers.h"
#include "cupti/gpu_clock.h"
#include "cupti/gpu_names.h"
#include "cupti/gpu_records.h"
#include "cupti/gpu_scope.h"
#include "cupti/gpu_state.h"
#include "record/own_thread.h"
#include "record/thread.h"

#define IDLE_NS 1000000000u

/* Any thread requests; the parser does the rest, as the writer in state.h. */
static struct {
    _Atomic uint32_t requested;
    _Atomic uint32_t done;
    _Atomic uint32_t running;
} parser;

/* Counts the records that CUPTI has dropped since the last check. */
static void count_dropped(const struct gpu_buffer *buffer)
{
    size_t dropped = 0;
    if (gpu_scope_dropped(buffer->context, buffer->stream, &dropped) == CUPTI_SUCCESS && dropped)
        counter_add(COUNTER_GPU_DROPPED, dropped);
}

static void parse(struct thread *me, const struct gpu_buffer *buffer)
{
    struct cupti_walk walk;
    struct cupti_view view;
    int more;
    gpu_clock_look();
    gpu_names_next_buffer();
    cupti_walk_init(&walk, &gpu.cupti.sizes, gpu_scope_next_record, buffer->data,
                    buffer->valid_bytes);
    while ((more = cupti_walk_next(&walk, &view)) > 0) {
        if (buffer->is_spare)
            counter_add(COUNTER_GPU_DROPPED, 1);
        else
            gpu_record(me, &view);
    }
    if (more < 0)
        counter_add(COUNTER_GPU_DAMAGED, 1);
    count_dropped(buffer);
    gpu_buffers_release(buffer);
}

static void *parse_main(void *data)
{
    struct thread *me = &this_thread;
    (void)data;
    own_thread_begin("gpuprof-gpu");
    while (atomic_load(&gp.writer.running)) {
        struct gpu_buffer buffer;
        uint32_t requested = atomic_load(&parser.requested);
        uint32_t filled = atomic_load(&gpu_buffers_filled);
        while (gpu_buffers_take(&buffer))
            if (thread_attach(me))
                parse(me, &buffer);
            else
                gpu_buffers_release(&buffer); /* the recording has ended, and has said so */
        if (requested != atomic_load(&parser.done)) {
            own_thread_report(COST_GPU);
            thread_leave(me);
            atomic_store(&parser.done, requested);
            futex_wake_all(&parser.done);
        }
        own_thread_report(COST_GPU);
        futex_wait(&gpu_buffers_filled, filled, IDLE_NS);
    }
    atomic_store(&parser.running, 0);
    futex_wake_all(&parser.done);
    own_thread_end();
    return NULL;
}

bool gpu_parse_start(void)
{
    atomic_store(&parser.running, 1);
    return own_thread_create(parse_main, NULL) == 0;
}

bool gpu_parse_drain(uint64_t ns)
{
    uint32_t wanted = 1 + atomic_fetch_add(&parser.requested, 1);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + ns;
    atomic_fetch_add(&gpu_buffers_filled, 1);
    futex_wake_all(&gpu_buffers_filled);
    while (atomic_load(&parser.running)) {
        uint32_t done = atomic_load(&parser.done);
        if ((int32_t)(done - wanted) >= 0)
            return true;
        if (now_ns >= end_ns)
            return false;
        futex_wait(&parser.done, done, end_ns - now_ns);
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
    return false;
}
