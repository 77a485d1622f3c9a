/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_at.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "error.h"
#include "stream.h"

#define PATH_BYTES_MAX 4096
#define COPY_BYTES     65536

ssize_t file_read_at(int fd, uint64_t offset, void *data, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t got = pread(fd, (char *)data + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return GPUPROF_IO;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int file_write_next(int fd, const void *data, size_t count)
{
    for (const char *next = data; count;) {
        ssize_t put = write(fd, next, count);
        if (put == 0 || (put < 0 && errno != EINTR))
            return put == 0 ? ENOSPC : errno;
        next += put > 0 ? put : 0;
        count -= put > 0 ? (size_t)put : 0;
    }
    return 0;
}

int file_write_at(int fd, uint64_t offset, const void *data, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t put = pwrite(fd, (const char *)data + done, count - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return GPUPROF_IO;
        done += (size_t)put;
    }
    return 0;
}

int file_copy_at(int from, uint64_t offset, int to, uint64_t to_offset, uint64_t count)
{
    uint8_t buffer[COPY_BYTES];
    for (uint64_t done = 0; done < count;) {
        size_t left = count - done < sizeof buffer ? count - done : sizeof buffer;
        ssize_t got = file_read_at(from, offset + done, buffer, left);
        errno = got == 0 ? EIO : errno;
        if (got <= 0 || file_write_at(to, to_offset + done, buffer, (size_t)got) < 0)
            return GPUPROF_IO;
        done += (size_t)got;
    }
    return 0;
}

ssize_t file_head(const char *path, void *data, size_t count)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t got = fd < 0 || fstat(fd, &status) < 0 ? GPUPROF_IO
                  : !S_ISREG(status.st_mode)       ? GPUPROF_NOT_OURS
                                                   : file_read_at(fd, 0, data, count);
    file_close(fd);
    return got;
}

void file_close(int fd)
{
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
}

bool file_first_line(const char *path, char *line, size_t capacity)
{
    ssize_t length = file_head(path, line, capacity - 1);
    line[length > 0 ? length : 0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    return length > 0;
}

/* Returns $TMPDIR or /tmp, as a view. */
static const char *file_unnamed_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && folder[0] ? folder : "/tmp";
}

int file_unnamed(void)
{
    char path[PATH_BYTES_MAX];
    if (snprintf(path, sizeof path, "%s/gpuprof-XXXXXX", file_unnamed_folder()) >= PATH_BYTES_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

void file_unnamed_failed(void)
{
    int number = errno;
    message("cannot write a temporary file in %s: %s%s", file_unnamed_folder(), strerror(number),
            number == EFBIG ? "; raise ulimit -f" : "; set TMPDIR to another folder");
    memory_end(EXIT_ENVIRONMENT);
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Returns the path of a name in the folder, in new memory. */
static char *path_in(const char *folder, const char *name)
{
    size_t length = strlen(folder);
    return text_printf("%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
}

void path_list_release(struct path_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
}

static int is_stream(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), end = strlen(STREAM_SUFFIX);
    return length > end && strcmp(entry->d_name + length - end, STREAM_SUFFIX) == 0;
}

static bool has_stream(const char *folder)
{
    struct path_list list;
    bool found = path_list_read(&list, folder) == 0 && list.count;
    path_list_release(&list);
    return found;
}

uint32_t path_list_below(const char *folder, char **first)
{
    uint32_t found = 0;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    *first = NULL;
    for (uint32_t i = 0; dir && i < PATH_BELOW_MAX && (entry = readdir(dir)); i++) {
        char *path = entry->d_name[0] == '.' ? NULL : path_in(folder, entry->d_name);
        bool is_data = path && has_stream(path);
        found += is_data;
        if (is_data && !*first)
            *first = path;
        else
            free(path);
    }
    if (dir)
        closedir(dir);
    return found;
}

int path_list_read(struct path_list *list, const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_stream, alphasort);
    int error = count < 0 ? GPUPROF_IO : 0;
    *list = (struct path_list){0};
    for (int i = 0; i < count; i++) {
        error = list->count == PATH_LIST_MAX ? GPUPROF_LIMIT : 0;
        char *path = error == 0 ? path_in(folder, entries[i]->d_name) : NULL;
        if (path)
            ARRAY_PUSH(list->paths, list->count, &path);
        free(entries[i]);
    }
    free(entries);
    return error;
}
