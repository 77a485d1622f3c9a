/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that calls name: each distinct description once, whatever the number of processes,
 * and per process the way from a CALL record's code to it. Descriptions come from the API records
 * of the stream; the table of this build serves only a process that left none and whose header says
 * that its table was the same.
 */
#ifndef GPUPROF_COLLECTOR_FUNCTION_TABLE_H
#define GPUPROF_COLLECTOR_FUNCTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api/api.h"
#include "base/key_map.h"
#include "record.h"

#define FUNCTION_CODES_MAX  4096  /* codes of one process */
#define FUNCTIONS_MAX       65536 /* of all processes; the last one stands for all beyond */
#define FUNCTION_BYTES_MAX  1024  /* longest description */
#define FUNCTION_DOMAIN_ANY 255   /* the description names a domain or class unknown here */

struct function_arg {
    uint8_t kind;      /* enum arg_kind */
    const char *label; /* a view of the description */
};

/* x, y and z of a dim3 in one word, from two: what neither a device nor one word can is saturated.
 */
static inline uint64_t function_dim3(uint64_t xy, uint64_t z)
{
    uint64_t y = xy >> 32 < UINT16_MAX ? xy >> 32 : UINT16_MAX;
    return (uint32_t)xy | y << 32 | (z < UINT16_MAX ? z : UINT16_MAX) << 48;
}

/*
 * How argument `i` of `count` is to be shown, if its description says `kind`: a dim3 that came as
 * two words is shown as one, at the first of them. False: it was.
 */
static inline bool function_value(const uint64_t *args, unsigned count, unsigned i, unsigned *kind,
                                  uint64_t *value)
{
    *value = args[i];
    if (*kind == ARG_DIM3_XY) {
        *kind = ARG_DIM3;
        *value = function_dim3(args[i], i + 1 < count ? args[i + 1] : 0);
    }
    return *kind != ARG_DIM3_Z;
}

struct function {
    uint32_t index; /* 0, 1, ... in the order of first appearance */
    uint8_t domain; /* enum api_domain or FUNCTION_DOMAIN_ANY */
    uint8_t class;  /* enum api_class or FUNCTION_DOMAIN_ANY */
    uint8_t arg_count;
    uint8_t does;       /* enum api_role, or API_ROLE_COUNT */
    uint8_t memory;     /* enum api_memory: of this build's own table */
    uint16_t bytes;     /* bit i: argument i is a number of bytes */
    uint32_t callback;  /* CUPTI's number of it, 0: not known */
    const char *symbol; /* a view of text */
    const char *name;   /* as people know it: of this build's own table, else the symbol */
    char *text;         /* owned: the description, cut into strings */
    char *description;  /* owned: the description itself */
    struct function_arg args[RECORD_ARGS_MAX];
};

/* How many bytes a call is about, by its arguments. */
static inline uint64_t function_bytes(const struct function *f, const struct record *r)
{
    uint64_t bytes = 0;
    for (unsigned rest = f->bytes & ((1u << r->arg_count) - 1); rest; rest &= rest - 1)
        bytes += r->args[__builtin_ctz(rest)];
    return bytes;
}

/* The place of an argument, by its label; UINT32_MAX: the function has none such. */
static inline uint32_t function_arg_place(const struct function *f, const char *label)
{
    for (uint32_t i = 0; i < f->arg_count; i++)
        if (strcmp(f->args[i].label, label) == 0)
            return i;
    return UINT32_MAX;
}

static inline uint64_t function_arg(const struct function *f, const struct record *r,
                                    const char *label, uint64_t otherwise)
{
    uint32_t i = function_arg_place(f, label);
    return i < r->arg_count ? r->args[i] : otherwise;
}

/* The stream that a call of CUDA works on. False: on none that it names. */
static inline bool function_stream(const struct function *f, const struct record *r,
                                   uint64_t *stream)
{
    bool found = false;
    for (unsigned i = 0; i < r->arg_count && i < f->arg_count; i++)
        if (f->args[i].kind == ARG_STREAM) {
            *stream = r->args[i];
            found = true;
        }
    return found;
}

