/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of all verbs, as one table: the command line is parsed by it, and the help texts and
 * the manual are printed from it. (The settings of a recording, which are options of `run`, too,
 * have a table of their own: settings.def.)
 */
#ifndef GPUPROF_COLLECTOR_OPTIONS_H
#define GPUPROF_COLLECTOR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/exit_code.h"

/* What a verb accepts. */
enum option_set {
    OPTION_OUTPUT = 1,            /* -o, --output FILE */
    OPTION_FORMAT = 2,            /* --format text|json|csv */
    OPTION_BLOCKS = 4,            /* --blocks */
    OPTION_STRICT = 8,            /* --strict */
    OPTION_KEEP_LIVE = 16,        /* --keep-live */
    OPTION_OUT = 32,              /* -o DIR */
    OPTION_QUIET = 64,            /* --quiet */
    OPTION_EXEC = 128,            /* --exec */
    OPTION_HELP = 256,            /* -h, --help */
    OPTION_SETTINGS = 512,        /* no row: the options of settings.def */
    OPTION_RECORDINGS = 1024,     /* no row: at least one folder or file */
    OPTION_PER_RANK = 2048,       /* --per-rank */
    OPTION_STEP_RANGE = 4096,     /* --step-range PATTERN */
    OPTION_BY = 8192,             /* --by name|grid|shape|range|stack|python-line */
    OPTION_GRAPH = 16384,         /* -o, --output FILE of a flame graph */
    OPTION_FORM = 32768,          /* --format of one */
    OPTION_WEIGHT = 65536,        /* --weight */
    OPTION_THREADS = 131072,      /* --threads */
    OPTION_SYMBOLS = 262144,      /* --symbols DIR|none */
    OPTION_SYNC_STREAMS = 524288, /* --sync-streams */
    OPTION_TABLE = 1 << 20,       /* --table NAME,... */
    OPTION_SORT = 1 << 21,        /* --sort COLUMN */
    OPTION_LIMIT = 1 << 22,       /* --limit N */
    OPTION_FULL = 1 << 23,        /* --full */
    OPTION_TABLES = 1 << 24,      /* -o, --output FILE of a report */
    OPTION_TRACE = 1 << 25,       /* --format of a trace */
    OPTION_STEP_BY = 1 << 26,     /* --step-by range|...|NAME */
    OPTION_SAMPLES = 1 << 27,     /* --samples-per-step N */
    OPTION_GROUP = 1 << 28,       /* --group */
    OPTION_NO_GROUP = 1 << 29,    /* --no-group */
    OPTION_JSON = 1 << 30         /* --json */
};

struct option_info {
    unsigned bit;      /* of enum option_set */
    char letter;       /* 0: none */
    const char *name;  /* without the hyphens; NULL: it has a letter only */
    const char *value; /* how help names it, a choice as a|b|c; NULL: it takes none */
    const char *help;
};

/* In the order in which help lists them; ended by a row of bit 0. */
extern const struct option_info option_infos[];

/*
 * The option of `set` that the word argv[*at] is, with its value, or NULL if it is none of them.
 * *value is NULL if it takes none or none is there; *at moves on to a value that is the next word.
 */
const struct option_info *option_take(unsigned set, char **argv, int *at, char **value);

/* Says that `word` is no option of the verb, which accepts `set`, and what it may have been.
 * Returns EXIT_USAGE. */
enum exit_code option_unknown(const char *verb, unsigned set, const char *word);

enum report_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_BY_NAME }; /* as in the table */

enum report_by {
    BY_NAME,
    BY_GRID,
    BY_SHAPE,
    BY_RANGE,
    BY_STACK,
    BY_PYTHON_LINE
}; /* in the order of the table */

/* Of a flame graph, in the order of the tables. */
enum flame_format { FLAME_FOLDED, FLAME_SPEEDSCOPE, FLAME_SVG, FLAME_BY_NAME };
enum flame_weight { WEIGHT_HOST, WEIGHT_GPU, WEIGHT_CALLS, WEIGHT_BYTES };

/* Rows of ranges that are groups: scripts look for rows by their names. */
enum report_groups { GROUPS_IN_TEXT, GROUPS_ALWAYS, GROUPS_NEVER };

#define ROWS_UNLIMITED UINT64_MAX

struct options {
    const char *output; /* NULL: standard output */
    bool strict;
    bool keep_live;
    bool blocks;
    bool help; /* what follows was not looked at */
    bool per_rank;
    const char *step_range;   /* NULL: none */
    const char *step_by;      /* NULL: by what there is */
    double step_samples;      /* 0: not said */
    const char *trace_format; /* its name; NULL: as the name of the file has it */
    bool sync_streams;
    enum report_format format; /* FORMAT_BY_NAME: as the name of the file has it */
    enum report_by by;
    enum report_groups groups;
    const char *tables;             /* names with commas between; NULL: all */
    const char *sort;               /* a column; NULL: as the tables are */
    uint64_t limit;                 /* rows of a table; ROWS_UNLIMITED: not said */
    bool is_full;                   /* nothing is cut for the terminal */
    enum flame_format flame_format; /* FLAME_BY_NAME: as the name of the file has it */
    enum flame_weight weight;
    bool threads;
    const char *symbols; /* a folder, SYMBOLS_OFF, or NULL */
    char **paths;        /* a view of argv */
    int path_count;
};

/*
 * Parses the arguments of the verb argv[0], which accepts `set`. EXIT_OK, or EXIT_USAGE after one
 * line that says what is wrong.
 */
enum exit_code options_parse(struct options *o, int argc, char **argv, unsigned set);

#endif
