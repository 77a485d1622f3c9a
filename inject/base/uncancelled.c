/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library's functions of these names are cancellation points. The program's threads run our
 * code inside functions that are not, while CUDA's locks and ours are held. So our code makes the
 * system calls itself. The symbols are hidden: only this library uses them.
 */
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"

#define FROM_HERE (-100) /* AT_FDCWD; fcntl.h declares these functions with other types */

struct pollfd;

/* Always reads the mode argument, even if the caller gave none: the kernel ignores it then. */
HIDDEN int open(const char *path, int flags, mode_t mode);
HIDDEN int openat(int dir, const char *path, int flags, mode_t mode);
HIDDEN int close(int fd);
HIDDEN ssize_t read(int fd, void *bytes, size_t count);
HIDDEN ssize_t write(int fd, const void *bytes, size_t count);
HIDDEN ssize_t pread(int fd, void *bytes, size_t count, off_t offset);
HIDDEN ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset);
HIDDEN int fallocate(int fd, int mode, off_t offset, off_t bytes);
HIDDEN ssize_t getrandom(void *bytes, size_t count, unsigned flags);
HIDDEN int poll(struct pollfd *fds, unsigned long count, int ms);

int open(const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, FROM_HERE, path, flags, mode);
}

int openat(int dir, const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int close(int fd)
{
    return (int)syscall(SYS_close, fd);
}

ssize_t read(int fd, void *bytes, size_t count)
{
    return syscall(SYS_read, fd, bytes, count);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    return syscall(SYS_write, fd, bytes, count);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
    return syscall(SYS_pread64, fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
    return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

int poll(struct pollfd *fds, unsigned long count, int ms)
{
    struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    return (int)syscall(SYS_ppoll, fds, count, ms < 0 ? NULL : &wait, NULL, 0);
}

ssize_t getrandom(void *bytes, size_t count, unsigned flags)
{
    return syscall(SYS_getrandom, bytes, count, flags);
}
