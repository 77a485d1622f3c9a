/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of every LIBRARY row. */
#include "cuda/cuda_abi.h"
#include "hook/resolve.h"
#include "library/communicators.h"
#include "library/cublas_looks.h"
#include "library/dnn_plans.h"
#include "library/library_call.h"

/* What a wrapper returns if no loaded object defines its function. */
enum hook_missing {
#define API_DOMAIN(NAME, name, prefix, soname, layer, bound, pending, missing, cupti, category,    \
                   within)                                                                         \
    HOOK_MISSING_##NAME = (missing), FAMILY_OF_##NAME = API_##within,
#include "api/api.def"
};

/* Which of a row's arguments are known only after the call, and how many there are. */
#define I(kind, label, expression)          0,
#define O(kind, label, pointer, expression) 1,
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    static const uint8_t late_##symbol[] = {__VA_ARGS__ 0};                                        \
    static const struct library_site site_##symbol = {                                             \
        .code = API_CODE_##symbol,                                                                 \
        .role = API_DOES_##does,                                                                   \
        .count = sizeof late_##symbol - 1,                                                         \
        .family = FAMILY_OF_##domain,                                                              \
        .looks = CUBLAS_LOOKS(API_CODE_##symbol, API_DOES_##does),                                 \
        .late = late_##symbol};
#include "api/api.def"
#undef I
#undef O

/* Number of arguments. */
#define I(kind, label, expression)
#define O(kind, label, pointer, expression) +1
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    enum { late_count_##symbol = 0 __VA_ARGS__ };
#include "api/api.def"
#undef I
#undef O

/* Only arguments of the second kind are evaluated after the call. */
#define I(kind, label, expression) (gp_is_over ? 0 : (uint64_t)(uintptr_t)(expression)),
#define O(kind, label, pointer, expression)                                                        \
    (gp_is_over && (gp_result == 0 || (int)gp_result == gp_pending) && (pointer)                   \
         ? (uint64_t)(uintptr_t)(expression)                                                       \
         : 0),
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    EXPORT returns symbol params;                                                                  \
    EXPORT returns symbol params                                                                   \
    {                                                                                              \
        struct library_call gp_call;                                                               \
        returns gp_result = (returns)HOOK_MISSING_##domain;                                        \
        void *gp_real;                                                                             \
        {                                                                                          \
            enum { gp_is_over = 0, gp_pending = 0 };                                               \
            uint64_t gp_words[] = {__VA_ARGS__ 0};                                                 \
            gp_real = library_begin(&gp_call, &site_##symbol, gp_words,                            \
                                    (uintptr_t)__builtin_return_address(0));                       \
        }                                                                                          \
        if (unlikely(!gp_real))                                                                    \
            return gp_result;                                                                      \
        gp_result = ((__typeof__(&symbol))gp_real)names;                                           \
        {                                                                                          \
            enum { gp_is_over = 1, gp_pending = API_PENDING_OF_##domain };                         \
            const uint64_t gp_words[] = {__VA_ARGS__ 0};                                           \
            library_end(&gp_call, &site_##symbol, (int)gp_result,                                  \
                        late_count_##symbol ? gp_words : NULL);                                    \
        }                                                                                          \
        return gp_result;                                                                          \
    }
#include "api/api.def"
