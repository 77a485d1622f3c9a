/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_operands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "diff/baseline_file.h"
#include "error.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

char *baseline_path(const char *folder, const char *name)
{
    char *path = NULL;
    size_t length = strlen(name);
    if (!length || length > BASELINE_NAME_BYTES || strspn(name, NAME_CHARACTERS) != length ||
        *name == '.' || *name == '-')
        return NULL;
    return asprintf(&path, "%s/%s.json", folder, name) < 0 ? NULL : path;
}

/* The file's bytes without white space at the end, in new memory; NULL: errno, EFBIG if there are
 * too many. */
static char *read_file(const char *path, size_t *length)
{
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a FIFO is not waited for */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !file)
        close(fd);
    char *text = file ? malloc(BASELINE_BYTES_MAX + 1u) : NULL;
    *length = text ? fread(text, 1, BASELINE_BYTES_MAX + 1u, file) : 0;
    bool has_failed = !text || ferror(file);
    if (!has_failed && *length > BASELINE_BYTES_MAX) {
        errno = EFBIG;
        has_failed = true;
    }
    if (file)
        fclose(file);
    while (*length && strchr(" \n\r\t", text[*length - 1]))
        --*length;
    if (!has_failed)
        return text;
    free(text);
    return NULL;
}

enum exit_code run_operands_baseline(struct run_set *s, const char *path, const char *verb)
{
    size_t length;
    char why[BASELINE_WHY_BYTES], *text = read_file(path, &length);
    if (!text) {
        message("%s: %s: %s%s", verb, path, strerror(errno), reading_advice(errno));
        return EXIT_USAGE;
    }
    int error = length ? baseline_read(s, text, length, why) : GPUPROF_NOT_OURS;
    free(text);
    switch (error) {
    case 0: return EXIT_OK;
    case GPUPROF_NO_MEMORY: return say_error(verb, error);
    case GPUPROF_NOT_OURS: return usage_error("%s: %s: no baseline of gpuprof's", verb, path);
    case GPUPROF_VERSION:
        return usage_error("%s: %s: of another version than this gpuprof reads; save the baseline "
                           "again",
                           verb, path);
    case GPUPROF_LIMIT:
        return usage_error("%s: %s: more than %d runs on a side, or %d kernels", verb, path,
                           RUNS_MAX, BASELINE_KERNELS_MAX);
    default: return usage_error("%s: %s: damaged: %s; save the baseline again", verb, path, why);
    }
}

/* `paths` as one run, which is called `name`. */
static enum exit_code read_recording(struct run_set *s, const char *name, char **paths, int count,
                                     const struct run_reading *how)
{
    struct recording rec;
    struct run_summary run = {.steps = 0};
    struct progress progress;
    const struct recording_options options = {.keep_live = how->keep_live};
    enum exit_code code = recording_open(&rec, paths, count, &options);
    rec.progress = progress_begin(&progress, how->wish.verb);
    progress.total = 3 * recording_bytes(&rec);
    if (code == EXIT_OK)
        code = run_summary_make(&run, &rec, &how->wish);
    int error = code == EXIT_OK ? run_set_add(s, &run, name) : 0;
    if (error == GPUPROF_LIMIT)
        code = usage_error("%s: %s: more than %d runs on a side", how->wish.verb, name, RUNS_MAX);
    else if (error < 0)
        code = EXIT_ENVIRONMENT;
    if (error < 0 && error != GPUPROF_LIMIT)
        say_error(how->wish.verb, error);
    run_summary_release(&run);
    recording_release(&rec);
    return code;
}

/* Does the file begin as a baseline does? */
static bool is_baseline(const char *path)
{
    FILE *file = fopen(path, "re");
    bool is = file && fgetc(file) == '{';
    if (file)
        fclose(file);
    return is;
}

