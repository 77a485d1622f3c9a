/* SPDX-License-Identifier: Apache-2.0 */
#include "report/memory_peaks.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

static int see(struct memory_peaks *m, const struct place_totals *now)
{
    uint32_t place = (uint32_t)(now - m->totals.list);
    if (place >= m->capacity) {
        struct memory_peak *list = realloc(m->list, m->totals.capacity * sizeof *list);
        if (!list)
            return GPUPROF_NO_MEMORY;
        memset(list + m->capacity, 0, (m->totals.capacity - m->capacity) * sizeof *list);
        m->list = list;
        m->capacity = m->totals.capacity;
    }
    struct memory_peak *peak = &m->list[place];
    if (now->allocated > peak->allocated)
        peak->allocated = now->allocated;
    if (now->has_pool && totals_reserved(now) > peak->reserved)
        peak->reserved = totals_reserved(now);
    return 0;
}

static int change(struct memory_peaks *m, const struct ledger_block *b, bool comes)
{
    struct place_totals *now;
    int error = ledger_totals_block(&m->totals, b, comes, &now);
    return now ? see(m, now) : error;
}

static int got(void *context, struct ledger_block *b, uint64_t at_ns)
{
    struct memory_peaks *m = context;
    int error = m->also.got ? m->also.got(m->also.context, b, at_ns) : 0;
    return error < 0 ? error : change(m, b, true);
}

static int gone(void *context, struct ledger_block *b, uint64_t at_ns)
{
    struct memory_peaks *m = context;
    int error = m->also.gone ? m->also.gone(m->also.context, b, at_ns) : 0;
    return error < 0 ? error : change(m, b, false);
}

static int failed(void *context, const struct ledger_block *wanted)
{
    struct memory_peaks *m = context;
    return m->also.failed ? m->also.failed(m->also.context, wanted) : 0;
}

static int left(void *context, const struct ledger_free *f)
{
    struct memory_peaks *m = context;
    return m->also.left ? m->also.left(m->also.context, f) : 0;
}

/* What a pool says with a block is about both: the block is told next. */
static int pooled(void *context, const struct ledger_pool *pool, uint64_t at_ns)
{
    struct memory_peaks *m = context;
    struct place_totals *now;
    (void)at_ns;
    return ledger_totals_pool(&m->totals, pool, &now);
}

int memory_peaks_init(struct memory_peaks *m, struct walk *walk)
{
    const struct ledger_user user = {
        .context = m, .got = got, .gone = gone, .failed = failed, .left = left, .pooled = pooled};
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
