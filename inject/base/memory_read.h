/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory of the own process that may be unmapped: the kernel copies it, and returns an error
 * instead of a fault. A read takes one or two microseconds, also for several pieces at once.
 * Results are therefore remembered as sights: an address and the kind of object there. Any thread;
 * async-signal-safe; does not keep errno.
 */
#ifndef GPUPROF_INJECT_MEMORY_READ_H
#define GPUPROF_INJECT_MEMORY_READ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iovec;

/* Chooses the way to read. Returns false if the kernel allows neither way; later reads fail then.
 * The first read calls it, too. */
bool memory_read_start(void);

/* Copies all bytes, or returns false. */
bool memory_read(uint64_t address, void *to, size_t bytes);

#define MEMORY_PAGE_BYTES 4096u /* the smallest; a page is readable as a whole or not at all */

#define MEMORY_BLOCK_BYTES   512u /* divides a page */
#define MEMORY_WINDOW_BLOCKS 128u
#define MEMORY_WINDOW_SLOTS  256u

/*
 * Cached copies of blocks of memory. While a thread uses a window, memory_read reads each block
 * once, since the system call is the expensive part. What it returns may therefore be outdated
 * until the window is renewed. The first read after that refreshes all recently used blocks, 64
 * with each system call. The owner zeroes the window.
 */
struct memory_window {
    bool is_old; /* renewed, and nothing was read since */
    long pid;    /* the process's id while the window is in use; 0: not read yet */
    uint32_t round;
    unsigned count;
    uint64_t blocks[MEMORY_WINDOW_BLOCKS]; /* addresses of the blocks */
    uint32_t rounds[MEMORY_WINDOW_BLOCKS]; /* the round in which each block was last used */
    /* hash table of block numbers, which count from 1; 0: free */
    uint8_t slots[MEMORY_WINDOW_SLOTS];
    uint8_t bytes[MEMORY_WINDOW_BLOCKS][MEMORY_BLOCK_BYTES];
};

/* Makes `w` the calling thread's window and renews it; NULL: no window. Renews the window in use,
 * if there is one. */
void memory_window_use(struct memory_window *w);
void memory_window_renew(void);

#define MEMORY_READS_MAX 64u

/* Reads `bytes` from each of `count` addresses (at most MEMORY_READS_MAX), one after another, into
 * `to`. */
bool memory_read_many(const uint64_t *addresses, unsigned count, void *to, size_t bytes);

/* The same for `count` pieces, at most MEMORY_READS_MAX. */
bool memory_read_pieces(const struct iovec *pieces, unsigned count, void *to);

/* Returns whether the page at `page` is readable. The kernel checks it and copies nothing, at a
 * tenth of a read's cost. The answer holds until the page is unmapped. */
bool memory_is_readable(uint64_t page);

/* The kind of object found at an address. The numbers fit into the low bits that are zero in an
 * aligned address. */
enum known_kind {
    KNOWN_THREAD = 1,
    KNOWN_CFRAME,
    KNOWN_FRAME,
    KNOWN_CODE,
    KNOWN_TEXT,
    KNOWN_BYTES
};

#define KNOWN_MASK  7u
#define KNOWN_SLOTS 8192u /* power of two; 64 KiB in all */

extern _Atomic uint64_t known_addresses[KNOWN_SLOTS];

static inline unsigned known_slot(uint64_t key)
{
    return (unsigned)((key * 0x9E3779B97F4A7C15u) >> 51);
}

/* Returns whether the object at this address was recently found to be of this kind. */
static inline bool known_has(enum known_kind kind, uint64_t address)
{
    uint64_t key = address | kind;
    unsigned slot = known_slot(key);
    return atomic_load_explicit(&known_addresses[slot], memory_order_relaxed) == key ||
           atomic_load_explicit(&known_addresses[slot ^ 1], memory_order_relaxed) == key;
}

void known_add(enum known_kind kind, uint64_t address);

#endif
