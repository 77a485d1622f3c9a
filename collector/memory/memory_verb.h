/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `memory`: who holds the memory of devices, and of the host what is pinned. */
#ifndef GPUPROF_COLLECTOR_MEMORY_VERB_H
#define GPUPROF_COLLECTOR_MEMORY_VERB_H

#include "base/exit_code.h"
#include "base/options.h"

enum exit_code memory_verb(const struct options *options);

#endif
