/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of an option: the ways that options of several verbs share. */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/moment.h"
#include "base/options.h"
#include "stream.h"

#define SECONDS_MAX 1e9

enum exit_code option_end(const struct given *g, bool is_right, const char *wrong)
{
    return is_right ? EXIT_OK
                    : usage_error("%s: --%s: '%s' %s", g->all->verb->name, g->option->name,
                                  g->value, wrong);
}

enum exit_code option_twice(const struct given *g)
{
    return usage_error("%s: --%s is there twice; say it once%s", g->all->verb->name,
                       g->option->name,
                       strchr(g->option->value, ',') ? ", with a comma between the values" : "");
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
        return usage_error("%s: %s: is a recording or would be taken for one, and is not "
                           "overwritten or made; name another file",
                           g->all->verb->name, g->value);
    return EXIT_OK;
}

enum exit_code option_output(const struct given *g)
{
    const char **path = g->at, *verb = g->all->verb->name;
    if (*path)
        return usage_error("%s: -o is there twice (%s, %s): %s writes one file at a time", verb,
                           *path, g->value, verb);
    *path = g->value;
    return output_check(g);
}

/* The number of `text` among the words of `choices`, a|b|c; -1: it is none of them. */
static int choice_index(const char *choices, const char *text)
{
    size_t length = strlen(text);
    for (int index = 0; *choices; index++) {
        size_t word = strcspn(choices, "|");
        if (word == length && memcmp(choices, text, length) == 0)
            return index;
        choices += word + (choices[word] == '|');
    }
    return -1;
}

_Static_assert(sizeof(enum clock_choice) == sizeof(int), "a choice is kept as a number");

enum exit_code option_choice(const struct given *g)
{
    int choice = choice_index(g->option->value, g->value);
    if (choice < 0)
        return usage_error("%s: --%s: '%s' is not one of %s", g->all->verb->name, g->option->name,
                           g->value, g->option->value);
    memcpy(g->at, &choice, sizeof choice);
    return EXIT_OK;
}

bool seconds_parse(const char *value, double *seconds)
{
    uint64_t ns;
    if (!duration_parse(value, &ns))
        return false;
    *seconds = (double)ns / 1e9;
    return *seconds <= SECONDS_MAX;
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
    return option_end(g, number_parse(g->value, o->least, o->most, g->at), o->wrong);
}
