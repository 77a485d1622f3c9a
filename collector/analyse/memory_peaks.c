/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/memory_peaks.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

/* The value since the previous change counts if any of that time is selected. */
static void pass(const struct memory_peaks *m, uint32_t place, uint64_t until_ns)
{
    const struct place_totals *t = &m->ledger.books.totals.list[place];
    struct memory_peak *peak = &m->list[place];
    if (!ledger_reaches(m->ledger.walk->filter, t->process, t->device, peak->since_ns, until_ns))
        return;
    if (peak->now_allocated > peak->allocated)
        peak->allocated = peak->now_allocated;
    if (peak->now_reserved > peak->reserved)
        peak->reserved = peak->now_reserved;
}

void memory_peaks_finish(struct memory_peaks *m)
{
    for (uint32_t i = 0; i < m->ledger.books.totals.count && i < m->capacity; i++)
        pass(m, i, UINT64_MAX);
}

static int memory_peaks_change(void *context, struct ledger_block *b, uint64_t at_ns)
{
    struct memory_peaks *m = context;
    const struct place_totals *now = ledger_totals_of(&m->ledger, b);
    if (!now)
        return 0;
    struct memory_peak *list = array_reach(m->list, &m->capacity, b->totals - 1, sizeof *list);
    if (!list)
        return GPUPROF_NO_MEMORY;
    m->list = list;
    struct memory_peak *peak = &m->list[b->totals - 1];
    pass(m, b->totals - 1, at_ns);
    peak->now_allocated = now->allocated;
    peak->now_reserved = now->has_pool ? totals_reserved(now) : 0;
    peak->since_ns = at_ns;
    return m->signs ? memory_signs_change(m->signs, b, now, at_ns) : 0;
}

static int memory_peaks_failed(void *context, const struct ledger_block *wanted)
{
    struct memory_peaks *m = context;
    if (m->signs)
        memory_signs_failed(m->signs, wanted);
    return 0;
}

static int memory_peaks_left(void *context, const struct ledger_free *f)
{
    struct memory_peaks *m = context;
    if (m->signs)
        memory_signs_left(m->signs, f);
    return 0;
}

int memory_peaks_init(struct memory_peaks *m, struct walk *walk)
{
    const struct ledger_user user = {.context = m,
                                     .got = memory_peaks_change,
                                     .gone = memory_peaks_change,
                                     .failed = memory_peaks_failed,
                                     .left = memory_peaks_left};
    *m = (struct memory_peaks){0};
    return ledger_init(&m->ledger, walk, &user);
}

void memory_peaks_release(struct memory_peaks *m)
{
    ledger_release(&m->ledger);
    free(m->list);
}
