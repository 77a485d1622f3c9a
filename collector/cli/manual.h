/* SPDX-License-Identifier: Apache-2.0 */
/* Help and manual texts. Lists of verbs end with NULL. */
#ifndef GPUPROF_COLLECTOR_MANUAL_H
#define GPUPROF_COLLECTOR_MANUAL_H

#include "base/options.h"

/* Prints examples and the usual options of a verb, or with `all` all options; NULL: the verbs. */
enum exit_code verb_help(const struct verb *const *verbs, const char *name, bool all);

/* Prints what gpuprof is and how to start, on stdout, if no verb was named. Returns EXIT_USAGE. */
enum exit_code verb_missing(const char *command);

/* Reports an unknown verb after `before`, with a suggestion. Returns EXIT_USAGE. */
enum exit_code verb_unknown(const struct verb *const *verbs, const char *before, const char *name);

#endif
