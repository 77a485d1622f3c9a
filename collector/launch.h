/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `run`: starts a program with libgpuprof.so preloaded, and tells what was recorded when
 * it has ended.
 */
#ifndef GPUPROF_COLLECTOR_LAUNCH_H
#define GPUPROF_COLLECTOR_LAUNCH_H

#include "verbs.h"

/* Where the data goes when nothing is said, as help names it. */
#define LAUNCH_FOLDER_PATTERN "gpuprof.PROGRAM.TIME"

#endif
