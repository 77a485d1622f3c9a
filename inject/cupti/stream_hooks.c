/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers of the calls by which streams go: a capture does not outlive the stream on which it
 * began. They are not recorded. What goes is noted before the call: after it, the handle may
 * already be another thread's new stream, and an error that the call returns may be an earlier
 * one's.
 */
#include "cuda/capture.h"
#include "cuda/cuda_abi.h"
#include "hook/hook_real.h"

/* Prototypes of what is exported: no header of ours declares CUDA's functions. */
#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api.def"

#define DROPS(symbol, returns, missing, params, names, drop)                                       \
    EXPORT returns symbol params                                                                   \
    {                                                                                              \
        __typeof__(&symbol) real = HOOK_REAL(symbol);                                              \
        drop;                                                                                      \
        return real ? real names : missing;                                                        \
    }
#define RUNTIME_DROPS(symbol, params, names, drop)                                                 \
    DROPS(symbol, cudaError_t, cudaErrorSharedObjectSymbolNotFound, params, names, drop)
#define DRIVER_DROPS(symbol, params, names, drop)                                                  \
    DROPS(symbol, CUresult, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, params, names, drop)

/* clang-format off */
RUNTIME_DROPS(cudaStreamDestroy, (cudaStream_t stream), (stream),
              capture_drop_stream((uintptr_t)stream))
DRIVER_DROPS(cuStreamDestroy, (CUstream hStream), (hStream),
             capture_drop_stream((uintptr_t)hStream))
DRIVER_DROPS(cuStreamDestroy_v2, (CUstream hStream), (hStream),
             capture_drop_stream((uintptr_t)hStream))
/* clang-format on */
