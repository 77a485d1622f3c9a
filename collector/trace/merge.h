/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `merge`: one trace of all recordings, or one for each rank. */
#ifndef GPUPROF_COLLECTOR_MERGE_H
#define GPUPROF_COLLECTOR_MERGE_H

#include "base/exit_code.h"
#include "base/options.h"

enum exit_code merge_verb(const struct options *options);

#endif
