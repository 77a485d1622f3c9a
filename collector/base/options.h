/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of all verbs, as one table: the command line is parsed by it, and the help texts and
 * the manual are printed from it. (The settings of a recording, which are options of `run`, too,
 * have a table of their own: settings.def.)
 */
#ifndef GPUPROF_COLLECTOR_OPTIONS_H
#define GPUPROF_COLLECTOR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/exit_code.h"
#include "base/select_wish.h"

/* What a verb accepts: a set of these. (More of them than a uint64_t has bits.) */
__extension__ typedef unsigned __int128 option_set;
#define OPTION_BIT(number)   ((option_set)1 << (number))
#define OPTION_OUTPUT        OPTION_BIT(0)  /* -o, --output FILE */
#define OPTION_FORMAT        OPTION_BIT(1)  /* --format text|json|csv|html */
#define OPTION_BLOCKS        OPTION_BIT(2)  /* --blocks */
#define OPTION_STRICT        OPTION_BIT(3)  /* --strict */
#define OPTION_KEEP_LIVE     OPTION_BIT(4)  /* --keep-live */
#define OPTION_OUT           OPTION_BIT(5)  /* -o DIR */
#define OPTION_QUIET         OPTION_BIT(6)  /* --quiet */
#define OPTION_EXEC          OPTION_BIT(7)  /* --exec */
#define OPTION_HELP          OPTION_BIT(8)  /* -h, --help */
#define OPTION_SETTINGS      OPTION_BIT(9)  /* no row: the options of settings.def */
#define OPTION_RECORDINGS    OPTION_BIT(10) /* no row: at least one folder or file */
#define OPTION_PER_RANK      OPTION_BIT(11) /* --per-rank */
#define OPTION_STEP_RANGE    OPTION_BIT(12) /* --step-range PATTERN */
#define OPTION_BY            OPTION_BIT(13) /* --by name|grid|shape|range|stack|python-line */
#define OPTION_GRAPH         OPTION_BIT(14) /* -o, --output FILE of a flame graph */
#define OPTION_FORM          OPTION_BIT(15) /* --format of one */
#define OPTION_WEIGHT        OPTION_BIT(16) /* --weight */
#define OPTION_THREADS       OPTION_BIT(17) /* --threads */
#define OPTION_SYMBOLS       OPTION_BIT(18) /* --symbols DIR|none */
#define OPTION_SYNC_STREAMS  OPTION_BIT(19) /* --sync-streams */
#define OPTION_TABLE         OPTION_BIT(20) /* --table NAME,... */
#define OPTION_SORT          OPTION_BIT(21) /* --sort COLUMN */
#define OPTION_LIMIT         OPTION_BIT(22) /* --limit N */
#define OPTION_FULL          OPTION_BIT(23) /* --full */
#define OPTION_TABLES        OPTION_BIT(24) /* -o, --output FILE of a report */
#define OPTION_TRACE         OPTION_BIT(25) /* --format of a trace */
#define OPTION_STEP_BY       OPTION_BIT(26) /* --step-by range|...|NAME */
#define OPTION_SAMPLES       OPTION_BIT(27) /* --samples-per-step N */
#define OPTION_GROUP         OPTION_BIT(28) /* --group */
#define OPTION_NO_GROUP      OPTION_BIT(29) /* --no-group */
#define OPTION_JSON          OPTION_BIT(30) /* --json */
#define OPTION_MINE          OPTION_BIT(31) /* --mine of a report */
#define OPTION_OWN_FRAMES    OPTION_BIT(32) /* --mine of a flame graph */
#define OPTION_FOLD          OPTION_BIT(33) /* --fold-unnamed */
#define OPTION_MERGE_RANKS   OPTION_BIT(34) /* --merge-ranks */
#define OPTION_SOURCE        OPTION_BIT(35) /* --source DIR */
#define OPTION_NO_COUNTERS   OPTION_BIT(36) /* --no-counters */
#define OPTION_PORT          OPTION_BIT(37) /* --port N */
#define OPTION_OPEN          OPTION_BIT(38) /* --open */
#define OPTION_COLOUR        OPTION_BIT(39) /* --color auto|always|never */
#define OPTION_MEMORY_BY     OPTION_BIT(40) /* --by python-line|... of memory */
#define OPTION_AT            OPTION_BIT(41) /* --at peak|end|SECONDS */
#define OPTION_MEMORY_TABLE  OPTION_BIT(42) /* --table of memory */
#define OPTION_TABLE_FORM    OPTION_BIT(43) /* --format text|json|csv */
#define OPTION_MEMORY_FILE   OPTION_BIT(44) /* -o, --output FILE of memory */
#define OPTION_MEMORY_EVENTS OPTION_BIT(45) /* --memory-events */
#define OPTION_CYCLE         OPTION_BIT(46) /* --cycle N|all */
#define OPTION_PID           OPTION_BIT(47) /* --pid N */
#define OPTION_RANK          OPTION_BIT(48) /* --rank N */
#define OPTION_TIMEOUT       OPTION_BIT(49) /* --timeout SECONDS */
#define OPTION_WHEN          OPTION_BIT(50) /* --at TIME */
#define OPTION_AT_STEP       OPTION_BIT(51) /* --at-step N|+N */
#define OPTION_ONCE          OPTION_BIT(52) /* --once */
#define OPTION_INTERVAL      OPTION_BIT(53) /* --interval SECONDS */
#define OPTION_ON_CYCLE      OPTION_BIT(56) /* --on-cycle COMMAND */
#define OPTION_TOP_FILE      OPTION_BIT(55) /* -o, --output FILE of top */
#define OPTION_TOP_FORM      OPTION_BIT(54) /* --format text|json|openmetrics */
#define OPTION_PROCESSES     OPTION_BIT(57) /* --rank and --pid of what is read */
#define OPTION_PLACE         OPTION_BIT(58) /* --step, --range, --device: select_wish.h */
#define OPTION_JOBS          OPTION_BIT(59) /* -j, --jobs N */
#define OPTION_MAX_SIZE      OPTION_BIT(60) /* --max-size SIZE */
#define OPTION_EXPORT_FILE   OPTION_BIT(61) /* -o, --output FILE of an export */
#define OPTION_EXPORT        OPTION_BIT(62) /* --format of one */
#define OPTION_PARTIAL       OPTION_BIT(63) /* --partial */
#define OPTION_SHARE         OPTION_BIT(64) /* --share I/N */
#define OPTION_COMBINE       OPTION_BIT(65) /* --combine */
#define OPTION_WINDOW        OPTION_BIT(66) /* --cycle N */
#define OPTION_AGAINST       OPTION_BIT(67) /* --against */
#define OPTION_GATE          OPTION_BIT(68) /* --gate PERCENT */
#define OPTION_INCONCLUSIVE  OPTION_BIT(69) /* --inconclusive pass|fail */
#define OPTION_FORCE         OPTION_BIT(70) /* --force */
#define OPTION_DIFF_FORM     OPTION_BIT(71) /* --format of a comparison */
#define OPTION_DIFF_FILE     OPTION_BIT(72) /* -o, --output FILE of one, several times */
#define OPTION_FOLDER        OPTION_BIT(73) /* --dir DIR of baselines */
#define OPTION_SHARES        OPTION_BIT(74) /* --shares */
#define OPTION_CLOCK         OPTION_BIT(75) /* --clock collectives|wall */
#define OPTION_EVENTS        OPTION_BIT(76) /* --tid, --kind ...: of an event alone */
#define OPTION_REPORT        OPTION_BIT(77) /* -r, --report NAME,... of stats */
#define OPTION_STATS_FORM    OPTION_BIT(78) /* -f, --format of stats */
#define OPTION_TIME          OPTION_BIT(79) /* --from, --to */
#define OPTION_SELECT        (OPTION_PLACE | OPTION_TIME | OPTION_EVENTS)

