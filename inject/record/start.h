/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the recording of a process. Before its first recorded call nothing exists; that call
 * creates the stream file, the live file and the writer thread. */
#ifndef GPUPROF_INJECT_START_H
#define GPUPROF_INJECT_START_H

#include <stdbool.h>

#include "settings.h"

/*
 * Returns true if this process records; starts the recording if needed. A second thread waits, with
 * a time limit, for the first one's start. Never true in a vfork child, or after recording has
 * ended.
 */
bool start_recording(void);

/* Returns false if nothing will ever be recorded here: setuid, or an old kernel. */
bool start_is_possible(void);

/*
 * Recording is over for good, since the stream cannot be written: calls pass through from now on.
 */
void start_end(void);

/* Returns the setting from the current environment, before a recording reads all settings and
 * reports errors. Call it while there is one thread. */
uint64_t start_setting(enum setting_index index);

static inline bool start_is_switched_on(enum setting_index index)
{
    return start_setting(index) != 0;
}

/* Reads the settings if nothing is recorded yet. Returns false if nothing ever will be. */
bool start_load_settings(void);

#endif
