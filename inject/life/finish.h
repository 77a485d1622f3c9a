/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the process, by whichever door: atexit, at_quick_exit, _exit, _Exit, and the library's
 * destructor. Each stores what there is within a bound; what comes after still reaches the live
 * file.
 */
#ifndef GPUPROF_INJECT_FINISH_H
#define GPUPROF_INJECT_FINISH_H

#include <stdbool.h>

/* Does this process record, and is it no child of the one that does, by fork or vfork?
 * Async-signal-safe. */
bool finish_is_recorder(void);

/* Registers the handlers, once per process image: a child of fork inherits them. */
void finish_register(void);

#endif
