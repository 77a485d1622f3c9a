/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUDA_RUNTIME_API_H
#define SIM_CUDA_RUNTIME_API_H

/*
 * The simulated CUDA runtime API with the ABI of the real one. SIM_CUDART_MAJOR (12 or 13, 13 by
 * default) picks the forms that differ between the two; CUDA_API_PER_THREAD_DEFAULT_STREAM works
 * as with the real headers.
 */

#ifndef SIM_CUDART_MAJOR
#define SIM_CUDART_MAJOR 13
#endif
#if SIM_CUDART_MAJOR == 12
#define CUDART_VERSION 12080
#else
#define CUDART_VERSION 13000
#endif

#include "sim_cudart_protos.h"
#include "sim_cudart_renames.h"
#include "sim_cudart_types.h"

#endif
