/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

/* The rest of the real runtime's exports: they exist, are logged, and do nothing. */

#define STUB(name) RT(name, (void), cudaErrorNotSupported)
#include "sim_runtime_stubs.def"
#undef STUB
