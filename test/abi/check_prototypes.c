/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the prototype of every row of formats/api/api.def with the real headers; it is compiled,
 * never run. The test writes "declared.h" for each version and configuration of the headers:
 *   DECLARED_<id>  1 if they declare the row's symbol, with that row's ABI; else 0
 *   TYPED_<id>     1 if they have a PFN type for the row's PROC column; it is then PFN_<id>
 * It also undefines the macros by which the headers rename functions.
 */
#include <cuda.h>

#include <cuda_runtime_api.h>

#include <cudaTypedefs.h>
#if __has_include(<cudaProfilerTypedefs.h>)
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cuda_profiler_api.h>
#endif

#include "declared.h"

#define SAME(id, returns, params, other, what)                                                     \
    _Static_assert(__builtin_types_compatible_p(returns(*) params, other),                         \
                   #id " differs from its " what);
#define DECLARED_0(id, symbol, returns, params)
#define DECLARED_1(id, symbol, returns, params)                                                    \
    SAME(id, returns, params, __typeof__(&symbol), "declaration")
#define TYPED_0(id, returns, params)
#define TYPED_1(id, returns, params) SAME(id, returns, params, PFN_##id, "PFN type")
#define JOIN_(a, b)                  a##b
#define JOIN(a, b)                   JOIN_(a, b)

#define API(id, symbol, name, domain, does, first, last, proc, returns, params, names, ...)        \
    JOIN(DECLARED_, DECLARED_##id)                                                                 \
    (id, symbol, returns, params) JOIN(TYPED_, TYPED_##id)(id, returns, params)
#define API_VARIANT API
#define HOOK(symbol, domain, proc, returns, params)                                                \
    JOIN(DECLARED_, DECLARED_##symbol)                                                             \
    (symbol, symbol, returns, params) JOIN(TYPED_, TYPED_##symbol)(symbol, returns, params)
#define DISPATCH(...)
#define API_TYPE(...) /* their headers are here */
#define DIM3(name)    dim3 name
#include "api/api_driver.def"
#include "api/api_runtime.def"
