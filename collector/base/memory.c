/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void memory_missing(void)
{
    static const char line[] = "gpuprof: out of memory; select fewer files, or a shorter time\n";
    ssize_t put = write(STDERR_FILENO, line, sizeof line - 1);
    (void)put;
    _exit(MEMORY_EXIT); /* without exit handlers: this may be a forked worker */
}

void *memory_new(size_t count, size_t item_bytes)
{
    return count ? memory_from(calloc(count, item_bytes)) : NULL;
}

void *memory_resize(void *items, size_t count, size_t item_bytes)
{
    return memory_from(reallocarray(items, count ? count : 1, item_bytes));
}

char *memory_text(const char *text)
{
    return text ? memory_from(strdup(text)) : NULL;
}
