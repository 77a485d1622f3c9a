/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/findings.h"
#include "analyse/report_make.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/memory_peaks.h"
#include "base/array.h"
#include "base/memory.h"

#define TEMPORARY_PART 0.9 /* share of an owner's blocks that were freed within their step */

/* One kind of finding at a place. */
struct at_place {
    const struct memory_place *place;
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
static void add_finding(struct findings *f, const struct memory_report *m, enum finding_id id,
                        const struct at_place *worst, uint64_t of_bytes, uint64_t places)
{
    const struct memory_place *p = worst->place;
    bool is_of_device = p->where != MEMORY_OF_HOST && p->device != LEDGER_NO_DEVICE;
    struct finding *to = &f->list[f->count++];
    *to = (struct finding){.kind = &finding_kinds[id],
                           .bytes = worst->bytes,
                           .of_bytes = of_bytes,
                           .process = p->process,
                           .device = is_of_device ? p->device : UINT64_MAX,
                           .devices = places};
    for (; to->row_count < worst->owner_count; to->row_count++) {
        const struct owned *owned = &worst->owners[to->row_count];
        char *name = memory_from(memory_owner_text(m, owned->owner->origin));
        to->rows[to->row_count] = (struct finding_row){.name = name,
                                                       .count = owned->owner->book.live.blocks,
                                                       .at_ns = p->peak_at.ns,
                                                       .bytes = owned->bytes};
    }
    to->where = to->row_count ? memory_text(to->rows[0].name) : NULL;
}

/* Finds owners with bytes at stake. Tensors lie in blocks of the device, so a finding there covers
 * both. */
static void find_owners(struct findings *f, const struct memory_report *m, enum finding_id id,
                        at_stake_fn *at_stake)
{
    struct at_place *all = memory_new(m->places.count, sizeof *all), *worst = NULL;
    uint64_t places = 0;
    for (uint32_t i = 0; i < m->owners.count; i++) {
        const struct memory_owner *o = &m->owners.list[i];
        struct at_place *at = &all[o->place];
        at->place = &m->places.list[o->place];
        const struct owned owned = {o, at_stake(m, at->place, o)};
        at->bytes += owned.bytes;
        if (owned.bytes)
            ARRAY_KEEP(at->owners, at->owner_count, FINDING_ROWS, &owned, has_more);
    }
    for (unsigned where = 0; !places && where < MEMORY_WHERES; where++)
        for (uint32_t i = 0; i < m->places.count; i++) {
            struct at_place *at = &all[i];
            if (!at->bytes || at->place->where != where)
                continue;
            worst = places++ && worst->bytes >= at->bytes ? worst : at;
        }
    if (worst)
        add_finding(f, m, id, worst, worst->place->peak.bytes, places);
    free(all);
}

static void find_fragments(struct findings *f, const struct memory_report *m)
{
    struct at_place worst = {0};
    uint64_t places = 0;
    for (uint32_t i = 0; i < m->places.count; i++) {
        const struct memory_place *p = &m->places.list[i];
        uint64_t reserved = p->peak_at.reserved,
                 idle = max_of(reserved, p->peak.bytes) - p->peak.bytes;
        if (p->where != MEMORY_OF_TENSORS || !is_full(m, p) ||
            (double)idle <= SIGNS_IDLE * (double)reserved)
            continue;
        places++;
        if (idle > worst.bytes)
            worst = (struct at_place){.place = p, .bytes = idle};
    }
    if (worst.place)
        add_finding(f, m, FINDING_MEMORY_FRAGMENTED, &worst, worst.place->peak_at.reserved, places);
}

void findings_add_memory(struct findings *f, const struct memory_report *m)
{
    find_owners(f, m, FINDING_MEMORY_LEAK, leaked);
    find_owners(f, m, FINDING_MEMORY_TEMPORARY, temporary);
    find_fragments(f, m);
    findings_sort(f);
}

/* Looks into memory if there are signs of a problem. The summary must be quick: it looks at failed
 * allocations alone, and only if it has read all. With a selection, only failures in it matter:
 * growth and excess concern the whole recording. */
static void end_memory(struct report *r)
{
    const struct report_request *request = &r->request;
    const struct steps *steps = r->program_steps;
    bool is_summary = request->walk_ns_max > 0;
    struct memory_request memory = {.by = MEMORY_BY_BEST,
                                    .at_seconds = -1,
                                    .selected = r->walk.filter,
                                    .step_by = request->steps ? request->steps->by : NULL,
                                    .step_pattern =
                                        request->steps ? request->steps->pattern : NULL};
    if (r->walk.is_cut || !request->looks_at_memory ||
        !(r->peaks.ooms ||
          (!is_summary && !r->time.selection && memory_peaks_show_fault(&r->peaks, steps))))
        return;
    if (is_summary && memory_best_by(r->rec) == MEMORY_BY_STACK)
        memory.by = MEMORY_BY_OPERATOR; /* without symbols, stacks are addresses */
    r->memory = memory_report_create(r->rec, &memory, is_summary ? SYMBOLS_OFF : request->symbols,
                                     &r->making.error);
    if (r->memory && !r->time.selection)
        findings_add_memory(r->findings, r->memory);
}

ANALYSIS_FREES(release_memory, memory_report_free(r->memory))

const struct analysis memory_analysis = {
    .uses = USE_PARTS, .end = end_memory, .release = release_memory};
