/* SPDX-License-Identifier: Apache-2.0 */
#include "base/next_words.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/new_text.h"

#define SHELL_PLAIN /* characters that no shell treats specially */                                \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_%+,-./:=@"

/* Quotes `text` for a shell, in new memory. Returns NULL without memory. */
static char *shell_word(const char *text)
{
    /* zsh expands =ls to the path of ls. */
    bool is_plain = text[0] && text[0] != '=' && text[strspn(text, SHELL_PLAIN)] == '\0';
    char *word = malloc(4 * strlen(text) + 3), *at = word;
    if (!word)
        return NULL;
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
    char *clean = json_line(text), *longer = NULL;
    char *word = clean && strcmp(clean, text) == 0 ? shell_word(text) : NULL;
    if (word)
        longer = text_printf("%s%s%s%s", *list ? *list : "", *list ? " " : "", before, word);
    if (longer && strlen(longer) > NEXT_BYTES_MAX) {
        free(longer);
        longer = NULL;
    }
    free(word);
    free(clean);
    free(*list);
    *list = longer;
    return longer;
}

void next_words_init(struct next_words *w, const char *command, char *const *paths, int path_count)
{
    *w = (struct next_words){.command = command};
    for (int i = 0; i < path_count; i++)
        if (!add_word(&w->data, paths[i][0] == '-' ? "./" : "", paths[i]))
            return;
}

/* Returns true if the shell would find the program. */
static bool next_words_is_there(const char *program)
{
    const char *folder = getenv("PATH");
    char path[PATH_MAX];
    bool is_found = strchr(program, '/') != NULL;
    for (; !is_found && folder; folder = strchr(folder, ':') ? strchr(folder, ':') + 1 : NULL) {
        snprintf(path, sizeof path, "%.*s/%s", (int)strcspn(folder, ":"), folder, program);
        is_found = access(path, X_OK) == 0;
    }
    return is_found;
}

static const char *option_name(unsigned place)
{
    static const char *const others[] = {"step-by", "step-range", "clock"};
    return place < SELECT_OPTIONS ? select_option_name(place) : others[place - SELECT_OPTIONS];
}

void next_words_set_selection(struct next_words *w, const struct select_request *request,
                              const char *step_by, const char *step_range, const char *clock)
{
    const char *const others[] = {step_by, step_range, clock};
    char option[32];
    for (unsigned i = 0; i < NEXT_OPTIONS; i++) {
        const char *said = i < SELECT_OPTIONS ? request->said[i] : others[i - SELECT_OPTIONS];
        snprintf(option, sizeof option, "--%s=", option_name(i));
        if (said && !add_word(&w->selected[i], option, said)) {
            free(w->data); /* a suggestion without part of the data would be wrong */
            w->data = NULL;
        }
    }
}

bool next_words_add_argument(struct next_words *w, const char *word)
{
    return (w->program || next_words_is_there(word)) && add_word(&w->program, "", word);
}

void next_words_set_program(struct next_words *w, const char *arguments, char separator)
{
    /* A login shell is called "-bash", which would parse as an option. */
    if (!*arguments || *arguments == '-' || *arguments == separator)
        return;
    while (arguments) {
        const char *end = strchr(arguments, separator);
        char *word = end ? strndup(arguments, (size_t)(end - arguments)) : strdup(arguments);
        bool is_added = word && next_words_add_argument(w, word);
        free(word);
        arguments = end && is_added ? end + 1 : NULL;
    }
}

void next_words_set_option(struct next_words *w, enum setting_index setting, const char *value)
{
    char option[64];
    snprintf(option, sizeof option, "--%s=", setting_infos[setting].option);
    add_word(&w->options[setting], option, value);
}

void next_words_release(struct next_words *w)
{
    for (unsigned i = 0; i < SETTING_COUNT; i++)
        free(w->options[i]);
    free(w->data);
    free(w->program);
    for (unsigned i = 0; i < NEXT_OPTIONS; i++)
        free(w->selected[i]);
}

static bool is_of_word(char c)
{
    return c && (isalnum((unsigned char)c) || strchr("_-./", c));
}

/* Adds the selection that the line lacks and its verb accepts. `memory` takes only process options;
 * neither it nor `flame` compares clocks. Step options matter where steps are selected or shown. */
static void put_piece(const struct next_words *w, const char *line, FILE *out)
{
    bool is_of_memory = strncmp(line, "gpuprof memory ", 15) == 0;
    bool has_clock = !is_of_memory && strncmp(line, "gpuprof flame ", 14) != 0;
    bool has_steps = strstr(line, "--step=") || strstr(line, "steps");
    for (unsigned i = 0; i < NEXT_OPTIONS; i++) {
        const char *name = option_name(i);
        char said[32];
        snprintf(said, sizeof said, "--%s=", name);
        has_steps |= w->selected[i] && strcmp(name, "step") == 0;
        bool is_of_files =
            strcmp(name, "rank") == 0 || strcmp(name, "pid") == 0 || strcmp(name, "job") == 0;
        bool is_taken = strcmp(name, "clock") == 0 ? has_clock
                        : is_of_memory             ? is_of_files
                                                   : i < SELECT_OPTIONS || has_steps;
        if (w->selected[i] && is_taken && !strstr(line, said))
            fprintf(out, "%s ", w->selected[i]);
    }
}

/* Adds the recorded options, so that a new recording captures as much. */
static void put_options(const struct next_words *w, const char *line, FILE *out)
{
    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        char said[64];
        snprintf(said, sizeof said, "--%s", setting_infos[i].option);
        const char *at = w->options[i] ? strstr(line, said) : NULL;
        bool is_said = at && strchr("= ", at[strlen(said)]);
        if (w->options[i] && !is_said)
            fprintf(out, "%s ", w->options[i]);
    }
}

char *next_line(const struct next_words *w, const char *line)
{
    static const struct next_words nothing;
    const struct next_words *known = w ? w : &nothing;
    const struct {
        const char *mark, *text;
    } words[] = {{"gpuprof", known->command}, {"DATA", known->data}, {"PROGRAM", known->program}};
    struct new_text text;
    FILE *out = new_text_begin(&text);
    for (const char *at = line, *next; out && *at; at = next) {
        next = at + 1;
        while (is_of_word(*at) && is_of_word(*next))
            next++;
        size_t length = (size_t)(next - at), i = 0;
        while (i < 3 && !(words[i].text && strlen(words[i].mark) == length &&
                          memcmp(words[i].mark, at, length) == 0))
            i++;
        if (i < 3 && words[i].text == known->data)
            put_piece(known, line, out);
        if (strncmp(at, "PROGRAM", length) == 0 && length == strlen("PROGRAM"))
            put_options(known, line, out);
        if (i < 3)
            fputs(words[i].text, out);
        else
            fwrite(at, 1, length, out);
    }
    return new_text_end(&text, out);
}
