/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_at.h"
#include "error.h"

int source_tree_open(struct source_tree *t, const char *folder)
{
    *t = (struct source_tree){.folder = realpath(folder, NULL), .fd = -1};
    if (!t->folder)
        return GPUPROF_IO;
    if (strcmp(t->folder, "/") == 0)
        t->folder[0] = '\0';
    t->fd = open(t->folder[0] ? t->folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return t->fd < 0 ? GPUPROF_IO : 0;
}

void source_tree_release(struct source_tree *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->paths[i]);
    free(t->paths);
    free(t->folder);
    file_close(t->fd);
}

static int source_tree_compare_names(const void *name, const void *item)
{
    return strcmp(name, *(const char *const *)item);
}

static bool is_left_out(const char *name)
{
    return name[0] == '.' || strcmp(name, "site-packages") == 0 ||
           strcmp(name, "dist-packages") == 0 || strcmp(name, "__pycache__") == 0;
}

struct wanted {
    const char *const *names;
    uint32_t count;
};

static int add_path(struct source_tree *t, const char *path)
{
    if (t->count == SOURCE_FILES_MAX) {
        t->is_cut = true;
        return 0;
    }
    char *own = strdup(path);
    int error = own ? ARRAY_PUSH(t->paths, t->count, &own) : GPUPROF_NO_MEMORY;
    if (error < 0)
        free(own);
    return error;
}

/* Lists the folder `fd`, which it closes; `path` has its path, of `length` bytes. */
static int list_folder(struct source_tree *t, const struct wanted *wanted, int fd, char *path,
                       size_t length, unsigned depth)
{
    DIR *folder = fdopendir(fd);
    int error = 0;
    if (!folder) {
        close(fd);
        return 0;
    }
    for (struct dirent *d; error == 0 && (d = readdir(folder));) {
        struct stat status;
        size_t bytes = strlen(d->d_name);
        /* Skips entries that are too deep; others continue. */
        bool is_over = t->seen == SOURCE_SEEN_MAX || length + bytes + 2 > PATH_MAX;
        t->is_cut |= is_over;
        if (is_over || is_left_out(d->d_name) ||
            fstatat(dirfd(folder), d->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        t->seen++;
        path[length] = '/';
        memcpy(path + length + 1, d->d_name, bytes + 1);
        if (S_ISREG(status.st_mode) && bsearch(d->d_name, wanted->names, wanted->count,
                                               sizeof *wanted->names, source_tree_compare_names))
            error = add_path(t, path);
        t->is_cut |= S_ISDIR(status.st_mode) && depth == SOURCE_DEPTH_MAX;
        if (!S_ISDIR(status.st_mode) || depth == SOURCE_DEPTH_MAX)
            continue;
        int inner =
            openat(dirfd(folder), d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0)
            error = list_folder(t, wanted, inner, path, length + 1 + bytes, depth + 1);
    }
    closedir(folder);
    return error;
}

int source_tree_list(struct source_tree *t, const char *const *names, uint32_t count)
{
    char path[PATH_MAX];
    size_t length = strlen(t->folder);
    int fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
    memcpy(path, t->folder, length + 1);
    struct wanted wanted = {names, count};
    return fd < 0 ? 0 : list_folder(t, &wanted, fd, path, length, 0);
}

/* Returns how many trailing parts of the paths are equal. */
static unsigned common_parts(const char *path, const char *recorded)
{
    const char *p = path + strlen(path), *r = recorded + strlen(recorded);
    unsigned parts = 0;
    while (p > path && r > recorded && p[-1] == r[-1]) {
        p--;
        r--;
        parts += *p == '/';
    }
    return parts + (r == recorded && *r != '/' && p > path && p[-1] == '/');
}

enum source_match source_tree_match(const struct source_tree *t, const char *recorded,
                                    uint32_t *index)
{
    unsigned best = 0, found = 0;
    /* The parts before ".." are uncertain. */
    for (const char *up; (up = strstr(recorded, "../"));)
        recorded = up + 3;
    for (uint32_t i = 0; i < t->count; i++) {
        unsigned parts = common_parts(t->paths[i], recorded);
        if (parts > best)
            *index = i;
        found = parts > best ? 1 : found + (parts && parts == best);
        best = parts > best ? parts : best;
    }
    return !found ? SOURCE_NONE : found == 1 ? SOURCE_ONE : SOURCE_SEVERAL;
}

const char *source_tree_path(const struct source_tree *t, uint32_t index)
{
    return t->paths[index] + strlen(t->folder) + 1;
}

/* Opens it part by part from the folder: a symbolic link may have appeared since the listing. */
static int open_below(const struct source_tree *t, const char *path)
{
    char part[NAME_MAX + 1];
    int fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
    while (fd >= 0) {
        size_t length = strcspn(path, "/");
        bool is_last = !path[length];
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        int next = openat(
            fd, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (is_last ? 0 : O_DIRECTORY));
        int number = errno;
        close(fd);
        errno = number;
        if (is_last)
            return next;
        fd = next;
        path += length + 1;
    }
    return -1;
}

static int find_lines(struct source_text *s)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < s->length; i++)
        count += s->bytes[i] == '\n';
    s->starts = calloc(count + 1u, sizeof *s->starts);
    if (!s->starts)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < s->length; i++)
        if (s->bytes[i] == '\n')
            s->starts[++s->line_count] = i + 1;
    if (s->starts[s->line_count] < s->length)
        s->starts[++s->line_count] = s->length + 1; /* as if the last line ended, too */
    return 0;
}

int source_text_read(struct source_text *s, const struct source_tree *t, uint32_t index)
{
    struct stat status;
    *s = (struct source_text){0};
    int fd = open_below(t, source_tree_path(t, index));
    if (fd < 0)
        return GPUPROF_IO;
    int error = fstat(fd, &status) == 0 ? 0 : GPUPROF_IO;
    if (error == 0 && (!S_ISREG(status.st_mode) || status.st_size > SOURCE_BYTES_MAX))
        error = GPUPROF_LIMIT;
    if (error == 0 && !(s->bytes = malloc((size_t)status.st_size + 1)))
        error = GPUPROF_NO_MEMORY;
    ssize_t length = error == 0 ? file_read_at(fd, 0, s->bytes, (size_t)status.st_size) : 0;
    close(fd);
    if (error == 0 && length < 0)
        error = GPUPROF_IO;
    if (error < 0)
        return error;
    s->length = (uint32_t)length;
    s->changed_ns =
        (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
    return find_lines(s);
}

void source_text_release(struct source_text *s)
{
    free(s->bytes);
    free(s->starts);
}

const char *source_line(const struct source_text *s, uint32_t n, size_t *length)
{
    const char *line = s->bytes + s->starts[n - 1];
    *length = s->starts[n] - 1 - s->starts[n - 1];
    *length -= *length && line[*length - 1] == '\r';
    return line;
}
