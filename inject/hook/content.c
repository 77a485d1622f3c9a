/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/content.h"

#include <errno.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/memory_read.h"
#include "record/recorded.h"

#define PIECE_WORDS (CONTENT_PIECE_BYTES / 8)

_Static_assert(CONTENT_PIECES <= MEMORY_READS_MAX, "they are read at once");

static uint64_t key; /* set by content_start, before anything is recorded */

void content_start(void)
{
    int saved = errno;
    if (getrandom(&key, sizeof key, GRND_NONBLOCK) != sizeof key)
        /* too soon after boot for random bytes: uses an address chosen by ASLR */
        key = (uintptr_t)&saved;
    errno = saved;
}

uint64_t content_of(const uint64_t *words)
{
    uint64_t pieces[CONTENT_PIECES], found[CONTENT_PIECES * PIECE_WORDS];
    uint64_t bytes = words[COPY_PIECE_BYTES], hash = hash_mix(key, bytes);
    int saved = errno;
    if (!gp.settings.numbers[SETTING_COPY_HASH] || recorded_off() & OFF_STACKS)
        return 0;
    uint64_t last = bytes - CONTENT_PIECE_BYTES;
    for (unsigned i = 0; i < CONTENT_PIECES; i++) { /* cannot overflow in this order */
        pieces[i] = words[COPY_PIECE_SOURCE] + last / (CONTENT_PIECES - 1) * i +
                    last % (CONTENT_PIECES - 1) * i / (CONTENT_PIECES - 1);
        /* Fetches all pieces at once instead of one after another; a prefetch never faults. */
        __builtin_prefetch((const void *)(uintptr_t)pieces[i]);
    }
    bool is_read = memory_read_many(pieces, CONTENT_PIECES, found, CONTENT_PIECE_BYTES);
    errno = saved;
    for (unsigned i = 0; is_read && i < CONTENT_PIECES * PIECE_WORDS; i++)
        hash = hash_mix(hash, found[i]);
    return is_read ? hash ? hash : 1 : 0;
}
