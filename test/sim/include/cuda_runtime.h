/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUDA_RUNTIME_H
#define SIM_CUDA_RUNTIME_H

/* Plain C programs need no more than the API. */

#include "cuda_runtime_api.h"

#endif
