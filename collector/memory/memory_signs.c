/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_signs.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

enum { OF_CUDA, OF_TENSORS };

static uint32_t piece_of(const struct signs_process *p, uint64_t ns)
{
    return memory_slice(p->begin_ns, p->end_ns, ns);
}

int memory_signs_init(struct memory_signs *s, struct walk *walk)
{
    *s = (struct memory_signs){.walk = walk};
    s->processes = calloc(walk->rec->count + 1u, sizeof *s->processes);
    for (uint32_t i = 0; s->processes && i < walk->rec->count; i++) {
        struct process *p = walk->rec->processes[i];
        if (p->min_ns > p->max_ns)
            continue;
        s->processes[i].begin_ns = clock_map_ns(&p->clock, p->min_ns);
        s->processes[i].end_ns = clock_map_ns(&p->clock, p->max_ns);
    }
    return s->processes ? 0 : GPUPROF_NO_MEMORY;
}

void memory_signs_release(struct memory_signs *s)
{
    free(s->places);
    free(s->processes);
    *s = (struct memory_signs){0};
}

int memory_signs_change(struct memory_signs *s, const struct ledger_block *b,
                        const struct place_totals *now, uint64_t at_ns)
{
    bool is_tensor = b->kind == LEDGER_TENSOR;
    uint64_t live = is_tensor ? now->tensors : now->allocated;
    s->any = true;
    if (b->is_host)
        return 0;
    struct signs_place *places =
        array_reach(s->places, &s->place_count, b->totals - 1, sizeof *places);
    if (!places)
        return GPUPROF_NO_MEMORY;
    s->places = places;
    struct signs_place *place = &places[b->totals - 1];
    struct signs_book *book = &place->books[is_tensor ? OF_TENSORS : OF_CUDA];
    place->process = b->process;
    place->device = b->device;
    for (uint32_t slice = piece_of(&s->processes[b->process->index], at_ns); book->at < slice;)
        book->least[++book->at] = book->live;
    book->live = live;
    if (live < book->least[book->at])
        book->least[book->at] = live;
    if (live <= book->peak)
        return 0;
    book->peak = live;
    book->last_block = b->bytes;
    book->reserved = b->reserved;
    return 0;
}

void memory_signs_failed(struct memory_signs *s, const struct ledger_block *wanted)
{
    s->ooms += ledger_reaches(s->walk->filter, wanted->process, wanted->device, wanted->begin_ns,
                              wanted->begin_ns);
    s->any = true;
}

void memory_signs_left(struct memory_signs *s, const struct ledger_free *f)
{
    s->processes[f->process->index].total = f->total;
    s->any = true;
}

static uint64_t least_between(const struct signs_book *b, uint32_t from, uint32_t to)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = from; i <= to; i++) {
        uint64_t had = i <= b->at ? b->least[i] : b->live; /* unchanged since then */
        least = had < least ? had : least;
    }
    return least;
}

/* True if memory may grow. The minimum in the first and last quarter of the time stands for steps'
 * begins. With too few slices the answer is yes. */
static bool may_grow(const struct signs_process *p, const struct signs_book *b, uint64_t begin_ns,
                     uint64_t end_ns)
{
    uint32_t from = piece_of(p, begin_ns), to = piece_of(p, end_ns);
    uint32_t quarter = (to - from) / 4;
    uint64_t first = least_between(b, from, from + quarter);
    uint64_t last = least_between(b, to - quarter, to);
    if (b->peak < SIGNS_GROWN_MIN)
        return false;
    return quarter < 4 || (last > first && last - first >= SIGNS_GROWN_MIN / 2 &&
                           last - first >= b->peak / SIGNS_GROWN_PART / 2);
}

/* True if the peak nearly fills the device, and some of it could be saved. */
static bool may_be_less(const struct memory_signs *s, const struct signs_place *place)
{
    const struct surveyed_device *about =
        survey_device(&s->walk->survey, place->process, place->device);
    uint64_t told = s->processes[place->process->index].total;
    double total = told ? (double)told : about ? (double)about->limits.memory : 0;
    bool is_full = total > 0 && (double)place->books[OF_CUDA].peak >= SIGNS_FULL * total;
    for (unsigned k = 0; k < 2; k++) {
        const struct signs_book *b = &place->books[k];
        uint64_t idle = b->reserved > b->peak ? b->reserved - b->peak : 0;
        if (is_full && b->peak > 0 &&
            ((double)b->last_block >= SIGNS_BLOCK * (double)b->peak ||
             (double)idle >= SIGNS_IDLE * (double)b->reserved))
            return true;
    }
    return false;
}

bool memory_signs_of_fault(const struct memory_signs *s, const struct steps *steps)
{
    for (uint32_t i = 0; i < s->place_count; i++) {
        const struct signs_place *place = &s->places[i];
        const struct step *first = NULL, *last = NULL;
        uint32_t count = 0, process = place->process ? place->process->index : 0;
        if (!place->process)
            continue;
        for (uint32_t k = steps && steps->count ? steps->firsts[process] : 0;
             steps && steps->count && k < steps->firsts[process + 1]; k++) {
            const struct step *step = &steps->list[k];
            if (step->is_partial)
                continue;
            first = first ? first : step;
            last = step;
            count++;
        }
        for (unsigned k = 0; count >= SIGNS_STEPS && k < 2; k++)
            if (may_grow(&s->processes[process], &place->books[k], first->begin_ns, last->end_ns))
                return true;
        if (may_be_less(s, place))
            return true;
    }
    return false;
}
