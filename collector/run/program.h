/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that `gpuprof run` is to start: where it is, and whether a preloaded library can work
 * in it at all.
 */
#ifndef GPUPROF_COLLECTOR_PROGRAM_H
#define GPUPROF_COLLECTOR_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

struct program {
    char path[PATH_MAX];
    const char
        *obstacle;   /* why nothing can be recorded in it (static text); NULL = nothing known */
    bool needs_asan; /* it is linked with AddressSanitizer's library */
    bool has_tsan;   /* ThreadSanitizer is in it, or in a library that it is linked with */
    bool is_loader;  /* it is glibc's loader, which is given the program as an argument */
    bool needs_cuda; /* it is linked with libcuda or libcudart */
};

/* Looks `name` up as execvp would. 0, or the errno that execvp would fail with. */
int program_find(struct program *program, const char *name);

/* The same of a file that is known to be a program; of what cannot be read nothing is known. */
void program_look(struct program *program, const char *path);

#endif
