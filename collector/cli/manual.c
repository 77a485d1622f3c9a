/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs `help` and `manual`, made from the tables of verbs and settings. */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/text.h"
#include "cli/help.h"
#include "output/output.h"
#include "settings.h"

#define UNITS_TEXT                                                                                 \
    "Sizes have K, M, G or T (KB, KiB: the same, 1024 bytes); times ns, us, ms, s, min or h"

#define RUN_OPTIONS_TEXT "It also takes the options of 'gpuprof run'."

#define TABLE_WORDS                                                                                \
    "Each column has its name in json and csv, and in brackets its heading in the text. _ns "      \
    "means "                                                                                       \
    "nanoseconds, _share a share of 1."

static const char intro[] =
    "gpuprof shows where the time and the memory of a CUDA program go, in all its processes and "
    "threads, and what to change first. The program is not changed, and no root rights are needed.";

/* "[OPTIONS] ", before the operands. */
static const char *synopsis_options(const struct verb *verb)
{
    return verb->options ? "[OPTIONS] " : "";
}

static void print_verbs(const struct verb *const *verbs, unsigned which)
{
    char name[64];
    for (; *verbs; verbs++) {
        const struct verb *verb = *verbs; /* verbs of the front command also show operands */
        snprintf(name, sizeof name, "%s%s%s", verb->name, verb->run ? "" : " ",
                 verb->run ? "" : verb->operands);
        if ((verb->takes & (VERB_MORE | VERB_OLD)) == which)
            print_row(name, verb->help);
    }
}

static void help_all(const struct verb *const *verbs)
{
    printf("usage: gpuprof VERB [OPTIONS] ...\n\n");
    print_wrapped(intro, 0, 0);
    printf("\n  gpuprof run python train.py\n  gpuprof report DIR\n"
           "  gpuprof report -o page.html DIR\n  gpuprof view DIR\n"
           "  gpuprof merge DIR -o trace.json\n  gpuprof flame DIR -o flame.svg\n\nverbs:\n");
    print_verbs(verbs, 0);
    printf("\nmore:\n");
    print_verbs(verbs, VERB_MORE);
    print_row("--version", "print the version");
    printf("\ntopics:\n");
    for (const struct topic *topic = topics; topic->name; topic++)
        print_row(topic->name, topic->title);
    printf("\n'gpuprof help WORD' explains a verb, a topic, a table or a finding.\n");
}

/* Prints the options by group, and how many were left out. */
static void help_options(const struct verb *verb, bool all)
{
    static const struct {
        enum help_group group;
        const char *title;
    } groups[] = {{HELP_WHAT, "what to record"},
                  {HELP_WHEN, "when to record"},
                  {HELP_LIMITS, "limits"},
                  {HELP_SHOW, "what to show"},
                  {HELP_SELECT, "what to select"},
                  {HELP_READ, "how to read"},
                  {HELP_OUTPUT, "output"},
                  {HELP_OTHER, "options"},
                  {HELP_TUNING, "tuning, as --tune NAME=VALUE"}};
    bool has_settings = verb->takes & LISTS_SETTINGS;
    unsigned left_out = 0;
    for (unsigned i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        enum help_group group = groups[i].group;
        unsigned listed = each_option(verb, group, all, NULL);
        left_out += each_option(verb, group, true, NULL) - listed;
        if (has_settings && (all || group != HELP_TUNING)) {
            unsigned settings = each_setting(group, all, NULL);
            left_out += each_setting(group, true, NULL) - settings;
            listed += settings;
        }
        if (!listed)
            continue;
        printf("\n%s:\n", groups[i].title);
        if (has_settings)
            each_setting(group, all, print_row);
        each_option(verb, group, all, print_row);
    }
    if (has_settings)
        printf("\nAn environment variable in brackets sets the same; the option wins.\n" UNITS_TEXT
               ".\n");
    else if (verb->takes & TAKES_PROGRAM)
        printf("\n" RUN_OPTIONS_TEXT "\n");
    if (left_out)
        printf("\n'gpuprof help %s --help-all' lists %u more options.\n", verb->name, left_out);
}

