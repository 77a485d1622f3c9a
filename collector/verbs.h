/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of gpuprof-collector, as one table: main.c dispatches by it, help and manual print it.
 * A verb returns the exit code.
 */
#ifndef GPUPROF_COLLECTOR_VERBS_H
#define GPUPROF_COLLECTOR_VERBS_H

#include <stddef.h>

#include "options.h"

enum exit_code {
    EXIT_OK = 0,          /* everything recorded was read, a recovered live tail included */
    EXIT_ENVIRONMENT = 1, /* input or output failed, memory ran out */
    EXIT_USAGE = 2,       /* a wrong option, a file that is not ours, nothing to read */
    EXIT_DAMAGED = 3,     /* something recorded is missing; what is whole was used */
};

struct verb {
    const char *name;
    int (*run)(const struct options *options); /* its arguments, parsed; or, if this is NULL, */
    int (*start)(char **argv); /* as they are, for who reads settings and a program's command */
    unsigned options;          /* enum option_set */
    const char *operands;      /* of the synopsis line, behind the options */
    const char *help;          /* one line */
};

extern const struct verb verbs[];
extern const size_t verb_count;

int merge_verb(const struct options *options);   /* merge.c */
int report_verb(const struct options *options);  /* report.c */
int flame_verb(const struct options *options);   /* flame.c */
int dump_verb(const struct options *options);    /* dump.c */
int recover_verb(const struct options *options); /* recover.c */
int run_verb(char **argv);                       /* launch.c */
int manual_verb(const struct options *options);  /* manual.c: the page, troff, on stdout */
int help_verb(const struct options *options);    /* manual.c: `help` and `help VERB`, on stdout */

/* Prints what the verb of that name does and its options (manual.c). */
int verb_help(const char *name);

/* Says, behind `before`, that there is no such verb, and what it may have been. EXIT_USAGE. */
int verb_unknown(const char *before, const char *name);

#endif
