/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/comparison.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "diff/run_summary.h"
#include "output/output.h"
#include "unit_word.h"

#define VERB             "diff"
#define BASELINE         "baseline"
#define SUFFIX           ".json"
#define GIT_COMMIT_BYTES 66 /* a line of 40 digits, or 64 with SHA-256 */
#define HEX_DIGITS       "0123456789abcdef"
#define GATE_MIN         0.001
#define GATE_MAX         10.0
#define NAME_WIDTH       60 /* of kernel names on a terminal */
#define EXIT_REGRESSION  EXIT_ENVIRONMENT
#define EXIT_UNSURE      EXIT_DAMAGED
_Static_assert(EXIT_REGRESSION == 1 && EXIT_UNSURE == 3, "as diff_run returns them");

/* ---- baselines ------------------------------------------------------------------------------- */

/* Asks git for the commit that is checked out here; false if there is none, or no git. */
static bool git_commit_here(char commit[GIT_COMMIT_BYTES])
{
    FILE *git = popen("git rev-parse --verify --quiet HEAD 2>/dev/null", "re");
    size_t length = git && fgets(commit, GIT_COMMIT_BYTES, git) ? strspn(commit, HEX_DIGITS) : 0;
    if (git)
        pclose(git);
    commit[length] = '\0';
    return length == 40 || length == 64;
}

/* Sets the commit, from variables of CI systems or from the working tree. */
static void set_commit(struct run_set *s)
{
    char here[GIT_COMMIT_BYTES];
    static const char *const variables[] = {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT"};
    const char *commit = NULL;
    for (unsigned i = 0; !commit && i < sizeof variables / sizeof variables[0]; i++)
        commit = getenv(variables[i]);
    if ((!commit || !*commit) && git_commit_here(here))
        commit = here;
    for (uint32_t i = 0; i < s->count; i++)
        run_fact_set(&s->runs[i], RUN_FACT_COMMIT, commit);
}

/* Warns now, since a comparison would fail later, when it cannot be repaired. */
static void warn_of_losses(const struct run_set *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->runs[i].facts[RUN_FACT_LOSSES]) {
            message(BASELINE ": %s: losses: %s; diff will compare with it only with --force; save "
                             "without this run, or record it again",
                    s->runs[i].name, s->runs[i].facts[RUN_FACT_LOSSES]);
            return;
        }
}

/* Writes the runs of `paths` as the baseline `name` in `folder`; or as the file `name`, if
 * `may_be_file` and it has a slash or ends in .json. */
static enum exit_code baseline_save(const struct options *options, const char *name,
                                    bool may_be_file, char **paths, int count, const char *folder)
{
    const struct run_reading how = {BASELINE, folder, options};
    struct output out;
    uint64_t room = BASELINE_BYTES_MAX;
    if (count < 1)
        return usage_error(BASELINE ": no recordings to save: gpuprof diff --save main DIR...");
    struct stat status;
    bool is_file = may_be_file && (strchr(name, '/') || verb_output_is(name, "json"));
    char *path = is_file ? memory_text(name) : baseline_path(folder, name);
    struct run_set *s = memory_new(1, sizeof *s);
    enum exit_code code = EXIT_OK;
    if (!path)
        code =
            usage_error(BASELINE ": '%s': not a valid name; use letters, digits, '.', '_' and '-', "
                                 "and begin with a letter, a digit or '_'",
                        name);
    else if (!is_file && stat(name, &status) == 0)
        code =
            usage_error(BASELINE ": '%s': a file or folder here has this name; choose another, and "
                                 "put the baseline's name before the recordings",
                        name);
    else
        code = run_operands_read(s, paths, count, &how);
    if (code == EXIT_OK && !is_file)
        code = verb_output_folders(path);
    if (code == EXIT_OK)
        code = verb_output_open(&out, path, &room);
    if (code == EXIT_OK) {
        set_commit(s);
        baseline_write(s, out.stream);
        code = verb_output_close(&out, path, 0);
    }
    if (code == EXIT_OK) {
        warn_of_losses(s);
        printf("%s: %u run%s\n", path, s->count, plural_end(s->count));
    }
    run_set_release(s);
    free(s);
    free(path);
    return code;
}

static int baseline_verb_is_named(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && end != entry->d_name && strcmp(end, SUFFIX) == 0;
}

static enum exit_code remove_named(const struct options *options, const char *folder)
{
    if (options->path_count != 2)
        return usage_error(BASELINE ": remove needs one name: gpuprof baseline remove main");
    struct stat status;
    const char *name = options->paths[1];
    char *path = baseline_path(folder, name);
    enum exit_code code = EXIT_OK;
    if (!path || (lstat(path, &status) < 0 && errno == ENOENT)) {
        code =
            usage_error(BASELINE ": no baseline is named '%s' in %s; 'gpuprof diff --list' shows "
                                 "the baselines",
                        name, folder);
    } else if (unlink(path) < 0) {
        message(BASELINE ": %s: %s%s", path, strerror(errno), writing_advice(errno));
        code = EXIT_ENVIRONMENT;
    } else {
        printf("%s: removed\n", path);
    }
    free(path);
    return code;
}

