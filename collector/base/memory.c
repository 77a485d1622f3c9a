/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct noted {
    const char *path; /* NULL: free */
    pid_t pid;
} noted[MEMORY_FILES];

void memory_note_file(const char *path)
{
    for (unsigned i = 0; i < MEMORY_FILES; i++)
        if (!noted[i].path || noted[i].pid != getpid()) {
            noted[i] = (struct noted){path, getpid()};
            return;
        }
}

void memory_forget_file(const char *path)
{
    for (unsigned i = 0; i < MEMORY_FILES; i++)
        if (noted[i].path == path)
            noted[i].path = NULL;
}

void memory_end(int code)
{
    for (unsigned i = 0; i < MEMORY_FILES; i++)
        if (noted[i].path && noted[i].pid == getpid())
            unlink(noted[i].path);
    _exit(code);
}

void memory_missing(void)
{
    static const char line[] = "gpuprof: out of memory; select fewer files, or a shorter time\n";
    ssize_t put = write(STDERR_FILENO, line, sizeof line - 1);
    (void)put;
    memory_end(MEMORY_EXIT);
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
