/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in the environment of a program that is to be recorded, beside the settings. */
#ifndef GPUPROF_COLLECTOR_ENVIRONMENT_H
#define GPUPROF_COLLECTOR_ENVIRONMENT_H

#include <limits.h>
#include <stdbool.h>

#include "run/program.h"

#define ENVIRONMENT_PATH_BYTES   (PATH_MAX + 32)
#define ENVIRONMENT_REASON_BYTES (PATH_MAX + 160)

/*
 * Where libgpuprof.so is: beside this executable. False: it cannot be preloaded, and `reason` says
 * why and what to do; `path` has it all the same, or is empty.
 */
bool environment_library(char path[static ENVIRONMENT_PATH_BYTES],
                         char reason[static ENVIRONMENT_REASON_BYTES]);

/*
 * Puts the library into LD_PRELOAD, before what is there, and to where NVTX and CUDA's driver look
 * for a tool, unless somebody else has claimed that; and tells the program's sanitizer, if it has
 * one. False: `reason` says why not.
 */
bool environment_prepare(const struct program *program,
                         char reason[static ENVIRONMENT_REASON_BYTES]);

#endif
