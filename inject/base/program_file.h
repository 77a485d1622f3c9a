/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the file of the program. */
#ifndef GPUPROF_INJECT_PROGRAM_FILE_H
#define GPUPROF_INJECT_PROGRAM_FILE_H

#include <stddef.h>

/*
 * Writes the program's path, not terminated, and returns its length, or 0 if it is not found. If
 * the loader was started with the program as its argument, this is the program and not the loader.
 * Does not keep errno.
 */
size_t program_file(char *text, size_t bytes);

#endif