static void help_one(const struct verb *verb, bool all)
{
    unsigned examples = 0;
    printf("usage: gpuprof %s %s%s\n\n", verb->name, synopsis_options(verb), verb->operands);
    print_wrapped(verb->help, 0, 0);
    for (const struct manual_row *row = verb->manual; row->name && examples < 2; row++)
        if (row->part == PART_EXAMPLE) {
            printf("%s  %s\n", examples++ ? "" : "\n", row->name);
            print_wrapped(row->text, 0, 6);
        }
    help_options(verb, all);
    if (help_table_at(verb, 0)) {
        printf("\ntables:\n");
        each_table(verb, print_row, NULL);
        printf("\n'gpuprof help TABLE' prints a table's columns.\n");
    }
}

static const struct verb *find_verb(const struct verb *const *verbs, const char *name)
{
    while (*verbs && strcmp((*verbs)->name, name) != 0)
        verbs++;
    return *verbs;
}

enum exit_code verb_unknown(const struct verb *const *verbs, const char *before, const char *name)
{
    char text[NEAREST_TEXT_BYTES];
    if (access(name, F_OK) == 0)
        return usage_error("%s'%s' is a file or folder, not a verb; try: gpuprof report %s", before,
                           name, name);
    struct nearest nearest = nearest_to(name, strlen(name));
    nearest_offer(&nearest, "--version");
    for (; *verbs; verbs++)
        nearest_offer(&nearest, (*verbs)->name);
    return usage_error("%sunknown %s '%s'%s; try 'gpuprof help'", before,
                       name[0] == '-' ? "option" : "verb", name, nearest_text(&nearest, "", text));
}