/* The functions of all codes of a process. */
struct code_list {
    const struct function **functions; /* owned */
    uint32_t count;
};

/* Is it the number of a device that nobody knew? (Of a hint, all bits set are the host.) */
static inline bool function_lacks_device(const struct function *f, unsigned kind, uint64_t value)
{
    return kind == ARG_DEVICE && (uint32_t)value == UINT32_MAX && f->class == API_ALLOC;
}

struct function_table {
    struct function **functions; /* owned, by index */
    uint32_t count;
    struct number_set numbers;
    struct code_list *lists; /* owned: what processes have in common */
    uint32_t list_count;
    struct number_set list_numbers;
    const struct function **builtin; /* owned, by code: of this build's own table; NULL: not yet */
};

/* Per process: code -> function. */
struct function_codes {
    const struct function **functions; /* NULL where the code is unknown */
    uint32_t count;
    bool shared; /* the table's; else owned */
};

void function_table_release(struct function_table *t);

/*
 * Takes the description "symbol|domain|class|kind:label,..." and makes `code` mean it. 0,
 * GPUPROF_DAMAGED if it cannot be read, GPUPROF_LIMIT or GPUPROF_NO_MEMORY.
 */
int function_describe(struct function_table *t, struct function_codes *codes, unsigned code,
                      const uint8_t *text, size_t length);

/* CUPTI's number of the function of `code`, which has been described, and in other processes, too:
 * it never gives a number to another one. */
void function_set_callback(struct function_table *t, const struct function_codes *codes,
                           unsigned code, uint64_t callback);

/* What of `codes` nobody has described, from the table of this build. 0 or GPUPROF_NO_MEMORY. */
int function_builtin(struct function_table *t, struct function_codes *codes);

/*
 * Processes that were recorded by the same gpuprof have the same codes: those of the second one and
 * all others go, in favour of the first one's, which the table keeps. 0 or GPUPROF_NO_MEMORY.
 */
int function_codes_share(struct function_table *t, struct function_codes *codes);

void function_codes_release(struct function_codes *codes);

/* Of a code that nobody described. */
const struct function *function_made_up(struct function_table *t, struct function_codes *codes,
                                        unsigned code);

/*
 * The function of `code`, made up as "function_<code>" if nobody described it, and as
 * "other_functions" if FUNCTIONS_MAX are there. NULL: no memory.
 */
static inline const struct function *function_of(struct function_table *t,
                                                 struct function_codes *codes, unsigned code)
{
    const struct function *f = code < codes->count ? codes->functions[code] : NULL;
    return f ? f : function_made_up(t, codes, code);
}

/*
 * The functions of the system that a process's os_call records are of, by their codes. They are
 * known once the process is loaded. Memory: what the records that name them take, at most
 * OS_FUNCTIONS_MAX names of OS_NAME_BYTES_MAX.
 */
#define OS_FUNCTIONS_MAX  4096 /* codes of one process; larger ones have no name */
#define OS_NAME_BYTES_MAX 127

struct os_function {
    uint64_t class; /* enum os_class */
    char name[];
};

struct os_functions {
    struct os_function **list; /* owned, and so are they; NULL: nobody named it */
    uint32_t count;
};

void os_functions_release(struct os_functions *f);

/* Takes an OS_FUNCTION record. The first one of a code holds. 0 or GPUPROF_NO_MEMORY. */
int os_functions_take(struct os_functions *f, const struct record *r);

/* The function of an OS_CALL record; NULL: nobody named it. */
static inline const struct os_function *os_function_of(const struct os_functions *f,
                                                       const struct record *r)
{
    return r->code < f->count ? f->list[r->code] : NULL;
}

/* Its name, or "os_function_<code>" in `text`. */
#define OS_TEXT_BYTES 32
const char *os_function_name(const struct os_functions *f, const struct record *r,
                             char text[static OS_TEXT_BYTES]);

/* "lock", "file" ...; "other" of what this build does not know. */
const char *os_class_text(uint64_t class);

#endif
