/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_at.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

#define PATH_BYTES_MAX 4096

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

bool file_first_line(const char *path, char *line, size_t capacity)
{
    struct stat status;
    ssize_t length = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        length = file_read_at(fd, 0, line, capacity - 1);
    if (fd >= 0)
        close(fd);
    line[length > 0 ? length : 0] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    return length > 0;
}

const char *file_unnamed_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && folder[0] ? folder : "/tmp";
}

/* Where the file system has none without a name, one whose name is gone at once. */
int file_unnamed(void)
{
    const char *folder = file_unnamed_folder();
    char path[PATH_BYTES_MAX];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    if (snprintf(path, sizeof path, "%s/gpuprof-XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}
