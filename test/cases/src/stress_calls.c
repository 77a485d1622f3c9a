/* SPDX-License-Identifier: Apache-2.0 */
#include "stress_calls.h"

#include "base/sanitizer.h"
#include "cupti/gpu.h"
#include "cupti/gpu_describe.h"
#include "cupti/gpu_state.h"
#include "hook/getproc.h"
#include "hook/hook_table.h"

/* In place of the parts that meet CUDA. */
struct gpu gpu; /* off */

/* Here our own code is what the sanitizer is to see. */
void sanitizer_bypass(void)
{
}

bool sanitizer_is_here(void)
{
    return false;
}

void getproc_report(struct thread *writer)
{
    (void)writer;
}

void gpu_load(void)
{
}

void gpu_describe(struct thread *writer, bool is_last)
{
    (void)writer;
    (void)is_last;
}

void gpu_dies(bool is_certain, uint64_t ns)
{
    (void)is_certain;
    (void)ns;
}

void gpu_context_goes(void)
{
}

void gpu_end(uint64_t ns)
{
    (void)ns;
}

void gpu_recording_runs(bool may_wait)
{
    (void)may_wait;
}

void gpu_forget(void)
{
}

void (*stress_turned)(void);

void gpu_turn(void)
{
    if (stress_turned)
        stress_turned();
}

bool gpu_has_callbacks(void)
{
    return false;
}

static const uint8_t launch_kinds[] = {ARG_KERNEL, ARG_DIM3, ARG_DIM3, ARG_COUNT, ARG_STREAM};
static const uint8_t none_late[API_ARGS_MAX];

const struct call_site stress_launch = {.code = API_CODE_cudaLaunchKernel,
                                        .count = 5,
                                        .kinds = launch_kinds,
                                        .late = none_late,
                                        .class = API_LAUNCH,
                                        .pending = API_PENDING_OF_RUNTIME,
                                        .capture = API_CAPTURE_NONE,
                                        .cost = COST_LAUNCH};

static _Atomic unsigned long made;

unsigned long stress_count(void)
{
    return atomic_load(&made);
}

void stress_call_during(const struct call_site *site, const uint64_t *words,
                        void (*during)(void *context), void *context)
{
    bool is_edge = api_bounds_capture(site->capture);
    struct call call;
    if (!is_edge && call_open(&call, site, words)) {
        during(context);
        call_close(&call, site, 0, words);
    } else {
        call_begin(&call, site, words, (uintptr_t)__builtin_return_address(0));
        during(context);
        call_end(&call, site, 0, words);
    }
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
}

static void nothing(void *context)
{
    (void)context;
}

void stress_call(const struct call_site *site, const uint64_t *words)
{
    stress_call_during(site, words, nothing, NULL);
}
