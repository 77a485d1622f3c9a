/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/cupti_params.h"

#include "cuda/cuda_abi.h"

#define API(id, symbol, name, domain, does, f, l, p, returns, params, names, ...)                  \
    CUPTI_PARAMS(id, params, names)
#define API_VARIANT API
#include "api/api.def"

/* Defines local variables with the parameters' names, which the rows' expressions use. */
#define LOCAL(name)                                                                                \
    __typeof__(gp_params->name) name = gp_params->name;                                            \
    (void)name;

#define I(kind, label, expression) gp_words[gp_count++] = (uint64_t)(uintptr_t)(expression);
#define O(kind, label, pointer, expression)                                                        \
    gp_words[gp_count++] = gp_after && (pointer) ? (uint64_t)(uintptr_t)(expression) : 0;

#define API(id, symbol, name, domain, does, f, l, p, returns, params, names, ...)                  \
    static unsigned words_##id(const void *gp_data, bool gp_after, uint64_t *gp_words)             \
    {                                                                                              \
        const struct params_##id *gp_params = gp_data;                                             \
        unsigned gp_count = 0;                                                                     \
        MACRO_EACH(LOCAL, names)                                                                   \
        __VA_ARGS__(void) gp_params;                                                               \
        (void)gp_after;                                                                            \
        (void)gp_words;                                                                            \
        return gp_count;                                                                           \
    }
#define API_VARIANT API
#include "api/api.def"
#undef I
#undef O

typedef unsigned (*words_fn)(const void *params, bool after, uint64_t *words);

static const words_fn words_of[API_FUNCTION_COUNT] = {
#define API(id, ...)         words_##id,
#define API_VARIANT(id, ...) words_##id,
#include "api/api.def"
};

unsigned cupti_params_words(enum api_code code, const void *params, bool succeeded,
                            uint64_t words[API_ARGS_MAX])
{
    return words_of[code](params, succeeded, words);
}
