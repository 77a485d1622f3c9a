/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include <string.h>

#include "crc32c.h"

/* First the number of words in each row's `args`, then the table itself. */
#define I(kind, label, expression)          +1
#define O(kind, label, pointer, expression) +1
#define API(id, symbol, domain, class, first, last, proc, returns, params, names, args)            \
    enum { ARG_COUNT_##id = 0 args };                                                              \
    _Static_assert(ARG_COUNT_##id <= API_ARGS_MAX, #id ": more than API_ARGS_MAX arguments");
#define API_VARIANT API
#include "api/api.def"
#undef I
#undef O

/* clang-format off */
#define I(kind, label, expression) {API_##kind, #label},
#define O(kind, label, pointer, expression) {API_##kind, #label},
#define API(id, symbol, domain, class, first, last, proc, returns, params, names, args) \
    {#symbol, API_##domain, API_##class, ARG_COUNT_##id, {args}},
#define API_VARIANT API
const struct api_function api_functions[API_FUNCTION_COUNT] = {
#include "api/api.def"
};
#undef I
#undef O
/* clang-format on */

_Static_assert(API_FUNCTION_COUNT <= UINT16_MAX, "a CALL record's code has 16 bits");
_Static_assert(API_ARGS_MAX <= UINT8_MAX, "a record's argument count has 8 bits");
_Static_assert(API_DOMAIN_COUNT <= UINT8_MAX && API_CLASS_COUNT <= UINT8_MAX &&
                   API_ARG_KIND_COUNT <= UINT8_MAX,
               "struct api_function keeps them in 8 bits");

static const char *const domain_names[API_DOMAIN_COUNT] = {
    [API_RUNTIME] = "runtime",
    [API_DRIVER] = "driver",
};

static const char *const class_names[API_CLASS_COUNT] = {
    [API_LAUNCH] = "launch",
    [API_ALLOC] = "alloc",
    [API_COPY] = "copy",
    [API_SYNC] = "sync",
    [API_GRAPH_LAUNCH] = "graph_launch",
    [API_GRAPH] = "graph",
};

static const char *const arg_kind_names[API_ARG_KIND_COUNT] = {
    [API_ADDRESS] = "address", [API_HANDLE] = "handle", [API_STREAM] = "stream",
    [API_EVENT] = "event",     [API_KERNEL] = "kernel", [API_BYTES] = "bytes",
    [API_COUNT] = "count",     [API_KIND] = "kind",     [API_DIM3] = "dim3",
    [API_DEVICE] = "device",   [API_FLAGS] = "flags",   [API_DIM3_XY] = "dim3_xy",
    [API_DIM3_Z] = "dim3_z",
};

static uint32_t crc_string(uint32_t crc, const char *string)
{
    /* With its terminator, so that "ab" "c" and "a" "bc" differ. */
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
    return domain < API_DOMAIN_COUNT ? domain_names[domain] : "?";
}

const char *api_class_name(unsigned class)
{
    return class < API_CLASS_COUNT ? class_names[class] : "?";
}

const char *api_arg_kind_name(unsigned arg_kind)
{
    return arg_kind < API_ARG_KIND_COUNT ? arg_kind_names[arg_kind] : "?";
}
