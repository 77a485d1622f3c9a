/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the verbs that read recordings. */
#ifndef GPUPROF_COLLECTOR_OPTIONS_H
#define GPUPROF_COLLECTOR_OPTIONS_H

#include <stdbool.h>

enum option_set {
    OPTION_OUTPUT = 1,    /* -o, --output FILE */
    OPTION_STRICT = 2,    /* --strict */
    OPTION_KEEP_LIVE = 4, /* --keep-live */
    OPTION_BLOCKS = 8,    /* --blocks */
    OPTION_FORMAT = 16,   /* --format text|json|csv */
};

enum report_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };

struct options {
    const char *output; /* NULL: standard output */
    bool strict;
    bool keep_live;
    bool blocks;
    enum report_format format;
    char **paths; /* a view of argv */
    int path_count;
};

/*
 * Parses the arguments of the verb argv[0], which accepts the options in `set`. EXIT_OK, or
 * EXIT_USAGE after one line that says what is wrong.
 */
int options_parse(struct options *o, int argc, char **argv, unsigned set);

#endif
