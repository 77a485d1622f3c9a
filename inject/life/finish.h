/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the process, in all its ways: atexit, at_quick_exit, _exit, _Exit, and the library's
 * destructor. Each stores what there is, with a time limit; later events still reach the live file.
 */
#ifndef GPUPROF_INJECT_FINISH_H
#define GPUPROF_INJECT_FINISH_H

#include <stdbool.h>

/* Does this process record, and is it not a fork or vfork child of one that does?
 * Async-signal-safe. */
bool finish_is_recorder(void);

/* Registers the handlers, once per process image: fork children inherit them. */
void finish_register(void);

#endif
