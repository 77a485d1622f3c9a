/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/correlation.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

_Static_assert(sizeof(struct correlated_call) == 40, "a run has the size that the header says");

static uint64_t correlation_key_of(uint32_t process, uint32_t id)
{
    return (uint64_t)process << 32 | id;
}

/* Calls come before links, and outer calls before nested ones. */
static int compare_calls(const void *left, const void *right)
{
    const struct correlated_call *a = left, *b = right;
    return ORDER(a->process, b->process) ?: ORDER(a->id, b->id) ?:
           ORDER(a->flags & CORRELATION_LINK, b->flags & CORRELATION_LINK) ?:
           ORDER(a->flags & CORRELATION_NESTED, b->flags & CORRELATION_NESTED) ?:
           ORDER(a->begin_ns, b->begin_ns);
}

void correlation_init(struct correlation *c, uint32_t process_count)
{
    uint64_t ahead = (uint64_t)process_count * CORRELATION_AHEAD;
    *c = (struct correlation){.run_max = ahead < CORRELATION_RUN       ? CORRELATION_RUN
                                         : ahead < CORRELATION_RUN_MAX ? (uint32_t)ahead
                                                                       : CORRELATION_RUN_MAX};
    spool_init(&c->spool, sizeof(struct correlated_call));
}

void correlation_release(struct correlation *c)
{
    free(c->buffer);
    free(c->slots);
    free(c->next);
    free(c->aside);
    free(c->runs);
    spool_release(&c->spool);
    *c = (struct correlation){.spool.fd = -1};
}

void correlation_forget(struct correlation *c)
{
    uint32_t run_max = c->run_max, added = c->added;
    correlation_release(c);
    correlation_init(c, 0);
    c->run_max = run_max;
    c->added = added;
}

/* Ids usually rise, so a single process needs no sort. */
static void sort_calls(struct correlated_call *calls, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (compare_calls(&calls[i - 1], &calls[i]) > 0) {
            qsort(calls, count, sizeof *calls, compare_calls);
            return;
        }
}

/* Whether work may still look for the call after it left the buffer. */
static bool stays(const struct correlated_call *e)
{
    bool is_found = e->flags & CORRELATION_MATCHED;
    return e->flags & CORRELATION_GRAPH ||
           (e->flags & (CORRELATION_WORKS | CORRELATION_LINK) && !is_found);
}

/* Writes the stored calls to the spool as a run. */
static int end_run(struct correlation *c)
{
    const struct correlated_call *last = &c->aside[c->aside_count - 1];
    struct correlation_run run = {
        .first_key = correlation_key_of(c->aside->process, c->aside->id),
        .last_key = correlation_key_of(last->process, last->id),
        .offset = c->spool.count,
        .count = c->aside_count,
    };
    int error = ARRAY_PUSH(c->runs, c->run_count, &run);
    c->aside_count = 0;
    return error == 0 ? spool_append_several(&c->spool, c->aside, run.count) : error;
}

/* Removes the oldest calls from the buffer, and stores those that may still be needed. */
static int put_aside(struct correlation *c, uint32_t count)
{
    uint32_t before = c->aside_count, first = c->added - c->count + 1;
    int error = 0;
    if (count && !c->aside && !(c->aside = malloc(c->run_max * sizeof *c->aside)))
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        const struct correlated_call *e = &c->buffer[(first + i) & c->place_mask];
        if (!stays(e))
            continue;
        if (c->aside_count == c->run_max) {
            sort_calls(c->aside, c->aside_count);
            error = end_run(c);
            before = 0;
        }
        c->aside[c->aside_count++] = *e;
    }
    c->count -= count;
    if (c->aside_count > before)
        sort_calls(c->aside, c->aside_count);
    return error;
}

static int make_buffer(struct correlation *c)
{
    uint32_t size = 2;
    while (size < 2 * c->run_max)
        size *= 2;
    c->place_mask = size - 1;
    c->slot_mask = (2 * size > CORRELATION_SLOTS ? 2 * size : CORRELATION_SLOTS) - 1;
    c->buffer = malloc(size * sizeof *c->buffer);
    c->next = malloc(size * sizeof *c->next);
    c->slots = calloc(c->slot_mask + 1ull, sizeof *c->slots); /* 0: no call, or it is compared */
    return c->buffer && c->next && c->slots ? 0 : GPUPROF_NO_MEMORY;
}

int correlation_make_room(struct correlation *c)
{
    return c->buffer ? put_aside(c, c->run_max) : make_buffer(c);
}

int correlation_link(struct correlation *c, uint32_t process, uint32_t id, uint32_t further,
                     uint64_t at_ns)
{
    struct correlated_call *link = NULL;
    int error = id == further ? 0 : correlation_add(c, process, further, &link);
    if (link)
        *link = (struct correlated_call){.process = process,
                                         .id = further,
                                         .begin_ns = at_ns,
                                         .end_ns = at_ns,
                                         .target = id,
                                         .flags = CORRELATION_LINK};
    return error;
}

