/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/memory_peaks.h"

#include <stdlib.h>

#include "base/memory.h"

/* ---- the walk -------------------------------------------------------------------------------- */

/* The value since the previous change counts if any of that time is selected. */
static void pass(const struct memory_peaks *m, uint32_t place, uint64_t until_ns)
{
    const struct place_totals *t = &m->ledger.totals.list[place];
    struct memory_peak *peak = &m->list[place];
    if (!ledger_reaches(m->ledger.walk->filter, t->process, t->device, peak->since_ns, until_ns))
        return;
    peak->allocated = max_of(peak->allocated, peak->now_allocated);
    peak->reserved = max_of(peak->reserved, peak->now_reserved);
}

void memory_peaks_finish(struct memory_peaks *m)
{
    for (uint32_t i = 0; i < memory_peaks_count(m); i++)
        pass(m, i, UINT64_MAX);
}

static void take_trend(struct memory_trend *trend, const struct ledger_block *b, uint64_t live,
                       uint32_t slice)
{
    while (trend->at < slice)
        trend->least[++trend->at] = trend->live;
    trend->live = live;
    trend->least[trend->at] = min_of(trend->least[trend->at], live);
    if (live <= trend->peak)
        return;
    trend->peak = live;
    trend->last_block = b->bytes;
    trend->reserved = b->reserved;
}

/* Takes a block that came or went. */
static void take_block(struct memory_peaks *m, const struct ledger_block *b, uint64_t at_ns)
{
    const struct place_totals *now = ledger_totals_of(&m->ledger, b);
    if (!now)
        return;
    m->list = array_reach(m->list, &m->capacity, b->totals - 1, sizeof *m->list);
    struct memory_peak *peak = &m->list[b->totals - 1];
    struct process *p = m->ledger.walk->rec->processes[b->process->index];
    if (!peak->end_ns && p->min_ns <= p->max_ns) {
        peak->begin_ns = clock_map_ns(&p->clock, p->min_ns);
        peak->end_ns = clock_map_ns(&p->clock, p->max_ns);
    }
    pass(m, b->totals - 1, at_ns);
    peak->now_allocated = now->allocated;
    peak->now_reserved = now->has_pool ? totals_reserved(now) : 0;
    peak->since_ns = at_ns;
    bool is_tensor = b->kind == LEDGER_TENSOR;
    if (!b->is_host)
        take_trend(&peak->trends[is_tensor], b, is_tensor ? now->tensors : now->allocated,
                   memory_slice(peak->begin_ns, peak->end_ns, at_ns));
}

static void memory_peaks_change(void *context, enum ledger_change change, struct ledger_block *b,
                                uint64_t at_ns)
{
    struct memory_peaks *m = context;
    m->any = true;
    if (change == LEDGER_FAILED)
        m->ooms += ledger_reaches(m->ledger.walk->filter, b->process, b->device, at_ns, at_ns);
    if (change == LEDGER_ASKED)
        m->device_bytes[b->process->index] = b->reserved;
    if (change == LEDGER_GOT || change == LEDGER_GONE)
        take_block(m, b, at_ns);
}

void memory_peaks_init(struct memory_peaks *m, struct walk *walk)
{
    const struct ledger_user user = {.context = m, .change = memory_peaks_change};
    *m = (struct memory_peaks){.device_bytes =
                                   memory_new(walk->rec->count, sizeof *m->device_bytes)};
    ledger_init(&m->ledger, walk, &user);
}

void memory_peaks_release(struct memory_peaks *m)
{
    ledger_release(&m->ledger);
    free(m->device_bytes);
    free(m->list);
}

/* ---- signs of problems ----------------------------------------------------------------------- */

static uint64_t least_between(const struct memory_trend *t, uint32_t from, uint32_t to)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = from; i <= to; i++)
        least = min_of(least, i <= t->at ? t->least[i] : t->live); /* unchanged since then */
    return least;
}

/* True if memory may grow. The minimum in the first and last quarter of the time stands for steps'
 * begins. With too few slices the answer is yes. */
static bool may_grow(const struct memory_peak *p, const struct memory_trend *t, uint64_t begin_ns,
                     uint64_t end_ns)
{
    uint32_t from = memory_slice(p->begin_ns, p->end_ns, begin_ns);
    uint32_t to = memory_slice(p->begin_ns, p->end_ns, end_ns), quarter = (to - from) / 4;
    uint64_t first = least_between(t, from, from + quarter);
    uint64_t last = least_between(t, to - quarter, to);
    if (t->peak < SIGNS_GROWN_MIN)
        return false;
    return quarter < 4 || (last > first && last - first >= SIGNS_GROWN_MIN / 2 &&
                           last - first >= t->peak / SIGNS_GROWN_PART / 2);
}

/* True if the peak nearly fills the device, and some of it could be saved. */
static bool may_be_less(const struct memory_peaks *m, uint32_t place)
{
    const struct place_totals *t = &m->ledger.totals.list[place];
    const struct memory_trend *trends = m->list[place].trends;
    const struct surveyed_device *about =
        survey_device(&m->ledger.walk->survey, t->process, t->device);
    uint64_t told = m->device_bytes[t->process->index];
    double total = told ? (double)told : about ? (double)about->limits.memory : 0;
    bool is_full = total > 0 && (double)trends[0].peak >= SIGNS_FULL * total;
    for (unsigned k = 0; k < 2; k++) {
        uint64_t peak = trends[k].peak, reserved = trends[k].reserved;
        uint64_t idle = reserved > peak ? reserved - peak : 0;
        if (is_full && peak > 0 &&
            ((double)trends[k].last_block >= SIGNS_BLOCK * (double)peak ||
             (double)idle >= SIGNS_IDLE * (double)reserved))
            return true;
    }
    return false;
}

bool memory_peaks_show_fault(const struct memory_peaks *m, const struct steps *steps)
{
    for (uint32_t i = 0; i < memory_peaks_count(m); i++) {
        const struct process *p = m->ledger.totals.list[i].process;
        const struct step *first = NULL, *last = NULL;
        uint32_t count = 0;
        for (uint32_t k = steps && steps->count ? steps->firsts[p->index] : 0;
             steps && steps->count && k < steps->firsts[p->index + 1]; k++) {
            const struct step *step = &steps->list[k];
            if (step->is_partial)
                continue;
            first = first ? first : step;
            last = step;
            count++;
        }
        for (unsigned k = 0; count >= SIGNS_STEPS && k < 2; k++)
            if (may_grow(&m->list[i], &m->list[i].trends[k], first->begin_ns, last->end_ns))
                return true;
        if (may_be_less(m, i))
            return true;
    }
    return false;
}
