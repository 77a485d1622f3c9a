/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the process's own memory where it may not be readable: the kernel copies, and says no
 * instead of a fault. One or two microseconds each, or some for several pieces at once; so what was
 * found good is remembered as a sight: an address and what lies there. Any thread;
 * async-signal-safe; errno is not kept.
 */
#ifndef GPUPROF_INJECT_MEMORY_READ_H
#define GPUPROF_INJECT_MEMORY_READ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iovec;

/* False if the kernel lets us do neither of the two ways; later reads fail then. The first read
 * finds it out, too. */
bool memory_read_start(void);

/* All of it, or false. */
bool memory_read(uint64_t address, void *to, size_t bytes);

#define MEMORY_PAGE_BYTES 4096u /* the smallest; what lies in one is readable or not as a whole */

#define MEMORY_BLOCK_BYTES   512u /* divides a page */
#define MEMORY_WINDOW_BLOCKS 128u
#define MEMORY_WINDOW_SLOTS  256u

/*
 * Copies of blocks of memory: while a thread uses a window, memory_read reads each block once,
 * since the call of the kernel is what costs. So what is read need not be what is there now, until
 * the window is renewed: the first read then reads all blocks anew that were read lately, with a
 * call for 64 of them. Zeroed by its owner.
 */
struct memory_window {
    bool is_old; /* it has been renewed, and nothing was read since */
    long pid;    /* of the process, while it is used; 0: nobody has asked yet */
    uint32_t round;
    unsigned count;
    uint64_t blocks[MEMORY_WINDOW_BLOCKS]; /* their addresses */
    uint32_t rounds[MEMORY_WINDOW_BLOCKS]; /* in which each was wanted last */
    uint8_t slots[MEMORY_WINDOW_SLOTS];    /* by a hash: which block, from 1 on; 0: none */
    uint8_t bytes[MEMORY_WINDOW_BLOCKS][MEMORY_BLOCK_BYTES];
};

/* By the calling thread, from now on, renewed; NULL: none. And renews the one it uses, if any. */
void memory_window_use(struct memory_window *w);
void memory_window_renew(void);

#define MEMORY_READS_MAX 64u

/* The same from each of `count` addresses, at most MEMORY_READS_MAX: one after another in `to`. */
bool memory_read_many(const uint64_t *addresses, unsigned count, void *to, size_t bytes);

/* The same of `count` pieces, at most MEMORY_READS_MAX. */
bool memory_read_pieces(const struct iovec *pieces, unsigned count, void *to);

/*
 * Can the page at `page` be read? Only the kernel looks, and nothing is copied: a tenth of a read's
 * cost. The answer holds for as long as nobody unmaps the page.
 */
bool memory_is_readable(uint64_t page);

/* What lies at an address that was looked at; the numbers fit where an aligned address has zeros.
 */
enum sight { SIGHT_THREAD = 1, SIGHT_CFRAME, SIGHT_FRAME, SIGHT_CODE, SIGHT_TEXT, SIGHT_BYTES };

#define SIGHT_MASK  7u
#define SIGHT_SLOTS 8192u /* power of two; 64 KiB in all */

extern _Atomic uint64_t sights[SIGHT_SLOTS];

static inline unsigned sight_slot(uint64_t key)
{
    return (unsigned)((key * 0x9E3779B97F4A7C15u) >> 51);
}

/* Was this found to be a `kind`, lately? */
static inline bool sight_is_known(enum sight kind, uint64_t address)
{
    uint64_t key = address | kind;
    unsigned slot = sight_slot(key);
    return atomic_load_explicit(&sights[slot], memory_order_relaxed) == key ||
           atomic_load_explicit(&sights[slot ^ 1], memory_order_relaxed) == key;
}

void sight_add(enum sight kind, uint64_t address);

#endif
