/* SPDX-License-Identifier: Apache-2.0 */
#include "record/open_look.h"

#include "record/pool.h"
#include "record/state.h"

/* Reads a record that its thread may be writing: the result counts only if the chunk's head is the
 * same before and after. */
static __attribute__((noinline, no_sanitize("thread"))) uint64_t
open_look_word_at(const uint8_t *chunk, uint64_t at)
{
    return *(const volatile uint64_t *)(const void *)(chunk + LIVE_CHUNK_HEAD_BYTES + at);
}

bool open_calls_look(const uint8_t *chunk, struct call_seen *outermost, struct call_seen *innermost)
{
    uint64_t committed = chunk_u64(chunk, LIVE_CHUNK_COMMITTED);
    uint64_t count = committed & LIVE_OPEN_MASK, at = committed - count;
    uint64_t last = gp.pool.chunk_bytes - LIVE_CHUNK_HEAD_BYTES - 8 * RECORD_HEAD_WORDS;
    if (!count || count > LIVE_OPEN_MAX)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (at > last)
            return false;
        *innermost = (struct call_seen){.head = open_look_word_at(chunk, at),
                                        .begin = open_look_word_at(chunk, at + 8)};
        if (i == 0)
            *outermost = *innermost;
        at += 8 * (uint64_t)record_word_count(innermost->head);
    }
    return chunk_u64(chunk, LIVE_CHUNK_COMMITTED) == committed;
}
