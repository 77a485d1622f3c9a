/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/workers.h"
#include "stream.h"

static enum exit_code take_jobs(const struct given *g)
{
    uint64_t jobs;
    if (!number_parse(g->value, 1, UINT32_MAX, &jobs))
        return option_end(g, false, "is not a number of processes, 1 or more");
    g->all->jobs = jobs < WORKERS_MAX ? (unsigned)jobs : WORKERS_MAX;
    return EXIT_OK;
}

static enum exit_code take_symbols(const struct given *g)
{
    struct stat status;
    g->all->symbols = g->value;
    bool is_folder = stat(g->value, &status) == 0 && S_ISDIR(status.st_mode);
    return option_end(g, is_folder || strcmp(g->value, SYMBOLS_OFF) == 0,
                      "is not a folder with binaries or debug files, nor 'none'");
}

static enum exit_code take_against(const struct given *g)
{
    if (g->all->against >= 0)
        return option_twice(g);
    g->all->against = g->all->path_count;
    return EXIT_OK;
}

static enum exit_code take_setting(const struct given *g)
{
    struct settings check;
    char reason[160];
    settings_init(&check);
    if (settings_set(&check, (enum setting_index)(g->option->setting - setting_infos), g->value,
                     reason, sizeof reason) != 0)
        return usage_error("%s: --%s: %s", g->all->verb->name, g->option->name, reason);
    *(const char **)g->at = g->value;
    return EXIT_OK;
}

static option_take take_tune;

