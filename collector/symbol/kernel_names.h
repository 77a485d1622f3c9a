/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernels: each distinct name once for all processes, demangled; and per process the map
 * from handle to the name that holds now. NAME records are added in time order, so the latest one
 * of a handle is the right one for the calls that follow. The texts of ranges are kept in the same
 * way.
 */
#ifndef GPUPROF_COLLECTOR_KERNEL_NAMES_H
#define GPUPROF_COLLECTOR_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/key_map.h"

#define KERNEL_NAMES_MAX      (1u << 20)   /* distinct names; beyond: the handle is shown */
#define KERNEL_NAME_TEXT_MAX  (256u << 20) /* bytes of all of them */
#define KERNEL_HANDLES_MAX    (1u << 24)   /* of all processes */
#define KERNEL_NAME_BYTES_MAX 16384        /* of one, demangled; longer ones stay mangled */

/*
 * A file made for it can hold millions of names and handles in a few bytes each. So much is for
 * free, and more for the bytes of the files: real ones take more.
 */
#define KERNEL_NAME_TEXT_FREE     (16u << 20)
#define KERNEL_NAME_TEXT_PER_BYTE 64
#define KERNEL_HANDLES_FREE       (1u << 16)
#define KERNEL_HANDLE_BYTES       4 /* of a file, that bear out one more handle */

struct kernel_name {
    uint32_t raw_bytes;
    uint32_t json_bytes;
    const char *shown; /* demangled where that was possible; a view of raw or own memory */
    char *json;        /* owned: `shown` as a JSON string, quotes included */
    char raw[];        /* as recorded, terminated */
};

struct known_name {
    struct kernel_name *name; /* owned */
    const char *raw;          /* a view of it */
    uint32_t bytes, hash;     /* of that */
};

struct kernel_names {
    struct known_name *list; /* owned */
    uint32_t count;
    struct number_set set;
    uint64_t text_bytes;
    uint64_t text_max;          /* 0: KERNEL_NAME_TEXT_MAX */
    uint32_t handle_count;      /* of all processes' maps together */
    uint32_t handles_max;       /* 0: KERNEL_HANDLES_MAX */
    uint64_t dropped;           /* names and handles not kept because of the limits above */
    unsigned demangle_failures; /* see demangle.h */
    bool plain;                 /* not names but texts: nothing is demangled */
};

struct kernel_handles {
    struct key_map names; /* handle -> where its struct kernel_name is */
};

/* Bounds what is kept by the size of the files that it comes from. */
void kernel_names_limit(struct kernel_names *names, uint64_t bytes);
void kernel_names_release(struct kernel_names *names);
void kernel_handles_release(struct kernel_names *names, struct kernel_handles *handles);

/* From now on `handle` means the name of `length` bytes at `text`; nothing that is known if that is
 * empty or finds no room. 0 or GPUPROF_NO_MEMORY. */
int kernel_name_set(struct kernel_names *names, struct kernel_handles *handles, uint64_t handle,
                    const uint8_t *text, size_t length);

/* The one copy of a name; *found is NULL where a limit is reached. 0 or GPUPROF_NO_MEMORY. */
int kernel_name_intern(struct kernel_names *names, const uint8_t *text, size_t length,
                       const struct kernel_name **found);

/* The same of a name that is known to be shown so. */
int kernel_name_intern_shown(struct kernel_names *names, const char *text, const char *shown,
                             const struct kernel_name **found);

/* NULL if nobody named it. */
const struct kernel_name *kernel_name_of(const struct kernel_handles *handles, uint64_t handle);

#endif
