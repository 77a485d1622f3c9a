/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs and their options. A verb is one constant in its own file, with its options beside it: the
 * command line is parsed by that, and help, manual and completion are printed from it. Options of
 * several verbs stand once, beside what reads them, in a list that the verbs' own lists refer to.
 * (The settings of a recording, which are options of `run`, too, have a table: settings.def.)
 */
#ifndef GPUPROF_COLLECTOR_OPTIONS_H
#define GPUPROF_COLLECTOR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "base/select_wish.h"
#include "settings.h"

/* What hosts are put on one clock by, in the order of the option's words. */
enum clock_choice { CLOCK_BY_COLLECTIVES, CLOCK_BY_WALL };

#define SYMBOLS_OFF "none" /* instead of a folder: nothing is looked up */

/* The command line of a verb: what several verbs have in common, and beside it the verb's own. */
struct options {
    const char *command; /* how gpuprof was called: words for a shell */
    const struct verb *verb;
    const struct verb *const *verbs; /* all there are, ended by NULL */
    const void *own;    /* the struct that the verb's own options are of; NULL: it has none */
    bool help;          /* --help: the words behind it were not parsed */
    bool help_all;      /* --help-all: likewise, unless the verb is `help` */
    const char *output; /* NULL: standard output */
    bool strict;
    bool keep_live;
    bool no_index;
    unsigned jobs;          /* processors that may be used; 0: all */
    const char *step_range; /* NULL: none */
    const char *step_by;    /* NULL: by what there is */
    enum clock_choice clock;
    const char *symbols; /* a folder, SYMBOLS_OFF, or NULL */
    struct select_wish select;
    int against; /* of `paths`, from here on they stand behind --against; -1: it is not there */
    const char *settings[SETTING_COUNT]; /* of a program that is to run; NULL: not given */
    char **paths; /* a view of argv: operands, or the program and its arguments */
    int path_count;
};

struct option;

/* An option as it was given. */
struct given {
    struct options *all;
    const struct option *option;
    char *value; /* not empty; NULL: the option takes none */
    void *at;    /* what it sets */
};

/* Takes an option that was given: checks the value, and keeps it as a view. EXIT_OK, or EXIT_USAGE
 * after one line on stderr. */
typedef enum exit_code option_take(const struct given *g);

/* Whose the member is that an option sets. */
enum option_owner { OF_VERB, OF_ALL };

/* A list ends with an empty row. */
struct table_info;

struct option {
    char letter;       /* 0: none */
    const char *name;  /* without the hyphens; NULL: it has a letter only */
    const char *value; /* how help names it, a choice as a|b|c; NULL: it takes none */
    option_take *take;
    size_t at;                 /* of what it sets, in the verb's own struct or in struct options */
    const char *help;          /* NULL: help does not list it */
    unsigned in;               /* which group of help: enum help_group, and HELP_MORE */
    enum option_owner owner;   /* OF_ALL: that is struct options */
    unsigned parts;            /* of a list that verbs refer to: which of its parts this is in */
    const struct option *list; /* OPTIONS_OF: no option, but those of this list that are in `parts`
                                  (0: all); the struct that they set is at `at` of ours */
    uint64_t least, most;      /* bounds of option_number, */
    const char *wrong;         /* and what other values are told: "is not a ..." */
    const char *(*word_at)(unsigned index); /* the words that `value` only describes; or NULL */
    /* Likewise tables, of whose names several may be one. */
    const struct table_info *(*table_at)(unsigned index);
};

/* The middle of a row, before its help: what it does to which member, of a type that is checked. */
#define OPTION_OWN(taken, of, member) .take = (taken), .at = offsetof(of, member)
#define OPTION_ALL(taken, member)                                                                  \
    .owner = OF_ALL, .take = (taken), .at = offsetof(struct options, member)
#define OPTION_TYPED(taken, of, member, type)                                                      \
    .take = (taken), .at = offsetof(of, member) + 0 * sizeof(&((of *)0)->member == (type *)0)
#define OPTION_FLAG(of, member) OPTION_TYPED(option_flag, of, member, bool)
#define OPTION_TEXT(of, member) OPTION_TYPED(option_text, of, member, const char *)
#define OPTION_NUMBER(of, member, its_least, its_most, its_wrong)                                  \
    .least = (its_least), .most = (its_most), .wrong = (its_wrong),                                \
    OPTION_TYPED(option_number, of, member, uint64_t)
