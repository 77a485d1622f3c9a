/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What device records cost, without CUPTI: gpu_cost COUNT. Linked with inject/. Prints nanoseconds
 * of CPU time: "callback" the two callbacks of a driver call inside a hooked launch, "seen" a
 * launch that only callbacks see, "parse" a kernel record.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti/cupti_params.h"
#include "cupti/gpu.h"
#include "cupti/gpu_callback.h"
#include "cupti/gpu_clock.h"
#include "cupti/gpu_records.h"
#include "cupti/gpu_session.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_subscriber.h"
#include "hook/call.h"
#include "hook/getproc.h"
#include "hook/hook_table.h"

enum { CBID = 307, KERNELS = 40, CUPTI_BYTES = 216, BUFFER_RECORDS = 4096 };

#define LIFE_NS 1000000000000u

/* In place of the parts that meet CUDA. */
struct gpu gpu;

void getproc_report(struct thread *writer)
{
    (void)writer;
}

void gpu_load(void)
{
}

void gpu_context_goes(void)
{
}

void gpu_end(uint64_t ns)
{
    (void)ns;
}

void gpu_dies(bool is_certain, uint64_t ns)
{
    (void)is_certain, (void)ns;
}

void gpu_recording_runs(bool may_wait)
{
    (void)may_wait;
}

bool gpu_has_callbacks(void)
{
    return false;
}

void gpu_forget(void)
{
}

void gpu_subscriber_tell(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata)
{
    (void)domain, (void)cbid, (void)cbdata;
}

bool gpu_session_unties(uint64_t begin)
{
    (void)begin;
    return false;
}

bool gpu_session_is_precious(void)
{
    return false;
}

void gpu_turn(void)
{
}

static const uint8_t kinds[] = {ARG_KERNEL, ARG_DIM3, ARG_DIM3, ARG_COUNT, ARG_STREAM};
static const uint8_t none_late[API_ARGS_MAX];
static const struct call_site launch = {.code = API_CODE_cudaLaunchKernel,
                                        .count = 5,
                                        .kinds = kinds,
                                        .late = none_late,
                                        .class = API_LAUNCH,
                                        .pending = API_PENDING_OF_RUNTIME,
                                        .capture = API_CAPTURE_NONE,
                                        .cost = COST_LAUNCH};
const struct call_site *const call_sites[API_FUNCTION_COUNT] = {[API_CODE_cudaLaunchKernel] =
                                                                    &launch};

/* As cudaLaunchKernel's arguments lie. */
struct launch_params {
    const void *function;
    struct {
        unsigned x, y, z;
    } grid, block;
    void **args;
    size_t shared;
    void *stream;
};

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t random_below(uint64_t limit)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static void callback(CUpti_CallbackDomain domain, CUpti_ApiCallbackSite site, uint32_t id,
                     const void *params)
{
    int result = 0;
    const CUpti_CallbackData data = {.callbackSite = site,
                                     .functionParams = params,
                                     .functionReturnValue = &result,
                                     .correlationId = id};
    gpu_callback(NULL, domain, CBID, &data);
}

static void hooked(uint64_t i, uint32_t correlation)
{
    struct call call;
    const uint64_t words[] = {0x1000 + 16 * (i % KERNELS), 1 + i % 7, 256, 0, 0x77};
    if (call_open(&call, &launch, words)) {
        if (correlation) {
            callback(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_API_ENTER, correlation, NULL);
            callback(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_API_EXIT, correlation, NULL);
        }
        call_close(&call, &launch, 0, words);
    } else {
        call_begin(&call, &launch, words, (uintptr_t)__builtin_return_address(0));
        if (correlation)
            callback(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_API_ENTER, correlation, NULL);
        call_end(&call, &launch, 0, words);
    }
}

static void seen(uint64_t i, uint32_t correlation)
{
    struct launch_params params = {.function = (void *)(uintptr_t)(0x1000 + 16 * (i % KERNELS)),
                                   .grid = {1, 1, 1},
                                   .block = {256, 1, 1}};
    callback(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_API_ENTER, correlation, &params);
    callback(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_API_ENTER, correlation, NULL);
    callback(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_API_EXIT, correlation, NULL);
    callback(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_API_EXIT, correlation, &params);
}

static void put(uint8_t *record, enum cupti_field field, uint64_t value)
{
    memcpy(record + cupti_field_rows[field].offset, &value, cupti_field_rows[field].width);
}

