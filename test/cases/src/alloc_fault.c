/* SPDX-License-Identifier: Apache-2.0 */
/* A library to preload, under which the allocation whose number ALLOC_FAULT says fails. ALLOC_COUNT
 * names a file for how many there were. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static _Atomic unsigned long asked;

static int fails(void)
{
    const char *which = getenv("ALLOC_FAULT");
    if (!which || atomic_fetch_add(&asked, 1) + 1 != strtoul(which, NULL, 10))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(memory, bytes);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("ALLOC_COUNT");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (out) {
        fprintf(out, "%lu", asked);
        fclose(out);
    }
}
