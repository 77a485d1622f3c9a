/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs and their options. Each verb is one constant in its own file, with its options beside it;
 * the parser, help, manual and completion all use it. Options shared by several verbs stand once,
 * in lists that verbs refer to. Settings of a recording, which `run` takes as options, have their
 * own table: settings.def.
 */
#ifndef GPUPROF_COLLECTOR_OPTIONS_H
#define GPUPROF_COLLECTOR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "base/select_request.h"
#include "settings.h"

/* How to align the clocks of hosts, in the order of the option's words. */
enum clock_choice { CLOCK_BY_COLLECTIVES, CLOCK_BY_WALL };

#define SYMBOLS_OFF "none" /* instead of a folder: no symbol lookup */

/* A parsed command line: what verbs have in common, and the verb's own struct. */
struct options {
    const char *command; /* how gpuprof was called, as shell words */
    const struct verb *verb;
    const struct verb *const *verbs; /* all verbs, ended by NULL */
    const void *own;                 /* the struct of the verb's own options; NULL: it has none */
    bool help;                       /* --help was given; later words were not parsed */
    bool help_all;                   /* --help-all: likewise, unless the verb is `help` */
    const char *output;              /* NULL: standard output */
    bool strict;
    bool keep_live;
    bool no_index;
    unsigned jobs;          /* processors to use; 0: all */
    const char *step_range; /* NULL: not given */
    const char *step_by;    /* NULL: automatic */
    enum clock_choice clock;
    const char *symbols; /* a folder, SYMBOLS_OFF, or NULL */
    struct select_request select;
    int against; /* index of the first path after --against; -1: not given */
    const char *settings[SETTING_COUNT]; /* recording settings; NULL: not given */
    char **paths; /* a view of argv: operands, or the program and its arguments */
    int path_count;
};

struct option;

/* An option as the user gave it. */
struct given {
    struct options *all;
    const struct option *option;
    char *value; /* not empty; NULL: the option takes none */
    void *at;    /* the member to set */
};

/* Checks an option's value and stores it as a view. Returns EXIT_OK, or EXIT_USAGE after a line. */
typedef enum exit_code option_take(const struct given *g);

/* Which struct the option's member belongs to. */
enum option_owner { OF_VERB, OF_ALL };

/* A list ends with an empty row. */
struct table_info;

struct option {
    char letter;       /* 0: none */
    const char *name;  /* without the hyphens; NULL: it has a letter only */
    const char *value; /* as help shows it, a choice as a|b|c; NULL: the option takes none; "": a
                        * setting that is on or off */
    option_take *take;
    size_t at;                          /* offset in the verb's own struct or in struct options */
    const char *help;                   /* NULL: not in help */
    unsigned in;                        /* group in help: enum help_group, and HELP_MORE */
    const struct setting_info *setting; /* NULL: none; help lists them only with LISTS_SETTINGS */
    enum option_owner owner;            /* OF_ALL: struct options */
    unsigned parts;            /* for lists that verbs refer to: the parts this option belongs to */
    const struct option *list; /* OPTIONS_OF: not an option, but those of this list that are in
                                * `parts` (0: all); their struct begins at `at` of ours */
    uint64_t most;             /* of option_number, */
    const char *wrong;         /* and the message beyond it: "is not a ..." */
    const char *(*read)(
        const struct given *g);             /* of a selection (select_options.c); NULL: a text */
    const char *(*word_at)(unsigned index); /* the words that `value` describes; or NULL */
    /* the possible tables, which may share names */
    const struct table_info *(*table_at)(unsigned index);
};

/* The middle of a row, before its help: its function and the member, with a checked type. */
#define OPTION_OWN(taken, of, member) .take = (taken), .at = offsetof(of, member)
#define OPTION_ALL(taken, member)                                                                  \
    .owner = OF_ALL, .take = (taken), .at = offsetof(struct options, member)
#define OPTION_TYPED(taken, of, member, type)                                                      \
    .take = (taken), .at = offsetof(of, member) + 0 * sizeof(&((of *)0)->member == (type *)0)
#define OPTION_FLAG(of, member) OPTION_TYPED(option_flag, of, member, bool)
#define OPTION_TEXT(of, member) OPTION_TYPED(option_text, of, member, const char *)
#define OPTION_NUMBER(of, member, its_most, its_wrong)                                             \
    .most = (its_most), .wrong = (its_wrong), OPTION_TYPED(option_number, of, member, uint64_t)
#define OPTION_OUTPUT                   OPTION_ALL(option_output, output)
#define OPTIONS_OF(its_list, its_parts) .list = (its_list), .parts = (its_parts)

option_take option_flag, option_text, option_choice, option_seconds;
option_take option_number; /* a uint64_t, at most `most` */
option_take option_output; /* an output file: at most one, and not a recording */
option_take option_once;   /* a text, at most once */

