/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUPROF_COLLECTOR_TOP_H
#define GPUPROF_COLLECTOR_TOP_H

#include "base/exit_code.h"
#include "base/options.h"

/* `gpuprof top`: what the processes that record into a folder do now. */
enum exit_code top_verb(const struct options *options);

#endif
