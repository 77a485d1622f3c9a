/* SPDX-License-Identifier: Apache-2.0 */
#include "model/correlation.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define NEAR 16 /* entries behind the hint that are looked at before a search */

_Static_assert(sizeof(struct correlated_call) == 56, "a run has the size that the header says");

static uint64_t key_of(uint32_t process, uint32_t id)
{
    return (uint64_t)process << 32 | id;
}

static int compare_calls(const void *left, const void *right)
{
    const struct correlated_call *a = left;
    const struct correlated_call *b = right;
    uint64_t a_key = key_of(a->process, a->id);
    uint64_t b_key = key_of(b->process, b->id);
    if (a_key != b_key)
        return a_key < b_key ? -1 : 1;
    unsigned a_rank = a->flags & (CORRELATION_LINK | CORRELATION_NESTED);
    unsigned b_rank = b->flags & (CORRELATION_LINK | CORRELATION_NESTED);
    if (a_rank != b_rank) /* a link is the last that is asked */
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
    free(c->runs);
    free(c->hints);
    spool_release(&c->spool);
    *c = (struct correlation){.spool.fd = -1};
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

/* Puts those of a process, from `first` on, behind each other, as they were. `ends` has an item for
 * each process, and one more: zeros, and then where each ends. */
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

/* The ids of a process rise as a rule: then they need not be sorted, but for the processes. */
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

/* A launch that should have made work of its own, and none has found it. */
static bool is_unmatched(const struct correlated_call *e)
{
    return (e->flags & (CORRELATION_LAUNCH | CORRELATION_LINK | CORRELATION_NESTED |
                        CORRELATION_MATCHED)) == CORRELATION_LAUNCH;
}

/* Each process up to the last one of the run has a hint. */
static int make_hints(struct correlation *c, uint32_t last_process)
{
    struct correlation_hint *hints =
        array_reach(c->hints, &c->hint_count, last_process, sizeof *hints);
    c->hints = hints ? hints : c->hints;
    return hints ? 0 : GPUPROF_NO_MEMORY;
}

/* Makes a run of `count` calls; `spill`: in the spool. */
static int end_run(struct correlation *c, struct correlated_call *calls, uint32_t count, bool spill)
{
    sort_calls(calls, count);
    if (make_hints(c, calls[count - 1].process) < 0)
        return GPUPROF_NO_MEMORY;
    uint32_t unmatched = 0;
    for (uint32_t i = 0; i < count; i++)
        unmatched += is_unmatched(&calls[i]);
    struct correlation_run run = {
        .unmatched = unmatched,
        .first_key = key_of(calls->process, calls->id),
        .last_key = key_of(calls[count - 1].process, calls[count - 1].id),
        .offset = c->spool.count,
        .count = count,
    };
    int error = ARRAY_PUSH(c->runs, c->run_count, &run);
    return error == 0 && spill ? spool_append_several(&c->spool, calls, count) : error;
}

static int make_buffer(struct correlation *c)
{
    uint32_t slots = 4;
    while (slots < 4 * c->run_max)
        slots *= 2;
    c->slot_mask = slots - 1;
    c->buffer = malloc(2ull * c->run_max * sizeof *c->buffer);
    if (c->is_late)
        return c->buffer ? 0 : GPUPROF_NO_MEMORY;
    c->next = malloc(2ull * c->run_max * sizeof *c->next);
    c->slots = calloc(slots, sizeof *c->slots);
    return c->buffer && c->next && c->slots ? 0 : GPUPROF_NO_MEMORY;
}

/* The half that is being filled is full: the other one, if it is, too, makes room for it. */
static int turn(struct correlation *c)
{
    uint32_t old = !c->young;
    int error = 0;
    if (c->counts[old]) {
        error = end_run(c, c->buffer + old * c->run_max, c->counts[old], true);
        c->counts[old] = 0;
    }
    c->young = old;
    if (!old)
        c->lap = c->added + 1;
    return error;
}

int correlation_make_room(struct correlation *c)
{
    return c->buffer ? turn(c) : make_buffer(c);
}

int correlation_link(struct correlation *c, uint32_t process, uint32_t id, uint32_t further,
                     uint64_t at_ns)
{
    struct correlated_call link = {.process = process,
                                   .id = further,
                                   .begin_ns = at_ns,
                                   .end_ns = at_ns,
                                   .target = id,
                                   .flags = CORRELATION_LINK};
    return id == further ? 0 : correlation_add(c, &link);
}

int correlation_finish(struct correlation *c)
{
    uint32_t old = !c->young;
    int error = 0;
    free(c->slots);
    free(c->next);
    c->slots = c->next = NULL;
    if (!c->run_count) {
        c->buffered = c->counts[0] + c->counts[1];
        return c->buffered ? end_run(c, c->buffer, c->buffered, false) : 0;
    }
    if (c->counts[old])
        error = end_run(c, c->buffer + old * c->run_max, c->counts[old], true);
    if (error == 0)
        error = end_run(c, c->buffer + c->young * c->run_max, c->counts[c->young], true);
    free(c->buffer);
    c->buffer = NULL;
    return error;
}

/* Entry `index` of a run; NULL: an error. */
static struct correlated_call *entry_at(struct correlation *c, const struct correlation_run *run,
                                        uint32_t index, bool change, int *error)
{
    if (c->buffered)
        return &c->buffer[index]; /* the only run */
    return spool_at(&c->spool, run->offset + index, change, error);
}

/* The first entry of the run with a key of at least `key`: its index, or the run's count. */
static int64_t lower_bound(struct correlation *c, const struct correlation_run *run, uint64_t key,
                           uint32_t hint)
{
    uint32_t low = 0;
    uint32_t high = run->count;
    int error = 0;
    const struct correlated_call *e;
    /* Usually it is a little behind the one before, or the same. */
    for (uint32_t i = 0; i < NEAR && hint + i < run->count; i++) {
        if (!(e = entry_at(c, run, hint + i, false, &error)))
            return error;
        uint64_t here = key_of(e->process, e->id);
        if (here >= key) {
            if (i > 0 || here == key)
                return hint + i;
            high = hint;
            break;
        }
        low = hint + i + 1;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (!(e = entry_at(c, run, middle, false, &error)))
            return error;
        if (key_of(e->process, e->id) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of two with one id: the same use of it, or two? Then the last one before the work counts. */
static bool is_better(const struct correlated_call *a, const struct correlated_call *b,
                      uint64_t at_ns)
{
    const struct correlated_call *early = a->begin_ns <= b->begin_ns ? a : b;
    const struct correlated_call *late = early == a ? b : a;
    if (late->begin_ns <= early->end_ns || late->begin_ns - early->begin_ns < CORRELATION_REUSE_NS)
        return compare_calls(a, b) < 0;
    bool is_late = late->begin_ns < at_ns || late->begin_ns - at_ns < CORRELATION_REUSE_NS / 2;
    return a == (is_late ? late : early);
}

struct match {
    struct correlated_call call;
    struct correlation_run *run; /* NULL: none yet */
    uint32_t first;              /* with its key */
    uint32_t index;
};

/* Makes *best the best entry of this key in that run, if it is better. 0 or an error. */
static int find_in(struct correlation *c, struct correlation_run *run, uint32_t hint, uint64_t key,
                   uint64_t at_ns, struct match *best)
{
    int error = 0;
    if (key < run->first_key || key > run->last_key)
        return 0;
    int64_t first = lower_bound(c, run, key, hint);
    if (first < 0)
        return (int)first;
    uint32_t at = (uint32_t)first;
    for (uint32_t i = 0; i < CORRELATION_SAME && at + i < run->count; i++) {
        const struct correlated_call *e = entry_at(c, run, at + i, false, &error);
        if (!e)
            return error;
        if (key_of(e->process, e->id) != key)
            break;
        if (!best->run || is_better(e, &best->call, at_ns))
            *best = (struct match){.call = *e, .run = run, .first = at, .index = at + i};
    }
    return 0;
}

/* The best of the last added; NULL: none. *seen: of so many. */
static struct correlated_call *find_young(const struct correlation *c, uint32_t process,
                                          uint32_t id, uint64_t at_ns, uint32_t *seen)
{
    struct correlated_call *best = NULL;
    uint32_t buffered = c->counts[0] + c->counts[1];
    *seen = 0;
    if (!id || !c->slots)
        return NULL;
    /* A slot, or a call, may name one that is in the buffer no more: then so are all before. */
    for (uint32_t number = *correlation_slot(c, process, id);
         c->added - number < buffered && *seen < CORRELATION_SAME; ++*seen) {
        uint32_t place = correlation_place(c, number);
        struct correlated_call *e = &c->buffer[place];
        if (e->process == process && e->id == id && (!best || is_better(e, best, at_ns)))
            best = e;
        number = c->next[place];
    }
    return best;
}

bool correlation_has_early(const struct correlation *c, uint32_t process, uint32_t id)
{
    uint32_t seen;
    return find_young(c, process, id, 0, &seen) != NULL;
}

__attribute__((noinline)) int correlation_find_among(struct correlation *c, uint32_t process,
                                                     uint32_t id, uint64_t at_ns, unsigned marks,
                                                     struct correlated_call *found)
{
    uint32_t seen;
    struct correlated_call *best = find_young(c, process, id, at_ns, &seen);
    /* Only a file made for it has so many in one slot. */
    if (!best || seen == CORRELATION_SAME || !correlation_is_sure(best, at_ns))
        return 0;
    *found = *best;
    correlation_mark(best, marks);
    return 1;
}

/* Hands it out, marked. */
static int take(struct correlation_run *run, struct correlated_call *e, unsigned marks,
                struct correlated_call *found)
{
    *found = *e;
    run->unmatched -= is_unmatched(e) && marks & CORRELATION_MATCHED;
    correlation_mark(e, marks);
    return 1;
}

/* 0: nobody knows. */
static uint64_t key_at(struct correlation *c, const struct correlation_run *run, uint32_t index)
{
    int error = 0;
    const struct correlated_call *e =
        index < run->count ? entry_at(c, run, index, false, &error) : NULL;
    return e ? key_of(e->process, e->id) : 0;
}

/* Most work is of the call behind the one that was found last, which is the only one with its key:
 * that is surely the best. NULL: it is not that, or cannot be read. */
static struct correlated_call *next_call(struct correlation *c, const struct correlation_run *run,
                                         struct correlation_hint *hint, uint64_t key,
                                         uint64_t at_ns)
{
    uint32_t next = hint->index + 1;
    int error = 0;
    if (key_at(c, run, hint->index) >= key || key_at(c, run, next + 1) <= key)
        return NULL;
    struct correlated_call *e = entry_at(c, run, next, true, &error);
    if (!e || key_of(e->process, e->id) != key || !correlation_is_sure(e, at_ns))
        return NULL;
    hint->index = next;
    return e;
}

/* 1 and the best entry of that key, marked, 0 or an error. */
static __attribute__((noinline)) int search(struct correlation *c, struct correlation_hint *hint,
                                            uint64_t key, uint64_t at_ns, unsigned marks,
                                            struct correlated_call *found)
{
    struct match best = {.run = NULL};
    int error = 0;
    for (uint32_t i = 0; i < c->run_count && !(best.run && correlation_is_sure(&best.call, at_ns));
         i++) {
        /* That is often the one behind or before it, where work of both is told by turns. */
        uint32_t apart = i % 2 ? (i + 1) / 2 : c->run_count - i / 2;
        struct correlation_run *run = &c->runs[(hint->run + apart) % c->run_count];
        error = find_in(c, run, i ? 0 : hint->index, key, at_ns, &best);
        if (error < 0)
            return error;
    }
    if (!best.run)
        return 0;
    struct correlated_call *e = entry_at(c, best.run, best.index, marks != 0, &error);
    if (!e)
        return error;
    *hint = (struct correlation_hint){(uint32_t)(best.run - c->runs), best.first};
    return take(best.run, e, marks, found);
}

static int find_key(struct correlation *c, uint64_t key, uint64_t at_ns, unsigned marks,
                    struct correlated_call *found)
{
    struct correlation_hint *hint = &c->hints[key >> 32];
    struct correlation_run *last = &c->runs[hint->run];
    struct correlated_call *next = next_call(c, last, hint, key, at_ns);
    return next ? take(last, next, marks, found) : search(c, hint, key, at_ns, marks, found);
}

__attribute__((noinline)) int correlation_find(struct correlation *c, uint32_t process, uint32_t id,
                                               uint64_t at_ns, unsigned marks,
                                               struct correlated_call *found)
{
    for (unsigned links = 0; id && process < c->hint_count && links <= CORRELATION_LINKS; links++) {
        int more = find_key(c, key_of(process, id), at_ns, marks, found);
        if (more <= 0)
            return more;
        if (!(found->flags & CORRELATION_LINK))
            return 1;
        id = found->target;
    }
    return 0;
}

bool correlation_meets_gap(const struct correlated_call *e, const struct correlation_gap *gaps,
                           uint32_t count)
{
    uint32_t at = e->begin_ns ? ARRAY_UP_TO(gaps, count, end_ns, e->begin_ns - 1) : 0;
    return at < count && gaps[at].begin_ns <= e->end_ns;
}

/* correlation_each, without those runs perhaps that are `matched`. */
static int each(struct correlation *c, uint32_t process, unsigned flags, bool matched,
                correlation_visit_fn *visit, void *data)
{
    const unsigned no_call = CORRELATION_LINK | CORRELATION_NESTED;
    int error = 0;
    for (uint32_t r = 0; r < c->run_count; r++) {
        struct correlation_run *run = &c->runs[r];
        if (run->first_key >> 32 > process || run->last_key >> 32 < process ||
            (!matched && !run->unmatched))
            continue;
        /* A run has the calls of all processes: only those of this one are gone through. */
        int64_t first = lower_bound(c, run, key_of(process, 0), 0);
        if (first < 0)
            return (int)first;
        for (uint32_t i = (uint32_t)first; i < run->count; i++) {
            const struct correlated_call *e = entry_at(c, run, i, false, &error);
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

int correlation_each(struct correlation *c, uint32_t process, unsigned flags,
                     correlation_visit_fn *visit, void *data)
{
    return each(c, process, flags, true, visit, data);
}

static void note_last(const struct correlated_call *e, void *data)
{
    const struct correlation_hangs *hangs = data;
    if (hangs->is_hung[e->thread] && e->begin_ns > hangs->last_ns[e->thread])
        hangs->last_ns[e->thread] = e->begin_ns;
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
    int error =
        hangs ? each(c, process, CORRELATION_LAUNCH, true, note_last, (void *)(uintptr_t)hangs) : 0;
    *count = *pending = 0;
    return error < 0 ? error : each(c, process, CORRELATION_LAUNCH, false, count_unmatched, &u);
}
