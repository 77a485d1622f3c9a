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

/* The C library's syscall is ours, below. */
static long make_of(long number, const long a[static 6])
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4], r9 __asm__("r9") = a[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, result __asm__("x0") = a[0], x1 __asm__("x1") = a[1],
                     x2 __asm__("x2") = a[2], x3 __asm__("x3") = a[3], x4 __asm__("x4") = a[4],
                     x5 __asm__("x5") = a[5];
    __asm__ volatile("svc 0"
                     : "+r"(result)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
#endif
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

#define make(number, ...) make_of(number, (const long[6]){__VA_ARGS__})

static void find_library(void)
{
    char text[1 << 16], *line = text;
    int fd = (int)make(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC);
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
    int fd = (int)make(SYS_openat, AT_FDCWD, (long)to, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(fd, line, (size_t)length) != length)
        abort();
    close(fd);
}

#define FAIL(name, failed) FAIL_OF(name, __builtin_return_address(0), failed)
#define FAIL_OF(name, caller, failed)                                                              \
    do {                                                                                           \
        int its_error = fault(name, caller);                                                       \
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

/* libgpuprof.so makes these system calls itself. */
long syscall(long number, ...)
{
    void *caller = __builtin_return_address(0);
    va_list rest;
    long a[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_pwrite64) {
        int error = fault("pwrite", caller);
        if (error > 0) {
            errno = error;
            return -1;
        }
        wait_ms(-error);
    } else if (number == SYS_fallocate) {
        FAIL_OF("fallocate", caller, -1);
    } else if (number == SYS_openat) {
        FAIL_OF("open", caller, -1);
        if ((a[2] & O_TMPFILE) == O_TMPFILE)
            FAIL_OF("tmpfile", caller, -1);
        trace_open((const char *)a[1], (int)a[2], (mode_t)a[3], caller);
    }
    return make_of(number, a);
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

int mkdir(const char *path, mode_t mode)
{
    FAIL("mkdir", -1);
    return (int)make(SYS_mkdirat, AT_FDCWD, (long)path, mode);
}

int ftruncate(int fd, off_t length)
{
    FAIL("ftruncate", -1);
    return (int)make(SYS_ftruncate, fd, length);
}

int posix_fallocate(int fd, off_t offset, off_t length)
{
    int error = fault("fallocate", __builtin_return_address(0));
    return error ? error : make(SYS_fallocate, fd, 0, offset, length) < 0 ? errno : 0;
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
    FAIL("linkat", -1);
    return (int)make(SYS_linkat, from, (long)old, to, (long)new, flags);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    FAIL("mmap", MAP_FAILED);
    return (void *)make(SYS_mmap, (long)at, (long)bytes, protection, flags, fd, offset);
}
