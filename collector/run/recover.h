/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `recover`: makes whole files of what killed processes have left. */
#ifndef GPUPROF_COLLECTOR_RECOVER_H
#define GPUPROF_COLLECTOR_RECOVER_H

#include "base/exit_code.h"
#include "base/options.h"

enum exit_code recover_verb(const struct options *options);

#endif
