/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_driver.h"

/* The rest of the real driver's exports: they exist, are logged, and do nothing. */

#define STUB(name) DRV(name, (void), CUDA_ERROR_NOT_SUPPORTED)
#include "sim_driver_stubs.def"
#undef STUB
