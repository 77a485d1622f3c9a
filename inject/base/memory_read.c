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

/* user space ends below this address on all supported processors */
#define ADDRESS_END (1ull << 56)
/* a window keeps the blocks that were used in the last so many rounds */
#define ROUNDS 4u

enum way { WAY_UNKNOWN, WAY_CALL, WAY_FILE, WAY_NONE };

/* Found by memory_read_start or by the first read; every thread finds the same value. */
static _Atomic uint32_t way;
static _Atomic bool has_probe;

_Atomic uint64_t known_addresses[KNOWN_SLOTS];

static __thread struct memory_window *window; /* the calling thread's window; NULL: none */

/* Cached only while a window is in use, so that it is right in the child of a raw clone. */
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
 * For each piece of the remote side the kernel takes the lock of the whole address space and pins a
 * page: 64 pieces take 20 to 100 us. It copies the local side as write() does. So several pieces
 * are the local side of process_vm_writev: 3 to 6 us if the memory is cached. valgrind would report
 * each byte of them that was never initialized.
 */
static bool read_by_call(const struct iovec *pieces, unsigned count, void *to, size_t bytes)
{
    struct iovec copy = {to, bytes};
    long pid = own_pid();
    long done = -1;
    errno = ENOSYS;
    if (count > 1 && !objects_are_watched())
        done = syscall(SYS_process_vm_writev, pid, pieces, (unsigned long)count, &copy, 1ul, 0ul);
    if (done < 0 && errno != EFAULT) /* this call is forbidden, but the other one may be allowed */
        done = syscall(SYS_process_vm_readv, pid, &copy, 1ul, pieces, (unsigned long)count, 0ul);
    return done == (long)bytes;
}

/* Opens the file each time: if the program closes a kept descriptor, its number may soon be another
 * file's. */
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
 * The kernel checks the address of the new mask before it checks `how`, which is invalid here.
 * Kernels that emulate Linux may check in the opposite order: if an unmapped address does not give
 * EFAULT, pages are read instead. Under valgrind they are read, too, since it reports the bad
 * address. Reading every time would make threads wait for each other (40 s for a thousand threads
 * that start at once).
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

/* Returns the slot that has this block's number, or the free slot for it. At most half of the slots
 * are in use. */
static uint8_t *memory_read_slot_of(struct memory_window *w, uint64_t block)
{
    unsigned slot = (unsigned)(block / MEMORY_BLOCK_BYTES * 0x9E3779B97F4A7C15u >> 32);
    while (w->slots[slot % MEMORY_WINDOW_SLOTS] &&
           w->blocks[w->slots[slot % MEMORY_WINDOW_SLOTS] - 1] != block)
        slot++;
    return &w->slots[slot % MEMORY_WINDOW_SLOTS];
}

/* Adds a block that is not read yet. */
static unsigned memory_read_add_block(struct memory_window *w, uint8_t *slot, uint64_t block,
                                      uint32_t round)
{
    unsigned i = w->count++;
    w->blocks[i] = block;
    w->rounds[i] = round;
    *slot = (uint8_t)(i + 1);
    return i;
}

/* Reads all recently used blocks again, or none if one of them is unmapped. */
static void read_again(struct memory_window *w)
{
    struct iovec pieces[MEMORY_READS_MAX];
    unsigned before = w->count, n = 0;
    empty(w);
    for (unsigned i = 0; i < before; i++)
        if (w->round - w->rounds[i] < ROUNDS)
            memory_read_add_block(w, memory_read_slot_of(w, w->blocks[i]), w->blocks[i],
                                  w->rounds[i]);
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

/* Returns the copy of this block, or NULL if it cannot be read. */
static const uint8_t *block_of(struct memory_window *w, uint64_t block)
{
    if (w->is_old)
        read_again(w);
    uint8_t *slot = memory_read_slot_of(w, block);
    if (*slot) {
        w->rounds[*slot - 1] = w->round;
        return w->bytes[*slot - 1];
    }
    if (w->count == MEMORY_WINDOW_BLOCKS) {
        empty(w);
        slot = memory_read_slot_of(w, block);
    }
    const struct iovec piece = {(void *)(uintptr_t)block, MEMORY_BLOCK_BYTES};
    if (!memory_read_pieces(&piece, 1, w->bytes[w->count]))
        return NULL;
    return w->bytes[memory_read_add_block(w, slot, block, w->round)];
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

/* Two keys share a pair of slots; the newer one goes to its own slot. */
void known_add(enum known_kind kind, uint64_t address)
{
    uint64_t key = address | kind;
    unsigned slot = known_slot(key);
    uint64_t old = atomic_load_explicit(&known_addresses[slot], memory_order_relaxed);
    if (old == key)
        return;
    atomic_store_explicit(&known_addresses[slot ^ 1], old, memory_order_relaxed);
    atomic_store_explicit(&known_addresses[slot], key, memory_order_relaxed);
}
