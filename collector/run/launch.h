/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `run`: starts a program with libgpuprof.so preloaded, and tells what was recorded when
 * it has ended.
 */
#ifndef GPUPROF_COLLECTOR_LAUNCH_H
#define GPUPROF_COLLECTOR_LAUNCH_H

#include <stdbool.h>

/* Where the data goes when nothing is said, as help names it. */
#define LAUNCH_FOLDER_PATTERN "gpuprof.PROGRAM.TIME"

/*
 * The verb, with its name in argv[0]; what it proposes to do next begins with `command`. Returns
 * the exit code of the program, or an enum exit_code if none was started; does not return if a
 * signal ended the program. With *help nothing was done but to find that help on the verb is
 * wanted.
 */
int run_verb(const char *command, char **argv, bool *help);

#endif
