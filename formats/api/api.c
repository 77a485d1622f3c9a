/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include <string.h>

#include "crc32c.h"

/* First the number of words in each row's `args`, then the table itself. */
#define I(kind, label, expression)          +1
#define O(kind, label, pointer, expression) +1
#define API(id, symbol, name, domain, does, first, last, proc, returns, params, names, ...)        \
    enum { ARG_COUNT_##id = 0 __VA_ARGS__ };                                                       \
    _Static_assert(ARG_COUNT_##id <= API_ARGS_MAX, #id ": more than API_ARGS_MAX arguments");
#define API_VARIANT API
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    enum { ARG_COUNT_##symbol = 0 __VA_ARGS__ };                                                   \
    _Static_assert(ARG_COUNT_##symbol <= LIBRARY_ARGS_MAX, #symbol ": too many arguments");
#include "api/api.def"
#undef I
#undef O

/* clang-format off */
#define FLAGS_OF(asked, version, flags) (flags)
#define I(kind, label, expression) {ARG_##kind, #label},
#define O(kind, label, pointer, expression) {ARG_##kind, #label},
#define API(id, symbol, name, domain, does, first, last, proc, returns, params, names, ...) \
    {#symbol, #name, API_##domain, API_DOES_##does, API_CLASS_OF_##does, API_COST_OF_##does, \
     API_CAPTURE_OF_##does, API_MEMORY_OF_##does, FLAGS_OF proc == API_PER_THREAD, ARG_COUNT_##id, \
     {__VA_ARGS__}},
#define API_VARIANT API
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...) \
    {#symbol, #name, API_##domain, API_DOES_##does, API_CLASS_OF_##does, API_COST_OF_##does, \
     API_CAPTURE_NONE, API_MEMORY_NONE, false, ARG_COUNT_##symbol, {__VA_ARGS__}},
const struct api_function api_functions[API_FUNCTION_COUNT] = {
#include "api/api.def"
};
#undef I
#undef O
/* clang-format on */

const struct api_library api_libraries[API_DOMAIN_COUNT] = {
#define API_DOMAIN(NAME, name, prefix, soname, layer, bound, pending, missing, cupti, category,    \
                   within)                                                                         \
    {name, prefix, soname, API_##layer, API_##bound, cupti, category, API_##within},
#include "api/api.def"
};

_Static_assert((int)COST_LAUNCH == (int)API_LAUNCH && (int)COST_LIBRARY == (int)API_LIBRARY &&
                   (int)COST_QUERY == (int)API_CLASS_COUNT,
               "the first rows of costs.def are the classes of calls");
_Static_assert(API_FUNCTION_COUNT <= UINT16_MAX, "a CALL record's code has 16 bits");
_Static_assert(API_ARGS_MAX <= UINT8_MAX, "a record's argument count has 8 bits");
_Static_assert(API_DOMAIN_COUNT <= UINT8_MAX && API_ROLE_COUNT <= UINT8_MAX &&
                   ARG_CALL_KIND_COUNT <= UINT8_MAX,
               "struct api_function keeps them in 8 bits");

static const char *const class_names[API_CLASS_COUNT] = {
    [API_LAUNCH] = "launch",
    [API_ALLOC] = "alloc",
    [API_COPY] = "copy",
    [API_SYNC] = "sync",
    [API_GRAPH_LAUNCH] = "graph_launch",
    [API_GRAPH] = "graph",
    [API_LIBRARY] = "library",
};

static uint32_t crc_string(uint32_t crc, const char *string)
{
    /* Includes the terminator, so that "ab" "c" and "a" "bc" differ. */
    return crc32c(crc, string, strlen(string) + 1);
}

uint32_t api_table_crc(void)
{
    uint32_t crc = 0;

    for (size_t i = 0; i < API_FUNCTION_COUNT; i++) {
        const struct api_function *f = &api_functions[i];
        const uint8_t head[] = {f->domain, f->class, f->arg_count};

        crc = crc_string(crc, f->symbol);
        crc = crc32c(crc, head, sizeof(head));
        for (size_t j = 0; j < f->arg_count; j++) {
            crc = crc32c(crc, &f->args[j].kind, 1);
            crc = crc_string(crc, f->args[j].label);
        }
    }
    return crc;
}

const char *api_domain_name(unsigned domain)
{
    return domain < API_DOMAIN_COUNT ? api_libraries[domain].name : "?";
}

const char *api_class_name(unsigned class)
{
    return class < API_CLASS_COUNT ? class_names[class] : "?";
}

enum api_domain api_domain_of(const char *symbol)
{
    enum api_domain best = API_DOMAIN_COUNT;
    size_t best_length = 0;
    symbol += symbol[0] == '_' && symbol[1] == '_' ? 2 : 0;
    for (unsigned i = 0; i < API_DOMAIN_COUNT; i++) {
        size_t length = strlen(api_libraries[i].prefix);
        if (length > best_length && strncmp(symbol, api_libraries[i].prefix, length) == 0) {
            best = (enum api_domain)i;
            best_length = length;
        }
    }
    return best;
}

bool api_calls_are_plain(const struct block_encoder *e)
{
    bool are_plain = !(e->any_word0 >> 8 & RECORD_CAPTURED);
    for (uint32_t i = 0; i < e->shape_count && are_plain; i++) {
        uint32_t type = e->shape_keys[i] >> 24, code = e->shape_keys[i] & UINT16_MAX;
        are_plain = type != RECORD_CALL ||
                    (code < API_FUNCTION_COUNT && api_class_is_plain(api_functions[code].class));
    }
    return are_plain;
}

bool api_has_failed(unsigned domain, int result)
{
    static const int pending[API_DOMAIN_COUNT] = {
#define API_DOMAIN(NAME, ...) API_PENDING_OF_##NAME,
#include "api/api.def"
    };
    return result != 0 && (domain >= API_DOMAIN_COUNT || result != pending[domain]);
}
