/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuprof diff` and `gpuprof baseline`: the verbs. */
#ifndef GPUPROF_COLLECTOR_DIFF_VERB_H
#define GPUPROF_COLLECTOR_DIFF_VERB_H

#include "base/exit_code.h"
#include "base/options.h"
#include "diff/diff_print.h"

/* What diff ends with, for a gate: 0 no regression shown, 1 a regression, 2 usage or failure, 3
 * inconclusive or not comparable. `page` prints it as HTML. */
enum exit_code diff_verb(const struct options *options, diff_print_fn *page);

#endif
