/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/message.h"
#include "base/unit_text.h"
#include "diff/comparison.h"
#include "diff/run_summary.h"
#include "error.h"
#include "output/verb_output.h"

#define VERB                 "baseline"
#define NAMES_REPORTED_BYTES 1000 /* of names listed in a message */
#define SUFFIX               ".json"
#define GIT_COMMIT_BYTES     65 /* 40 digits, or 64 with SHA-256 */
#define LINE_BYTES           1024
#define REFS_BYTES_MAX       (8u << 20) /* read of packed-refs */
#define HEX_DIGITS           "0123456789abcdef"

/* ---- the commit that is checked out ---- */

/* Copies a commit; false unless the text begins with one and then ends or has a blank. */
static bool take_commit(const char *text, char commit[GIT_COMMIT_BYTES])
{
    size_t length = strspn(text, HEX_DIGITS);
    if ((length != 40 && length != 64) || (text[length] && text[length] != ' '))
        return false;
    memcpy(commit, text, length);
    commit[length] = '\0';
    return true;
}

/* Makes a path of `name`, relative to `folder`. */
static bool baseline_verb_resolve(const char *folder, const char *name, char path[PATH_MAX])
{
    int length = *name == '/' ? snprintf(path, PATH_MAX, "%s", name)
                              : snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return length > 0 && length < PATH_MAX;
}

static bool read_line(const char *folder, const char *name, char line[LINE_BYTES])
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
           file_first_line(path, line, LINE_BYTES);
}

/* Finds git's folder of the working tree at `folder`: ".git", or the folder that this file
 * names. */
static bool find_git(const char *folder, char git[PATH_MAX])
{
    char line[LINE_BYTES];
    struct stat status;
    if (!baseline_verb_resolve(folder, ".git", git) || stat(git, &status) < 0)
        return false;
    if (S_ISDIR(status.st_mode))
        return true;
    return read_line(folder, ".git", line) && strncmp(line, "gitdir: ", 8) == 0 &&
           baseline_verb_resolve(folder, line + 8, git);
}

/* Searches packed-refs, "COMMIT NAME" on each line. */
static bool find_packed(const char *git, const char *ref, char commit[GIT_COMMIT_BYTES])
{
    char path[PATH_MAX];
    FILE *file = baseline_verb_resolve(git, "packed-refs", path) ? fopen(path, "re") : NULL;
    char line[LINE_BYTES];
    size_t left = REFS_BYTES_MAX;
    bool found = false;
    while (file && !found && left > sizeof line && fgets(line, sizeof line, file)) {
        left -= strlen(line);
        line[strcspn(line, "\n")] = '\0';
        const char *name = strchr(line, ' ');
        found = name && strcmp(name + 1, ref) == 0 && take_commit(line, commit);
    }
    if (file)
        fclose(file);
    return found;
}

/* Finds the commit of a branch. A linked working tree shares the refs of the main one. */
static bool find_ref(const char *git, const char *ref, char commit[GIT_COMMIT_BYTES])
{
    char line[LINE_BYTES], common[PATH_MAX];
    if (strncmp(ref, "refs/", 5) != 0 || strstr(ref, ".."))
        return false;
    if (read_line(git, ref, line))
        return take_commit(line, commit);
    if (!read_line(git, "commondir", line))
        return find_packed(git, ref, commit);
    return baseline_verb_resolve(git, line, common) &&
           (read_line(common, ref, line) ? take_commit(line, commit)
                                         : find_packed(common, ref, commit));
}

/* Finds the commit of the working tree around the current folder, without running git, which may
 * not be installed. Returns false if there is none. The files are untrusted input, and nothing is
 * changed. */
static bool git_commit_here(char commit[GIT_COMMIT_BYTES])
{
    char folder[PATH_MAX], git[PATH_MAX], line[LINE_BYTES];
    if (!getcwd(folder, sizeof folder) || *folder != '/')
        return false;
    while (!find_git(*folder ? folder : "/", git)) {
        if (!*folder)
            return false;
        *strrchr(folder, '/') = '\0';
    }
    if (!read_line(git, "HEAD", line))
        return false;
    return strncmp(line, "ref: ", 5) == 0 ? find_ref(git, line + 5, commit)
                                          : take_commit(line, commit);
}

/* ---- save ---- */