#define OPTION_OUTPUT                   OPTION_ALL(option_output, output)
#define OPTIONS_OF(its_list, its_parts) .list = (its_list), .parts = (its_parts)

option_take option_flag, option_text, option_choice, option_seconds;
option_take option_number; /* within `least` and `most`, a uint64_t */
option_take option_output; /* a file that is written, at most one, and no recording */
option_take option_once;   /* a text that is given at most once */

/* The end of an option_take: EXIT_OK if the value is right; else prints the option, the value and
 * `wrong` ("is not a ..."), and is EXIT_USAGE. */
enum exit_code option_end(const struct given *g, bool is_right, const char *wrong);

/* "is there twice". EXIT_USAGE. */
enum exit_code option_twice(const struct given *g);

/* As option_output says of the name of a file. */
enum exit_code output_check(const struct given *g);

/* A time of at most SECONDS_MAX, "2", "500ms". */
bool seconds_parse(const char *value, double *seconds);

/* Plain digits that are a number from `least` to `most`. */
bool number_parse(const char *value, uint64_t least, uint64_t most, uint64_t *number);

/* Of verbs that read recordings: parts of read_options, in the order in which they stand there,
 * the piece of a recording among them (select_options.c). */
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

/* Of verbs that a program is named to: -o and --tune; and what --tune can set, as NAME=DEFAULT. */
extern const struct option program_options[];
const char *tune_word(unsigned index);

/* What a verb's page in the manual says, part by part. */
enum manual_part { PART_EXAMPLE, PART_VARIABLE, PART_FILE, PART_STATUS, PART_COUNT };

#define MANUAL_ROWS_MAX 14

struct manual_row {
    enum manual_part part;
    const char *name; /* NULL: the end, of MANUAL_ROWS_MAX at most */
    const char *text;
};

#define TAKES_RECORDINGS 1u  /* at least one folder or file */
#define TAKES_PARTS      2u  /* or none: the verb says what is missing */
#define TAKES_PROGRAM    4u  /* options end at its name, and are settings, too */
#define LISTS_SETTINGS   8u  /* its help and its page have the settings */
#define VERB_MORE        16u /* help lists it behind the others */
#define VERB_OLD         32u /* help does not list it: another verb replaced it */

struct verb {
    const char *name;
    enum exit_code (*run)(const struct options *options); /* NULL: the front command has it */
    const struct option *options; /* its own; NULL: only --help, which each has */
    const void *usual;            /* its own struct, before any option; NULL: it has none */
    size_t own_bytes;             /* of that one */
    unsigned takes;               /* TAKES_..., LISTS_..., VERB_..., or 0 */
    const char *operands;         /* of the synopsis line, behind the options */
    const char *help;             /* one line */
    struct manual_row manual[MANUAL_ROWS_MAX]; /* what its page says beyond what many say */
};

/* The constant NAME_verb, by the members in their order, and at last the rows of its page. */
#define VERB_OWN(type, ...) &(const type){__VA_ARGS__}, sizeof(type)
#define VERB_NO_OWN         NULL, 0
#define VERB_IS(its_name, its_run, its_options, its_own, its_takes, its_operands, its_help, ...)   \
    const struct verb its_name##_verb = {#its_name, its_run,      its_options, its_own,            \
                                         its_takes, its_operands, its_help,    {__VA_ARGS__}}
#define OWN_BYTES_MAX 512

/* The option of that index, in the order in which help lists them; NULL: there are no more. */
const struct option *option_at(const struct verb *verb, unsigned index);

/* The option of that name; NULL: the verb has none. */
const struct option *option_named(const struct verb *verb, const char *name);

/*
 * Parses the words behind the name of the verb, argv[0], into `o`, which has `command`, `verb` and
 * `verbs`; `own`, of OWN_BYTES_MAX, becomes the verb's own struct. EXIT_OK, or EXIT_USAGE after one
 * line that says what is wrong.
 */
enum exit_code options_parse(struct options *o, void *own, int argc, char **argv);

#endif
