/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that `gpuprof run` starts: its path, whether a preloaded library can work in it, and
 * its environment, besides the settings.
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
    const char *obstacle; /* why nothing can be recorded in it (static text); NULL: none known */
    bool needs_asan;      /* linked with AddressSanitizer's library */
    bool has_tsan;        /* ThreadSanitizer is in it, or in one of its libraries */
    bool is_loader;       /* glibc's loader, with the program as an argument; or linked with it */
    bool needs_cuda;      /* linked with libcuda or libcudart */
};

/* Looks up `name` like execvp. Returns 0, or the errno of execvp. */
int program_find(struct program *program, const char *name);

/* The same for a file that is a program; nothing is known if it cannot be read. */
void program_look(struct program *program, const char *path);

/* Finds libgpuprof.so beside this executable. False: it cannot be preloaded, for `reason`; `path`
 * has it anyway, or is empty. */
bool environment_library(char path[static ENVIRONMENT_PATH_BYTES],
                         char reason[static ENVIRONMENT_REASON_BYTES]);

/* Finds libgpuprof-os.so beside `library` (from environment_library). False: it cannot be read. */
bool environment_os_library(const char *library, char path[static ENVIRONMENT_PATH_BYTES],
                            char reason[static ENVIRONMENT_REASON_BYTES]);

/* Puts the library first in LD_PRELOAD, and into the variables from which NVTX and the CUDA driver
 * load a tool, unless they are set. Sets options of the program's sanitizer, if any. */
bool environment_prepare(const struct program *program,
                         char reason[static ENVIRONMENT_REASON_BYTES]);

/* The rank set by a launcher: "" if none is set; "0" for the first of a job. */
const char *environment_rank(void);

/* Make a path absolute; make a default name, gpuprof.<program>.<time>, with -2, -3 ... if that
 * exists; find out before a long job whether a folder can be written. Return EXIT_OK, or EXIT_USAGE
 * after one line. */
enum exit_code environment_absolute(const char *path, char *out, size_t capacity);
enum exit_code environment_name_folder(const char *program, char *out, size_t capacity);
enum exit_code environment_check_folder(const char *out, const char *shown);

#endif
