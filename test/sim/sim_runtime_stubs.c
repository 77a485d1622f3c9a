/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

/* The rest of the real runtime's exports: they exist, are logged, and do nothing. */

#define STUB(name) RT_AS(name, none, 0, (void), cudaErrorNotSupported)
#include "sim_runtime_stubs.def"
#undef STUB
