/* SPDX-License-Identifier: Apache-2.0 */
/* gpuprof-collector: finds the verb and runs it. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/help.h"
#include "output/output.h"

#define VERB(name) extern const struct verb name##_verb;
#include "cli/verbs.def"
#undef VERB

static const struct verb *const verbs[] = {
#define VERB(name) &name##_verb,
#include "cli/verbs.def"
#undef VERB
    NULL};

static enum exit_code main_run(const struct verb *verb, const char *command, int argc, char **argv)
{
    _Alignas(max_align_t) char own[OWN_BYTES_MAX];
    struct options options = {.command = command, .verb = verb, .verbs = verbs};
    if (!(verb->takes & TAKES_PROGRAM)) {
        signal(SIGXFSZ, SIG_IGN); /* beyond ulimit -f a write fails, and its file is named */
        if (standard_files_fill() < 0)
            return EXIT_ENVIRONMENT;
    }
    enum exit_code code = options_parse(&options, own, argc, argv);
    if (code != EXIT_OK)
        return code;
    return options.help || options.help_all ? verb_help(verbs, verb->name, options.help_all)
                                            : verb->run(&options);
}

int main(int argc, char **argv)
{
    const char *command = "gpuprof";
    if (argc > 2 && strcmp(argv[1], "--called") == 0) { /* the front command passes its own name */
        command = argv[2];
        argc -= 2;
        argv += 2;
    }
    if (argc < 2)
        return verb_missing(command);
    if (strcmp(argv[1], "--version") == 0) {
        printf("gpuprof %s\n", GPUPROF_RELEASE);
        return standard_output_end();
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return verb_help(verbs, NULL, false);
    for (const struct verb *const *verb = verbs; *verb; verb++)
        if ((*verb)->run && strcmp((*verb)->name, argv[1]) == 0)
            return (int)main_run(*verb, command, argc - 1, argv + 1);
    return verb_unknown(verbs, "", "verb", argv[1]);
}
