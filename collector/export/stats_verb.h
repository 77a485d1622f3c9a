/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `stats`: the report's tables, and rows of events, by the names that nsys stats has for
 * them. */
#ifndef GPUPROF_COLLECTOR_STATS_VERB_H
#define GPUPROF_COLLECTOR_STATS_VERB_H

#include "base/exit_code.h"
#include "base/options.h"

/* The first of options->paths names the reports, a,b,c. */
enum exit_code stats_verb(const struct options *options);

#endif