/* What becomes of an option: it sets a bool, keeps its value, keeps the number of one of its words,
 * or is looked at. */
enum option_use { OPTION_SETS, OPTION_KEEPS, OPTION_CHOOSES, OPTION_LOOKS };

struct option_info {
    option_set bit;    /* one of OPTION_..., which several may share; 0: the end */
    char letter;       /* 0: none */
    const char *name;  /* without the hyphens; NULL: it has a letter only */
    const char *value; /* how help names it, a choice as a|b|c; NULL: it takes none */
    enum option_use use;
    size_t at; /* of its bool, value or number in struct options */
    const char *help;
};

/* In the order in which help lists them; ended by a row of bit 0. */
extern const struct option_info option_infos[];
#define OPTION_ROWS_MAX 128

/*
 * The option of `set` that the word argv[*at] is, with its value, or NULL if it is none of them.
 * *value is NULL if it takes none or none is there; *at moves on to a value that is the next word.
 */
const struct option_info *option_take(option_set set, char **argv, int *at, char **value);

/* Says that `word` is no option of the verb, which accepts `set`, and what it may have been.
 * Returns EXIT_USAGE. */
enum exit_code option_unknown(const char *verb, option_set set, const char *word);

/* As in the table. Tables have no form of their own in HTML: a page is made of those for JSON. */
enum report_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_HTML, FORMAT_BY_NAME };

