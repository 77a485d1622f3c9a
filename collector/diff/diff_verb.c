/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/comparison.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/message.h"
#include "diff/run_summary.h"
#include "output/output.h"
#include "unit_word.h"

#define VERB            "diff"
#define GATE_MIN        0.001
#define GATE_MAX        10.0
#define NAME_WIDTH      60 /* of kernel names on a terminal */
#define EXIT_REGRESSION EXIT_ENVIRONMENT
#define EXIT_UNSURE     EXIT_DAMAGED
_Static_assert(EXIT_REGRESSION == 1 && EXIT_UNSURE == 3, "as diff_verb.h has them");

static diff_print_fn *const printers[] = {
    [DIFF_TEXT] = diff_print_text, [DIFF_JUNIT] = diff_print_junit, [DIFF_JSON] = diff_print_json};

/* Returns the format from --format or the file's name; DIFF_BY_NAME: the ending is unknown. */
static enum diff_format diff_verb_format_of(const struct options *options, const char *path)
{
    const struct diff_options *own = options->own;
    static const struct {
        const char *kind;
        enum diff_format format;
    } kinds[] = {{"", DIFF_TEXT},     {"txt", DIFF_TEXT},  {"xml", DIFF_JUNIT},
                 {"json", DIFF_JSON}, {"html", DIFF_HTML}, {"htm", DIFF_HTML}};
    if (own->format != DIFF_BY_NAME)
        return own->format;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (verb_output_is(path, kinds[i].kind))
            return kinds[i].format;
    return DIFF_BY_NAME;
}

static enum exit_code diff_verb_check(const struct options *options)
{
    const struct diff_options *own = options->own;
    if (options->against < 0)
        return usage_error(
            VERB ": name the old runs after --against: gpuprof diff NEW... --against OLD...");
    if (!options->against || options->against == options->path_count)
        return usage_error(VERB ": name recordings or baselines both before and after --against");
    for (int i = 0; i < own->output_count; i++)
        if (diff_verb_format_of(options, own->outputs[i]) == DIFF_BY_NAME)
            return usage_error(
                VERB
                ": %s: unknown file type; name it .txt, .xml, .json or .html, or give --format",
                own->outputs[i]);
    return EXIT_OK;
}

static enum exit_code diff_verb_print(const struct comparison *c, struct kernel_match *kernels,
                                      const struct options *options, const char *path,
                                      diff_print_fn *page)
{
    enum diff_format format = diff_verb_format_of(options, path);
    struct output out;
    uint64_t room = verb_output_room(0);
    enum exit_code code = verb_output_open(&out, path, &room);
    if (code != EXIT_OK)
        return code;
    kernels->name_width = !path && isatty(STDOUT_FILENO) ? NAME_WIDTH : 0;
    (format == DIFF_HTML ? page : printers[format])(c, kernels, out.stream);
    return verb_output_close(&out, path, 0);
}

static enum exit_code result_code(const struct comparison *c, enum inconclusive_use use)
{
    switch (c->result) {
    case RESULT_SAME: return EXIT_OK;
    case RESULT_WORSE: return EXIT_REGRESSION;
    default:
        return use == INCONCLUSIVE_PASSES  ? EXIT_OK
               : use == INCONCLUSIVE_FAILS ? EXIT_REGRESSION
                                           : EXIT_UNSURE;
    }
}

static enum exit_code diff_verb_compare(const struct run_set *sets, const struct options *options,
                                        diff_print_fn *page)
{
    const struct diff_options *own = options->own;
    struct comparison *c = memory_new(1, sizeof *c);
    struct kernel_match kernels;
    enum exit_code code = EXIT_OK;
    comparison_make(c, &sets[0], &sets[1], own->gate, own->force);
    c->fails_unsure = own->inconclusive == INCONCLUSIVE_FAILS;
    kernel_match_make(&kernels, &sets[1].together, &sets[0].together);
    bool is_reported = false;
    for (int i = 0; code == EXIT_OK && i < (own->output_count ? own->output_count : 1); i++) {
        const char *path = own->outputs[i]; /* NULL: none is given */
        code = diff_verb_print(c, &kernels, options, path, page);
        is_reported |=
            diff_verb_format_of(options, path) == DIFF_TEXT && (!path || strcmp(path, "-") == 0);
    }
    code = code == EXIT_OK ? result_code(c, own->inconclusive)
                           : EXIT_USAGE; /* since 1 means a regression */
    if (code == EXIT_UNSURE && !is_reported)
        message(VERB ": %s", c->headline);
    kernel_match_release(&kernels);
    free(c);
    return code;
}

