/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_report.h"

#include <stdlib.h>

#include "error.h"

enum { OF_CUDA, OF_TENSORS };

static uint32_t piece_of(const struct signs_process *p, uint64_t ns)
{
    return memory_slice(p->begin_ns, p->end_ns, ns);
}

static struct signs_book *book_of(struct memory_signs *s, const struct ledger_block *block,
                                  uint64_t at_ns)
{
    struct signs_process *p = &s->processes[block->process->index];
    s->any = true;
    struct signs_book *b = &p->books[block->kind == LEDGER_TENSOR ? OF_TENSORS : OF_CUDA];
    for (uint32_t now = piece_of(p, at_ns); b->at < now;)
        b->least[++b->at] = b->live;
    return b;
}

static int memory_signs_got(void *context, struct ledger_block *block, uint64_t at_ns)
{
    struct signs_book *b = book_of(context, block, at_ns);
    if (block->is_host)
        return 0;
    b->live += block->bytes; /* LEDGER_BYTES_MAX keeps all blocks together in range */
    if (b->live <= b->peak)
        return 0;
    b->peak = b->live;
    b->last_block = block->bytes;
    b->reserved = block->reserved;
    b->device = block->device;
    return 0;
}

static int memory_signs_gone(void *context, struct ledger_block *block, uint64_t at_ns)
{
    struct signs_book *b = book_of(context, block, at_ns);
    if (block->is_host)
        return 0;
    b->live -= block->bytes < b->live ? block->bytes : b->live;
    if (b->live < b->least[b->at])
        b->least[b->at] = b->live;
    return 0;
}

static int memory_signs_failed(void *context, const struct ledger_block *wanted)
{
    struct memory_signs *s = context;
    s->ooms += ledger_reaches(s->walk->filter, wanted->process, wanted->device, wanted->begin_ns,
                              wanted->begin_ns);
    s->any = true;
    return 0;
}

static int memory_signs_left(void *context, const struct ledger_free *f)
{
    struct memory_signs *s = context;
    s->processes[f->process->index].total = f->total;
    s->any = true;
    return 0;
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
    free(s->processes);
    *s = (struct memory_signs){0};
}

struct ledger_user memory_signs_user(struct memory_signs *s)
{
    return (struct ledger_user){.context = s,
                                .got = memory_signs_got,
                                .gone = memory_signs_gone,
                                .failed = memory_signs_failed,
                                .left = memory_signs_left};
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
static bool may_be_less(const struct memory_signs *s, const struct process *p,
                        const struct signs_process *own)
{
    for (unsigned k = 0; k < 2; k++) {
        const struct signs_book *b = &own->books[k];
        const struct surveyed_device *about = survey_device(&s->walk->survey, p, b->device);
        double total = own->total ? (double)own->total : about ? (double)about->limits.memory : 0;
        uint64_t idle = b->reserved > b->peak ? b->reserved - b->peak : 0;
        if (total > 0 && (double)own->books[OF_CUDA].peak >= SIGNS_FULL * total &&
            ((double)b->last_block >= SIGNS_BLOCK * (double)b->peak ||
             (double)idle >= SIGNS_IDLE * (double)b->reserved))
            return b->peak > 0;
    }
    return false;
}

bool memory_signs_of_fault(const struct memory_signs *s, const struct steps *steps)
{
    for (uint32_t i = 0; i < s->walk->rec->count; i++) {
        const struct signs_process *p = &s->processes[i];
        const struct step *first = NULL, *last = NULL;
        uint32_t count = 0;
        for (uint32_t k = steps && steps->count ? steps->firsts[i] : 0;
             steps && steps->count && k < steps->firsts[i + 1]; k++) {
            const struct step *step = &steps->list[k];
            if (step->is_partial)
                continue;
            first = first ? first : step;
            last = step;
            count++;
        }
        for (unsigned k = 0; count >= SIGNS_STEPS && k < 2; k++)
            if (may_grow(p, &p->books[k], first->begin_ns, last->end_ns))
                return true;
        if (may_be_less(s, s->walk->rec->processes[i], p))
            return true;
    }
    return false;
}
