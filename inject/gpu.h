/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU's side of a recording: CUPTI's activity records and callbacks. Off until CUDA has been
 * initialised and a recording has begun, whichever comes later; then started once, never again in
 * the child of a fork. Any error of CUPTI's ends it with a reason that is said once and stored:
 * host calls are recorded all the same.
 */
#ifndef GPUPROF_INJECT_GPU_H
#define GPUPROF_INJECT_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_callback_map.h"
#include "cupti_library.h"
#include "state.h"
#include "status.h"

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

/* One per process. What is not atomic is written before `phase` becomes GPU_ACTIVE. */
struct gpu {
    _Atomic uint32_t phase;    /* enum gpu_phase */
    _Atomic uint32_t cuda_pid; /* the process in which cuInit has succeeded */
    bool past_hooks;           /* gpu_watch: only callbacks show the program's calls */
    _Atomic uint64_t epoch;    /* of the recording that it was started in */
    struct cupti_library cupti;
    struct cupti_callback_map callbacks;
    bool is_called_back[API_FUNCTION_COUNT]; /* CUPTI tells of its calls */
    _Atomic uint32_t deaf;                   /* enum gpu_deafness */
    uint32_t refused_callbacks;              /* that were wanted */
    CUpti_SubscriberHandle subscriber;
    CUpti_SubscriberHandle scope; /* whose activity is ours; NULL: the process's. See gpu_scope.h */
    bool shared;                  /* other subscribers may be there, with records of their own */
    bool on_realtime;             /* CUPTI takes no clock from us */
    bool graphs_are_whole;        /* another subscriber wants that */
    bool has_latency;             /* kernels say when they were queued */
    uint64_t kinds;               /* enabled: a bit each */
    char missing[GPU_MISSING_BYTES_MAX]; /* wanted kinds that CUPTI refuses, in words */
    struct status status;                /* what the META record gpu_rows says */
};

_Static_assert(CUPTI_KIND_MAX <= 64, "a bit for each kind");

extern struct gpu gpu;

/* By the constructor: the driver is told to load us. */
void gpu_load(void);

/* cuInit has succeeded: by its hook, with the driver's locks free. */
void gpu_cuda_runs(void);

/*
 * The driver has loaded us for CUDA_INJECTION64_PATH, and no hook saw the program initialise it:
 * the program's calls go past the hooks, and callbacks must show the first of them too.
 */
void gpu_watch(void);

/*
 * Around another client's call of CUPTI, which may initialise the driver, which then loads us:
 * CUPTI would wait for itself if we called it there, so that comes after it. Hands `result`
 * through.
 */
void gpu_client_calls(void);
int gpu_client_called(int result);

/* A thread has begun to take part in a recording. Both on the program's thread, inside a call.
 * `may_wait`: CUDA is not at work on this thread, so it can wait for another one that starts CUPTI,
 * and what it is about to launch is not missed; for a second at most. */
void gpu_recording_runs(bool may_wait);

/*
 * Everything that the device has finished so far is in the thread's chunks when this returns true;
 * false: `ns` passed before. From any thread; async-signal-safe.
 */
bool gpu_drain(uint64_t ns);

/* The same as far as it goes, and after it nothing more is recorded of the device. */
void gpu_end(uint64_t ns);

static inline bool gpu_is_active(void)
{
    return atomic_load_explicit(&gpu.phase, memory_order_relaxed) == GPU_ACTIVE;
}

static inline uint32_t gpu_deafness(void)
{
    return atomic_load_explicit(&gpu.deaf, memory_order_relaxed);
}

/* Are there callbacks that could be given up? And records? */
bool gpu_has_callbacks(void);

/*
 * No call is seen by a callback any more: first those that had begun end, then, at the second call,
 * CUPTI is told. And: nothing is recorded of the device from here on. On the flusher's thread.
 */
void gpu_stop_callbacks(void);
void gpu_give_up(void);

/* In the child of a fork: CUPTI does not work there any more, if it did in the parent. */
void gpu_forget(void);

/* Ends it; the first reason holds. CUPTI is left to others: no kinds, no callbacks, no subscriber.
 * Not from a callback of CUPTI's buffers or clock. */
__attribute__((format(printf, 1, 2))) void gpu_fail(const char *format, ...);

/* What CUPTI calls a result; its cuptiGetErrorMessage says no more than that. */
const char *gpu_result_text(CUptiResult result);

/* Enables or disables the kinds of records that are recorded. */
bool gpu_enable_kinds(bool enable);

/* Says anew where the rows come from: something that limits them has changed. */
void gpu_tell_source(void);

/* gpuprof_stop() and gpuprof_start(): what is launched between them is not recorded. */
void gpu_pause(bool paused);

/* The clock that CUPTI is given: nanoseconds on the frozen scale of the hooks' clock. */
uint64_t gpu_timestamp(void);

#endif
