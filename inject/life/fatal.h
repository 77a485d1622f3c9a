/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions with which a process ends itself by a signal: abort(), a failed assert(), and kill(),
 * raise() and the like, if the signal goes to the process itself and would end it. Libraries call
 * them like any function, so uncaught C++ exceptions and Python's end by Ctrl-C come here, too.
 * Finished device records are stored first, with a time limit; then the real function is called. If
 * the signal ends other processes, these are asked to store theirs (victims.h).
 */
#ifndef GPUPROF_INJECT_FATAL_H
#define GPUPROF_INJECT_FATAL_H

/*
 * Called by the constructor: finds the real functions, which a signal handler could not do later.
 */
void fatal_load(void);

#endif