/* Makes the folder and its parents. */
static bool make_folder(const char *folder)
{
    char *path = strdup(folder);
    bool is_made = path != NULL;
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
static int set_commit(struct run_set *s)
{
    char here[GIT_COMMIT_BYTES];
    static const char *const variables[] = {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT"};
    const char *commit = NULL;
    int error = 0;
    for (unsigned i = 0; !commit && i < sizeof variables / sizeof variables[0]; i++)
        commit = getenv(variables[i]);
    if ((!commit || !*commit) && git_commit_here(here))
        commit = here;
    for (uint32_t i = 0; error == 0 && i < s->count; i++)
        error = run_fact_set(&s->runs[i], RUN_FACT_COMMIT, commit);
    return error;
}

static enum exit_code baseline_verb_write_file(struct run_set *s, const char *path)
{
    struct output out;
    uint64_t room = BASELINE_BYTES_MAX;
    enum exit_code code = verb_output_open(&out, path, &room);
    if (code != EXIT_OK)
        return code;
    out.stays_plain = true;
    baseline_write(s, out.stream);
    return verb_output_close(&out, path, 0);
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
    const struct run_reading how = {
        .folder = folder,
        .request = {VERB, options->step_by, options->step_range, options->symbols},
        .keep_live = options->keep_live,
    };
    if (count < 1)
        return usage_error(VERB ": no recordings to save: gpuprof diff --save main DIR...");
    struct stat status;
    bool is_file = may_be_file && (strchr(name, '/') || verb_output_is(name, "json"));
    char *path = is_file ? strdup(name) : baseline_path(folder, name);
    struct run_set *s = calloc(1, sizeof *s);
    enum exit_code code = EXIT_OK;
    if (!path)
        code = usage_error(VERB ": '%s': not a valid name; use letters, digits, '.', '_' and '-', "
                                "and begin with a letter, a digit or '_'",
                           name);
    else if (!is_file && stat(name, &status) == 0)
        code = usage_error(VERB ": '%s': a file or folder here has this name; choose another, and "
                                "put the baseline's name before the recordings",
                           name);
    else if (!s)
        code = say_error(VERB, GPUPROF_NO_MEMORY);
    else
        code = run_operands_read(s, paths, count, &how);
    if (code == EXIT_OK && set_commit(s) < 0)
        code = say_error(VERB, GPUPROF_NO_MEMORY);
    if (code == EXIT_OK && !is_file && !make_folder(folder))
        code = EXIT_ENVIRONMENT;
    if (code == EXIT_OK)
        code = baseline_verb_write_file(s, path);
    if (code == EXIT_OK)
        warn_of_losses(s);
    if (code == EXIT_OK)
        printf("%s: %u run%s\n", path, s->count, s->count == 1 ? "" : "s");
    if (s)
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

static int by_name(const void *left, const void *right)
{
    return strcmp((*(struct dirent *const *)left)->d_name,
                  (*(struct dirent *const *)right)->d_name);
}

/* Returns the number of baselines in the folder, 0 if there is no folder. *list has their sorted
 * names in d_name, in new memory. -1: failed, after a line on stderr. */
static int read_names(const char *folder, struct dirent ***list)
{
    *list = NULL;
    int count = scandir(folder, list, baseline_verb_is_named, NULL);
    if (count < 0 && errno == ENOENT)
        return 0;
    if (count < 0)
        message(VERB ": %s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++)
        *strrchr((*list)[i]->d_name, '.') = '\0';
    if (count > 0)
        qsort(*list, (size_t)count, sizeof **list, by_name);
    return count;
}

/* Prints one line with the names that exist. */
static enum exit_code unknown_name(const char *folder, const char *wrong)
{
    struct dirent **names;
    char text[NAMES_REPORTED_BYTES] = "";
    size_t length = 0;
    int reported = 0, count = read_names(folder, &names);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        if (reported == i && length + strlen(name) + 2 < sizeof text) {
            length +=
                (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? ", " : "", name);
            reported++;
        }
        free(names[i]);
    }
    free(names);
    if (count < 0)
        return EXIT_ENVIRONMENT;
    if (!count)
        return usage_error(VERB ": no baseline is named '%s': %s has no baselines", wrong, folder);
    return usage_error(VERB ": no baseline is named '%s' in %s; the baselines are: %s%s", wrong,
                       folder, text, reported < count ? " and others (gpuprof diff --list)" : "");
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
        code = unknown_name(folder, name);
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
    time_text(text, (uint64_t)llround(rank_median(times, count)));
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
        struct run_set *s = calloc(1, sizeof *s);
        char *file = baseline_path(path, names[i]->d_name);
        enum exit_code one =
            !s      ? EXIT_ENVIRONMENT
            : !file ? usage_error(VERB ": %s/%s" SUFFIX ": not a valid name of a baseline", path,
                                  names[i]->d_name)
                    : run_operands_baseline(s, file, VERB);
        if (one == EXIT_OK)
            print_baseline(names[i]->d_name, s);
        else
            code = one;
        if (s)
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