/* ---- look-up --------------------------------------------------------------------------------- */

/* The best match in the buffer; NULL: none. */
static struct correlated_call *find_young(const struct correlation *c, uint32_t process,
                                          uint32_t id)
{
    struct correlated_call *best = NULL;
    /* If a slot or call names one that left the buffer, so have all before it. Only a crafted file
     * has this many in one slot. */
    uint32_t number = c->count ? *correlation_slot(c, process, id) : c->added;
    for (uint32_t seen = 0; c->added - number < c->count && seen < CORRELATION_SAME; seen++) {
        struct correlated_call *e = &c->buffer[number & c->place_mask];
        if (e->process == process && e->id == id && (!best || compare_calls(e, best) < 0))
            best = e;
        number = c->next[number & c->place_mask];
    }
    return best;
}

/* An entry of a run or, with NULL, of the stored calls in memory. */
static struct correlated_call *correlation_entry_at(struct correlation *c,
                                                    const struct correlation_run *run,
                                                    uint32_t index, bool change)
{
    return run ? spool_at(&c->spool, run->offset + index, change) : &c->aside[index];
}

/* Index of the first entry with a key of at least `key`, or the run's count. */
static uint32_t lower_bound(struct correlation *c, const struct correlation_run *run, uint64_t key)
{
    uint32_t low = 0;
    for (uint32_t high = run ? run->count : c->aside_count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        const struct correlated_call *e = correlation_entry_at(c, run, middle, false);
        if (correlation_key_of(e->process, e->id) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The best match among stored calls, newest first; NULL: none. */
static struct correlated_call *find_old(struct correlation *c, uint64_t key)
{
    for (uint32_t i = c->run_count + 1; i-- > 0;) {
        const struct correlation_run *run = i < c->run_count ? &c->runs[i] : NULL;
        uint32_t count = run ? run->count : c->aside_count;
        if (run && (key < run->first_key || key > run->last_key))
            continue;
        uint32_t first = lower_bound(c, run, key);
        struct correlated_call *e =
            first < count ? correlation_entry_at(c, run, first, true) : NULL;
        if (e && correlation_key_of(e->process, e->id) == key)
            return e;
    }
    return NULL;
}

__attribute__((noinline)) int correlation_find_among(struct correlation *c, uint32_t process,
                                                     uint32_t id, unsigned marks,
                                                     struct correlated_call *found)
{
    for (unsigned links = 0; id && links <= CORRELATION_LINKS; links++) {
        struct correlated_call *e =
            find_young(c, process, id) ?: find_old(c, correlation_key_of(process, id));
        if (!e)
            return 0;
        *found = *e;
        if (!(e->flags & CORRELATION_LINK)) {
            e->flags |= (uint16_t)marks;
            return 1;
        }
        id = e->target;
    }
    return 0;
}

/* ---- unmatched calls ------------------------------------------------------------------------- */

int correlation_finish(struct correlation *c)
{
    int error = put_aside(c, c->count);
    free(c->buffer);
    free(c->slots);
    free(c->next);
    c->buffer = NULL;
    c->slots = c->next = NULL;
    return error;
}

/* Whether the call was open in a gap. */
static bool meets_gap(const struct correlated_call *e, const struct correlation_losses *l)
{
    uint32_t at = e->begin_ns ? ARRAY_UP_TO(l->gaps, l->gap_count, end_ns, e->begin_ns - 1) : 0;
    return at < l->gap_count && l->gaps[at].begin_ns <= e->end_ns;
}

static void count_missing(const struct correlation_losses *l, const struct correlated_call *e,
                          uint64_t *count, uint64_t *pending)
{
    const unsigned others = CORRELATION_LINK | CORRELATION_NESTED | CORRELATION_MATCHED;
    bool launches = e->flags & CORRELATION_LAUNCH;
    if (!(e->flags & l->kinds) || e->flags & others || meets_gap(e, l))
        return;
    const struct correlation_thread *t = l->threads ? &l->threads[e->thread] : NULL;
    if (t && t->is_hung && e->begin_ns >= t->last_launch_ns)
        *pending += launches;
    else
        *count += launches || e->begin_ns >= l->late_ns;
}

int correlation_missing(struct correlation *c, const struct correlation_losses *l, uint64_t *count,
                        uint64_t *pending)
{
    *count = *pending = 0;
    for (uint32_t r = 0; r <= c->run_count; r++) {
        const struct correlation_run *run = r < c->run_count ? &c->runs[r] : NULL;
        uint32_t end = run ? run->count : c->aside_count;
        if (run && (run->first_key >> 32 > l->process || run->last_key >> 32 < l->process))
            continue;
        /* A run has calls of all processes: visit only those of this one. */
        for (uint32_t i = lower_bound(c, run, correlation_key_of(l->process, 0)); i < end; i++) {
            const struct correlated_call *e = correlation_entry_at(c, run, i, false);
            if (e->process != l->process)
                break;
            count_missing(l, e, count, pending);
        }
    }
    return 0;
}
