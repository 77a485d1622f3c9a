/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the system that a process's os_call records are of, by their codes. They are
 * known once the process is loaded. Memory: what the records that name them take, at most
 * OS_FUNCTIONS_MAX names of OS_NAME_BYTES_MAX.
 */
#ifndef GPUPROF_COLLECTOR_OS_FUNCTIONS_H
#define GPUPROF_COLLECTOR_OS_FUNCTIONS_H

#include "record.h"

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
