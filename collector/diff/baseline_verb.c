/* SPDX-License-Identifier: Apache-2.0 */
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
#include "diff/comparison.h"
#include "diff/run_summary.h"
#include "output/output.h"

#define VERB             "baseline"
#define SUFFIX           ".json"
#define GIT_COMMIT_BYTES 66 /* a line of 40 digits, or 64 with SHA-256 */
#define HEX_DIGITS       "0123456789abcdef"

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

static bool make_folder(const char *folder)
{
    char *path = memory_text(folder);
    bool is_made = true;
    for (char *at = path; is_made && at;) {
        at = strchr(at + 1, '/');
        if (at)
            *at = '\0';
        is_made = mkdir(path, 0777) == 0 || errno == EEXIST;
        if (at)
            *at = '/';
    }
    if (!is_made)
        message(VERB ": %s: %s%s", folder, strerror(errno), writing_advice(errno));
    free(path);
    return is_made;
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
            message(VERB ": %s: losses: %s; diff will compare with it only with --force; save "
                         "without this run, or record it again",
                    s->names[i], s->runs[i].facts[RUN_FACT_LOSSES]);
            return;
        }
}

enum exit_code baseline_save(const struct options *options, const char *name, bool may_be_file,
                             char **paths, int count, const char *folder)
{
    const struct run_reading how = {VERB, folder, options};
    struct output out;
    uint64_t room = BASELINE_BYTES_MAX;
    if (count < 1)
        return usage_error(VERB ": no recordings to save: gpuprof diff --save main DIR...");
    struct stat status;
    bool is_file = may_be_file && (strchr(name, '/') || verb_output_is(name, "json"));
    char *path = is_file ? memory_text(name) : baseline_path(folder, name);
    struct run_set *s = memory_new(1, sizeof *s);
    enum exit_code code = EXIT_OK;
    if (!path)
        code = usage_error(VERB ": '%s': not a valid name; use letters, digits, '.', '_' and '-', "
                                "and begin with a letter, a digit or '_'",
                           name);
    else if (!is_file && stat(name, &status) == 0)
        code = usage_error(VERB ": '%s': a file or folder here has this name; choose another, and "
                                "put the baseline's name before the recordings",
                           name);
    else
        code = run_operands_read(s, paths, count, &how);
    if (code == EXIT_OK && !is_file && !make_folder(folder))
        code = EXIT_ENVIRONMENT;
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

/* Returns the number of baselines in the folder, 0 if there is no folder. *list has their sorted
 * names in d_name, in new memory. -1: failed, after a line on stderr. */
static int read_names(const char *folder, struct dirent ***list)
{
    *list = NULL;
    int count = scandir(folder, list, baseline_verb_is_named, alphasort);
    if (count < 0 && errno == ENOENT)
        return 0;
    if (count < 0)
        message(VERB ": %s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++)
        *strrchr((*list)[i]->d_name, '.') = '\0';
    return count;
}

static enum exit_code remove_named(const struct options *options, const char *folder)
{
    if (options->path_count != 2)
        return usage_error(VERB ": remove needs one name: gpuprof baseline remove main");
    struct stat status;
    const char *name = options->paths[1];
    char *path = baseline_path(folder, name);
    enum exit_code code = EXIT_OK;
    if (!path || (lstat(path, &status) < 0 && errno == ENOENT)) {
        code = usage_error(VERB ": no baseline is named '%s' in %s; 'gpuprof diff --list' shows "
                                "the baselines",
                           name, folder);
    } else if (unlink(path) < 0) {
        message(VERB ": %s: %s%s", path, strerror(errno), writing_advice(errno));
        code = EXIT_ENVIRONMENT;
    } else {
        printf("%s: removed\n", path);
    }
    free(path);
    return code;
}

/* Formats the median step time of all runs, as diff does; returns `text`. */
static const char *step_time(const struct run_set *s, char text[static UNIT_TEXT_BYTES + 6])
{
    double times[RUNS_MAX];
    uint32_t count = run_set_gather(s, RUN_STEP_TIME, times);
    if (!count)
        return "-";
    time_text(text, (uint64_t)llround(array_median(times, count)));
    return s->runs[0].steps ? text : strcat(text, " (run)");
}

static void print_baseline(const char *name, const struct run_set *s)
{
    const struct run_summary *first = &s->runs[0];
    char step[UNIT_TEXT_BYTES + 6];
    const char *gpu = first->facts[RUN_FACT_GPU], *time = first->facts[RUN_FACT_TIME];
    const char *commit = first->facts[RUN_FACT_COMMIT];
    printf("%-24s %4u  %-20s  %-12.12s  %-11s  %s\n", name, s->count, time ? time : "-",
           commit ? commit : "-", step_time(s, step), gpu ? gpu : "-");
}

enum exit_code baseline_list(const char *path)
{
    struct dirent **names;
    int count = read_names(path, &names);
    enum exit_code code = EXIT_OK;
    if (count < 0)
        return EXIT_ENVIRONMENT;
    if (count)
        printf("%-24s %4s  %-20s  %-12s  %-11s  %s\n", "name", "runs", "recorded", "commit",
               "step time", "GPU");
    else
        message(VERB ": no baselines in %s; gpuprof diff --save NAME DIR... makes one", path);
    for (int i = 0; i < count; i++) {
        struct run_set *s = memory_new(1, sizeof *s);
        char *file = baseline_path(path, names[i]->d_name);
        enum exit_code one =
            !file ? usage_error(VERB ": %s/%s" SUFFIX ": not a valid name of a baseline", path,
                                names[i]->d_name)
                  : run_operands_baseline(s, file, VERB);
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
        usage_error(VERB ": unknown words; 'gpuprof diff --save NAME DIR...' saves a baseline, "
                         "'gpuprof diff --list' lists them");
    }
    if (code == EXIT_OK)
        message(VERB ": '%s' replaces this command", instead);
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
