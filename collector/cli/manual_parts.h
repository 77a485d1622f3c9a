/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the manual says of each verb beside its options, as rows: examples, variables, files, exit
 * statuses; and of the functions of gpuprof.h.
 */
#ifndef GPUPROF_COLLECTOR_MANUAL_PARTS_H
#define GPUPROF_COLLECTOR_MANUAL_PARTS_H

#include "base/options.h"

extern const char *const manual_part_titles[PART_COUNT];

/* What many verbs say alike, of those that do not say it themselves. */
struct manual_rule {
    const char *option; /* verbs that have this option; NULL: that read recordings */
    struct manual_row row;
};

extern const struct manual_rule manual_rules[]; /* ended by a row without a name */

struct manual_function {
    const char *prototype;
    const char *text;
};

extern const struct manual_function manual_functions[]; /* ended by one without a prototype */

#endif