enum exit_code verb_missing(const char *command)
{
    printf("gpuprof shows where the time and the memory of a CUDA program go, and what to\n"
           "change first, without a change to the program and without root.\n"
           "\n"
           "  %s run python train.py    record; the data folder is named at the end\n"
           "  %s report DIR             what to change first; -o page.html: as a page\n"
           "  %s view DIR               the page and the trace, in a browser\n"
           "  %s memory DIR             who held the memory of the GPUs\n"
           "\n"
           "  %s demo                   all of it on a simulated CUDA, without a GPU\n"
           "  %s doctor                 what would be recorded on this machine\n"
           "  %s help                   all verbs; 'help run': its options\n",
           command, command, command, command, command, command, command);
    return standard_output_end() == EXIT_OK ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

enum exit_code verb_help(const struct verb *const *verbs, const char *name, bool all)
{
    const struct verb *verb = name ? find_verb(verbs, name) : NULL;
    if (name && !verb)
        return verb_unknown(verbs, "help: ", name);
    if (verb)
        help_one(verb, all);
    else
        help_all(verbs);
    return standard_output_end();
}

/* Help for the tables of that name, in text or in json and csv. False: no such table. */
static bool help_table(const struct verb *const *verbs, const char *name)
{
    const struct table_info *info;
    char text[HELP_TABLE_BYTES];
    bool any = false;
    for (; *verbs && !any; verbs++)
        for (unsigned i = 0; (info = help_table_at(*verbs, i)); i++) {
            const char *names[] = {info->name, info->old_name, info->key, info->csv_name};
            unsigned own = 0;
            while (own < 4 && !(names[own] && strcmp(names[own], name) == 0))
                own++;
            if (own == 4)
                continue;
            help_table_about(info, text, sizeof text);
            if (!any) {
                printf("usage: gpuprof %s --table=%s ...\n\n", (*verbs)->name, info->name);
                print_wrapped(TABLE_WORDS, 0, 0);
            }
            printf("\n%s: %s\n", info->key ? info->key : info->name, text);
            each_column(info, print_row);
            any = true;
        }
    return any;
}

static void help_topic(const struct verb *const *verbs, const struct topic *topic)
{
    printf("%s: %s\n\n", topic->name, topic->title);
    if (*topic->about) {
        print_wrapped(topic->about, 0, 0);
        putchar('\n');
    }
    topic_each(topic, &(struct topic_rows){verbs, print_row, NULL});
}

static enum exit_code help(const struct options *options)
{
    const char *name = options->paths[0];
    const bool *all = options->own;
    if (options->path_count > 1)
        return usage_error("help: too many arguments; try 'gpuprof help'");
    if (name && !find_verb(options->verbs, name)) {
        const struct topic *topic = topic_find(name);
        bool is_known = help_table(options->verbs, name) || help_finding(name);
        if (is_known && topic)
            putchar('\n');
        if (topic)
            help_topic(options->verbs, topic);
        if (is_known || topic)
            return standard_output_end();
    }
    return verb_help(options->verbs, name, *all);
}

/* ---- troff ---------------------------------------------------------------------------------- */

static void roff_options(const struct verb *verb)
{
    for (unsigned group = HELP_OTHER; group < HELP_TUNING; group++)
        each_option(verb, (enum help_group)group, true, roff_item);
    if (verb->takes & TAKES_PROGRAM && !(verb->takes & LISTS_SETTINGS))
        printf(".PP\n" RUN_OPTIONS_TEXT "\n");
}

static void roff_synopsis(const struct verb *verb)
{
    printf("%s", synopsis_options(verb));
    for (const char *p = verb->operands; *p; p++)
        printf("%s%c", *p == '-' ? "\\" : "", *p);
}

static void roff_verb(const struct verb *verb)
{
    printf(".SS \"gpuprof %s ", verb->name);
    roff_synopsis(verb);
    printf("\"\n");
    roff_text(verb->help);
    roff_options(verb);
    if (help_table_at(verb, 0)) {
        printf(".PP\n.B Tables\n");
        each_table(verb, roff_item, roff_column);
    }
    roff_parts(verb, ".PP\n.B ");
}

static void roff_settings(void)
{
    printf(".SH SETTINGS\n");
    roff_text("Each setting is an option of gpuprof run and an environment variable that the "
              "library reads; the option wins. " UNITS_TEXT ".");
    for (unsigned group = HELP_OTHER; group < HELP_TUNING; group++)
        each_setting((enum help_group)group, true, roff_item);
    printf(".PP\n");
    roff_text("These are set by --tune NAME=VALUE; the defaults suit most programs:");
    each_setting(HELP_TUNING, true, roff_item);
}

static enum exit_code manual_of_verb(const struct verb *verb)
{
    printf(".TH GPUPROF\\-%s 1 \"\" \"gpuprof %s\" \"User Commands\"\n", verb->name,
           GPUPROF_RELEASE);
    printf(".SH NAME\ngpuprof\\-%s \\- ", verb->name);
    roff_text(verb->help);
    printf(".SH SYNOPSIS\n.B gpuprof %s\n", verb->name);
    roff_synopsis(verb);
    printf("\n.SH OPTIONS\n");
    roff_options(verb);
    if (help_table_at(verb, 0)) {
        printf(".SH TABLES\n");
        each_table(verb, roff_item, roff_column);
    }
    if (verb->takes & LISTS_SETTINGS)
        roff_settings();
    roff_parts(verb, ".SH ");
    printf(".SH \"SEE ALSO\"\n.BR gpuprof (1)\n");
    return standard_output_end();
}

static enum exit_code manual_of_topic(const struct verb *const *verbs, const struct topic *topic)
{
    printf(".TH GPUPROF\\-%s 7 \"\" \"gpuprof %s\" \"Miscellaneous\"\n", topic->name,
           GPUPROF_RELEASE);
    printf(".SH NAME\ngpuprof\\-%s \\- ", topic->name);
    roff_text(topic->title);
    printf(".SH DESCRIPTION\n");
    if (*topic->about)
        roff_text(topic->about);
    topic_each(topic, &(struct topic_rows){verbs, roff_item, roff_column});
    printf(".SH \"SEE ALSO\"\n.BR gpuprof (1)\n");
    return standard_output_end();
}

static enum exit_code manual(const struct options *options)
{
    const char *of = options->path_count ? options->paths[0] : NULL;
    const struct verb *verb = of ? find_verb(options->verbs, of) : NULL;
    bool of_header = of && strcmp(of, "gpuprof.h") == 0;
    const struct topic *topic = of && !verb ? topic_find(of) : NULL;
    bool is_known = verb || topic || of_header;
    if (options->path_count > is_known)
        return is_known ? usage_error("manual: unknown argument '%s'; try 'gpuprof help manual'",
                                      options->paths[1])
                        : verb_unknown(options->verbs, "manual: ", of);
    if (is_known)
        return verb    ? manual_of_verb(verb)
               : topic ? manual_of_topic(options->verbs, topic)
                       : manual_of_header();
    printf(".TH GPUPROF 1 \"\" \"gpuprof %s\" \"User Commands\"\n", GPUPROF_RELEASE);
    printf(".SH NAME\ngpuprof \\- record the CUDA calls of a program\n"
           ".SH SYNOPSIS\n.B gpuprof run\n[OPTIONS] [\\-\\-] PROGRAM [ARGUMENTS]\n.br\n"
           ".B gpuprof merge\nDIR \\-o trace.json\n.br\n.B gpuprof report\nDIR\n.br\n"
           ".B gpuprof flame\nDIR \\-o flame.svg\n"
           ".SH DESCRIPTION\n");
    roff_text(intro);
    printf(".SH VERBS\n");
    for (const struct verb *const *each = options->verbs; *each; each++)
        if (!((*each)->takes & VERB_OLD))
            roff_verb(*each);
    roff_settings();
    roff_sections();
    printf(".SH \"SEE ALSO\"\n");
    for (const struct verb *const *each = options->verbs; *each; each++)
        if ((*each)->run && !((*each)->takes & VERB_OLD))
            printf(".BR gpuprof\\-%s (1),\n", (*each)->name);
    for (const struct topic *each = topics; each->name; each++)
        printf(".BR gpuprof\\-%s (7),\n", each->name);
    printf(".BR gpuprof.h (3)\n");
    return standard_output_end();
}

VERB_IS(manual, manual, NULL, VERB_NO_OWN, VERB_MORE, "[VERB|TOPIC|gpuprof.h]",
        "print the manual page of gpuprof, a verb, a topic or the header",
        {PART_EXAMPLE, "gpuprof manual | man -l -", "read this page"},
        {PART_EXAMPLE, "gpuprof manual run | man -l -", "read the page of a verb, gpuprof-run(1)"},
        {PART_EXAMPLE, "gpuprof manual gpuprof.h | man -l -", "read the page of the header"},
        {PART_STATUS, "0", "it was printed"});

static const struct option help_own[] = {
    {0, "help-all", NULL, .take = option_flag, .at = 0, "Print all options of the verb"},
    {0},
};

VERB_IS(help, help, help_own, VERB_OWN(bool, false), VERB_MORE, "[VERB|TOPIC|TABLE|FINDING]",
        "explain a verb, a topic, the columns of a table, or a finding",
        {PART_EXAMPLE, "gpuprof help run --help-all", "print all options of run"},
        {PART_EXAMPLE, "gpuprof help idle", "print the columns of the table idle"},
        {PART_EXAMPLE, "gpuprof help sync-in-loop", "explain this finding"},
        {PART_STATUS, "0", "it was printed"});

/* Run by the front command (scripts/gpuprof). */
VERB_IS(demo, NULL, NULL, VERB_NO_OWN, 0, "[DIR]",
        "record a small program on a simulated CUDA, without a GPU, and show its report",
        {PART_EXAMPLE, "gpuprof demo", "record into a new folder, named by the time"},
        {PART_EXAMPLE, "gpuprof demo data", "record into this folder"},
        {PART_FILE, "gpuprof.demo.TIME/", "the data folder, with trace.json in it"},
        {PART_STATUS, "0", "it was recorded and reported"});
