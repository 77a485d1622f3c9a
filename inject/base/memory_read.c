/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/objects.h"

#define ADDRESS_END (1ull << 56) /* no process has memory there */
#define ROUNDS      4u           /* a window keeps blocks that were wanted in one of so many */

enum way { WAY_UNKNOWN, WAY_CALL, WAY_FILE, WAY_NONE };

/* Found at the first read, or before; to the same by each. */
static _Atomic uint32_t way;
static _Atomic bool has_probe;

_Atomic uint64_t sights[SIGHT_SLOTS];

static __thread struct memory_window *window; /* the calling thread's; NULL: none */

/* Not cached, but for as long as a window is used: right in the child of a raw clone. */
static long own_pid(void)
{
    if (window && window->pid)
        return window->pid;
    long pid = syscall(SYS_getpid);
    if (window)
        window->pid = pid;
    return pid;
}

/*
 * For each piece of another process's side the kernel takes the lock of all its mappings and holds
 * a page: 64 pieces take 20 to 100 us. Its own side it copies as write() does, so several pieces
 * are written from there: 3 to 6 us, where the copied memory is in a cache. valgrind would say of
 * each byte that is written whether it was ever set.
 */
static bool read_by_call(const struct iovec *pieces, unsigned count, void *to, size_t bytes)
{
    struct iovec copy = {to, bytes};
    long pid = own_pid();
    long done = -1;
    errno = ENOSYS;
    if (count > 1 && !objects_are_watched())
        done = syscall(SYS_process_vm_writev, pid, pieces, (unsigned long)count, &copy, 1ul, 0ul);
    if (done < 0 && errno != EFAULT) /* it is forbidden, and the other one not */
        done = syscall(SYS_process_vm_readv, pid, &copy, 1ul, pieces, (unsigned long)count, 0ul);
    return done == (long)bytes;
}

/* Opened each time: a descriptor that the program closes may be another file's the next moment. */
static bool read_by_file(const struct iovec *pieces, unsigned count, void *to)
{
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    unsigned done = 0;
    for (char *at = to; fd >= 0 && done < count; at += pieces[done++].iov_len)
        if (pread(fd, at, pieces[done].iov_len, (off_t)(uintptr_t)pieces[done].iov_base) !=
            (ssize_t)pieces[done].iov_len)
            break;
    if (fd >= 0)
        close(fd);
    return done == count;
}

/*
 * The kernel looks at the new mask before it looks at what is to be done with it, which is nothing.
 * Others that stand in for it may do the opposite: where the answer for an address that nobody has
 * is not this one, pages are read. Valgrind complains of it; there they are read, too. To read each
 * would make threads wait for each other (a thousand that begin at once: 40 s).
 */
static bool probe_says(uint64_t address, int error)
{
    return syscall(SYS_rt_sigprocmask, -1, (uintptr_t)address, NULL, 8) < 0 && errno == error;
}

bool memory_read_start(void)
{
    uint64_t from = 0x5eed, to = 0;
    const struct iovec piece = {&from, sizeof from};
    enum way found = WAY_NONE;
    if (read_by_call(&piece, 1, &to, sizeof to) && to == from)
        found = WAY_CALL;
    else if (read_by_file(&piece, 1, &to) && to == from)
        found = WAY_FILE;
    atomic_store(&way, found);
    atomic_store(&has_probe, !objects_are_watched() && probe_says(sizeof from, EFAULT) &&
                                 probe_says((uintptr_t)&from, EINVAL));
    return found != WAY_NONE;
}

bool memory_read_pieces(const struct iovec *pieces, unsigned count, void *to)
{
    size_t bytes = 0;
    if (count > MEMORY_READS_MAX)
        return false;
    for (unsigned i = 0; i < count; bytes += pieces[i++].iov_len)
        if ((uintptr_t)pieces[i].iov_base >= ADDRESS_END)
            return false;
    if (atomic_load_explicit(&way, memory_order_relaxed) == WAY_UNKNOWN)
        memory_read_start();
    switch ((enum way)atomic_load_explicit(&way, memory_order_relaxed)) {
    case WAY_CALL: return read_by_call(pieces, count, to, bytes);
    case WAY_FILE: return read_by_file(pieces, count, to);
    default: return false;
    }
}

