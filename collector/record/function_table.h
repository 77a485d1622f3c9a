/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of calls: each distinct description once for all processes, and per process a map
 * from the code of a CALL record to it. Descriptions come from the API records of the stream. The
 * table of this build is used only for a process without them, if its header says that its table
 * was the same.
 */
#ifndef GPUPROF_COLLECTOR_FUNCTION_TABLE_H
#define GPUPROF_COLLECTOR_FUNCTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/key_map.h"
#include "record.h"

#define FUNCTION_CODES_MAX  4096  /* codes of one process */
#define FUNCTIONS_MAX       65535 /* of all processes; the last one represents all further ones */
#define FUNCTION_BYTES_MAX  1024  /* longest description */
#define FUNCTION_DOMAIN_ANY 255   /* the description names a domain or class unknown here */

struct function_arg {
    uint8_t kind;      /* enum arg_kind */
    const char *label; /* a view of the description */
};

/* Packs x, y and z of a dim3 from two words into one; saturates values that do not fit. */
static inline uint64_t function_dim3(uint64_t xy, uint64_t z)
{
    uint64_t y = xy >> 32 < UINT16_MAX ? xy >> 32 : UINT16_MAX;
    return (uint32_t)xy | y << 32 | (z < UINT16_MAX ? z : UINT16_MAX) << 48;
}

struct function {
    uint32_t index; /* 0, 1, ... in the order of first use */
    uint8_t domain; /* enum api_domain or FUNCTION_DOMAIN_ANY */
    uint8_t class;  /* enum api_class or FUNCTION_DOMAIN_ANY */
    uint8_t arg_count;
    uint8_t does;            /* enum api_role, or API_ROLE_COUNT */
    uint8_t memory;          /* enum api_memory: of this build's own table */
    uint16_t bytes;          /* bit i: argument i is a number of bytes */
    uint32_t callback;       /* CUPTI's number; 0: not known */
    const char *symbol;      /* a view of text, as are the labels */
    const char *name;        /* familiar name, from this build's table, else the symbol */
    const char *description; /* likewise */
    struct function_arg args[RECORD_ARGS_MAX];
    char text[]; /* the description, and once more, cut into strings */
};

/* Number of bytes that a call handles, by its arguments. */
static inline uint64_t function_bytes(const struct function *f, const struct record *r)
{
    uint64_t bytes = 0;
    for (unsigned rest = f->bytes & ((1u << r->arg_count) - 1); rest; rest &= rest - 1)
        bytes += r->args[__builtin_ctz(rest)];
    return bytes;
}

/* Index of the argument with that label; UINT32_MAX: none. */
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

/* The first argument of that kind (enum arg_kind). */
static inline uint64_t function_arg_of(const struct function *f, const struct record *r,
                                       unsigned kind, uint64_t otherwise)
{
    for (unsigned i = 0; i < r->arg_count && i < f->arg_count; i++)
        if (f->args[i].kind == kind)
            return r->args[i];
    return otherwise;
}

/* The stream of a CUDA call. False: it names none. */
static inline bool function_stream(const struct function *f, const struct record *r,
                                   uint64_t *stream)
{
    *stream = function_arg_of(f, r, ARG_STREAM, UINT64_MAX);
    return *stream != UINT64_MAX;
}

/* How to show an argument. */
struct shown_arg {
    unsigned kind; /* enum arg_kind */
    uint64_t value;
    const char *label;
    char number[16]; /* the label of one that is not described */
};

/* Sets *a for argument `i` of `count` in a call of `f` (NULL: not known): a dim3 in two words
 * becomes one, at the first of them. False: this is the second. */
static inline bool function_show(const struct function *f, const uint64_t *args, unsigned count,
                                 unsigned i, struct shown_arg *a)
{
    bool is_known = f && i < f->arg_count;
    a->kind = is_known ? f->args[i].kind : (unsigned)ARG_HANDLE;
    a->value = args[i];
    a->label = is_known ? f->args[i].label : a->number;
    if (!is_known)
        snprintf(a->number, sizeof a->number, "arg%u", i);
    if (a->kind == ARG_DIM3_XY) {
        a->kind = ARG_DIM3;
        a->value = function_dim3(args[i], i + 1 < count ? args[i + 1] : 0);
    }
    return a->kind != ARG_DIM3_Z;
}

/* Whether the value is an unknown device. (In a hint, all bits set mean the host.) */
static inline bool function_lacks_device(const struct function *f, unsigned kind, uint64_t value)
{
    return kind == ARG_DEVICE && (uint32_t)value == UINT32_MAX && f->class == API_ALLOC;
}

struct function_table {
    struct function **functions; /* owned, by index */
    uint32_t count;
    struct number_set numbers;
};

/* Per process: code -> function. Memory: 4 bytes for each code up to the largest one. */
struct function_codes {
    uint16_t *numbers; /* owned: index + 1 of a function; 0: unknown */
    uint32_t count;
    bool is_own; /* the process had this build's table, which describes the other codes */
};

void function_table_release(struct function_table *t);

/*
 * Takes the description "symbol|domain|class|kind:label,..." of `code`. Returns 0, GPUPROF_DAMAGED
 * if it is invalid, or GPUPROF_LIMIT.
 */
int function_describe(struct function_table *t, struct function_codes *codes, unsigned code,
                      const uint8_t *text, size_t length);

/* Sets CUPTI's number of a described function, which is the same in all processes. */
void function_set_callback(struct function_table *t, const struct function_codes *codes,
                           unsigned code, uint64_t callback);

void function_codes_release(struct function_codes *codes);

/* The function for a code without a description. */
const struct function *function_made_up(struct function_table *t, struct function_codes *codes,
                                        unsigned code);

/*
 * The function of `code`. Without a description it is "function_<code>", or "other_functions"
 * beyond FUNCTIONS_MAX.
 */
static inline const struct function *function_of(struct function_table *t,
                                                 struct function_codes *codes, unsigned code)
{
    uint32_t number = code < codes->count ? codes->numbers[code] : 0;
    return number ? t->functions[number - 1] : function_made_up(t, codes, code);
}

/*
 * System functions of a process's OS_CALL records, by code; known once the process is loaded.
 * Memory: that of the records that name them, at most OS_FUNCTIONS_MAX names of OS_NAME_BYTES_MAX.
 */
#define OS_FUNCTIONS_MAX  4096 /* codes of one process; larger ones have no name */
#define OS_NAME_BYTES_MAX 127

struct os_function {
    uint64_t class; /* enum os_class */
    char name[];
};

struct os_functions {
    struct os_function **list; /* owned, with the elements; NULL: no name */
    uint32_t count;
};

void os_functions_release(struct os_functions *f);

/* Takes an OS_FUNCTION record; the first of a code counts. */
void os_functions_take(struct os_functions *f, const struct record *r);

/* The function of an OS_CALL record; NULL: no name. */
static inline const struct os_function *os_function_of(const struct os_functions *f,
                                                       const struct record *r)
{
    return r->code < f->count ? f->list[r->code] : NULL;
}

/* Its name, or "os_function_<code>" in `text`. */
#define OS_TEXT_BYTES 32
const char *os_function_name(const struct os_functions *f, const struct record *r,
                             char text[static OS_TEXT_BYTES]);

/* "lock", "file" ...; "other" for a class unknown to this build. */
const char *os_class_text(uint64_t class);

#endif
