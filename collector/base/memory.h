/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that never fails: without memory, the program prints one line and ends with exit code
 * MEMORY_EXIT. An incomplete output file is never given its name, and a parent of worker processes
 * reports the line. Callers bound what a file may ask for before they ask here.
 */
#ifndef GPUPROF_COLLECTOR_MEMORY_H
#define GPUPROF_COLLECTOR_MEMORY_H

#include <stddef.h>

#define MEMORY_EXIT 2 /* for every verb; 1 is a regression for diff */

/* Returns zeroed memory that the caller frees; NULL only for 0 items. */
void *memory_new(size_t count, size_t item_bytes);

/* Like reallocarray; `items` is not valid afterwards. */
void *memory_resize(void *items, size_t count, size_t item_bytes);

/* Returns a copy of the text, or NULL for NULL; the caller frees it. */
char *memory_text(const char *text);

/* Prints the line and ends the program. */
_Noreturn void memory_missing(void);

/* Ends this process, perhaps a forked worker, without exit handlers. Removes the files whose paths,
 * views, this process has noted: up to MEMORY_FILES, until they are forgotten. */
#define MEMORY_FILES 4
_Noreturn void memory_end(int code);
void memory_note_file(const char *path);
void memory_forget_file(const char *path);

/* For memory from other functions: returns `memory`, which is not NULL. */
static inline void *memory_from(void *memory)
{
    if (!memory)
        memory_missing();
    return memory;
}

#endif
