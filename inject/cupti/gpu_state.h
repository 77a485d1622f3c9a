/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of CUPTI in this process, and how far its start has come: the parts of the device's
 * side (gpu.h) share it.
 */
#ifndef GPUPROF_INJECT_GPU_STATE_H
#define GPUPROF_INJECT_GPU_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cupti/cupti_callback_map.h"
#include "cupti/cupti_library.h"
#include "record/state.h"

enum gpu_phase {
    GPU_OFF,      /* CUDA is not initialised, or nothing is recorded yet */
    GPU_STARTING, /* one thread is at it */
    GPU_WATCHING, /* callbacks come, but no call that is recorded has come yet */
    GPU_ACTIVE,
    GPU_YIELDED, /* another client of CUPTI's in this process has the records; see gpu_rival.c */
    GPU_DEAD,    /* not to be had (gpu.status says why), or over */
};

/* Whether callbacks make calls: not any more if they cost too much; see governor.h. */
enum gpu_deafness {
    GPU_HEARS,
    GPU_HEARS_ENDS, /* of calls that had begun */
    GPU_DEAF,
};

#define GPU_MISSING_BYTES_MAX 160

/* One per process. What is not atomic is written before `phase` becomes GPU_ACTIVE, by the thread
 * that starts CUPTI; `missing` also by who changes the kinds (gpu_kinds.c). */
struct gpu {
    _Atomic uint32_t phase;    /* enum gpu_phase */
    _Atomic uint32_t cuda_pid; /* the process in which cuInit has succeeded */
    bool past_hooks;           /* gpu_watch: only callbacks show the program's calls */
    _Atomic uint64_t epoch;    /* of the recording that it was started in */
    unsigned driver_version;   /* 13000 = 13.0; 0: not known */
    struct cupti_library cupti;
    char refused_library[CUPTI_PATH_BYTES_MAX]; /* the first that did not fit; "": none */
    struct cupti_callback_map callbacks;
    bool is_called_back[API_FUNCTION_COUNT]; /* CUPTI tells of its calls */
    atomic_bool rests[API_FUNCTION_COUNT];   /* not now: see gpu_rest.h */
    _Atomic uint32_t deaf;                   /* enum gpu_deafness */
    uint32_t refused_callbacks;              /* that were wanted */
    CUpti_SubscriberHandle subscriber;
    CUpti_SubscriberHandle scope; /* whose activity is ours; NULL: the process's. See gpu_scope.h */
    bool shared;                  /* other subscribers may be there, with records of their own */
    bool on_realtime;             /* CUPTI takes no clock from us */
    bool graphs_are_whole;        /* another subscriber wants that */
    bool has_latency;             /* kernels say when they were queued */
    _Atomic uint64_t kinds;       /* enabled: a bit each */
    atomic_bool rival_has_been;   /* another client has enabled kinds of records, at any time */
    char missing[GPU_MISSING_BYTES_MAX]; /* wanted kinds that CUPTI refuses, in words */
    struct status status;                /* what the META record gpu_rows says */
};

_Static_assert(CUPTI_KIND_MAX <= 64, "a bit for each kind");

extern struct gpu gpu;

static inline bool gpu_is_active(void)
{
    return atomic_load_explicit(&gpu.phase, memory_order_relaxed) == GPU_ACTIVE;
}

static inline uint32_t gpu_deafness(void)
{
    return atomic_load_explicit(&gpu.deaf, memory_order_relaxed);
}

/* The records of the process are ours, or were and will be: another client's calls are about them.
 */
static inline bool gpu_has_process(void)
{
    uint32_t phase = atomic_load(&gpu.phase);
    return (phase == GPU_ACTIVE || phase == GPU_YIELDED) && !gpu.scope;
}

/* What there is to say of where the rows come from. */
__attribute__((format(printf, 1, 2))) void gpu_set_status(const char *format, ...);

/* What CUPTI calls a result; its cuptiGetErrorMessage says no more than that. */
const char *gpu_result_text(CUptiResult result);

/* The clock that CUPTI is given: nanoseconds on the frozen scale of the hooks' clock. */
uint64_t gpu_timestamp(void);

#endif
