/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuprof diff` and `gpuprof baseline`: the verbs. */
#ifndef GPUPROF_COLLECTOR_DIFF_VERB_H
#define GPUPROF_COLLECTOR_DIFF_VERB_H

#include "base/message.h"
#include "base/options.h"
#include "diff/diff_print.h"

/* In the order of --format; and what is to be done where it cannot tell. */
enum diff_format { DIFF_TEXT, DIFF_JUNIT, DIFF_JSON, DIFF_HTML, DIFF_BY_NAME };
enum inconclusive_use { INCONCLUSIVE_PASSES, INCONCLUSIVE_FAILS, INCONCLUSIVE_SAID };

#define OUTPUTS_MAX 8

/* What the options say beyond those of all verbs that read recordings. */
struct diff_options {
    const char *folder; /* of baselines; NULL: not said */
    double gate;        /* 0.05 for 5 % */
    enum inconclusive_use inconclusive;
    bool force;
    enum diff_format format;          /* DIFF_BY_NAME: as the name of the file has it */
    const char *outputs[OUTPUTS_MAX]; /* each in its own format */
    int output_count;
};

#define DIFF_OPTIONS_USUAL                                                                         \
    .gate = 0.05 /* as its help says */, .inconclusive = INCONCLUSIVE_SAID, .format = DIFF_BY_NAME

extern const struct option diff_options[];
extern const struct option baseline_folder[]; /* --dir, of a const char * */

/* What diff ends with, for a gate: 0 no regression shown, 1 a regression, 2 usage or failure, 3
 * inconclusive or not comparable. `page` prints it as HTML. */
enum exit_code diff_run(const struct options *options, diff_print_fn *page);

#endif