/* The names of --tune, as NAME=DEFAULT. */
static const char *tune_word(unsigned index)
{
    static const char *const words[SETTING_COUNT] = {
#define SETTING(NAME, variable, option, group, kind, default_value, ...)                           \
    [SETTING_##NAME] = option "=" default_value,
#include "settings.def"
#undef SETTING
    };
    unsigned i = 0;
    while (i < SETTING_COUNT && (setting_infos[i].group != HELP_TUNING || index--))
        i++;
    return i < SETTING_COUNT ? words[i] : NULL;
}

/* ---- lists of options ------------------------------------------------------------------------ */

const struct option read_options[] = {
    {'j', "jobs", "N", OPTION_ALL(take_jobs, jobs),
     "Use N processors. N processes share the recordings if they can be read separately; otherwise "
     "a second one compresses and writes. The output is the same. Default: "
     "1; on a terminal, a report of a million records or more uses all, at most 16.",
     .parts = READ_JOBS, .in = HELP_READ},
    {OPTIONS_OF(select_options, READ_CYCLES | READ_PIECE)},
    {0, "clock", "collectives|wall", OPTION_ALL(option_choice, clock),
     "Align the hosts' clocks by the ends of the collectives that they share (needs recorded NCCL "
     "calls), or trust each host's own clock; default: collectives",
     .parts = READ_CLOCK, .in = HELP_READ | HELP_MORE},
    {0, "step-range", "PATTERN", OPTION_ALL(option_text, step_range),
     "Use each range of this name as a step; '*' matches any text, '?' one byte: 'iteration *'",
     .parts = READ_STEPS, .in = HELP_READ | HELP_MORE},
    {0, "step-by", "range|profiler|optimizer|dataloader|graph|NAME",
     OPTION_ALL(option_text, step_by),
     "Choose the steps: gpuprof_step() calls, PyTorch's labels (profiler, optimizer, dataloader), "
     "launches of one graph, or a range, label or optimizer class by name. Default: the first kind "
     "that was recorded.",
     .parts = READ_STEPS, .in = HELP_READ},
    {0, "symbols", "DIR|none", OPTION_ALL(take_symbols, symbols),
     "Also look for binaries and debug files in this folder (files, a .build-id tree or a system's "
     "root), or look up no symbols (none)",
     .parts = READ_SYMBOLS, .in = HELP_READ | HELP_MORE},
    {0, "against", NULL, OPTION_ALL(take_against, against),
     "Compare the runs named before this option (new) with those after it (old)",
     .parts = READ_AGAINST, .in = HELP_SELECT},
    {0, "strict", NULL, OPTION_ALL(option_flag, strict),
     "Exit with status 3 if any event was lost, not only if a file is damaged",
     .parts = READ_STRICT, .in = HELP_READ | HELP_MORE},
    {0, "keep-live", NULL, OPTION_ALL(option_flag, keep_live),
     "Leave the live files of ended processes in place", .parts = READ_KEEP_LIVE,
     .in = HELP_READ | HELP_MORE},
    {0, "no-index", NULL, OPTION_ALL(option_flag, no_index),
     "Ignore and do not write the cache of a large folder's report (.gpuprof-report)",
     .parts = READ_INDEX, .in = HELP_READ | HELP_MORE},
    {0},
};

static const struct option setting_options[] = {
#define SETTING(NAME, variable, its_name, group, kind, default_value, low, high, its_value,        \
                its_help, ...)                                                                     \
    {SETTING_##NAME == SETTING_OUT ? 'o' : 0,                                                      \
     its_name,                                                                                     \
     its_value,                                                                                    \
     OPTION_ALL(take_setting, settings[SETTING_##NAME]),                                           \
     its_help,                                                                                     \
     .in = group,                                                                                  \
     .setting = &setting_infos[SETTING_##NAME]},
#include "settings.def"
#undef SETTING
    {0}};

const struct option program_options[] = {
    {OPTIONS_OF(setting_options, 0)},
    {0, "tune", "NAME=VALUE", OPTION_ALL(take_tune, settings),
     "Set how gpuprof itself works, such as seal=200ms; 'gpuprof help tuning' lists the settings",
     .word_at = tune_word},
    {0},
};

static const struct option help_options[] = {
    {0, "help-all", NULL, OPTION_ALL(option_flag, help_all), "Print this help with all options"},
    {'h', "help", NULL, OPTION_ALL(option_flag, help), "Print this help"},
    {0},
};

/* Returns the option of these parts (0: all) at *index, which it lowers by those before; *own is
 * the offset that its `at` counts from. NULL: the list is too short. */
static const struct option *find_in(const struct option *list, unsigned parts, unsigned *index,
                                    size_t *own)
{
    for (; list->letter || list->name || list->list; list++) {
        unsigned its = parts ? list->parts & parts : list->parts;
        const struct option *found = NULL;
        if (parts && !its)
            continue;
        if (!list->list && !(*index)--)
            return list;
        if (list->list && (found = find_in(list->list, its, index, own))) {
            *own += list->at;
            return found;
        }
    }
    return NULL;
}

static const struct option *find_option(const struct verb *verb, unsigned index, size_t *own)
{
    const struct option *found = NULL;
    *own = 0;
    if (verb->options)
        found = find_in(verb->options, 0, &index, own);
    return found ? found : find_in(help_options, 0, &index, own);
}

const struct option *option_at(const struct verb *verb, unsigned index)
{
    size_t own;
    return find_option(verb, index, &own);
}

static const struct option *option_of(const struct verb *verb, const char *name, size_t length)
{
    const struct option *option;
    for (unsigned i = 0; (option = option_at(verb, i)); i++)
        if (option->name && word_is(name, length, option->name))
            return option;
    return NULL;
}

const struct option *option_named(const struct verb *verb, const char *name)
{
    return option_of(verb, name, strlen(name));
}

static enum exit_code take_tune(const struct given *g)
{
    const char *equals = strchrnul(g->value, '=');
    const struct option *o = option_of(g->all->verb, g->value, (size_t)(equals - g->value));
    if (!o || o->in != HELP_TUNING || !*equals)
        return usage_error("%s: --tune: '%s' is not NAME=VALUE of a tuning setting; "
                           "'gpuprof help tuning' lists them",
                           g->all->verb->name, g->value);
    return take_setting(
        &(struct given){g->all, o, g->value + (equals + 1 - g->value), (char *)g->all + o->at});
}

const char *option_alone(const struct option *option)
{
    return option->setting ? setting_alone((enum setting_index)(option->setting - setting_infos))
                           : NULL;
}

/* ---- the command line ------------------------------------------------------------------------ */

/* A word of the command line that is an option. */
struct word {
    const char *text, *name;
    size_t length; /* of the name; 0: a letter */
    char *value;   /* what follows '=' or the letter; NULL: nothing */
};

static struct word split(char *text)
{
    char *name = text + 2;
    if (text[1] != '-')
        return (struct word){text, text + 1, 0, *name ? name : NULL};
    size_t length = strcspn(name, "=");
    return (struct word){text, name, length, name[length] ? name + length + 1 : NULL};
}

static bool is_option(const struct option *option, const struct word *word)
{
    bool is_same = word->length ? option->name && word_is(word->name, word->length, option->name)
                                : option->letter && word->name[0] == option->letter;
    return is_same && (!word->value || option->value);
}

/* Reports an unknown option, and names a verb that has it, or a similar option. */
static enum exit_code unknown_option(const struct options *o, const struct word *word)
{
    char text[NEAREST_TEXT_BYTES];
    struct nearest nearest = nearest_to(word->name, word->length);
    const struct option *option;
    const struct verb *const *other = o->verbs;
    for (unsigned i = 0; (option = option_at(o->verb, i)); i++)
        if (option->name)
            nearest_offer(&nearest, option->name);
    if (nearest.found && nearest.distance == 0)
        return usage_error("%s: --%s takes no value", o->verb->name, nearest.found);
    while (*other && !(word->length && option_of(*other, word->name, word->length)))
        other++;
    if (*other)
        snprintf(text, sizeof text, " (it is an option of 'gpuprof %s')", (*other)->name);
    return usage_error("%s: unknown option '%s'%s; try 'gpuprof help %s'", o->verb->name,
                       word->text, *other ? text : nearest_text(&nearest, "--", text),
                       o->verb->name);
}

/* Parses argv[*at]; *at moves on if the value is the next word. */
static enum exit_code parse_option(struct options *o, char *own, char **argv, int *at)
{
    struct word word = split(argv[*at]);
    const struct option *option;
    size_t own_at;
    for (unsigned i = 0; (option = find_option(o->verb, i, &own_at)); i++)
        if (is_option(option, &word))
            break;
    if (!option)
        return unknown_option(o, &word);
    const char *alone = option_alone(option);
    if (!word.value)
        word.value = alone ? (char *)alone : option->value && argv[*at + 1] ? argv[++*at] : NULL;
    if (option->value && (!word.value || !*word.value))
        return usage_error("%s: %s needs a value: %s", o->verb->name, word.text,
                           *option->value ? option->value : "on|off");
    char *member = option->owner == OF_ALL ? (char *)o : own + own_at;
    return option->take(&(struct given){o, option, word.value, member + option->at});
}

/* Checks combinations of options, and the operands. */
static enum exit_code check_all(const struct options *o)
{
    if (o->step_range && o->step_by && strcmp(o->step_by, "range") != 0)
        return usage_error("%s: --step-range and --step-by=%s cannot be combined; give one of them",
                           o->verb->name, o->step_by);
    if (o->path_count == 0 && o->verb->takes & TAKES_RECORDINGS && !(o->verb->takes & TAKES_PARTS))
        return usage_error("%s: name a data folder or a recording (. is the current folder); try "
                           "'gpuprof help %s'",
                           o->verb->name, o->verb->name);
    return EXIT_OK;
}

enum exit_code options_parse(struct options *o, void *own, int argc, char **argv)
{
    bool words_only = false;
    assert(o->verb->own_bytes <= OWN_BYTES_MAX);
    if (o->verb->own_bytes)
        memcpy(own, o->verb->usual, o->verb->own_bytes);
    o->own = own;
    o->paths = argv + 1;
    o->against = -1;
    for (int at = 1; at < argc; at++) {
        char *word = argv[at];
        if (!words_only && strcmp(word, "--") == 0) {
            words_only = true;
        } else if (!words_only && word[0] == '-' && word[1]) {
            enum exit_code code = parse_option(o, own, argv, &at);
            if (code != EXIT_OK || o->help || o->help_all)
                return code;
        } else {
            words_only |= (o->verb->takes & TAKES_PROGRAM) != 0;
            o->paths[o->path_count++] = word; /* never ahead of `at` */
        }
    }
    o->paths[o->path_count] = NULL;
    return check_all(o);
}

/* ---- ways that options of several verbs share ------------------------------------------------ */

enum exit_code option_end(const struct given *g, bool is_right, const char *wrong)
{
    return is_right ? EXIT_OK
                    : usage_error("%s: --%s: '%s' %s", g->all->verb->name, g->option->name,
                                  g->value, wrong);
}

enum exit_code option_twice(const struct given *g)
{
    return usage_error(
        "%s: --%s was given twice; give it once%s", g->all->verb->name, g->option->name,
        g->option->value && strchr(g->option->value, ',') ? ", with commas between the values"
                                                          : "");
}

enum exit_code option_flag(const struct given *g)
{
    *(bool *)g->at = true;
    return EXIT_OK;
}

enum exit_code option_text(const struct given *g)
{
    *(const char **)g->at = g->value;
    return EXIT_OK;
}

enum exit_code option_once(const struct given *g)
{
    return *(const char **)g->at ? option_twice(g) : option_text(g);
}

enum exit_code output_check(const struct given *g)
{
    size_t length = strlen(g->value), end = strlen(STREAM_SUFFIX);
    if (length >= end && strcmp(g->value + length - end, STREAM_SUFFIX) == 0)
        return usage_error(
            "%s: %s: not written: it is a recording, or its name is that of one; name another file",
            g->all->verb->name, g->value);
    return EXIT_OK;
}

enum exit_code option_output(const struct given *g)
{
    const char **path = g->at, *verb = g->all->verb->name;
    if (*path)
        return usage_error("%s: -o was given twice (%s, %s); %s writes one file at a time", verb,
                           *path, g->value, verb);
    *path = g->value;
    return output_check(g);
}

_Static_assert(sizeof(enum clock_choice) == sizeof(int), "a choice is kept as a number");

enum exit_code option_choice(const struct given *g)
{
    int choice = (int)word_in(g->option->value, g->value);
    if (choice < 0)
        return usage_error("%s: --%s: '%s' is not one of %s", g->all->verb->name, g->option->name,
                           g->value, g->option->value);
    memcpy(g->at, &choice, sizeof choice);
    return EXIT_OK;
}

bool seconds_parse(const char *value, double *seconds)
{
    uint64_t ns;
    bool is_right = duration_parse(value, &ns);
    *seconds = is_right ? (double)ns / 1e9 : 0;
    return is_right;
}

enum exit_code option_seconds(const struct given *g)
{
    return option_end(g, seconds_parse(g->value, g->at),
                      "is not a time such as 2 (seconds), 500ms or 1min");
}

bool number_parse(const char *value, uint64_t least, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(value, &end, 10);
    return isdigit((unsigned char)*value) && !*end && !errno && *number >= least && *number <= most;
}

enum exit_code option_number(const struct given *g)
{
    const struct option *o = g->option;
    return option_end(g, number_parse(g->value, 0, o->most, g->at), o->wrong);
}
