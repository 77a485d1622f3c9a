/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `dump`: blocks and events of recordings as text. */
#ifndef GPUPROF_COLLECTOR_DUMP_H
#define GPUPROF_COLLECTOR_DUMP_H

#include "base/exit_code.h"
#include "base/options.h"

enum exit_code dump_verb(const struct options *options);

#endif
