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

static enum exit_code read_baseline(struct run_set *s, const char *path, const char *verb)
{
    size_t length;
    const char *why = "";
    char *text = read_file(path, &length);
    if (!text) {
        message("%s: %s: %s%s", verb, path, strerror(errno), reading_advice(errno));
        return EXIT_USAGE;
    }
    int error = length ? baseline_read(s, text, length, &why) : GPUPROF_NOT_OURS;
    free(text);
    switch (error) {
    case 0: return EXIT_OK;
    case GPUPROF_NO_MEMORY:
        message("%s: %s", verb, gpuprof_error_text(error));
        return EXIT_ENVIRONMENT;
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

static enum exit_code read_recording(struct run_set *s, char *path, const struct run_wish *wish,
                                     bool keep_live, const char *verb)
{
    struct recording rec;
    struct run_summary run = {.steps = 0};
    struct progress progress;
    const struct recording_options how = {.keep_live = keep_live};
    enum exit_code code = recording_open(&rec, &path, 1, &how);
    rec.progress = progress_begin(&progress, verb);
    progress.total = 3 * recording_bytes(&rec);
    if (code == EXIT_OK)
        code = run_summary_make(&run, &rec, wish);
    int error = code == EXIT_OK ? run_set_add(s, &run, path) : 0;
    if (error == GPUPROF_LIMIT)
        code = usage_error("%s: %s: more than %d runs on a side", verb, path, RUNS_MAX);
    else if (error < 0)
        code = EXIT_ENVIRONMENT;
    if (error < 0 && error != GPUPROF_LIMIT)
        message("%s: %s", verb, gpuprof_error_text(error));
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

enum exit_code run_operands_read(struct run_set *s, char **paths, int count, const char *folder,
                                 const struct run_wish *wish, bool keep_live, const char *verb)
{
    enum exit_code code = EXIT_OK;
    for (int i = 0; code == EXIT_OK && i < count; i++) {
        struct stat status;
        for (int k = 0; k < i; k++)
            if (run_operands_same(paths[i], paths[k]))
                return usage_error("%s: %s: named twice on a side: each run counts once", verb,
                                   paths[i]);
        bool is_there = stat(paths[i], &status) == 0;
        char *named = is_there ? NULL : baseline_path(folder, paths[i]);
        if (is_there && S_ISREG(status.st_mode) && is_baseline(paths[i]))
            code = read_baseline(s, paths[i], verb);
        else if (named && stat(named, &status) == 0)
            code = read_baseline(s, named, verb);
        else if (is_there)
            code = read_recording(s, paths[i], wish, keep_live, verb);
        else
            code = usage_error("%s: %s: neither a recording nor a baseline in %s (gpuprof baseline "
                               "list)",
                               verb, paths[i], folder);
        free(named);
    }
    return code;
}
