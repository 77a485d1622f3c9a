/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_outputs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/options.h"
#include "resolve/symbols.h"

#define NOWHERE "/dev/null"

extern const struct verb dump_verb, merge_verb, export_verb, flame_verb, report_verb, recover_verb,
    memory_verb, diff_verb;

#define WORDS_MAX 10

/* What is said to a verb. A word that begins with '@' is a name in the folder; @ alone is the
 * folder. */
static const struct {
    const struct verb *verb;
    const char *words[WORDS_MAX];
} ways[] = {
    {&dump_verb, {"--strict", "@"}},
    {&dump_verb, {"--blocks", "@"}},
    {&merge_verb, {"--sync-streams", "@", "-o", "@a.json.gz"}},
    {&merge_verb, {"--step-range=step", "@", "-o", "@a.zip"}},
    {&merge_verb, {"--per-rank", "@", "-o", "@ranks"}},
#define EXPORT_FORMAT(name)                                                                        \
    {&export_verb, {"--format=" #name, "--weight=gpu", "@", "-o", "@a.out"}},
#include "export/export_formats.def"
#undef EXPORT_FORMAT
    {&flame_verb, {"--format=folded", "--threads", "@", "-o", NOWHERE}},
    {&flame_verb, {"--format=svg", "--weight=calls", "@", "-o", NOWHERE}},
    {&flame_verb, {"--format=speedscope", "--weight=gpu", "@", "-o", NOWHERE}},
    {&flame_verb, {"--format=svg", "--weight=bytes", "--threads", "@", "-o", NOWHERE}},
    {&report_verb, {"--by=stack", "--table=steps,phases", "@"}},
    {&report_verb, {"--format=csv", "--by=stack", "@"}},
    {&report_verb, {"--format=json", "--by=python-line", "@"}},
    {&report_verb, {"--format=csv", "--by=range", "--step-range=*", "@"}},
    {&report_verb, {"--format=json", "--strict", "--samples-per-step=8", "@"}},
    {&report_verb, {"--format=html", "@"}},
    {&recover_verb, {"@"}}, /* with the first number again, and so on */
    {&memory_verb, {"--full", "--by=stack", "@"}},
    {&memory_verb, {"--format=json", "--by=python-line", "--at=1us", "@"}},
    {&memory_verb, {"--format=json", "--table=places,owners,curve", "--from=1us", "@"}},
    {&diff_verb, {"--force", "--step-by=graph", "@", "--against", "@"}},
    {&memory_verb, {"@", "-o", "@m.pickle"}},
    {&merge_verb, {"--strict", "@", "-o", "@a.pftrace"}},
    {&flame_verb, {"--format=svg", "-o", NOWHERE, "@", "--against", "@"}},
    {&dump_verb, {"--name=a", "--from=0", "@"}},
};
#define WAYS (sizeof ways / sizeof ways[0])

static void run(unsigned way, char *folder)
{
    static const char *const symbols = "--symbols=" SYMBOLS_OFF, *const keep = "--keep-live";
    char texts[WORDS_MAX][160];
    char *argv[WORDS_MAX + 4];
    int argc = 0;
    const char *const *word = ways[way].words;
    argv[argc++] = (char *)ways[way].verb->name;
    if (option_named(ways[way].verb, "symbols"))
        argv[argc++] = (char *)symbols;
    if (option_named(ways[way].verb, "keep-live"))
        argv[argc++] = (char *)keep;
    for (int i = 0; i < WORDS_MAX && word[i]; i++) {
        snprintf(texts[i], sizeof texts[i], "%s%s%s", word[i][0] == '@' ? folder : "",
                 word[i][0] == '@' && word[i][1] ? "/" : "", word[i] + (word[i][0] == '@'));
        argv[argc++] = texts[i];
    }
    argv[argc] = NULL;
    fuzz_run(ways[way].verb, argc, argv);
}

void fuzz_output(unsigned number, char *folder)
{
    for (unsigned way = number; way < WAYS; way += FUZZ_OUTPUTS)
        run(way, folder);
}

void fuzz_run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb *const none[] = {NULL};
    _Alignas(max_align_t) char own[OWN_BYTES_MAX];
    struct options options = {.command = "gpuprof", .verb = verb, .verbs = none};
    if (options_parse(&options, own, argc, argv) != EXIT_OK)
        abort();
    /* What is printed must not come between a fuzzer's words, nor be lost behind a closed file. */
    int shown = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    int nowhere = open(NOWHERE, O_WRONLY | O_CLOEXEC);
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        abort();
    verb->run(&options);
    if (shown >= 0)
        dup2(shown, STDOUT_FILENO);
    else
        close(STDOUT_FILENO);
    close(shown);
    close(nowhere);
}

void fuzz_write(const char *path, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0)
        abort();
}
