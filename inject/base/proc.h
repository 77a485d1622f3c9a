/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc by system calls alone: async-signal-safe, and with a small stack. */
#ifndef GPUPROF_INJECT_PROC_H
#define GPUPROF_INJECT_PROC_H

#include <stdbool.h>

enum proc_stat_field {
    PROC_STAT_STATE = 3,
    PROC_STAT_FAULTS = 10,
    PROC_STAT_MAJOR_FAULTS = 12,
    PROC_STAT_THREAD_COUNT = 20,
    PROC_STAT_START_TIME = 22,
    PROC_STAT_BLOCKED = 32, /* bit mask of signals 1 to 31 */
    PROC_STAT_IGNORED = 33,
    PROC_STAT_CAUGHT = 34,
};

/* Returns the start of the field in `text`, which is the content of /proc/PID/stat. Returns NULL if
 * the text ends before it. */
const char *proc_stat_field(const char *text, enum proc_stat_field field);

/* Calls `visit` for each name in the folder `dir` that is a number, until it returns false. */
void proc_each(int dir, bool (*visit)(int dir, const char *name, void *data), void *data);

#endif
