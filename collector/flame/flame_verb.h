/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `flame`: a flame graph of the stacks that made the calls. */
#ifndef GPUPROF_COLLECTOR_FLAME_VERB_H
#define GPUPROF_COLLECTOR_FLAME_VERB_H

#include "base/exit_code.h"
#include "base/options.h"

enum exit_code flame_verb(const struct options *options);

#endif
