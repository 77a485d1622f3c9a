/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the program's signal handlers out of our critical sections. */
#ifndef GPUPROF_INJECT_SIGNALS_H
#define GPUPROF_INJECT_SIGNALS_H

#include <stdint.h>

/*
 * All signals of the calling thread, the C library's own too: a handler that leaves by longjmp
 * would leave a lock behind that its thread holds for ever. Returns what restore_signals takes.
 */
uint64_t block_signals(void);
void restore_signals(uint64_t mask);

#endif
