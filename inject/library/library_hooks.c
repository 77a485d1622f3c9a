/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of every LIBRARY row. */
#include "cuda/cuda_abi.h"
#include "hook/hook_real.h"
#include "library/library_call.h"

/* What a wrapper returns where nothing that is loaded defines its function. */
enum hook_missing {
#define API_DOMAIN(NAME, name, prefix, soname, layer, bound, pending, missing, cupti, category,    \
                   within)                                                                         \
    HOOK_MISSING_##NAME = (missing), FAMILY_OF_##NAME = API_##within,
#include "api/api.def"
};

/* Which of a row's arguments are known only when the call has returned, and how many it has. */
#define I(kind, label, expression)          0,
#define O(kind, label, pointer, expression) 1,
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    static const uint8_t late_##symbol[] = {__VA_ARGS__ 0};                                        \
    static const struct library_site site_##symbol = {.code = API_CODE_##symbol,                   \
                                                      .count = sizeof late_##symbol - 1,           \
                                                      .family = FAMILY_OF_##domain,                \
                                                      .late = late_##symbol};
#include "api/api.def"
#undef I
#undef O

#define I(kind, label, expression) (uint64_t)(uintptr_t)(expression),
#define O(kind, label, pointer, expression)                                                        \
    (gp_after && (pointer) ? (uint64_t)(uintptr_t)(expression) : 0),
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    EXPORT returns symbol params;                                                                  \
    EXPORT returns symbol params                                                                   \
    {                                                                                              \
        const uintptr_t gp_caller = (uintptr_t)__builtin_return_address(0);                        \
        __typeof__(&symbol) gp_real =                                                              \
            (__typeof__(&symbol))hook_real(API_CODE_##symbol, API_##domain, #symbol, gp_caller);   \
        struct library_call gp_call;                                                               \
        if (unlikely(!gp_real))                                                                    \
            return (returns)HOOK_MISSING_##domain;                                                 \
        {                                                                                          \
            enum { gp_after = 0 };                                                                 \
            const uint64_t gp_words[] = {__VA_ARGS__ 0};                                           \
            library_begin(&gp_call, &site_##symbol, gp_words, gp_caller);                          \
        }                                                                                          \
        returns gp_result = gp_real names;                                                         \
        {                                                                                          \
            const int gp_after = (int)gp_result == 0;                                              \
            const uint64_t gp_words[] = {__VA_ARGS__ 0};                                           \
            (void)gp_after;                                                                        \
            library_end(&gp_call, &site_##symbol, (int)gp_result, gp_words);                       \
        }                                                                                          \
        return gp_result;                                                                          \
    }
#include "api/api.def"
