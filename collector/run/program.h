/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that `gpuprof run` is to start: where it is, and whether a preloaded library can work
 * in it at all, and what stands in its environment, beside the settings.
 */
#ifndef GPUPROF_COLLECTOR_PROGRAM_H
#define GPUPROF_COLLECTOR_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"

#define ENVIRONMENT_PATH_BYTES   (PATH_MAX + 32)
#define ENVIRONMENT_REASON_BYTES (PATH_MAX + 160)

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

/*
 * Where libgpuprof.so is: beside this executable. False: it cannot be preloaded, and `reason` says
 * why and what to do; `path` has it all the same, or is empty.
 */
bool environment_library(char path[static ENVIRONMENT_PATH_BYTES],
                         char reason[static ENVIRONMENT_REASON_BYTES]);

/*
 * Where libgpuprof-os.so is, beside `library`, which environment_library found. False: it cannot be
 * read, and `reason` says so.
 */
bool environment_os_library(const char *library, char path[static ENVIRONMENT_PATH_BYTES],
                            char reason[static ENVIRONMENT_REASON_BYTES]);

/*
 * Puts the library into LD_PRELOAD, before what is there, and to where NVTX and CUDA's driver look
 * for a tool, unless somebody else has claimed that; and tells the program's sanitizer, if it has
 * one. False: `reason` says why not.
 */
bool environment_prepare(const struct program *program,
                         char reason[static ENVIRONMENT_REASON_BYTES]);

/* The rank that a launcher gave us: "" if none is set; "0" for the first of a job. */
const char *environment_rank(void);

/* EXIT_OK, or EXIT_USAGE after one line: `path` from the root on; the data folder where none was
 * named, gpuprof.<program>.<time>, with -2, -3 ... if there is one of that name already; and
 * whether anything can be recorded there, which is said before a long job has run in vain. */
enum exit_code environment_absolute(const char *path, char *out, size_t capacity);
enum exit_code environment_name_folder(const char *program, char *out, size_t capacity);
enum exit_code environment_check_folder(const char *out, const char *shown);

#endif