static uint8_t buffer[BUFFER_RECORDS][CUPTI_BYTES] __attribute__((aligned(8)));

/* Kernels one after the other, each as long as its name says, give or take a tenth. */
static uint64_t fill(uint64_t first, uint64_t start)
{
    static char names[KERNELS][64];
    for (uint64_t i = 0; i < BUFFER_RECORDS; i++) {
        uint8_t *r = buffer[i];
        uint64_t kernel = (first + i) % KERNELS, ns = 2000 + 900 * kernel;
        uint32_t kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        snprintf(names[kernel], sizeof names[0], "_Z6kernelILi%uEEvPKfPf", (unsigned)kernel);
        memcpy(r, &kind, sizeof kind);
        uint64_t end = start + ns + 32 * random_below(ns / 160 + 1);
        put(r, FIELD_KERNEL_START, start);
        put(r, FIELD_KERNEL_END, end);
        put(r, FIELD_KERNEL_STREAM, 7);
        put(r, FIELD_KERNEL_CONTEXT, 1);
        put(r, FIELD_KERNEL_GRID_X, 1 + kernel);
        put(r, FIELD_KERNEL_BLOCK_X, 256);
        put(r, FIELD_KERNEL_REGISTERS, 32 + kernel);
        put(r, FIELD_KERNEL_CORRELATION, 1 + first + i);
        put(r, FIELD_KERNEL_NAME, (uintptr_t)names[kernel]);
        start = end + 700 + 32 * random_below(40);
    }
    return start;
}

/* What is measured is worth nothing if it is not recorded. */
static void need_records(uint64_t position, uint64_t count, const char *what)
{
    uint64_t bytes = this_thread.position + this_thread.used - position;
    if (bytes >= 8 * RECORD_HEAD_WORDS * count)
        return;
    fprintf(stderr, "gpu_cost: %s: %llu bytes of records for %llu\n", what,
            (unsigned long long)bytes, (unsigned long long)count);
    exit(4);
}

static double parse(uint64_t count)
{
    uint64_t took = 0, start = 1000000, position = this_thread.position + this_thread.used;
    struct clock_scale *scale = &gp.header.scale; /* as if the process were old enough */
    scale->ticks_zero -=
        (uint64_t)(((unsigned __int128)LIFE_NS << CLOCK_SCALE_SHIFT) / scale->mult);
    gpu_clock_look();
    for (uint64_t first = 0; first < count; first += BUFFER_RECORDS) {
        start = fill(first, start);
        uint64_t begin = cpu_ns();
        for (uint64_t i = 0; i < BUFFER_RECORDS && first + i < count; i++) {
            const struct cupti_view view = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, buffer[i],
                                            CUPTI_BYTES};
            gpu_record(&this_thread, &view);
        }
        took += cpu_ns() - begin;
    }
    need_records(position, count, "parse");
    return (double)took / (double)count;
}

static double measured(void (*body)(uint64_t, uint32_t), uint64_t count, bool correlated)
{
    uint64_t position = this_thread.position + this_thread.used, begin = cpu_ns();
    for (uint64_t i = 0; i < count; i++)
        body(i, correlated ? (uint32_t)i + 1 : 0);
    uint64_t took = cpu_ns() - begin;
    need_records(position, count, body == seen ? "seen" : "hooked");
    return (double)took / (double)count;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    for (unsigned i = 0; i < KERNELS; i++) {
        char name[32];
        snprintf(name, sizeof name, "kernel_%u", i);
        name_define(0x1000 + 16 * i, name, true, 0x77);
    }
    hooked(0, 0);
    gpu.callbacks.codes[CUPTI_CB_DOMAIN_DRIVER_API][CBID] = API_CODE_cuLaunchKernel + 1;
    gpu.callbacks.codes[CUPTI_CB_DOMAIN_RUNTIME_API][CBID] = API_CODE_cudaLaunchKernel + 1;
    gpu.is_called_back[API_CODE_cuLaunchKernel] = true;
    gpu.is_called_back[API_CODE_cudaLaunchKernel] = true;
    atomic_store(&gpu.epoch, epoch_now());
    atomic_store(&gpu.phase, GPU_ACTIVE);
    double bare = measured(hooked, count, false);
    printf("hooked %.2f\n", bare);
    printf("callback %.2f\n", measured(hooked, count, true) - bare);
    printf("seen %.2f\n", measured(seen, count, true));
    printf("parse %.2f\n", parse(count));
    return 0;
}
