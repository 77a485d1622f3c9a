/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/open_stacks.h"

#include "base/ticks.h"
#include "python/python.h"
#include "record/open_look.h"
#include "record/pool.h"
#include "record/recorded.h"
#include "record/thread.h"
#include "stack/stack.h"

#define OPEN_NS 1000000000u /* a call is looked at when it has been open for this long */

/* A call that has been open for long, the newest of its thread. */
struct open_long {
    uint8_t *chunk;
    uint64_t begin; /* in ticks */
    uint64_t word;  /* value of LIVE_CHUNK_OPEN_STACK when it was found */
};

/* Returns when the newest open call of the chunk's thread began; 0: none is open. */
static uint64_t newest_begin(const uint8_t *chunk)
{
    struct call_seen outermost, innermost;
    return open_calls_look(chunk, &outermost, &innermost) ? innermost.begin : 0;
}

static bool is_still_open(void *context)
{
    const struct open_long *o = context;
    return newest_begin(o->chunk) == o->begin;
}

/* Finds calls that were not looked at yet, at most PYTHON_TIDS_MAX; others follow in the next
 * second. */
static unsigned open_stacks_find(struct open_long *found, uint32_t *tids)
{
    uint64_t long_ticks = ((unsigned __int128)OPEN_NS << 32) / gp.header.scale.mult;
    uint64_t now = ticks_now();
    uint32_t allocated = atomic_load(&gp.pool.allocated);
    unsigned count = 0;
    for (uint32_t i = 0; i < allocated && count < PYTHON_TIDS_MAX; i++) {
        uint8_t *chunk = pool_chunk(&gp.pool, i);
        const struct chunk_owner *owner = &gp.pool.owners[i];
        if (owner_state(owner) != LIVE_OWNED)
            continue;
        uint64_t begin = newest_begin(chunk), word = chunk_u64(chunk, LIVE_CHUNK_OPEN_STACK);
        if (!begin || begin > now || now - begin < long_ticks ||
            word >> 32 == live_open_stack(begin, 0) >> 32)
            continue;
        tids[count] = atomic_load(&owner->tid);
        found[count++] = (struct open_long){chunk, begin, word};
    }
    return count;
}

void open_stacks_tick(struct thread *writer)
{
    struct open_long found[PYTHON_TIDS_MAX];
    uint32_t tids[PYTHON_TIDS_MAX];
    uint64_t states[PYTHON_TIDS_MAX];
    if (!stacks_are_on() || recorded_asked() & OFF_STACKS || !python_is_here())
        return;
    unsigned count = open_stacks_find(found, tids);
    if (!count)
        return;
    python_find_threads(tids, count, states);
    for (unsigned i = 0; i < count; i++) {
        struct open_long *o = &found[i];
        uint32_t stack = stack_take_python_of(writer, states[i], is_still_open, o);
        /* Not if its thread has written there since: it is in another call then. */
        __atomic_compare_exchange_n((uint64_t *)(void *)(o->chunk + LIVE_CHUNK_OPEN_STACK),
                                    &o->word, live_open_stack(o->begin, stack), false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
}
