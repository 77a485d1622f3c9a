/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <stddef.h>
#include <string.h>

#include "message.h"
#include "verbs.h"

/* The value of an option written as "--name=value" or "--name value"; NULL if there is none. */
static char *option_value(int argc, char **argv, int *at)
{
    char *equals = argv[*at][1] == '-' ? strchr(argv[*at], '=') : NULL;
    if (equals)
        return equals + 1;
    if (argv[*at][1] != '-' && argv[*at][2])
        return argv[*at] + 2;
    return *at + 1 < argc ? argv[++*at] : NULL;
}

static bool is_option(const char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && (word[length] == '\0' || word[length] == '=');
}

static int parse_format(struct options *o, const char *verb, const char *value)
{
    static const char *const names[] = {"text", "json", "csv"};
    for (unsigned i = 0; value && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(value, names[i]) == 0) {
            o->format = (enum report_format)i;
            return EXIT_OK;
        }
    }
    return usage_error("%s: --format needs text, json or csv", verb);
}

static int parse_option(struct options *o, int argc, char **argv, int *at, unsigned set)
{
    char *word = argv[*at];
    if ((set & OPTION_STRICT) && strcmp(word, "--strict") == 0) {
        o->strict = true;
    } else if ((set & OPTION_KEEP_LIVE) && strcmp(word, "--keep-live") == 0) {
        o->keep_live = true;
    } else if ((set & OPTION_BLOCKS) && strcmp(word, "--blocks") == 0) {
        o->blocks = true;
    } else if ((set & OPTION_OUTPUT) && ((word[1] == 'o') || is_option(word, "--output"))) {
        o->output = option_value(argc, argv, at);
        if (!o->output || !o->output[0])
            return usage_error("%s: %s needs a file name", argv[0], word[1] == 'o' ? "-o" : word);
    } else if ((set & OPTION_FORMAT) && is_option(word, "--format")) {
        return parse_format(o, argv[0], option_value(argc, argv, at));
    } else {
        return usage_error("%s: unknown option '%s'; try 'gpuprof help %s'", argv[0], word,
                           argv[0]);
    }
    return EXIT_OK;
}

int options_parse(struct options *o, int argc, char **argv, unsigned set)
{
    *o = (struct options){.paths = argv + 1};
    bool words_only = false;
    for (int at = 1; at < argc; at++) {
        char *word = argv[at];
        if (!words_only && strcmp(word, "--") == 0) {
            words_only = true;
        } else if (!words_only && word[0] == '-' && word[1]) {
            int code = parse_option(o, argc, argv, &at, set);
            if (code != EXIT_OK)
                return code;
        } else {
            o->paths[o->path_count++] = word; /* never ahead of `at` */
        }
    }
    if (o->path_count == 0)
        return usage_error("%s: no folder or file named; try 'gpuprof help %s'", argv[0], argv[0]);
    return EXIT_OK;
}
