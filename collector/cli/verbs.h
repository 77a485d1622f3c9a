/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of gpuprof-collector, as one table (verbs.c): main.c dispatches by it; help, manual and
 * completion print it.
 */
#ifndef GPUPROF_COLLECTOR_VERBS_H
#define GPUPROF_COLLECTOR_VERBS_H

#include <stddef.h>

#include "base/exit_code.h"
#include "base/options.h"

struct verb {
    const char *name;
    /* Its arguments, parsed; or, if this is NULL, as they are, for who reads settings and a
     * program's command: the exit code may then be the program's, and *help asks for verb_help. */
    verb_fn *run;
    start_fn *start;
    option_set options;   /* OPTION_... */
    const char *operands; /* of the synopsis line, behind the options */
    const char *help;     /* one line */
};

extern const struct verb verbs[];
extern const size_t verb_count;

/* What is not a verb of the collector's: the front command (scripts/gpuprof) has it. */
extern const struct verb front_verbs[];
extern const size_t front_verb_count;

/* manual.c: the page, troff, on stdout; `help` and `help VERB`, on stdout. */
enum exit_code manual_verb(const struct options *options);
enum exit_code help_verb(const struct options *options);

/* completion.c: for the shell that is named, on stdout. */
enum exit_code completion_verb(const struct options *options);

/* Prints what the verb of that name does and its options (manual.c). */
enum exit_code verb_help(const char *name);

/* What gpuprof is and how to begin, on stdout, for who has named no verb. EXIT_USAGE. */
enum exit_code verb_missing(const char *command);

/* Says, behind `before`, that there is no such verb, and what it may have been. EXIT_USAGE. */
enum exit_code verb_unknown(const char *before, const char *name);

#endif
