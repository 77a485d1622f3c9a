/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_ENTRY_H
#define SIM_ENTRY_H

/*
 * The one way in: an entry point is its prototype, the expression that does the work, and the
 * arguments that go into the truth log. `pt` is 1 in the per-thread-default-stream variant.
 */

#include "sim_log.h"
#include "sim_params.h"
#include "sim_trace.h"

/* A simulated function need not look at all it is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifdef SIM_STATIC
#define SIM_EXPORT __attribute__((visibility("hidden")))
#else
#define SIM_EXPORT __attribute__((visibility("default")))
#endif
#define SIM_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define A_U(value)                                                                                 \
    {                                                                                              \
#value, 'u', (uint64_t)(value), 0, 0                                                       \
    }
#define A_X(value)                                                                                 \
    {                                                                                              \
#value, 'x', (uint64_t)(value), 0, 0                                                       \
    }
#define A_OUT(key, pointer)                                                                        \
    {                                                                                              \
        key, 'o', (uint64_t)(uintptr_t)(pointer), 0, 0                                             \
    }
#define A_KU(key, number)                                                                          \
    {                                                                                              \
        key, 'u', (uint64_t)(number), 0, 0                                                         \
    }
#define A_KX(key, pointer)                                                                         \
    {                                                                                              \
        key, 'x', (uint64_t)(uintptr_t)(pointer), 0, 0                                             \
    }
#define A_KS(key, string)                                                                          \
    {                                                                                              \
        key, 's', (uint64_t)(uintptr_t)(string), 0, 0                                              \
    }
#define A_3(key, x, y, z)                                                                          \
    {                                                                                              \
        key, '3', (uint64_t)(x), (uint32_t)(y), (uint32_t)(z)                                      \
    }

#ifndef SIM_CUDART_MAJOR
#define SIM_ENTRY_VERSION 0
#elif SIM_CUDART_MAJOR == 12
#define SIM_ENTRY_VERSION 12080
#else
#define SIM_ENTRY_VERSION 13000
#endif

/* `key` finds the names of the parameters: sim_driver_names.h, sim_runtime_names.h. */
#define SIM_ENTRY(type, kind, sym, key, per_thread, params, begin, body, ...)                      \
    SIM_EXPORT type sym params                                                                     \
    {                                                                                              \
        enum { pt = per_thread };                                                                  \
        static struct sim_symbol symbol_ = {                                                       \
            .name = #sym, .version = SIM_ENTRY_VERSION, .layer = kind};                            \
        struct sim_call call_;                                                                     \
        struct sim_api_call api_;                                                                  \
        struct {                                                                                   \
            SIM_STRUCT_OF(SIM_NAMES_##key)                                                         \
        } params_;                                                                                 \
        int injected_ = 0;                                                                         \
        const bool watched_ = SIM_UNLIKELY(sim_mode != SIM_MODE_PLAIN);                            \
        const struct sim_tracer *tracer_ = watched_ ? NULL : sim_tracer_current();                 \
        if (SIM_UNLIKELY(watched_ || tracer_)) {                                                   \
            const struct sim_arg args_[] = {{"", 0, 0, 0, 0}, ##__VA_ARGS__};                      \
            enum { args_count_ = sizeof args_ / sizeof args_[0] - 1 };                             \
            if (watched_) {                                                                        \
                injected_ = begin(&call_, &symbol_, args_ + 1, args_count_);                       \
                tracer_ = sim_tracer_current();                                                    \
            }                                                                                      \
            if (tracer_) {                                                                         \
                params_ = (__typeof__(params_)){SIM_VALUES_OF(SIM_NAMES_##key)};                   \
                sim_api_enter(&api_, tracer_, &symbol_, &params_, args_ + 1, args_count_);         \
            }                                                                                      \
        }                                                                                          \
        (void)pt;                                                                                  \
        const type result_ = SIM_UNLIKELY(injected_) ? SIM_INJECTED(injected_) : (body);           \
        if (SIM_UNLIKELY(tracer_))                                                                 \
            sim_api_leave(&api_, (int)result_);                                                    \
        if (watched_)                                                                              \
            sim_call_end(&call_, (int)result_);                                                    \
        return result_;                                                                            \
    }

#endif