bool run_operands_same(const char *one, const char *other)
{
    struct stat first, second;
    if (strcmp(one, other) == 0)
        return true;
    return stat(one, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* *path: the file, in new memory, of the baseline that the word names or is; NULL: it is none. */
static enum exit_code find_baseline(const char *word, const struct run_reading *how, char **path)
{
    struct stat status, other;
    bool is_there = stat(word, &status) == 0;
    char *named = baseline_path(how->folder, word);
    bool is_named = named && stat(named, &other) == 0;
    enum exit_code code = EXIT_OK;
    *path = NULL;
    if (is_there && is_named)
        code = usage_error("%s: %s: there are both %s '%s' and a baseline of that name; say ./%s, "
                           "or %s",
                           how->wish.verb, word, S_ISDIR(status.st_mode) ? "a folder" : "a file",
                           word, word, named);
    else if (is_named || (is_there && S_ISREG(status.st_mode) && is_baseline(word)))
        *path = is_named ? named : strdup(word);
    if (*path != named)
        free(named);
    return code;
}

/* One of `count` names of the word: a baseline, whose runs are added, or else of *paths, which it
 * moves on, the next one. */
static enum exit_code read_name(struct run_set *s, char **names, int count, const char *word,
                                const struct run_reading *how, char ***paths)
{
    struct stat status;
    char *name = names[count - 1], *baseline;
    for (int i = 0; i < count - 1; i++)
        if (run_operands_same(names[i], name))
            return usage_error("%s: %s: %s is named twice", how->wish.verb, word, name);
    enum exit_code code = find_baseline(name, how, &baseline);
    if (baseline)
        code = run_operands_baseline(s, baseline, how->wish.verb);
    else if (code == EXIT_OK && stat(name, &status) == 0)
        *(*paths)++ = name;
    else if (code == EXIT_OK && strcmp(name, word) == 0)
        code = usage_error("%s: %s: neither a recording nor a baseline in %s (gpuprof baseline "
                           "list)",
                           how->wish.verb, word, how->folder);
    else if (code == EXIT_OK && !*name)
        code = usage_error("%s: %s: a name is missing at a comma", how->wish.verb, word);
    else if (code == EXIT_OK)
        code = usage_error("%s: %s: %s is not there, and no baseline in %s", how->wish.verb, word,
                           name, how->folder);
    free(baseline);
    return code;
}

/* With commas between, unless there is something of that name: baselines, and all else as files of
 * one run: "a.gpuprof,b.gpuprof". */
static enum exit_code read_operand(struct run_set *s, const char *word,
                                   const struct run_reading *how)
{
    struct stat status;
    const char *separators = stat(word, &status) == 0 ? "" : ",";
    char *text = strdup(word), *rest = text;
    char **names = calloc(strlen(word) + 2, sizeof *names); /* and NULL */
    char **paths = calloc(strlen(word) + 1, sizeof *paths), **end = paths;
    enum exit_code code = EXIT_OK;
    if (!text || !names || !paths) {
        say_error(how->wish.verb, GPUPROF_NO_MEMORY);
        code = EXIT_ENVIRONMENT;
    }
    for (int count = 0; code == EXIT_OK && (names[count] = strsep(&rest, separators)); count++)
        code = read_name(s, names, count + 1, word, how, &end);
    if (code == EXIT_OK && end > paths)
        code = read_recording(s, word, paths, (int)(end - paths), how);
    free(paths);
    free(names);
    free(text);
    return code;
}

enum exit_code run_operands_read(struct run_set *s, char **words, int count,
                                 const struct run_reading *how)
{
    enum exit_code code = EXIT_OK;
    for (int i = 0; code == EXIT_OK && i < count; i++) {
        for (int k = 0; k < i; k++)
            if (run_operands_same(words[i], words[k]))
                return usage_error("%s: %s: named twice on a side: each run counts once",
                                   how->wish.verb, words[i]);
        code = read_operand(s, words[i], how);
    }
    return code;
}
