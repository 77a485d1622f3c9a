/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows `gpuprof ctl` (formats/control_text.h). Once a second the writer reads the control file
 * in the data folder, follows the commands that are new, and answers in a file beside the stream
 * file. A recording that starts follows the commands given to all processes before. Nothing is
 * written unless somebody asks. The file can only start and stop the recording of calls.
 */
#ifndef GPUPROF_INJECT_CONTROL_H
#define GPUPROF_INJECT_CONTROL_H

#include <stdbool.h>

struct thread;

/* Call it when a recording starts. */
void control_start(void);
/* Call it once a second and at the recording's end. */
void control_tick(struct thread *writer);
void control_describe(struct thread *writer, bool is_last);

#endif
