/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUDA_H
#define SIM_CUDA_H

/*
 * The simulated CUDA driver API: types, constants and prototypes with the ABI of the real one,
 * for the simulated driver itself and for test programs. It declares what the tests use; it is
 * written apart from gpuprof's own table, so that a mistake in one does not agree with the other.
 * Define __CUDA_API_VERSION_INTERNAL to keep the exact exported names,
 * CUDA_API_PER_THREAD_DEFAULT_STREAM for the per-thread default stream.
 */

#define CUDA_VERSION 13000

#include "sim_cuda_protos.h"
#include "sim_cuda_renames.h"
#include "sim_cuda_types.h"

#endif
