/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of verbs, of those in `verbs`, which NULL ends. */
#ifndef GPUPROF_COLLECTOR_MANUAL_H
#define GPUPROF_COLLECTOR_MANUAL_H

#include "base/options.h"

/* Prints what the verb of that name does and its options; NULL: what there is. */
enum exit_code verb_help(const struct verb *const *verbs, const char *name);

/* What gpuprof is and how to begin, on stdout, for who has named no verb. EXIT_USAGE. */
enum exit_code verb_missing(const char *command);

/* Says, behind `before`, that there is no such verb, and what it may have been. EXIT_USAGE. */
enum exit_code verb_unknown(const struct verb *const *verbs, const char *before, const char *name);

/*
 * What the manual says of each verb beside its options, as rows: examples, variables, files, exit
 * statuses; and of the functions of gpuprof.h.
 */
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
