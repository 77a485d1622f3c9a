/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a loaded library to a recording process: nothing exists before a process's first recorded
 * call; that call creates the stream file, the live file and the writer thread.
 */
#ifndef GPUPROF_INJECT_START_H
#define GPUPROF_INJECT_START_H

#include <stdbool.h>

#include "settings.h"

/*
 * True if this process is recording; starts it if nobody did. A second thread waits, with a bound,
 * for the first one's start. Never true in a vfork child or after recording ended.
 */
bool start_recording(void);

/* True unless nothing will ever be recorded here: somebody else's rights, an old kernel. */
bool start_is_possible(void);

/* Recording is over for good (the stream cannot be written): threads pass through from now on. */
void start_end(void);

/* What the environment says of it now, before a recording reads all; what is wrong in it is said
 * then. While there is one thread. */
uint64_t start_setting(enum setting_index index);

static inline bool start_is_switched_on(enum setting_index index)
{
    return start_setting(index) != 0;
}

/* Reads the settings while nothing is recorded yet. False: nothing ever will be. */
bool start_load_settings(void);

#endif
