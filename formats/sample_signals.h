/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals among which the library takes a free one for sampling, starting with the last. The C
 * library uses the two before the first; debuggers like the one after the last; programs count from
 * SIGRTMIN up. `gpuprof doctor` checks the same ones.
 */
#ifndef GPUPROF_FORMATS_SAMPLE_SIGNALS_H
#define GPUPROF_FORMATS_SAMPLE_SIGNALS_H

#define SAMPLE_SIGNAL_FIRST 34
#define SAMPLE_SIGNAL_LAST  62

#endif
