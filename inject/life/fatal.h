/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls by which a process ends itself with a signal: abort(), a failed assert(), and kill(),
 * raise() and their like where the signal is for the process itself and would end it. Libraries
 * reach them like any function, so an uncaught C++ exception and Python's end by Ctrl-C come by
 * here, too. What the device has finished is stored first, within a bound; then the real function
 * does what it would have done. Where the signal ends other processes, these are asked (victims.h).
 */
#ifndef GPUPROF_INJECT_FATAL_H
#define GPUPROF_INJECT_FATAL_H

/* By the constructor: finds the real functions. A signal handler could not, later. */
void fatal_load(void);

#endif
