/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/unwinder_probe.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/memory_read.h"
#include "base/objects.h"

/* Descriptors that no process has: closing one is an error without consequences. */
#define PIPE_READS  (INT_MAX - 1)
#define PIPE_WRITES INT_MAX

static int probe_pipe2(int descriptors[2], int flags)
{
    (void)flags;
    descriptors[0] = PIPE_READS;
    descriptors[1] = PIPE_WRITES;
    return 0;
}

/* Reads back what was written there: the pipe is always empty. */
static ssize_t probe_read(int descriptor, void *to, size_t bytes)
{
    if (descriptor != PIPE_READS)
        return read(descriptor, to, bytes);
    errno = EAGAIN;
    return -1;
}

static long unwinder_probe_look(uintptr_t address)
{
    char byte;
    if (memory_read(address, &byte, 1))
        return 1;
    errno = EFAULT;
    return -1;
}

static ssize_t probe_write(int descriptor, const void *from, size_t bytes)
{
    return descriptor == PIPE_WRITES ? unwinder_probe_look((uintptr_t)from)
                                     : write(descriptor, from, bytes);
}

static long probe_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_write && (int)a == PIPE_WRITES)
        return unwinder_probe_look((uintptr_t)b);
    return syscall(number, a, b, c, d, e, f);
}

/* Redirects its calls of an imported function. */
static bool divert(const struct object *o, const char *name, void *to)
{
    void **slot = object_import(o, name);
    return slot && object_divert(o, slot, to);
}

bool unwinder_probe_divert(const struct object *unwinder)
{
    if (object_import(unwinder, "pipe") || !memory_read_start())
        return false;
    if (!object_import(unwinder, "pipe2"))
        return true;
    /* Depending on its version, it writes with one of these; the pipe comes last. */
    bool writes = divert(unwinder, "syscall", (void *)probe_syscall);
    writes |= divert(unwinder, "write", (void *)probe_write);
    return writes && divert(unwinder, "read", (void *)probe_read) &&
           divert(unwinder, "pipe2", (void *)probe_pipe2);
}
