/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `help`, and rows of options and tables for it and for the manual. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "output/output.h"
#include "settings.h"

#define HELP_COLUMN    26 /* column of the explanations */
#define HELP_WIDTH     92
#define ROW_TEXT_BYTES 512
#define FOLDER_PATTERN "gpuprof.PROGRAM.TIME" /* the default folder of run */

void print_wrapped(const char *text, size_t at, size_t column)
{
    if (at > 0 && at + 1 >= column) {
        putchar('\n');
        at = 0;
    }
    while (*text) {
        size_t length = strcspn(text, " \n");
        if (at > column && at + 1 + length > HELP_WIDTH) {
            putchar('\n');
            at = 0;
        }
        size_t spaces = at < column ? column - at : at > column;
        at += (size_t)printf("%*s%.*s", (int)spaces, "", (int)length, text);
        text += length;
        if (*text == '\n') {
            putchar('\n');
            at = 0;
        }
        text += *text != '\0';
    }
    putchar('\n');
}

static void print_row(const char *name, const char *text)
{
    print_wrapped(text, (size_t)printf("  %s", name), HELP_COLUMN);
}

/* ---- options --------------------------------------------------------------------------------- */

/* "-o, --output FILE", "--nested", "--sample[=RATE|off]"; for --tune "seal=TIME". */
static void option_words(const struct option *o, char *words)
{
    const char letter[] = {'-', o->letter, '\0'}, *value = o->value ? o->value : "";
    bool is_tuning = o->in == HELP_TUNING, is_plain = !*value && !is_tuning;
    bool may_be_alone = *value && option_alone(o);
    snprintf(words, ROW_TEXT_BYTES, "%s%s%s%s%s%s%s", o->letter ? letter : "",
             o->letter ? ", " : "", is_tuning ? "" : "--", o->name,
             is_plain       ? ""
             : may_be_alone ? "[="
             : is_tuning    ? "="
                            : " ",
             is_tuning && !*value ? "off|on" : value, may_be_alone ? "]" : "");
}

/* The help of an option; of a setting with its variable and default. */
static const char *option_help(const struct option *o, char *text)
{
    if (!o->setting)
        return o->help;
    bool is_out = o->setting == &setting_infos[SETTING_OUT];
    const char *usual = is_out ? FOLDER_PATTERN : o->setting->default_value;
    snprintf(text, ROW_TEXT_BYTES, "%s (%s%s%s)", o->help, o->setting->variable,
             *usual ? "; default: " : "", usual);
    return text;
}

unsigned each_option(const struct verb *verb, enum help_group group, bool all, item_fn *item)
{
    const struct option *o;
    unsigned count = 0;
    for (unsigned i = 0; (o = option_at(verb, i)); i++) {
        char words[ROW_TEXT_BYTES], text[ROW_TEXT_BYTES];
        bool is_listed = o->help && (!o->setting || verb->takes & LISTS_SETTINGS);
        if (!is_listed || (o->in & ~(unsigned)HELP_MORE) != group || (!all && o->in & HELP_MORE))
            continue;
        count++;
        option_words(o, words);
        if (item)
            item(words, option_help(o, text));
    }
    return count;
}

/* Prints the options by group, and how many were left out. */
static void help_options(const struct verb *verb, bool all)
{
    static const char *const titles[HELP_GROUPS] = {[HELP_WHAT] = "what to record",
                                                    [HELP_WHEN] = "when to record",
                                                    [HELP_LIMITS] = "limits",
                                                    [HELP_SHOW] = "what to show",
                                                    [HELP_SELECT] = "what to select",
                                                    [HELP_READ] = "how to read",
                                                    [HELP_OUTPUT] = "output",
                                                    [HELP_OTHER] = "options",
                                                    [HELP_TUNING] = "tuning, as --tune NAME=VALUE"};
    unsigned left_out = 0;
    for (unsigned i = HELP_WHAT; i <= HELP_GROUPS; i++) { /* the last is HELP_OTHER */
        enum help_group group = i % HELP_GROUPS;
        if (group == HELP_TUNING && !all)
            continue;
        unsigned listed = each_option(verb, group, all, NULL);
        left_out += each_option(verb, group, true, NULL) - listed;
        if (listed)
            printf("\n%s:\n", titles[group]);
        each_option(verb, group, all, print_row);
    }
    if (verb->takes & LISTS_SETTINGS)
        printf("\nAn environment variable in brackets sets the same; the option wins.\n" UNITS_TEXT
               "\n");
    else if (verb->takes & TAKES_PROGRAM)
        printf("\n" RUN_OPTIONS_TEXT "\n");
    if (left_out)
        printf("\n'gpuprof help %s --help-all' lists %u more options.\n", verb->name, left_out);
}

/* ---- tables ---------------------------------------------------------------------------------- */

const struct table_info *help_table_at(const struct verb *verb, unsigned index)
{
    const struct option *option = option_named(verb, "table");
    return option && option->table_at ? option->table_at(index) : NULL;
}

