/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input, output and error, which whoever starts us may have closed or filled up. */
#ifndef GPUPROF_COLLECTOR_STANDARD_FILES_H
#define GPUPROF_COLLECTOR_STANDARD_FILES_H

#include "base/exit_code.h"

/*
 * Puts something that cannot be written to in the place of each that is closed, or the next file
 * opened, perhaps a recording, would get its number and our words. 0, or GPUPROF_IO after one line.
 */
int standard_files_fill(void);

/* Writes out what stdout holds: EXIT_OK, or EXIT_ENVIRONMENT after one line that says why. */
enum exit_code standard_output_end(void);

#endif
