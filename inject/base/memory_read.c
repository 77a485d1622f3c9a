/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory_read.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ADDRESS_END (1ull << 56) /* no process has memory there */

enum way { WAY_UNKNOWN, WAY_CALL, WAY_FILE, WAY_NONE };

static _Atomic uint32_t way; /* found at the first read, or before; to the same by each */

_Atomic uint64_t sights[SIGHT_SLOTS];

static bool read_by_call(const uint64_t *addresses, unsigned count, void *to, size_t bytes)
{
    struct iovec local = {to, count * bytes}, remote[MEMORY_READS_MAX];
    long pid = syscall(SYS_getpid); /* not cached: right in the child of a raw clone */
    for (unsigned i = 0; i < count; i++)
        remote[i] = (struct iovec){(void *)(uintptr_t)addresses[i], bytes};
    return syscall(SYS_process_vm_readv, pid, &local, 1ul, remote, (unsigned long)count, 0ul) ==
           (long)(count * bytes);
}

/* Opened each time: a descriptor that the program closes may be another file's the next moment. */
static bool read_by_file(const uint64_t *addresses, unsigned count, void *to, size_t bytes)
{
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    unsigned done = 0;
    while (fd >= 0 && done < count &&
           pread(fd, (char *)to + done * bytes, bytes, (off_t)addresses[done]) == (ssize_t)bytes)
        done++;
    if (fd >= 0)
        close(fd);
    return done == count;
}

bool memory_read_start(void)
{
    uint64_t from = 0x5eed, to = 0, address = (uintptr_t)&from;
    enum way found = WAY_NONE;
    if (read_by_call(&address, 1, &to, sizeof to) && to == from)
        found = WAY_CALL;
    else if (read_by_file(&address, 1, &to, sizeof to) && to == from)
        found = WAY_FILE;
    atomic_store(&way, found);
    return found != WAY_NONE;
}

bool memory_read_many(const uint64_t *addresses, unsigned count, void *to, size_t bytes)
{
    if (count > MEMORY_READS_MAX)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (addresses[i] >= ADDRESS_END)
            return false;
    if (atomic_load_explicit(&way, memory_order_relaxed) == WAY_UNKNOWN)
        memory_read_start();
    switch ((enum way)atomic_load_explicit(&way, memory_order_relaxed)) {
    case WAY_CALL: return read_by_call(addresses, count, to, bytes);
    case WAY_FILE: return read_by_file(addresses, count, to, bytes);
    default: return false;
    }
}

bool memory_read(uint64_t address, void *to, size_t bytes)
{
    return memory_read_many(&address, 1, to, bytes);
}

/* The newer of a pair's two keys stands in its own place. */
void sight_add(enum sight kind, uint64_t address)
{
    uint64_t key = address | kind;
    unsigned slot = sight_slot(key);
    uint64_t old = atomic_load_explicit(&sights[slot], memory_order_relaxed);
    if (old == key)
        return;
    atomic_store_explicit(&sights[slot ^ 1], old, memory_order_relaxed);
    atomic_store_explicit(&sights[slot], key, memory_order_relaxed);
}
