/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_unwanted.h"

#include "base/compiler.h"
#include "cupti/gpu_state.h"

/*
 * One word covers 32 ids: a bit for each, below the number that the ids share. Its place is that
 * number's remainder, so the table covers the newest half million calls, more than happen while a
 * buffer waits in CUPTI. Work of older calls is recorded.
 */
#define WORD_COUNT 16384u

#define BIT(kind) (1ull << CUPTI_ACTIVITY_KIND_##kind)
#define OF_CALLS                                                                                   \
    (BIT(CONCURRENT_KERNEL) | BIT(MEMCPY) | BIT(MEMCPY2) | BIT(MEMSET) | BIT(SYNCHRONIZATION) |    \
     BIT(GRAPH_TRACE) | BIT(OVERHEAD))

static _Atomic uint64_t words[WORD_COUNT];
static atomic_bool is_used;

void gpu_unwanted_note(uint32_t correlation)
{
    if (!(atomic_load_explicit(&gpu.kinds, memory_order_relaxed) & OF_CALLS))
        return;
    _Atomic uint64_t *word = &words[correlation / 32 % WORD_COUNT];
    uint64_t before = atomic_load(word), bit = 1ull << correlation % 32;
    uint64_t number = correlation / 32;
    while (!atomic_compare_exchange_weak(word, &before,
                                         (before >> 32 == number ? before : number << 32) | bit))
        ;
    atomic_store(&is_used, true);
}

bool gpu_unwanted_is(unsigned kind, uint32_t correlation)
{
    static uint32_t newest;
    if (likely(!atomic_load_explicit(&is_used, memory_order_relaxed)) || correlation == 0)
        return false;
    if (!(OF_CALLS >> kind & 1)) /* memory is recorded during a stop, too */
        return false;
    if ((int32_t)(correlation - newest) > 0) {
        /* The ids have started again from 0: an old id belongs to another call. */
        for (unsigned i = 0; correlation < newest && i < WORD_COUNT; i++)
            atomic_store_explicit(&words[i], 0, memory_order_relaxed);
        newest = correlation;
    }
    uint64_t word =
        atomic_load_explicit(&words[correlation / 32 % WORD_COUNT], memory_order_relaxed);
    return word >> 32 == correlation / 32 && word >> correlation % 32 & 1;
}