bool memory_read_many(const uint64_t *addresses, unsigned count, void *to, size_t bytes)
{
    struct iovec pieces[MEMORY_READS_MAX];
    if (count > MEMORY_READS_MAX)
        return false;
    for (unsigned i = 0; i < count; i++)
        pieces[i] = (struct iovec){(void *)(uintptr_t)addresses[i], bytes};
    return memory_read_pieces(pieces, count, to);
}

void memory_window_use(struct memory_window *w)
{
    window = w;
    if (w)
        w->pid = 0;
    memory_window_renew();
}

void memory_window_renew(void)
{
    if (window)
        window->is_old = true;
}

static void empty(struct memory_window *w)
{
    w->count = 0;
    memset(w->slots, 0, sizeof w->slots);
}

/* Where the number of that block is, or belongs: at most half of them are taken. */
static uint8_t *slot_of(struct memory_window *w, uint64_t block)
{
    unsigned slot = (unsigned)(block / MEMORY_BLOCK_BYTES * 0x9E3779B97F4A7C15u >> 32);
    while (w->slots[slot % MEMORY_WINDOW_SLOTS] &&
           w->blocks[w->slots[slot % MEMORY_WINDOW_SLOTS] - 1] != block)
        slot++;
    return &w->slots[slot % MEMORY_WINDOW_SLOTS];
}

/* A new one, which is not read yet. */
static unsigned add_block(struct memory_window *w, uint8_t *slot, uint64_t block, uint32_t round)
{
    unsigned i = w->count++;
    w->blocks[i] = block;
    w->rounds[i] = round;
    *slot = (uint8_t)(i + 1);
    return i;
}

/* Reads what was wanted lately, or nothing if some of it is gone. */
static void read_again(struct memory_window *w)
{
    struct iovec pieces[MEMORY_READS_MAX];
    unsigned before = w->count, n = 0;
    empty(w);
    for (unsigned i = 0; i < before; i++)
        if (w->round - w->rounds[i] < ROUNDS)
            add_block(w, slot_of(w, w->blocks[i]), w->blocks[i], w->rounds[i]);
    for (unsigned i = 0; i < w->count; i++) {
        pieces[n++] = (struct iovec){(void *)(uintptr_t)w->blocks[i], MEMORY_BLOCK_BYTES};
        if (n < MEMORY_READS_MAX && i + 1 < w->count)
            continue;
        if (!memory_read_pieces(pieces, n, w->bytes[i + 1 - n]))
            empty(w);
        n = 0;
    }
    w->round++;
    w->is_old = false;
}

/* The copy of that block; NULL if it cannot be read. */
static const uint8_t *block_of(struct memory_window *w, uint64_t block)
{
    if (w->is_old)
        read_again(w);
    uint8_t *slot = slot_of(w, block);
    if (*slot) {
        w->rounds[*slot - 1] = w->round;
        return w->bytes[*slot - 1];
    }
    if (w->count == MEMORY_WINDOW_BLOCKS) {
        empty(w);
        slot = slot_of(w, block);
    }
    const struct iovec piece = {(void *)(uintptr_t)block, MEMORY_BLOCK_BYTES};
    if (!memory_read_pieces(&piece, 1, w->bytes[w->count]))
        return NULL;
    return w->bytes[add_block(w, slot, block, w->round)];
}

static bool read_in_window(struct memory_window *w, uint64_t address, uint8_t *to, size_t bytes)
{
    while (bytes) {
        uint64_t offset = address % MEMORY_BLOCK_BYTES, rest = MEMORY_BLOCK_BYTES - offset;
        size_t part = bytes < rest ? bytes : rest;
        const uint8_t *block = block_of(w, address - offset);
        if (!block)
            return false;
        memcpy(to, block + offset, part);
        address += part;
        to += part;
        bytes -= part;
    }
    return true;
}

bool memory_read(uint64_t address, void *to, size_t bytes)
{
    if (window && bytes <= MEMORY_BLOCK_BYTES)
        return read_in_window(window, address, to, bytes);
    const struct iovec piece = {(void *)(uintptr_t)address, bytes};
    return memory_read_pieces(&piece, 1, to);
}

bool memory_is_readable(uint64_t page)
{
    char byte;
    if (unlikely(!atomic_load_explicit(&has_probe, memory_order_relaxed)))
        return memory_read(page, &byte, 1);
    return probe_says(page, EINVAL);
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
