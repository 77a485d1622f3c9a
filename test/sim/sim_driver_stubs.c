/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_driver.h"

/* The rest of the real driver's exports: they exist, are logged, and do nothing. */

#define STUB(name) DRV_AS(name, none, 0, (void), driver_guard() ?: CUDA_ERROR_NOT_SUPPORTED)
#include "sim_driver_stubs.def"
#undef STUB
