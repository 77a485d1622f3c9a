/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "settings.h"

#define HELP_COLUMN       26 /* column of the explanations */
#define HELP_WIDTH        92
#define COLUMN_TEXT_BYTES 128
#define FOLDER_PATTERN    "gpuprof.PROGRAM.TIME" /* the default folder of run */

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
        if (at < column)
            printf("%*s", (int)(column - at), "");
        else if (at > column)
            putchar(' ');
        at = at < column ? column : at > column ? at + 1 : at;
        printf("%.*s", (int)length, text);
        at += length;
        text += length;
        if (*text == '\n') {
            putchar('\n');
            at = 0;
        }
        text += *text != '\0';
    }
    putchar('\n');
}

void print_row(const char *name, const char *text)
{
    print_wrapped(text, (size_t)printf("  %s", name), HELP_COLUMN);
}

/* "--buffer SIZE", "--nested", "--sample[=RATE|off]"; for --tune "seal=TIME". */
static void option_name(int index, char *name, size_t name_bytes)
{
    const struct setting_info *info = &setting_infos[index];
    bool may_be_alone = *info->value && setting_alone((enum setting_index)index);
    bool is_tuning = info->group == HELP_TUNING;
    snprintf(name, name_bytes, "%s%s%s%s%s",
             index == SETTING_OUT ? "-o, --"
             : is_tuning          ? ""
                                  : "--",
             info->option,
             may_be_alone   ? "[="
             : is_tuning    ? "="
             : *info->value ? " "
                            : "",
             is_tuning && !*info->value ? "off|on" : info->value, may_be_alone ? "]" : "");
}

static void setting_text(int index, char *text, size_t text_bytes)
{
    const struct setting_info *info = &setting_infos[index];
    const char *default_value = index == SETTING_OUT ? FOLDER_PATTERN : info->default_value;
    snprintf(text, text_bytes, "%s (%s%s%s)", info->help, info->variable,
             *default_value ? "; default: " : "", default_value);
}

/* "-o, --output FILE". */
static void option_words(const struct option *info, char *words, size_t words_bytes)
{
    char letter[3] = {'-', info->letter, '\0'};
    snprintf(words, words_bytes, "%s%s%s%s%s%s", info->letter ? letter : "",
             info->letter && info->name ? ", " : "", info->name ? "--" : "",
             info->name ? info->name : "", info->value ? " " : "", info->value ? info->value : "");
}

/* Whether something in group `in` belongs to this list of `group`, with all or only few entries. */
static bool is_in(unsigned in, enum help_group group, bool all)
{
    return (in & ~(unsigned)HELP_MORE) == group && (all || !(in & HELP_MORE));
}

unsigned each_option(const struct verb *verb, enum help_group group, bool all, item_fn *item)
{
    const struct option *option;
    unsigned count = 0;
    for (unsigned i = 0; (option = option_at(verb, i)); i++) {
        char words[64];
        option_words(option, words, sizeof words);
        if (option->help && is_in(option->in, group, all) && ++count && item)
            item(words, option->help);
    }
    return count;
}

unsigned each_setting(enum help_group group, bool all, item_fn *item)
{
    unsigned count = 0;
    for (int i = 0; i < SETTING_COUNT; i++) {
        char name[128], text[512];
        option_name(i, name, sizeof name);
        setting_text(i, text, sizeof text);
        if (is_in(setting_infos[i].group, group, all) && ++count && item)
            item(name, text);
    }
    return count;
}

const struct table_info *help_table_at(const struct verb *verb, unsigned index)
{
    const struct option *option = option_named(verb, "table");
    return option && option->table_at ? option->table_at(index) : NULL;
}

void help_table_about(const struct table_info *info, char *text, size_t text_bytes)
{
    static const char *const ways[] = {[BY_STACK] = " (--by=stack)",
                                       [BY_PYTHON_LINE] = " (--by=python-line)",
                                       [BY_THREAD] = " (--by=thread)",
                                       [BY_SOURCE] = " (--source)"};
    snprintf(text, text_bytes, "%s%s",
             info->about   ? info->about
             : info->title ? info->title
                           : info->name,
             info->by ? ways[info->by] : "");
}

void each_column(const struct table_info *info, item_fn *item)
{
    char name[COLUMN_TEXT_BYTES];
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
    char text[HELP_TABLE_BYTES];
    for (unsigned i = 0; (info = help_table_at(verb, i)); i++, before = info) {
        help_table_about(info, text, sizeof text);
        if (!before || strcmp(info->name, before->name) != 0)
            item(info->name, text);
        if (column)
            each_column(info, column);
    }
}
