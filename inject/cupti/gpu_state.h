/* SPDX-License-Identifier: Apache-2.0 */
/* The state of CUPTI in this process, shared by the parts of the GPU recording (gpu.h). */
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
    GPU_OFF,      /* CUDA is not initialized, or nothing is recorded yet */
    GPU_STARTING, /* one thread is starting CUPTI */
    GPU_WATCHING, /* callbacks are on, but no recorded call has come yet */
    GPU_ACTIVE,
    GPU_YIELDED, /* another CUPTI client in this process has the records; see gpu_other_client.c */
    GPU_DEAD,    /* not available (gpu.status says why), or over */
};

/* Do callbacks make calls? They stop when they cost too much; see governor.h. */
enum gpu_detachment {
    GPU_HEARS,
    GPU_HEARS_ENDS, /* only the ends of calls that had begun */
    GPU_DETACHED,
};

#define GPU_MISSING_BYTES_MAX 160

/* One per process. The thread that starts CUPTI writes the plain members before `phase` becomes
 * GPU_ACTIVE; `missing` is also written by threads that change the kinds (gpu_kinds.c). */
struct gpu {
    _Atomic uint32_t phase;    /* enum gpu_phase */
    _Atomic uint32_t cuda_pid; /* the process that called cuInit successfully */
    bool past_hooks;           /* see gpu_watch: only callbacks show the program's calls */
    _Atomic uint64_t epoch;    /* of the recording that started CUPTI */
    unsigned driver_version;   /* 13000 = 13.0; 0: not known */
    struct cupti_library cupti;
    char refused_library[CUPTI_PATH_BYTES_MAX]; /* the first library that did not fit; "": none */
    struct cupti_callback_map callbacks;
    bool is_called_back[API_FUNCTION_COUNT]; /* CUPTI has callbacks for this function */
    atomic_bool rests[API_FUNCTION_COUNT];   /* off for the moment: see gpu_rest.h */
    _Atomic uint32_t detached;               /* enum gpu_detachment */
    uint32_t refused_callbacks;              /* number of wanted callbacks that CUPTI refused */
    CUpti_SubscriberHandle subscriber;
    /* whose activity functions we use; NULL: the process's. See gpu_scope.h */
    CUpti_SubscriberHandle scope;
    bool shared;                /* other subscribers may exist, with records of their own */
    bool on_realtime;           /* CUPTI does not use our clock */
    bool graphs_are_whole;      /* another subscriber has chosen that */
    bool has_latency;           /* kernels have the time at which they were queued */
    _Atomic uint64_t kinds;     /* enabled kinds, one bit each */
    atomic_bool other_has_been; /* another client has enabled kinds at some time */
    char missing[GPU_MISSING_BYTES_MAX]; /* wanted kinds that CUPTI refuses, as text */
    struct status status;                /* text of the META record gpu_rows */
};

_Static_assert(CUPTI_KIND_MAX <= 64, "a bit for each kind");

extern struct gpu gpu;

static inline bool gpu_is_active(void)
{
    return atomic_load_explicit(&gpu.phase, memory_order_relaxed) == GPU_ACTIVE;
}

static inline uint32_t gpu_detachment(void)
{
    return atomic_load_explicit(&gpu.detached, memory_order_relaxed);
}

/* The process's records are ours, or were and will be again: another client's calls affect them. */
static inline bool gpu_has_process(void)
{
    uint32_t phase = atomic_load(&gpu.phase);
    return (phase == GPU_ACTIVE || phase == GPU_YIELDED) && !gpu.scope;
}

/* Sets the text on where the rows come from. */
__attribute__((format(printf, 1, 2))) void gpu_set_status(const char *format, ...);

/* CUPTI's name of a result; cuptiGetErrorMessage says no more than that. */
const char *gpu_result_text(CUptiResult result);

/* The clock given to CUPTI: nanoseconds on the fixed scale of the hooks' clock. */
uint64_t gpu_timestamp(void);

#endif
