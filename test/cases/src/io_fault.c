/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload before libgpuprof.so, under which system calls fail as the variable IO_FAULT
 * says: "name=errno@skip" from the call after so many on, "name=errno%n" all but each n-th, with
 * commas between. An errno below 0: pwrite and pthread_create take so many milliseconds, the latter
 * after the thread was made, and succeed. Only calls that libgpuprof.so makes count and fail.
 * IO_TRACE names a file for lines "flags mode path" of each file that it opens.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static unsigned long low, high; /* of libgpuprof.so */

static void find_library(void)
{
    char text[1 << 16], *line = text;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t n, length = 0;
    while ((n = read(fd, text + length, sizeof text - 1 - (size_t)length)) > 0)
        length += n;
    close(fd);
    text[length] = '\0';
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        unsigned long first, last;
        *end = '\0';
        if (strstr(line, "libgpuprof.so") && sscanf(line, "%lx-%lx", &first, &last) == 2) {
            low = low ? low : first;
            high = last;
        }
    }
}

/* The errno of this call, or 0. */
static int fault(const char *name, void *caller)
{
    static struct {
        char name[32];
        _Atomic long count;
    } counts[16];
    const char *text = getenv("IO_FAULT");
    size_t length = strlen(name);
    int saved = errno;
    if (text && !high)
        find_library();
    errno = saved;
    if ((unsigned long)caller < low || (unsigned long)caller >= high)
        return 0;
    for (const char *p = text; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : "") {
        if (strncmp(p, name, length) != 0 || p[length] != '=')
            continue;
        char *end;
        int error = (int)strtol(p + length + 1, &end, 10);
        long number = strtol(end + 1, NULL, 10), i = 0;
        while (i < 15 && counts[i].name[0] && strcmp(counts[i].name, name) != 0)
            i++;
        strcpy(counts[i].name, name);
        long count = ++counts[i].count;
        return (*end == '@' ? count > number : count % number != 0) ? error : 0;
    }
    return 0;
}

static void trace_open(const char *path, int flags, mode_t mode, void *caller)
{
    const char *to = getenv("IO_TRACE");
    char line[5000];
    if (!to)
        return;
    if (!high)
        find_library();
    if ((unsigned long)caller < low || (unsigned long)caller >= high)
        return;
    int length = snprintf(line, sizeof line, "%o %o %s\n", (unsigned)flags, (unsigned)mode, path);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(fd, line, (size_t)length) != length)
        abort();
    close(fd);
}

#define FAIL(name, failed)                                                                         \
    do {                                                                                           \
        int its_error = fault(name, __builtin_return_address(0));                                  \
        if (its_error) {                                                                           \
            errno = its_error;                                                                     \
            return failed;                                                                         \
        }                                                                                          \
    } while (0)

static void wait_ms(int ms)
{
    for (int i = 0; i < ms; i++)
        usleep(1000);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    int error = fault("pwrite", __builtin_return_address(0));
    if (error > 0) {
        errno = error;
        return -1;
    }
    wait_ms(-error);
    return syscall(SYS_pwrite64, fd, data, bytes, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *data)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    int error = fault("pthread_create", __builtin_return_address(0));
    if (error > 0)
        return error;
    int result = real(thread, attributes, body, data);
    wait_ms(-error);
    return result;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    FAIL("open", -1);
    if ((flags & O_TMPFILE) == O_TMPFILE)
        FAIL("tmpfile", -1);
    trace_open(path, flags, mode, __builtin_return_address(0));
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int mkdir(const char *path, mode_t mode)
{
    FAIL("mkdir", -1);
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int ftruncate(int fd, off_t length)
{
    FAIL("ftruncate", -1);
    return (int)syscall(SYS_ftruncate, fd, length);
}

int posix_fallocate(int fd, off_t offset, off_t length)
{
    int error = fault("fallocate", __builtin_return_address(0));
    return error ? error : syscall(SYS_fallocate, fd, 0, offset, length) < 0 ? errno : 0;
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
    FAIL("linkat", -1);
    return (int)syscall(SYS_linkat, from, old, to, new, flags);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    FAIL("mmap", MAP_FAILED);
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}