/* Writes "GPU idle time by cause", "... (--by=stack)". */
static const char *table_about(const struct table_info *info, char *text)
{
    static const char *const ways[] = {[BY_STACK] = " (--by=stack)",
                                       [BY_PYTHON_LINE] = " (--by=python-line)",
                                       [BY_THREAD] = " (--by=thread)",
                                       [BY_SOURCE] = " (--source)"};
    const char *title = info->title ? info->title : info->name;
    snprintf(text, ROW_TEXT_BYTES, "%s%s", info->about ? info->about : title,
             info->by ? ways[info->by] : "");
    return text;
}

static void each_column(const struct table_info *info, item_fn *item)
{
    char name[ROW_TEXT_BYTES];
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct column *c = &info->columns[i];
        bool has_label = c->label && *c->label;
        snprintf(name, sizeof name, has_label ? "%s%s(%s)" : "%s", c->key ? c->key : "",
                 c->key ? " " : "", c->label);
        if (c->doc)
            item(name, c->doc);
    }
}

void each_table(const struct verb *verb, item_fn *item, item_fn *column)
{
    const struct table_info *info, *before = NULL;
    char text[ROW_TEXT_BYTES];
    for (unsigned i = 0; (info = help_table_at(verb, i)); i++, before = info) {
        if (!before || strcmp(info->name, before->name) != 0)
            item(info->name, table_about(info, text));
        if (column)
            each_column(info, column);
    }
}

static bool is_either(const char *name, const char *one, const char *other)
{
    return (one && strcmp(name, one) == 0) || (other && strcmp(name, other) == 0);
}

/* Prints help for the verb's tables of that name; `of_keys`: for those that only have it in json or
 * csv. Returns whether there are any. */
static bool help_tables(const struct verb *verb, const char *name, bool of_keys, bool has_title)
{
    const struct table_info *info;
    char text[ROW_TEXT_BYTES];
    bool any = false;
    for (unsigned i = 0; (info = help_table_at(verb, i)); i++) {
        bool is_named = is_either(name, info->name, info->old_name);
        if (of_keys ? is_named || !is_either(name, info->key, info->csv_name) : !is_named)
            continue;
        if (!any && !has_title) {
            printf("usage: gpuprof %s --table=%s ...\n\n", verb->name, info->name);
            print_wrapped("Each column has its name in json and csv, and in brackets its "
                          "heading in the text. _ns means nanoseconds, _share a share of 1.",
                          0, 0);
        }
        printf("\n%s: %s\n", info->key ? info->key : info->name, table_about(info, text));
        each_column(info, print_row);
        any = true;
    }
    return any;
}

static bool help_table(const struct verb *const *verbs, const char *name)
{
    bool any = false;
    for (; *verbs && !any; verbs++) {
        any = help_tables(*verbs, name, false, false);
        any |= help_tables(*verbs, name, true, any);
    }
    return any;
}

/* ---- the verb -------------------------------------------------------------------------------- */

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

static void help_start(const char *command)
{
    static const char *const lines[][2] = {
        {"run python train.py", "record; the data folder is named at the end"},
        {"report DIR", "what to change first; -o page.html: as a page"},
        {"view DIR", "the page and the trace, in a browser"},
        {"memory DIR", "who held the memory of the GPUs"},
        {"demo", "all of it on a simulated CUDA, without a GPU"},
        {"doctor", "what would be recorded on this machine"},
        {"help", "all verbs; 'help run': its options"}};
    printf(INTRO_TEXT "\n\n");
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++)
        printf("  %s %-22s %s\n", command, lines[i][0], lines[i][1]);
}

static void help_all(const struct verb *const *verbs)
{
    printf("usage: gpuprof VERB [OPTIONS] ...\n\n");
    help_start("gpuprof");
    printf("\nverbs:\n");
    print_verbs(verbs, 0);
    printf("\nmore:\n");
    print_verbs(verbs, VERB_MORE);
    print_row("--version", "print the version");
    printf("\ntopics:\n");
    for (const struct topic *topic = topics; topic->name; topic++)
        print_row(topic->name, topic->title);
    printf("\n'gpuprof help WORD' explains a verb, a topic, a table or a finding.\n");
}

static void help_one(const struct verb *verb, bool all)
{
    unsigned examples = 0;
    printf("usage: gpuprof %s %s%s\n\n", verb->name, verb->options ? "[OPTIONS] " : "",
           verb->operands);
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

const struct verb *verb_find(const struct verb *const *verbs, const char *name)
{
    while (*verbs && strcmp((*verbs)->name, name) != 0)
        verbs++;
    return *verbs;
}

enum exit_code verb_unknown(const struct verb *const *verbs, const char *before, const char *what,
                            const char *name)
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
                       name[0] == '-' ? "option" : what, name, nearest_text(&nearest, "", text));
}

enum exit_code verb_missing(const char *command)
{
    help_start(command);
    return standard_output_end() == EXIT_OK ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

enum exit_code verb_help(const struct verb *const *verbs, const char *name, bool all)
{
    const struct verb *verb = name ? verb_find(verbs, name) : NULL;
    if (name && !verb)
        return verb_unknown(verbs, "help: ", "verb, topic, table or finding", name);
    if (verb)
        help_one(verb, all);
    else
        help_all(verbs);
    return standard_output_end();
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
    if (name && !verb_find(options->verbs, name)) {
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

static const struct option help_own[] = {
    {0, "help-all", NULL, .take = option_flag, .at = 0}, /* of the named verb */
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
