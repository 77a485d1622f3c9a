/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_outputs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/options.h"
#include "model/symbols.h"

#define NOWHERE "/dev/null"

static const struct {
    enum exit_code (*run)(const struct options *options);
    const char *output; /* a name in the folder, or NOWHERE, or NULL: standard output */
    struct options options;
} ways[] = {
    {dump_verb, NULL, {.strict = true}},
    {dump_verb, NULL, {.blocks = true}},
    {merge_verb, "a.json.gz", {.sync_streams = true}},
    {merge_verb, "a.zip", {.step_range = "step"}},
    {merge_verb, "ranks", {.per_rank = true}},
#define EXPORT_FORMAT(name) {export_verb, "a.out", {.trace_format = #name, .weight = WEIGHT_GPU}},
#include "export/export_formats.def"
#undef EXPORT_FORMAT
    {flame_verb, NOWHERE, {.flame_format = FLAME_FOLDED, .threads = true}},
    {flame_verb, NOWHERE, {.flame_format = FLAME_SVG, .weight = WEIGHT_CALLS}},
    {flame_verb, NOWHERE, {.flame_format = FLAME_SPEEDSCOPE, .weight = WEIGHT_GPU}},
    {flame_verb, NOWHERE, {.flame_format = FLAME_SVG, .weight = WEIGHT_BYTES, .threads = true}},
    {page_verb, NULL, {.format = FORMAT_TEXT, .by = BY_STACK, .tables = "steps,phases"}},
    {page_verb, NULL, {.format = FORMAT_CSV, .by = BY_STACK}},
    {page_verb, NULL, {.format = FORMAT_JSON, .by = BY_PYTHON_LINE}},
    {page_verb, NULL, {.format = FORMAT_CSV, .by = BY_RANGE, .step_range = "*"}},
    {page_verb, NULL, {.format = FORMAT_JSON, .by = BY_NAME, .strict = true, .step_samples = 8}},
    {page_verb, NULL, {.format = FORMAT_HTML, .by = BY_NAME}},
    {recover_verb, NOWHERE, {.strict = true}}, /* with the first number again, and so on */
    {memory_verb, NULL, {.format = FORMAT_TEXT, .is_full = true, .memory_by = MEMORY_BY_STACK}},
    {memory_verb, NULL, {.format = FORMAT_JSON, .memory_at = MEMORY_AT_TIME, .at_seconds = 1e-6}},
    {memory_verb,
     NULL,
     {.format = FORMAT_JSON,
      .tables = "places,owners,curve",
      .select = {.is_given = true, .from = {.is_given = true, .ns = 1000}}}},
    {diff_page_verb,
     NULL,
     {.against = 1, .gate = 0.05, .diff_format = DIFF_TEXT, .force = true, .step_by = "graph"}},
    {memory_verb, "m.pickle", {.format = FORMAT_BY_NAME, .memory_by = MEMORY_BY_BEST}},
    {merge_verb, "a.pftrace", {.strict = true}},
    {flame_verb, NOWHERE, {.flame_format = FLAME_SVG, .against = 1}},
    {dump_verb, NULL, {.select = {.is_given = true, .name = "a", .from = {.is_given = true}}}},
};
#define WAYS (sizeof ways / sizeof ways[0])

static void run(unsigned way, char *folder)
{
    char output[128];
    char *paths[] = {folder, folder};
    struct options options = ways[way].options;
    options.paths = paths;
    options.path_count = options.against ? 2 : 1;
    options.against = options.against ? options.against : -1;
    options.keep_live = true;
    options.rank = UINT64_MAX; /* all, as without the option */
    options.symbols = SYMBOLS_OFF;
    options.limit = ROWS_UNLIMITED;
    options.output = ways[way].output;
    if (options.output && options.output[0] != '/') {
        snprintf(output, sizeof output, "%s/%s", folder, options.output);
        options.output = output;
    }
    fuzz_run(ways[way].run, &options);
}

void fuzz_output(unsigned number, char *folder)
{
    for (unsigned way = number; way < WAYS; way += FUZZ_OUTPUTS)
        run(way, folder);
}

void fuzz_run(enum exit_code (*verb)(const struct options *), const struct options *options)
{
    /* What is printed must not come between a fuzzer's words, nor be lost behind a closed file. */
    int shown = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    int nowhere = open(NOWHERE, O_WRONLY | O_CLOEXEC);
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        abort();
    verb(options);
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
