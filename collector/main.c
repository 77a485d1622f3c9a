/* SPDX-License-Identifier: Apache-2.0 */
/* gpuprof-collector: finds the verb and runs it. */
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "standard_files.h"
#include "verbs.h"

const struct verb verbs[] = {
    {"run", NULL, run_verb, OPTION_OUT | OPTION_QUIET | OPTION_EXEC | OPTION_HELP | OPTION_SETTINGS,
     "[--] PROGRAM [ARGUMENTS]", "run a program and record it"},
    {"merge", merge_verb, NULL,
     OPTION_OUTPUT | OPTION_PER_RANK | OPTION_STEP_RANGE | OPTION_SYNC_STREAMS | OPTION_SYMBOLS |
         OPTION_STRICT | OPTION_KEEP_LIVE | OPTION_HELP | OPTION_RECORDINGS,
     "DIR|FILE...", "make one Chrome trace of recordings, or one for each rank"},
    {"report", report_verb, NULL,
     OPTION_FORMAT | OPTION_BY | OPTION_SYMBOLS | OPTION_STRICT | OPTION_KEEP_LIVE | OPTION_HELP |
         OPTION_RECORDINGS,
     "DIR|FILE...", "print tables of the functions called and of what the GPU did"},
    {"flame", flame_verb, NULL,
     OPTION_GRAPH | OPTION_FORM | OPTION_WEIGHT | OPTION_THREADS | OPTION_SYMBOLS | OPTION_STRICT |
         OPTION_KEEP_LIVE | OPTION_HELP | OPTION_RECORDINGS,
     "DIR|FILE...", "make a flame graph of the stacks that made the calls"},
    {"dump", dump_verb, NULL, OPTION_BLOCKS | OPTION_STRICT | OPTION_HELP | OPTION_RECORDINGS,
     "DIR|FILE...", "print blocks and events of recordings as text"},
    {"recover", recover_verb, NULL, OPTION_HELP | OPTION_RECORDINGS, "DIR|FILE...",
     "make whole files of what killed processes have left (merge and report need no such thing)"},
    {"manual", manual_verb, NULL, OPTION_HELP, "", "print the manual page"},
    {"help", help_verb, NULL, OPTION_HELP, "[VERB]", "print what a verb does and its options"},
};
const size_t verb_count = sizeof verbs / sizeof verbs[0];

static int run(const struct verb *verb, int argc, char **argv)
{
    struct options options;
    if (!verb->run)
        return verb->start(argv);
    if (standard_files_fill() < 0)
        return EXIT_ENVIRONMENT;
    int code = options_parse(&options, argc, argv, verb->options);
    if (code != EXIT_OK)
        return code;
    return options.help ? verb_help(verb->name) : verb->run(&options);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage_error("no verb; try 'gpuprof help'");
    if (strcmp(argv[1], "--version") == 0) {
        printf("gpuprof %s\n", GPUPROF_RELEASE);
        return standard_output_end();
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return verb_help(NULL);
    for (size_t i = 0; i < verb_count; i++)
        if (strcmp(verbs[i].name, argv[1]) == 0)
            return run(&verbs[i], argc - 1, argv + 1);
    return verb_unknown("", argv[1]);
}
