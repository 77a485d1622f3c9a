/* SPDX-License-Identifier: Apache-2.0 */
/* gpuprof-collector: finds the verb and runs it. */
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "verbs.h"

static const struct verb_option merge_options[] = {
    {"-o, --output FILE", "write the trace there (compressed if the name ends in .gz); "
                          "standard: standard output"},
    {"--strict", "exit with 3 if anything at all was lost, not only if a file is damaged"},
    {"--keep-live", "leave the live files of ended processes where they are"},
    {NULL, NULL},
};

static const struct verb_option report_options[] = {
    {"--format text|json|csv", "how the table is written; standard: text"},
    {"--strict", "exit with 3 if anything at all was lost, not only if a file is damaged"},
    {"--keep-live", "leave the live files of ended processes where they are"},
    {NULL, NULL},
};

static const struct verb_option dump_options[] = {
    {"--blocks", "the files' headers and blocks only, no events"},
    {"--strict", "exit with 3 if anything at all was lost, not only if a file is damaged"},
    {NULL, NULL},
};

const struct verb verbs[] = {
    {"run", run_verb, "[OPTIONS] [--] PROGRAM [ARGUMENTS]", "run a program and record it", NULL},
    {"merge", merge_verb, "[-o FILE] [--strict] [--keep-live] DIR|FILE...",
     "make one Chrome trace of recordings", merge_options},
    {"report", report_verb, "[--format text|json|csv] [--strict] [--keep-live] DIR|FILE...",
     "print a table of the functions called", report_options},
    {"dump", dump_verb, "[--blocks] [--strict] DIR|FILE...",
     "print blocks and events of recordings as text", dump_options},
    {"manual", manual_verb, "", "print the manual page", NULL},
    {"help", help_verb, "[VERB]", "print what a verb does and its options", NULL},
};
const size_t verb_count = sizeof verbs / sizeof verbs[0];

static char help_name[] = "help";

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage_error("no verb; try 'gpuprof help'");
    if (strcmp(argv[1], "--version") == 0) {
        printf("gpuprof %s\n", GPUPROF_RELEASE);
        return fflush(stdout) ? EXIT_ENVIRONMENT : EXIT_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        argv[1] = help_name;
    for (size_t i = 0; i < verb_count; i++) {
        if (strcmp(verbs[i].name, argv[1]) != 0)
            continue;
        /* `gpuprof merge --help` is `gpuprof help merge`; run's arguments are the launcher's. */
        if (argc == 3 && verbs[i].run != run_verb && strcmp(argv[2], "--help") == 0) {
            char *help[] = {help_name, argv[1], NULL};
            return help_verb(2, help);
        }
        return verbs[i].run(argc - 1, argv + 1);
    }
    return usage_error("unknown %s '%s'; try 'gpuprof help'", argv[1][0] == '-' ? "option" : "verb",
                       argv[1]);
}
