/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `gpuprof ctl` asks for (formats/control_text.h): once a second the writer looks at the
 * control file of the data folder, follows what is new in it, and answers in a file beside the
 * stream file. A recording that begins follows what was said to all before it. Nothing is written
 * where nobody asks. What the file can do is start and stop the recording of calls.
 */
#ifndef GPUPROF_INJECT_CONTROL_H
#define GPUPROF_INJECT_CONTROL_H

#include <stdbool.h>

struct thread;

/* A recording begins. */
void control_start(void);
/* Once a second; at the recording's end. */
void control_tick(struct thread *writer);
void control_describe(struct thread *writer, bool is_last);

#endif
