/* SPDX-License-Identifier: Apache-2.0 */
/* gpuprof-collector: finds the verb and runs it. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "cli/manual.h"
#include "output/verb_output.h"

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
    if (!(verb->takes & TAKES_PROGRAM) && standard_files_fill() < 0)
        return EXIT_ENVIRONMENT;
    enum exit_code code = options_parse(&options, own, argc, argv);
    if (code != EXIT_OK)
        return code;
    return options.help || options.help_all ? verb_help(verbs, verb->name, options.help_all)
                                            : verb->run(&options);
}

static void take_notice(int number)
{
    (void)number;
}

/*
 * Makes a write beyond ulimit -f fail with an error, which names the file; a signal would not. The
 * signal is caught, not ignored, so that child processes get its default.
 */
static void outlive_file_limit(void)
{
    const struct sigaction action = {.sa_handler = take_notice, .sa_flags = SA_RESTART};
    struct sigaction before;
    if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGXFSZ, &action, NULL);
}

int main(int argc, char **argv)
{
    const char *command = "gpuprof";
    outlive_file_limit();
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
    return verb_unknown(verbs, "", argv[1]);
}
