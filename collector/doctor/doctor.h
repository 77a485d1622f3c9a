/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `doctor`: what would be recorded here, of a program, and what not, and why. */
#ifndef GPUPROF_COLLECTOR_DOCTOR_H
#define GPUPROF_COLLECTOR_DOCTOR_H

#include <stdbool.h>

/*
 * The verb, with its name in argv[0]. EXIT_OK; EXIT_UNFIT if something is broken; EXIT_USAGE,
 * EXIT_ENVIRONMENT. With *help nothing was done.
 */
int doctor_verb(const char *command, char **argv, bool *help);

#endif