/* Prints the step time as diff does: the median of all runs. */
static void print_baseline(const char *name, const struct run_set *s)
{
    const struct run_summary *first = &s->runs[0];
    double times[RUNS_MAX];
    uint32_t count = run_set_gather(s, RUN_STEP_TIME, times);
    char step[UNIT_TEXT_BYTES + 6] = "-";
    const char *gpu = first->facts[RUN_FACT_GPU], *time = first->facts[RUN_FACT_TIME];
    const char *commit = first->facts[RUN_FACT_COMMIT];
    if (count)
        time_text(step, (uint64_t)llround(array_median(times, count)));
    printf("%-24s %4u  %-20s  %-12.12s  %-11s  %s\n", name, s->count, time ? time : "-",
           commit ? commit : "-", first->steps || !count ? step : strcat(step, " (run)"),
           gpu ? gpu : "-");
}

static enum exit_code baseline_list(const char *path)
{
    struct dirent **names = NULL;
    int count = scandir(path, &names, baseline_verb_is_named, alphasort);
    enum exit_code code = EXIT_OK;
    if (count < 0 && errno != ENOENT) {
        message(BASELINE ": %s: %s", path, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    if (count > 0)
        printf("%-24s %4s  %-20s  %-12s  %-11s  %s\n", "name", "runs", "recorded", "commit",
               "step time", "GPU");
    else
        message(BASELINE ": no baselines in %s; gpuprof diff --save NAME DIR... makes one", path);
    for (int i = 0; i < count; i++) {
        struct run_set *s = memory_new(1, sizeof *s);
        *strrchr(names[i]->d_name, '.') = '\0';
        char *file = baseline_path(path, names[i]->d_name);
        enum exit_code one =
            !file ? usage_error(BASELINE ": %s/%s" SUFFIX ": not a valid name of a baseline", path,
                                names[i]->d_name)
                  : run_operands_baseline(s, file, BASELINE);
        if (one == EXIT_OK)
            print_baseline(names[i]->d_name, s);
        else
            code = one;
        run_set_release(s);
        free(s);
        free(file);
        free(names[i]);
    }
    free(names);
    return code;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static diff_print_fn *const printers[] = {
    [DIFF_TEXT] = diff_print_text, [DIFF_JUNIT] = diff_print_junit, [DIFF_JSON] = diff_print_json};

/* Returns the format from --format or the file's name; DIFF_BY_NAME: the ending is unknown. */
static enum diff_format diff_verb_format_of(const struct options *options, const char *path)
{
    const struct diff_options *own = options->own;
    if (own->format != DIFF_BY_NAME)
        return own->format;
    return verb_output_is(path, "") || verb_output_is(path, "txt")       ? DIFF_TEXT
           : verb_output_is(path, "xml")                                 ? DIFF_JUNIT
           : verb_output_is(path, "json")                                ? DIFF_JSON
           : verb_output_is(path, "html") || verb_output_is(path, "htm") ? DIFF_HTML
                                                                         : DIFF_BY_NAME;
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
    kernel_match_make(&kernels, &sets[1].kernels, &sets[0].kernels);
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

static const struct option baseline_folder[] = {
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

/* ---- the old verb ---------------------------------------------------------------------------- */

static enum exit_code baseline_verb_run(const struct options *options)
{
    const char *const *named = options->own, *folder = *named ? *named : BASELINE_FOLDER;
    const char *word = options->path_count ? options->paths[0] : "", *instead = "";
    int count = options->path_count;
    enum exit_code code = EXIT_USAGE;
    if (strcmp(word, "save") == 0 && count > 2) {
        code =
            baseline_save(options, options->paths[1], false, options->paths + 2, count - 2, folder);
        instead = "gpuprof diff --save NAME DIR...";
    } else if (strcmp(word, "list") == 0 && count == 1) {
        code = baseline_list(folder);
        instead = "gpuprof diff --list";
    } else if (strcmp(word, "remove") == 0) {
        code = remove_named(options, folder);
        instead = "rm FILE";
    } else {
        usage_error(BASELINE ": unknown words; 'gpuprof diff --save NAME DIR...' saves a baseline, "
                             "'gpuprof diff --list' lists them");
    }
    if (code == EXIT_OK)
        message(BASELINE ": '%s' replaces this command", instead);
    return code;
}

static const struct option own_options[] = {
    {OPTIONS_OF(baseline_folder, 0)},
    {OPTIONS_OF(read_options, READ_STEPS | READ_SYMBOLS | READ_KEEP_LIVE)},
    {0},
};

VERB_IS(baseline, baseline_verb_run, own_options, VERB_OWN(const char *, NULL), VERB_OLD,
        "save NAME DIR|FILE... | list | remove NAME",
        "save, list or remove baselines; 'gpuprof diff --save' and '--list' replace it");