enum report_by {
    BY_NAME,
    BY_GRID,
    BY_SHAPE,
    BY_RANGE,
    BY_STACK,
    BY_PYTHON_LINE,
    BY_THREAD, /* so far in the order of the table */
    BY_SOURCE  /* --source=DIR */
};

/* What the owner of a block of memory is, in the order of the table. */
enum memory_by {
    MEMORY_BY_LINE,
    MEMORY_BY_STACK,
    MEMORY_BY_OPERATOR,
    MEMORY_BY_FUNCTION,
    MEMORY_BY_KIND,
    MEMORY_BY_LIBRARY,
    MEMORY_BY_BEST
};

/* At which moment. */
enum memory_at { MEMORY_AT_PEAK, MEMORY_AT_END, MEMORY_AT_TIME };

/* Of a flame graph, in the order of the tables. */
enum flame_format { FLAME_FOLDED, FLAME_SPEEDSCOPE, FLAME_SVG, FLAME_BY_NAME };
enum flame_weight { WEIGHT_HOST, WEIGHT_GPU, WEIGHT_CALLS, WEIGHT_BYTES };

/* Of a comparison, likewise; and what is to be done where it cannot tell. */
enum diff_format { DIFF_TEXT, DIFF_JUNIT, DIFF_JSON, DIFF_HTML, DIFF_BY_NAME };
enum inconclusive_use { INCONCLUSIVE_PASSES, INCONCLUSIVE_FAILS, INCONCLUSIVE_SAID };
#define OUTPUTS_MAX 8

/* Of `top`, in the order of the table. */
enum top_format { TOP_TEXT, TOP_JSON, TOP_OPENMETRICS };

/* Rows of ranges that are groups: scripts look for rows by their names. */
enum report_groups { GROUPS_IN_TEXT, GROUPS_ALWAYS, GROUPS_NEVER };

/* What hosts are put on one clock by, in the order of the table. */
enum clock_choice { CLOCK_BY_COLLECTIVES, CLOCK_BY_WALL };

