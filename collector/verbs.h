/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of gpuprof-collector, as one table: main.c dispatches by it, help and manual print it.
 * A verb gets argv[0] = its own name and returns the exit code.
 */
#ifndef GPUPROF_COLLECTOR_VERBS_H
#define GPUPROF_COLLECTOR_VERBS_H

#include <stddef.h>

enum exit_code {
    EXIT_OK = 0,          /* everything recorded was read, a recovered live tail included */
    EXIT_ENVIRONMENT = 1, /* input or output failed, memory ran out */
    EXIT_USAGE = 2,       /* a wrong option, a file that is not ours, nothing to read */
    EXIT_DAMAGED = 3,     /* something recorded is missing; what is whole was used */
};

struct verb_option {
    const char *option; /* as help prints it: "-o, --output FILE" */
    const char *help;
};

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *arguments;             /* of the synopsis line */
    const char *help;                  /* one line */
    const struct verb_option *options; /* ended by a NULL option; NULL if there are none */
};

extern const struct verb verbs[];
extern const size_t verb_count;

int merge_verb(int argc, char **argv);  /* merge.c */
int report_verb(int argc, char **argv); /* report.c */
int dump_verb(int argc, char **argv);   /* dump.c */
int run_verb(int argc, char **argv);    /* launch.c */
int manual_verb(int argc, char **argv); /* manual.c: the manual page, troff, on stdout */
int help_verb(int argc, char **argv);   /* manual.c: `help` and `help VERB`, text, on stdout */

#endif
