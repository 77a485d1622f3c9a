/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel names: each distinct name once for all processes, demangled, and per process a map from
 * handle to its current name. NAME records are added in time order, so the latest name of a handle
 * holds for the calls that follow. Texts of ranges are stored the same way.
 */
#ifndef GPUPROF_COLLECTOR_KERNEL_NAMES_H
#define GPUPROF_COLLECTOR_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/key_map.h"

#define KERNEL_NAMES_MAX      (1u << 20)   /* distinct names; beyond, the handle is shown */
#define KERNEL_NAME_TEXT_MAX  (256u << 20) /* bytes of all names */
#define KERNEL_HANDLES_MAX    (1u << 24)   /* of all processes */
#define KERNEL_NAME_BYTES_MAX 16384        /* of a demangled name; longer ones stay mangled */

/* A hostile file can hold millions of names and handles in a few bytes each. So beyond a free
 * amount, the size of the files limits them: real names take more bytes. */
#define KERNEL_NAME_TEXT_FREE     (16u << 20)
#define KERNEL_NAME_TEXT_PER_BYTE 64
#define KERNEL_HANDLES_FREE       (1u << 16)
#define KERNEL_HANDLE_BYTES       4 /* of a file, for each further handle */

#define STRING_TABLE_BYTES (16u << 20) /* of all texts of a table in an output: its text_max */

struct kernel_name {
    uint32_t number; /* from 1 on, in order of appearance */
    uint32_t raw_bytes;
    uint32_t json_bytes;
    const char *shown; /* demangled if possible; a view of raw or own memory */
    char *json;        /* owned: `shown` as a JSON string, quotes included */
    char raw[];        /* as recorded, terminated */
};

struct known_name {
    struct kernel_name *name; /* owned */
    const char *raw;          /* a view of it */
    uint32_t bytes, hash;     /* of raw */
};

struct kernel_names {
    struct known_name *list; /* owned */
    uint32_t count;
    struct number_set set;
    uint64_t text_bytes;
    uint64_t text_max;          /* 0: KERNEL_NAME_TEXT_MAX */
    uint32_t handle_count;      /* of all processes' maps */
    uint32_t handles_max;       /* 0: KERNEL_HANDLES_MAX */
    uint64_t dropped;           /* names and handles dropped because of the limits */
    unsigned demangle_failures; /* see demangle() */
    bool plain;                 /* texts, not names: no demangling */
};

struct kernel_handles {
    struct key_map names; /* handle -> address of its struct kernel_name */
};

/* Sets the limits according to the size of the files. */
void kernel_names_limit(struct kernel_names *names, uint64_t bytes);
void kernel_names_release(struct kernel_names *names);
void kernel_handles_release(struct kernel_names *names, struct kernel_handles *handles);

/* From now on `handle` means the name of `length` bytes at `text`; an empty one, or one without
 * room, makes it unknown. */
void kernel_name_set(struct kernel_names *names, struct kernel_handles *handles, uint64_t handle,
                     const void *text, size_t length);

/* Finds or adds a name's only copy; NULL at a limit. */
const struct kernel_name *kernel_name_intern(struct kernel_names *names, const void *text,
                                             size_t length);

/* Returns the current name, or NULL. */
const struct kernel_name *kernel_name_of(const struct kernel_handles *handles, uint64_t handle);

#define DEMANGLE_FAILURES_MAX 8

/*
 * Returns the demangled C++ or Rust name in new memory; NULL if it is not mangled, would exceed
 * `bytes_max`, or takes too long. *failures counts the last two cases for names that can grow
 * without bound; from DEMANGLE_FAILURES_MAX on such names stay mangled, since the input is
 * hostile.
 */
char *demangle(const char *mangled, size_t bytes_max, unsigned *failures);

/* Removes template arguments, parameters, the result type and unnamed namespaces from a name, in
 * place: "void n::f<int>(float*)" becomes "n::f". Takes linear time for any name. */
void kernel_name_strip(char *name);

#endif
