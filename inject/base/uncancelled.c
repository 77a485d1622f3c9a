/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library's functions of these names end a thread that is to be cancelled. The program's
 * threads come here in the midst of calls that do not, with locks of CUDA's and ours held: so our
 * own code makes the system calls itself. Hidden: nothing but our library has these.
 */
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"

#define FROM_HERE (-100) /* AT_FDCWD: fcntl.h declares the functions as others */

struct pollfd;

/* The mode is read though there may be none: the kernel looks at it only where there is one. */
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
