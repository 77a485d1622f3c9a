/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGH_FD 200

int descriptor_move_high(int fd)
{
    int high = -1;
    for (int low = HIGH_FD; fd >= 0 && high < 0 && low >= 3; low /= 2)
        high = fcntl(fd, F_DUPFD_CLOEXEC, low);
    if (high < 0 && fd >= 3)
        return fd;
    int error = high < 0 && fd >= 0 ? EMFILE : errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return high;
}

bool descriptor_is(int fd, dev_t device, ino_t inode)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

bool kept_file_open(struct kept_file *f, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (fd >= 0)
        close(fd);
    f->fd = -1;
    if (high >= 0 && fstat(high, &st) == 0)
        *f = (struct kept_file){high, st.st_dev, st.st_ino};
    else if (high >= 0)
        close(high);
    return f->fd >= 0;
}

static bool is_open(const struct kept_file *f)
{
    return descriptor_is(f->fd, f->device, f->inode);
}

size_t kept_file_read(const struct kept_file *f, char *text, size_t bytes)
{
    ssize_t length = is_open(f) ? pread(f->fd, text, bytes - 1, 0) : 0;
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

/*
 * Uses the system call, not close(). Threads may agree on the owner of a descriptor in ways that
 * ThreadSanitizer cannot see; with close() it reports a race between this and another thread's open
 * and read.
 */
void kept_file_close(struct kept_file *f)
{
    if (is_open(f))
        syscall(SYS_close, f->fd);
}
