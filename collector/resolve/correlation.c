/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/correlation.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

_Static_assert(sizeof(struct correlated_call) == 56, "a run has the size that the header says");

static uint64_t correlation_key_of(uint32_t process, uint32_t id)
{
    return (uint64_t)process << 32 | id;
}

static int compare_calls(const void *left, const void *right)
{
    const struct correlated_call *a = left;
    const struct correlated_call *b = right;
    uint64_t a_key = correlation_key_of(a->process, a->id);
    uint64_t b_key = correlation_key_of(b->process, b->id);
    if (a_key != b_key)
        return a_key < b_key ? -1 : 1;
    unsigned a_rank = a->flags & (CORRELATION_LINK | CORRELATION_NESTED);
    unsigned b_rank = b->flags & (CORRELATION_LINK | CORRELATION_NESTED);
    if (a_rank != b_rank) /* links come last */
        return (a_rank & CORRELATION_LINK) != (b_rank & CORRELATION_LINK)
                   ? (a_rank & CORRELATION_LINK ? 1 : -1)
                   : (a_rank ? 1 : -1);
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    return 0;
}

void correlation_init(struct correlation *c)
{
    *c = (struct correlation){.run_max = CORRELATION_RUN, .lap = 1};
    spool_init(&c->spool, sizeof(struct correlated_call));
}

void correlation_expect(struct correlation *c, uint32_t process_count)
{
    uint64_t ahead = (uint64_t)process_count * CORRELATION_AHEAD;
    if (ahead > c->run_max)
        c->run_max = ahead < CORRELATION_RUN_MAX ? (uint32_t)ahead : CORRELATION_RUN_MAX;
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
    correlation_init(c);
    c->run_max = run_max;
    c->added = added;
    c->lap = added + 1;
}

static bool are_sorted(const struct correlated_call *calls, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (compare_calls(&calls[i - 1], &calls[i]) > 0)
            return false;
    return true;
}

static void sort_if_needed(struct correlated_call *calls, uint32_t count)
{
    if (!are_sorted(calls, count))
        qsort(calls, count, sizeof *calls, compare_calls);
}

/* Groups the calls by process, from `first` on, in stable order. `ends` has an item for each
 * process, and one more: zeros, then the end of each group. */
static void group_calls(struct correlated_call *calls, uint32_t count, uint32_t first,
                        uint32_t *ends, uint32_t end_count, struct correlated_call *room)
{
    for (uint32_t i = 0; i < count; i++)
        ends[calls[i].process - first + 1]++;
    for (uint32_t p = 1; p < end_count; p++)
        ends[p] += ends[p - 1];
    for (uint32_t i = 0; i < count; i++)
        room[ends[calls[i].process - first]++] = calls[i];
    memcpy(calls, room, count * sizeof *calls);
}

/* Sorts calls. Ids of a process usually rise, so grouping by process is often enough. */
static void sort_calls(struct correlated_call *calls, uint32_t count)
{
    uint32_t first = UINT32_MAX, last = 0;
    if (are_sorted(calls, count))
        return;
    for (uint32_t i = 0; i < count; i++) {
        first = calls[i].process < first ? calls[i].process : first;
        last = calls[i].process > last ? calls[i].process : last;
    }
    uint32_t end_count = last - first + 2;
    uint32_t *ends = calloc(end_count, sizeof *ends);
    struct correlated_call *room = malloc(count * sizeof *room);
    if (ends && room) {
        group_calls(calls, count, first, ends, end_count, room);
        for (uint32_t p = 0, begin = 0; p + 1 < end_count; begin = ends[p++])
            sort_if_needed(calls + begin, ends[p] - begin);
    } else {
        qsort(calls, count, sizeof *calls, compare_calls);
    }
    free(ends);
    free(room);
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

/* Empties half of the buffer, and stores the calls that may still be needed. */
static int put_aside(struct correlation *c, uint32_t half)
{
    const struct correlated_call *calls = c->buffer + half * c->run_max;
    uint32_t before = c->aside_count, count = c->counts[half];
    int error = 0;
    c->counts[half] = 0;
    if (!count)
        return 0;
    if (!c->aside && !(c->aside = malloc(c->run_max * sizeof *c->aside)))
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        if (!stays(&calls[i]))
            continue;
        if (c->aside_count == c->run_max) {
            sort_calls(c->aside, c->aside_count);
            error = end_run(c);
            before = 0;
        }
        c->aside[c->aside_count++] = calls[i];
    }
    if (c->aside_count > before)
        sort_calls(c->aside, c->aside_count);
    return error;
}

static int make_buffer(struct correlation *c)
{
    uint32_t slots = CORRELATION_SLOTS;
    while (slots < 4 * c->run_max)
        slots *= 2;
    c->slot_mask = slots - 1;
    c->buffer = malloc(2ull * c->run_max * sizeof *c->buffer);
    c->next = malloc(2ull * c->run_max * sizeof *c->next);
    c->slots = malloc(slots * sizeof *c->slots);
    for (uint32_t i = 0; c->slots && i < slots; i++)
        c->slots[i] = c->added; /* no call yet */
    return c->buffer && c->next && c->slots ? 0 : GPUPROF_NO_MEMORY;
}

/* The current half is full: empties the other one and continues there. */
static int correlation_turn(struct correlation *c)
{
    uint32_t old = !c->young;
    int error = put_aside(c, old);
    c->young = old;
    if (!old)
        c->lap = c->added + 1;
    return error;
}

