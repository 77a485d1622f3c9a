/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/findings.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/memory_peaks.h"
#include "base/array.h"
#include "error.h"

#define TEMPORARY_PART 0.9 /* share of an owner's blocks that were freed within their step */

/* One kind of finding at a place. */
struct at_place {
    uint64_t bytes;
    struct owned {
        const struct memory_owner *owner;
        uint64_t bytes;
    } owners[FINDING_ROWS]; /* most bytes first */
    uint32_t owner_count;
};

typedef uint64_t at_stake_fn(const struct memory_report *m, const struct memory_place *p,
                             const struct memory_owner *o);

/* Is the device nearly full at the process's peak? */
static bool is_full(const struct memory_report *m, const struct memory_place *p)
{
    const struct memory_place *device =
        memory_place_find(m, p->process, p->device, MEMORY_OF_DEVICE);
    return p->where != MEMORY_OF_HOST && device && device->total &&
           (double)device->peak.bytes >= SIGNS_FULL * (double)device->total;
}

/* Bytes leaked since the end of the first step; 0: none. */
static uint64_t leaked(const struct memory_report *m, const struct memory_place *p,
                       const struct memory_owner *o)
{
    const struct memory_growth *g = &o->book.growth;
    if (!memory_has_steps(m, p->process) || g->steps < SIGNS_STEPS || !memory_leaks(g))
        return 0;
    uint64_t grown = g->last - g->first;
    return grown > SIGNS_GROWN_MIN && grown > p->peak.bytes / SIGNS_GROWN_PART ? grown : 0;
}

/* Bytes at the peak that lived within one step only; 0: the owner is not temporary. */
static uint64_t temporary(const struct memory_report *m, const struct memory_place *p,
                          const struct memory_owner *o)
{
    uint64_t had = memory_at_peak(p, &o->book).bytes;
    bool is_temporary =
        (double)o->book.temporary.blocks >= TEMPORARY_PART * (double)o->book.got.blocks;
    return is_temporary && o->book.temporary.blocks >= SIGNS_STEPS && is_full(m, p) &&
                   (double)had > SIGNS_BLOCK * (double)p->peak.bytes
               ? had
               : 0;
}

static bool has_more(const void *item, const void *other)
{
    return ((const struct owned *)item)->bytes > ((const struct owned *)other)->bytes;
}

/* Adds a finding about the worst place, with a row for each owner. */
static int add_finding(struct findings *f, const struct memory_report *m, enum finding_id id,
                       const struct memory_place *p, const struct at_place *worst, uint64_t places)
{
    struct finding *to = &f->list[f->count++];
    *to = (struct finding){.kind = &finding_kinds[id],
                           .bytes = worst->bytes,
                           .of_bytes = p->peak.bytes,
                           .process = p->process,
                           .device = p->where == MEMORY_OF_HOST || p->device == LEDGER_NO_DEVICE
                                         ? UINT64_MAX
                                         : p->device,
                           .devices = places};
    for (uint32_t i = 0; i < worst->owner_count; i++) {
        const struct memory_owner *o = worst->owners[i].owner;
        char *name = memory_owner_text(m, o->origin);
        if (!name)
            return GPUPROF_NO_MEMORY;
        to->rows[to->row_count++] = (struct finding_row){.name = name,
                                                         .count = o->book.live.blocks,
                                                         .at_ns = p->peak_at.ns,
                                                         .bytes = worst->owners[i].bytes};
    }
    to->where = to->row_count ? strdup(to->rows[0].name) : NULL;
    return to->row_count && !to->where ? GPUPROF_NO_MEMORY : 0;
}

/* Finds owners with bytes at stake. Tensors lie in blocks of the device, so a finding there covers
 * both. */
static int find_owners(struct findings *f, const struct memory_report *m, enum finding_id id,
                       at_stake_fn *at_stake)
{
    struct at_place *all = calloc(m->places.count + 1u, sizeof *all);
    uint32_t worst = 0;
    uint64_t places = 0;
    int error = all ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; all && i < m->owners.count; i++) {
        const struct memory_owner *o = &m->owners.list[i];
        struct at_place *at = &all[o->place];
        const struct owned owned = {o, at_stake(m, &m->places.list[o->place], o)};
        at->bytes += owned.bytes;
        if (owned.bytes)
            ARRAY_KEEP(at->owners, at->owner_count, FINDING_ROWS, &owned, has_more);
    }
    for (unsigned where = 0; all && !places && where < MEMORY_WHERES; where++)
        for (uint32_t i = 0; i < m->places.count; i++) {
            if (m->places.list[i].where != where || !all[i].bytes)
                continue;
            worst = places++ && all[worst].bytes >= all[i].bytes ? worst : i;
        }
    if (places)
        error = add_finding(f, m, id, &m->places.list[worst], &all[worst], places);
    free(all);
    return error;
}

static int find_fragments(struct findings *f, const struct memory_report *m)
{
    const struct memory_place *worst = NULL;
    struct at_place all = {0};
    uint64_t places = 0;
    for (uint32_t i = 0; i < m->places.count; i++) {
        const struct memory_place *p = &m->places.list[i];
        uint64_t idle =
            p->peak_at.reserved > p->peak.bytes ? p->peak_at.reserved - p->peak.bytes : 0;
        if (p->where != MEMORY_OF_TENSORS || !is_full(m, p) ||
            (double)idle <= SIGNS_IDLE * (double)p->peak_at.reserved)
            continue;
        places++;
        worst = idle > all.bytes ? p : worst;
        all.bytes = idle > all.bytes ? idle : all.bytes;
    }
    int error = worst ? add_finding(f, m, FINDING_MEMORY_FRAGMENTED, worst, &all, places) : 0;
    if (worst)
        f->list[f->count - 1].of_bytes = worst->peak_at.reserved;
    return error;
}

int findings_add_memory(struct findings *f, const struct memory_report *m)
{
    int error = find_owners(f, m, FINDING_MEMORY_LEAK, leaked);
    if (error == 0)
        error = find_owners(f, m, FINDING_MEMORY_TEMPORARY, temporary);
    if (error == 0)
        error = find_fragments(f, m);
    findings_sort(f);
    return error;
}
