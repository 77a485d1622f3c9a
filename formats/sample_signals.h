/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals of which the library takes a free one for samples, from the last on. The C library
 * has the two before the first; debuggers like the one behind the last; programs count from
 * SIGRTMIN on. `gpuprof doctor` looks at the same.
 */
#ifndef GPUPROF_FORMATS_SAMPLE_SIGNALS_H
#define GPUPROF_FORMATS_SAMPLE_SIGNALS_H

#define SAMPLE_SIGNAL_FIRST 34
#define SAMPLE_SIGNAL_LAST  62

#endif