static enum exit_code diff_verb_keep(const struct options *options, const char *folder)
{
    const struct diff_options *own = options->own;
    if (options->against >= 0 || (own->save && own->is_list) ||
        (own->is_list && options->path_count))
        return usage_error(VERB ": --save NAME DIR... and --list compare nothing, and go alone");
    enum exit_code code = own->is_list ? baseline_list(folder)
                                       : baseline_save(options, own->save, true, options->paths,
                                                       options->path_count, folder);
    return code == EXIT_ENVIRONMENT ? EXIT_USAGE : code; /* since 1 means a regression */
}

enum exit_code diff_run(const struct options *options, diff_print_fn *page)
{
    const struct diff_options *own = options->own;
    const struct run_reading how = {VERB, own->folder ? own->folder : BASELINE_FOLDER, options};
    if (own->save || own->is_list)
        return diff_verb_keep(options, how.folder);
    enum exit_code code = diff_verb_check(options);
    if (code != EXIT_OK)
        return code;
    struct run_set *sets = memory_new(2, sizeof *sets);
    for (int side = 0; code == EXIT_OK && side < 2; side++) {
        int from = side ? options->against : 0;
        int to = side ? options->path_count : options->against;
        code = run_operands_read(&sets[side], options->paths + from, to - from, &how);
    }
    for (int i = 0; i < options->against; i++)
        for (int k = options->against; code == EXIT_OK && k < options->path_count; k++)
            if (run_operands_same(options->paths[i], options->paths[k]))
                code = usage_error(VERB ": %s is on both sides; name each run on one side only",
                                   options->paths[i]);
    if (code == EXIT_OK)
        code = diff_verb_compare(sets, options, page);
    else if (code == EXIT_ENVIRONMENT)
        code = EXIT_USAGE;
    run_set_release(&sets[0]);
    run_set_release(&sets[1]);
    free(sets);
    return code;
}

static enum exit_code take_gate(const struct given *g)
{
    struct amount amount;
    double *gate = g->at;
    const char *end = amount_read(g->value, g->value + strlen(g->value), &amount);
    if (!end || (*end && strcmp(end, "%") != 0))
        return option_end(g, false, "is no percentage, such as 5%");
    *gate = ((double)amount.whole + amount.billionths / 1e9) / 100;
    return option_end(g, *gate >= GATE_MIN && *gate <= GATE_MAX, "is not between 0.1% and 1000%");
}

static enum exit_code take_file(const struct given *g)
{
    struct diff_options *own = g->at;
    if (own->output_count == OUTPUTS_MAX)
        return usage_error(VERB ": -o: at most %d files at a time", OUTPUTS_MAX);
    own->outputs[own->output_count++] = g->value;
    return output_check(g);
}

const struct option baseline_folder[] = {
    {0, "dir", "DIR", .take = option_text, .at = 0,
     "Read and write baselines in this folder; default: .gpuprof/baselines"},
    {0},
};

const struct option diff_options[] = {
    {OPTIONS_OF(read_options, READ_AGAINST)},
    {0, "gate", "PERCENT", OPTION_OWN(take_gate, struct diff_options, gate),
     "Set the smallest slowdown to fail for. A metric is worse if it grew by more than half of "
     "this, with statistical confidence. Default: 5%."},
    {0, "inconclusive", "pass|fail", OPTION_OWN(option_choice, struct diff_options, inconclusive),
     "Exit with status 0 or 1, instead of 3, if the result is uncertain or the runs cannot be "
     "compared"},
    {0, "force", NULL, OPTION_FLAG(struct diff_options, force),
     "Compare runs despite different GPUs, drivers or versions, or losses, and name the "
     "differences"},
    {'o', "output", "FILE", .take = take_file, .at = 0,
     "Write the comparison to this file, in the format that its name ends with; may be repeated; "
     "default: standard output"},
    {0, "format", "text|junit|json|html", OPTION_OWN(option_choice, struct diff_options, format),
     "Write this format; default: by the end of the file's name: .xml (JUnit), .json, .html (a "
     "page for a browser), or else text"},
    {0, "save", "NAME|FILE", OPTION_TEXT(struct diff_options, save),
     "Compare nothing: save the runs as a baseline, by a name in --dir or as a .json file"},
    {0, "list", NULL, OPTION_FLAG(struct diff_options, is_list),
     "Compare nothing: list the baselines in --dir"},
    {OPTIONS_OF(baseline_folder, 0), .at = offsetof(struct diff_options, folder)},
    {OPTIONS_OF(read_options, READ_STEPS | READ_SYMBOLS | READ_KEEP_LIVE)},
    {0},
};