int correlation_make_room(struct correlation *c)
{
    return c->buffer ? correlation_turn(c) : make_buffer(c);
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
    uint32_t buffered = c->counts[0] + c->counts[1];
    /* If a slot or call names one that left the buffer, so have all before it. Only a crafted file
     * has this many in one slot. */
    uint32_t number = c->slots ? *correlation_slot(c, process, id) : c->added - buffered;
    for (uint32_t seen = 0; c->added - number < buffered && seen < CORRELATION_SAME; seen++) {
        uint32_t place = correlation_place(c, number);
        struct correlated_call *e = &c->buffer[place];
        if (e->process == process && e->id == id && (!best || compare_calls(e, best) < 0))
            best = e;
        number = c->next[place];
    }
    return best;
}

/* An entry of a run or, with NULL, of the stored calls in memory; NULL: an error. */
static struct correlated_call *correlation_entry_at(struct correlation *c,
                                                    const struct correlation_run *run,
                                                    uint32_t index, bool change, int *error)
{
    return run ? spool_at(&c->spool, run->offset + index, change, error) : &c->aside[index];
}

/* Index of the first entry with a key of at least `key`, or the run's count; or an error. */
static int64_t lower_bound(struct correlation *c, const struct correlation_run *run, uint64_t key)
{
    uint32_t low = 0;
    int error = 0;
    for (uint32_t high = run ? run->count : c->aside_count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        const struct correlated_call *e = correlation_entry_at(c, run, middle, false, &error);
        if (!e)
            return error;
        if (correlation_key_of(e->process, e->id) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The best match among stored calls, newest first; NULL: none, or an error. */
static struct correlated_call *find_old(struct correlation *c, uint64_t key, int *error)
{
    for (uint32_t i = c->run_count + 1; i-- > 0;) {
        const struct correlation_run *run = i < c->run_count ? &c->runs[i] : NULL;
        uint32_t count = run ? run->count : c->aside_count;
        if (run && (key < run->first_key || key > run->last_key))
            continue;
        int64_t first = lower_bound(c, run, key);
        if (first < 0) {
            *error = (int)first;
            return NULL;
        }
        struct correlated_call *e =
            first < count ? correlation_entry_at(c, run, (uint32_t)first, true, error) : NULL;
        if (*error < 0 || (e && correlation_key_of(e->process, e->id) == key))
            return e;
    }
    return NULL;
}

__attribute__((noinline)) int correlation_find_among(struct correlation *c, uint32_t process,
                                                     uint32_t id, unsigned marks,
                                                     struct correlated_call *found)
{
    int error = 0;
    for (unsigned links = 0; id && links <= CORRELATION_LINKS; links++) {
        struct correlated_call *e =
            find_young(c, process, id) ?: find_old(c, correlation_key_of(process, id), &error);
        if (!e)
            return error;
        *found = *e;
        if (!(e->flags & CORRELATION_LINK)) {
            correlation_mark(e, marks);
            return 1;
        }
        id = e->target;
    }
    return 0;
}

/* ---- unmatched calls ------------------------------------------------------------------------- */

int correlation_finish(struct correlation *c)
{
    int error = c->buffer ? put_aside(c, !c->young) : 0;
    if (error == 0 && c->buffer)
        error = put_aside(c, c->young);
    free(c->buffer);
    free(c->slots);
    free(c->next);
    c->buffer = NULL;
    c->slots = c->next = NULL;
    return error;
}

bool correlation_meets_gap(const struct correlated_call *e, const struct correlation_gap *gaps,
                           uint32_t count)
{
    uint32_t at = e->begin_ns ? ARRAY_UP_TO(gaps, count, end_ns, e->begin_ns - 1) : 0;
    return at < count && gaps[at].begin_ns <= e->end_ns;
}

int correlation_each(struct correlation *c, uint32_t process, unsigned flags,
                     correlation_visit_fn *visit, void *data)
{
    const unsigned no_call = CORRELATION_LINK | CORRELATION_NESTED;
    int error = 0;
    for (uint32_t r = 0; r <= c->run_count; r++) {
        const struct correlation_run *run = r < c->run_count ? &c->runs[r] : NULL;
        uint32_t count = run ? run->count : c->aside_count;
        if (run && (run->first_key >> 32 > process || run->last_key >> 32 < process))
            continue;
        /* A run has calls of all processes: visit only those of this one. */
        int64_t first = lower_bound(c, run, correlation_key_of(process, 0));
        if (first < 0)
            return (int)first;
        for (uint32_t i = (uint32_t)first; i < count; i++) {
            const struct correlated_call *e = correlation_entry_at(c, run, i, false, &error);
            if (!e)
                return error;
            if (e->process != process)
                break;
            if (e->flags & flags && !(e->flags & no_call))
                visit(e, data);
        }
    }
    return 0;
}

struct unmatched {
    const struct correlation_gap *gaps;
    const struct correlation_hangs *hangs;
    uint64_t *count;
    uint64_t *pending;
    uint32_t gap_count;
};

static void count_unmatched(const struct correlated_call *e, void *data)
{
    const struct unmatched *u = data;
    if (e->flags & CORRELATION_MATCHED || correlation_meets_gap(e, u->gaps, u->gap_count))
        return;
    bool waits =
        u->hangs && u->hangs->is_hung[e->thread] && e->begin_ns == u->hangs->last_ns[e->thread];
    *(waits ? u->pending : u->count) += 1;
}

int correlation_unmatched(struct correlation *c, uint32_t process,
                          const struct correlation_gap *gaps, uint32_t gap_count,
                          const struct correlation_hangs *hangs, uint64_t *count, uint64_t *pending)
{
    struct unmatched u = {gaps, hangs, count, pending, gap_count};
    *count = *pending = 0;
    return correlation_each(c, process, CORRELATION_LAUNCH, count_unmatched, &u);
}
