/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/memory_peaks.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/numbers.h"
#include "error.h"

/* The value since the previous change counts if any of that time is selected. */
static void pass(const struct memory_peaks *m, uint32_t place, uint64_t until_ns)
{
    const struct place_totals *t = &m->totals.list[place];
    struct memory_peak *peak = &m->list[place];
    if (!ledger_reaches(m->ledger.walk->filter, t->process, t->device, peak->since_ns, until_ns))
        return;
    peak->allocated = max_of(peak->allocated, peak->now_allocated);
    peak->reserved = max_of(peak->reserved, peak->now_reserved);
}

void memory_peaks_finish(struct memory_peaks *m)
{
    for (uint32_t i = 0; i < m->totals.count && i < m->capacity; i++)
        pass(m, i, UINT64_MAX);
}

static int memory_peaks_change(struct memory_peaks *m, const struct ledger_block *b, uint64_t at_ns,
                               bool comes)
{
    struct place_totals *now;
    int error = ledger_totals_block(&m->totals, b, comes, &now);
    if (!now)
        return error;
    uint32_t place = (uint32_t)(now - m->totals.list);
    struct memory_peak *list = array_reach(m->list, &m->capacity, place, sizeof *list);
    if (!list)
        return GPUPROF_NO_MEMORY;
    m->list = list;
    struct memory_peak *peak = &m->list[place];
    pass(m, place, at_ns);
    peak->now_allocated = now->allocated;
    peak->now_reserved = now->has_pool ? totals_reserved(now) : 0;
    peak->since_ns = at_ns;
    return 0;
}

static int memory_peaks_got(void *context, struct ledger_block *b, uint64_t at_ns)
{
    struct memory_peaks *m = context;
    int error = m->also.got ? m->also.got(m->also.context, b, at_ns) : 0;
    return error < 0 ? error : memory_peaks_change(m, b, at_ns, true);
}

static int memory_peaks_gone(void *context, struct ledger_block *b, uint64_t at_ns)
{
    struct memory_peaks *m = context;
    int error = m->also.gone ? m->also.gone(m->also.context, b, at_ns) : 0;
    return error < 0 ? error : memory_peaks_change(m, b, at_ns, false);
}

static int memory_peaks_failed(void *context, const struct ledger_block *wanted)
{
    struct memory_peaks *m = context;
    return m->also.failed ? m->also.failed(m->also.context, wanted) : 0;
}

static int memory_peaks_left(void *context, const struct ledger_free *f)
{
    struct memory_peaks *m = context;
    return m->also.left ? m->also.left(m->also.context, f) : 0;
}

/* A pool's record changes only the totals: its block is reported next. */
static int pooled(void *context, const struct ledger_pool *pool, uint64_t at_ns)
{
    struct memory_peaks *m = context;
    struct place_totals *now;
    (void)at_ns;
    return ledger_totals_pool(&m->totals, pool, &now);
}

int memory_peaks_init(struct memory_peaks *m, struct walk *walk)
{
    const struct ledger_user user = {.context = m,
                                     .got = memory_peaks_got,
                                     .gone = memory_peaks_gone,
                                     .failed = memory_peaks_failed,
                                     .left = memory_peaks_left,
                                     .pooled = pooled};
    *m = (struct memory_peaks){0};
    ledger_totals_init(&m->totals);
    return ledger_init(&m->ledger, walk, &user);
}

void memory_peaks_release(struct memory_peaks *m)
{
    ledger_release(&m->ledger);
    ledger_totals_release(&m->totals);
    free(m->list);
}

struct consumer memory_peaks_consumer(struct memory_peaks *m)
{
    return ledger_consumer(&m->ledger);
}