/* Of a terminal's text, in the order of the table. */
enum colour_use { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

#define ROWS_UNLIMITED UINT64_MAX
#define SYMBOLS_OFF    "none" /* instead of a folder: nothing is looked up */

struct options {
    const char *command; /* how gpuprof was called: words for a shell */
    const char *output;  /* NULL: standard output */
    bool strict;
    bool keep_live;
    bool blocks;
    bool help; /* what follows was not looked at */
    bool per_rank;
    const char *step_range;   /* NULL: none */
    const char *step_by;      /* NULL: by what there is */
    double step_samples;      /* 0: not said */
    const char *trace_format; /* or an export's: its name; NULL: as the name of the file has it */
    bool sync_streams;
    bool no_counters;
    uint64_t max_size; /* bytes of text; 0: any */
    unsigned jobs;     /* processors that may be used; 0: all */
    bool memory_events;
    enum report_format format; /* FORMAT_BY_NAME: as the name of the file has it */
    enum report_by by;
    enum memory_by memory_by;
    enum memory_at memory_at;
    double at_seconds; /* of MEMORY_AT_TIME */
    enum report_groups groups;
    const char *tables;  /* names with commas between; NULL: all */
    const char *reports; /* of stats, likewise; NULL: the first path is it */
    const char *sort;    /* a column; NULL: as the tables are */
    uint64_t limit;      /* rows of a table; ROWS_UNLIMITED: not said */
    enum colour_use colour;
    enum clock_choice clock;
    bool is_full;                   /* nothing is cut for the terminal */
    enum flame_format flame_format; /* FLAME_BY_NAME: as the name of the file has it */
    enum flame_weight weight;
    bool threads;
    const char *source; /* a folder; NULL: none */
    bool is_partial;
    const char *share; /* I/N; NULL: as the launcher says */
    bool is_combined;
    bool is_mine; /* the user's own lines or frames only (own_line.h) */
    bool folds_unnamed;
    bool merges_ranks;
    unsigned port;       /* 0: any */
    uint32_t pid;        /* 0: any */
    uint64_t rank;       /* UINT64_MAX: any */
    double timeout;      /* seconds; below 0: not said */
    const char *at;      /* a moment, as it was said; NULL: at once */
    const char *at_step; /* likewise, a step */
    bool is_once;
    double interval; /* seconds; below 0: not said */
    enum top_format top_format;
    bool open;
    int against; /* of `paths`, from here on they stand behind --against; -1: it is not there */
    double gate; /* 0.05 for 5 % */
    bool is_shares;
    enum inconclusive_use inconclusive;
    bool force;
    enum diff_format diff_format;     /* DIFF_BY_NAME: as the name of the file has it */
    const char *outputs[OUTPUTS_MAX]; /* where -o may be given several times */
    int output_count;
    const char *folder;  /* of baselines; NULL: not said */
    const char *symbols; /* a folder, SYMBOLS_OFF, or NULL */
    struct select_wish select;
    bool given[OPTION_ROWS_MAX]; /* by the row of option_infos */
    char **paths;                /* a view of argv */
    int path_count;
};

/* The name of the first one of `set` that was given; NULL: none was. */
const char *option_given(const struct options *o, option_set set);

/*
 * Parses the arguments of the verb argv[0], which accepts `set`. EXIT_OK, or EXIT_USAGE after one
 * line that says what is wrong.
 */
enum exit_code options_parse(struct options *o, int argc, char **argv, option_set set);

/* What runs a verb, its arguments parsed. Here are those of which no header has more to say; each
 * file says at its begin what its verb does. */
typedef enum exit_code verb_fn(const struct options *options);
verb_fn baseline_verb, ctl_verb, diff_page_verb, dump_verb, export_verb, flame_verb,
    memory_page_verb, memory_verb, merge_verb, page_verb, recover_verb, stats_verb, top_verb,
    view_verb;

/*
 * The same of a verb whose arguments are as they are, with its name in argv[0]; what it proposes to
 * do next begins with `command`. An exit code, or that of the program that was run: `run` does not
 * return if a signal ended that. With *help nothing was done but to find that help is wanted.
 */
typedef int start_fn(const char *command, char **argv, bool *help);
start_fn run_verb, doctor_verb;

#endif
