/* SPDX-License-Identifier: Apache-2.0 */
#include "base/next_words.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"

#define LINE_WORD   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./"
#define SHELL_PLAIN LINE_WORD "%+,:=@" /* characters that no shell treats specially */

/* Quotes `text` for a shell, in new memory. */
static char *shell_word(const char *text)
{
    /* zsh expands =ls to the path of ls. */
    bool is_plain = text[0] && text[0] != '=' && text[strspn(text, SHELL_PLAIN)] == '\0';
    char *word = memory_new(4 * strlen(text) + 3, 1), *at = word;
    if (!is_plain)
        *at++ = '\'';
    for (; *text; text++) {
        if (*text == '\'')
            at = stpcpy(at, "'\\'");
        *at++ = *text;
    }
    if (!is_plain)
        *at++ = '\'';
    *at = '\0';
    return word;
}

/* Appends a quoted word to *list; on failure frees *list, sets it to NULL and returns false. */
static bool add_word(char **list, const char *before, const char *text)
{
    char *clean = json_line(text), *word = shell_word(text);
    char *longer = text_printf("%s%s%s%s", *list ? *list : "", *list ? " " : "", before, word);
    bool is_good = strcmp(clean, text) == 0 && strlen(longer) <= NEXT_BYTES_MAX;
    free(is_good ? NULL : longer);
    free(word);
    free(clean);
    free(*list);
    *list = is_good ? longer : NULL;
    return is_good;
}

void next_words_init(struct next_words *w, const char *command, char *const *paths, int path_count)
{
    *w = (struct next_words){.command = command};
    for (int i = 0; i < path_count; i++)
        if (!add_word(&w->data, paths[i][0] == '-' ? "./" : "", paths[i]))
            return;
}

void next_words_add_option(struct next_words *w, const char *name, const char *value,
                           bool is_setting)
{
    struct next_option *o = &w->options[w->option_count];
    char before[64];
    snprintf(before, sizeof before, "--%s=", name);
    if (!value)
        return;
    *o = (struct next_option){.name = name, .is_setting = is_setting};
    if (add_word(&o->word, before, value)) {
        w->option_count++;
    } else if (!is_setting) {
        free(w->data); /* a suggestion without part of the data would be wrong */
        w->data = NULL;
    }
}

bool next_words_add_argument(struct next_words *w, const char *word)
{
    return add_word(&w->program, "", word);
}

void next_words_set_program(struct next_words *w, const char *arguments, char separator)
{
    /* A login shell is called "-bash", which would parse as an option. */
    if (!*arguments || *arguments == '-' || *arguments == separator)
        return;
    while (arguments) {
        const char *end = strchrnul(arguments, separator);
        char *word = memory_from(strndup(arguments, (size_t)(end - arguments)));
        bool is_added = next_words_add_argument(w, word);
        free(word);
        arguments = *end && is_added ? end + 1 : NULL;
    }
}

void next_words_release(struct next_words *w)
{
    free(w->data);
    free(w->program);
    for (unsigned i = 0; i < w->option_count; i++)
        free(w->options[i].word);
}

static bool says(const char *line, const char *name)
{
    char option[64];
    snprintf(option, sizeof option, "--%s", name);
    const char *at = strstr(line, option);
    return at && strchr("= ", at[strlen(option)]);
}

/* Whether the line takes an option of the data. `memory` takes only those of processes. The choice
 * of steps matters where steps are shown or selected. */
static bool takes(const struct next_words *w, const char *line, const char *name)
{
    bool needs_steps = strstr(line, "step") != NULL;
    if (strncmp(line, "gpuprof memory ", 15) == 0)
        return word_in("rank,pid,job", name) != UINT_MAX;
    for (unsigned i = 0; i < w->option_count; i++)
        needs_steps |= strcmp(w->options[i].name, "step") == 0;
    return needs_steps || strncmp(name, "step-", 5) != 0;
}

/* Adds the options of the data, or the settings, that the line lacks. */
static void put_options(const struct next_words *w, const char *line, bool are_settings, FILE *out)
{
    for (unsigned i = 0; i < w->option_count; i++) {
        const struct next_option *o = &w->options[i];
        if (o->is_setting == are_settings && !says(line, o->name) &&
            (are_settings || takes(w, line, o->name)))
            fprintf(out, "%s ", o->word);
    }
}

char *next_line(const struct next_words *w, const char *line)
{
    static const struct next_words nothing;
    const struct next_words *known = w ? w : &nothing;
    struct new_text text;
    FILE *out = new_text_begin(&text);
    size_t length;
    for (const char *at = line; *at; at += length) {
        length = strspn(at, LINE_WORD);
        length += !length;
        bool is_data = word_is(at, length, "DATA"), is_program = word_is(at, length, "PROGRAM");
        const char *shown = is_data                          ? known->data
                            : is_program                     ? known->program
                            : word_is(at, length, "gpuprof") ? known->command
                                                             : NULL;
        if (is_data && shown)
            put_options(known, line, false, out);
        if (is_program)
            put_options(known, line, true, out);
        fprintf(out, "%.*s", shown ? INT_MAX : (int)length, shown ? shown : at);
    }
    return new_text_end(&text, out);
}