/* Ends an option_take: returns EXIT_OK if the value is right, else prints the option, the value and
 * `wrong` ("is not a ...") and returns EXIT_USAGE. */
enum exit_code option_end(const struct given *g, bool is_right, const char *wrong);

/* Reports that the option "is there twice". Returns EXIT_USAGE. */
enum exit_code option_twice(const struct given *g);

enum exit_code output_check(const struct given *g); /* a file name, as option_output does */

/* Parses a duration: "2", "500ms". */
bool seconds_parse(const char *value, double *seconds);

/* Parses plain digits: a number from `least` to `most`. */
bool number_parse(const char *value, uint64_t least, uint64_t most, uint64_t *number);

/* Options of verbs that read recordings: parts of read_options in their order, including the
 * selection (select_options.c). */
extern const struct option read_options[], select_options[];
#define READ_JOBS      (1u << 0)  /* --jobs */
#define READ_CYCLES    (1u << 1)  /* --cycle N|all */
#define READ_CYCLE     (1u << 2)  /* --cycle N */
#define READ_TIME      (1u << 3)  /* --from, --to */
#define READ_PLACE     (1u << 4)  /* --step, --range, --device */
#define READ_PROCESSES (1u << 5)  /* --job, --rank, --pid */
#define READ_EVENTS    (1u << 6)  /* --tid, --kind, --name, --min-duration */
#define READ_CLOCK     (1u << 7)  /* --clock */
#define READ_STEPS     (1u << 8)  /* --step-range, --step-by */
#define READ_SYMBOLS   (1u << 9)  /* --symbols */
#define READ_AGAINST   (1u << 10) /* --against */
#define READ_STRICT    (1u << 11) /* --strict */
#define READ_KEEP_LIVE (1u << 12) /* --keep-live */
#define READ_INDEX     (1u << 13) /* --no-index */
#define READ_SELECT    (READ_TIME | READ_PLACE | READ_PROCESSES | READ_EVENTS)
#define READ_PIECE     (READ_CYCLE | READ_SELECT)

/* Options of verbs that start a program. */
extern const struct option program_options[];

/* The parts of a verb's manual page. */
enum manual_part { PART_EXAMPLE, PART_VARIABLE, PART_FILE, PART_STATUS, PART_COUNT };

#define MANUAL_ROWS_MAX 14

struct manual_row {
    enum manual_part part;
    const char *name; /* NULL: end of the list, at most MANUAL_ROWS_MAX rows */
    const char *text;
};

#define TAKES_RECORDINGS 1u  /* requires a folder or file */
#define TAKES_PARTS      2u  /* may have none: the verb reports what is missing */
#define TAKES_PROGRAM    4u  /* options end at the program's name; settings are options too */
#define LISTS_SETTINGS   8u  /* its help and manual page list the settings */
#define VERB_MORE        16u /* help lists it after the others */
#define VERB_OLD         32u /* not in help: another verb replaced it */

struct verb {
    const char *name;
    enum exit_code (*run)(const struct options *options); /* NULL: the front command runs it */
    const struct option *options;                         /* its own options; NULL: only --help */
    const void *usual;                         /* its own struct with defaults; NULL: it has none */
    size_t own_bytes;                          /* size of that struct */
    unsigned takes;                            /* TAKES_..., LISTS_..., VERB_..., or 0 */
    const char *operands;                      /* for the synopsis line, after the options */
    const char *help;                          /* one line */
    struct manual_row manual[MANUAL_ROWS_MAX]; /* what is specific to its manual page */
};

/* Defines NAME_verb: the members in order, then the rows of its manual page. */
#define VERB_OWN(type, ...) &(const type){__VA_ARGS__}, sizeof(type)
#define VERB_NO_OWN         NULL, 0
#define VERB_IS(its_name, its_run, its_options, its_own, its_takes, its_operands, its_help, ...)   \
    const struct verb its_name##_verb = {#its_name, its_run,      its_options, its_own,            \
                                         its_takes, its_operands, its_help,    {__VA_ARGS__}}
#define OWN_BYTES_MAX 512

/* Returns the option at `index`, in help order; NULL: no more. */
const struct option *option_at(const struct verb *verb, unsigned index);

/* Returns the option of that name; NULL: the verb has none. */
const struct option *option_named(const struct verb *verb, const char *name);

/* Returns the value of an option given without one; it then takes one only after "=". NULL: its
 * value is the next word, or it takes none. */
const char *option_alone(const struct option *option);

/* Parses the words after the verb's name, argv[0], into `o`, which has `command`, `verb` and
 * `verbs`. `own`, of OWN_BYTES_MAX, becomes the verb's own struct. Returns EXIT_OK, or EXIT_USAGE
 * after one line that says what is wrong. */
enum exit_code options_parse(struct options *o, void *own, int argc, char **argv);

#endif
