/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

/*
 * The simulated runtime: a layer over the driver that it reaches as the real one does, by dlopen,
 * one dlsym and cuGetProcAddress. Compiled for CUDA 12 and for CUDA 13 (SIM_CUDART_MAJOR).
 */

#define SIM_NO_RENAMES
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "sim_entry.h"
#include "sim_runtime_names.h"

/* One slot for each look-up, in their order. */
enum runtime_lookup {
#define LOOKUP(name, version, flags) LOOKUP_##name##_##version##_##flags,
#include "sim_lookups.def"
#undef LOOKUP
    LOOKUP_COUNT
};

enum { RUNTIME_DEVICE_MAX = 16 };

extern void *runtime_driver[LOOKUP_COUNT];

/* A driver function: TYPE names its prototype, NAME and VERSION the look-up. */
#define D(type, name, version) ((__typeof__(type) *)runtime_driver[LOOKUP_##name##_##version##_0])
/* The same with its per-thread-default-stream variant, where `pt` is set. */
#define D2(type, name, version, pt_version)                                                        \
    ((__typeof__(type) *)                                                                          \
         runtime_driver[pt ? LOOKUP_##name##_##pt_version##_2 : LOOKUP_##name##_##version##_0])

#define SIM_INJECTED(code) runtime_return((cudaError_t)(code))

/* Entry points: raw, after cuInit, with a current context. */
#define RT_RAW(sym, params, body, ...)                                                             \
    SIM_ENTRY(cudaError_t, 'R', sym, sym, 0, params, runtime_begin, body, ##__VA_ARGS__)
#define RT_INIT(sym, params, body, ...)                                                            \
    SIM_ENTRY(cudaError_t, 'R', sym, sym, 0, params, runtime_begin,                                \
              runtime_return(runtime_ready() ?: (cudaError_t)(body)), ##__VA_ARGS__)
#define RT_AS(sym, key, pt_, params, body, ...)                                                    \
    SIM_ENTRY(cudaError_t, 'R', sym, key, pt_, params, runtime_begin,                              \
              runtime_return(runtime_context() ?: (cudaError_t)(body)), ##__VA_ARGS__)
#define RT(sym, params, body, ...) RT_AS(sym, sym, 0, params, body, ##__VA_ARGS__)
#define RT2(sym, suffix, params, body, ...)                                                        \
    RT_AS(sym, sym, 0, params, body, ##__VA_ARGS__)                                                \
    RT_AS(sym##suffix, sym, 1, params, body, ##__VA_ARGS__)

#define A_DEVICE A_KU("device", runtime_device())

extern pthread_mutex_t runtime_register_lock; /* sim_runtime_register.c */

/* sim_runtime_init.c */
int runtime_begin(struct sim_call *call, struct sim_symbol *symbol, const struct sim_arg *args,
                  unsigned arg_count);
cudaError_t runtime_ready(void);
cudaError_t runtime_context_slow(void);
cudaError_t runtime_return_error(cudaError_t error);
int runtime_device(void);
extern uint32_t runtime_epoch;
extern __thread uint32_t runtime_thread_epoch __attribute__((tls_model("initial-exec")));

/* The epoch moves on when a device is reset: every thread then finds its context anew. */
static inline cudaError_t runtime_context(void)
{
    if (__builtin_expect(runtime_thread_epoch != 0 &&
                             runtime_thread_epoch ==
                                 __atomic_load_n(&runtime_epoch, __ATOMIC_ACQUIRE),
                         1))
        return cudaSuccess;
    return runtime_context_slow();
}

/* Remembers an error for cudaGetLastError. */
static inline cudaError_t runtime_return(cudaError_t error)
{
    return SIM_UNLIKELY(error != cudaSuccess) ? runtime_return_error(error) : cudaSuccess;
}

/* sim_runtime_register.c */
const char *runtime_function_name(const void *host);
cudaError_t runtime_function(const void *host, CUfunction *function);
cudaError_t runtime_kernel(const void *host, CUkernel *kernel);
void runtime_kernel_known(CUkernel kernel, const char *name);
cudaError_t runtime_symbol(const void *host, CUdeviceptr *ptr, size_t *bytes);

/* sim_runtime_array.c */
cudaError_t runtime_shape(const struct cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to);

#endif
