/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the program itself. */
#ifndef GPUPROF_INJECT_PROGRAM_FILE_H
#define GPUPROF_INJECT_PROGRAM_FILE_H

#include <stddef.h>

/*
 * Its path, not terminated; returns the length, 0 if it is not to be found. Not what the kernel
 * has, if that is the loader, which was given the program to run. errno is not kept.
 */
size_t program_file(char *text, size_t bytes);

#endif
