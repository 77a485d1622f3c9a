/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/correlation.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"

/* A call that left the buffer. */
struct stored_call {
    struct correlated_call call;
    uint32_t next; /* number of the one before it in the same slot, from 1 on; 0: none */
};

_Static_assert(sizeof(struct stored_call) == 48, "the header says so");

void correlation_init(struct correlation *c, uint32_t process_count)
{
    uint64_t ahead = (uint64_t)process_count * CORRELATION_AHEAD;
    *c = (struct correlation){.run_max = ahead < CORRELATION_RUN       ? CORRELATION_RUN
                                         : ahead < CORRELATION_RUN_MAX ? (uint32_t)ahead
                                                                       : CORRELATION_RUN_MAX};
    spool_init(&c->spool, sizeof(struct stored_call));
}

void correlation_release(struct correlation *c)
{
    free(c->buffer);
    free(c->slots);
    free(c->next);
    free(c->stored);
    spool_release(&c->spool);
    *c = (struct correlation){.spool.fd = -1};
}

void correlation_forget(struct correlation *c)
{
    free(c->stored);
    c->stored = NULL;
    c->count = 0;
    spool_release(&c->spool);
    spool_init(&c->spool, sizeof(struct stored_call));
}

/* Whether work may still look for the call after it left the buffer. */
static bool stays(const struct correlated_call *e)
{
    bool is_found = e->flags & CORRELATION_MATCHED;
    return e->flags & CORRELATION_GRAPH ||
           (e->flags & (CORRELATION_WORKS | CORRELATION_LINK) && !is_found);
}

static uint32_t *stored_slot(const struct correlation *c, uint32_t process, uint32_t id)
{
    return &c->stored[(process * 0x9E3779B1u + id) % CORRELATION_STORED];
}

/* Removes the oldest calls from the buffer, and stores those that may still be needed. */
static void put_aside(struct correlation *c, uint32_t count)
{
    uint32_t first = c->added - c->count + 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct correlated_call *e = &c->buffer[(first + i) & c->place_mask];
        if (!stays(e) || c->spool.count == UINT32_MAX)
            continue;
        c->stored = c->stored ?: memory_new(CORRELATION_STORED, sizeof *c->stored);
        uint32_t *slot = stored_slot(c, e->process, e->id);
        const struct stored_call stored = {*e, *slot};
        spool_append(&c->spool, &stored);
        *slot = (uint32_t)c->spool.count;
    }
    c->count -= count;
}

static void make_buffer(struct correlation *c)
{
    uint32_t size = 2;
    while (size < 2 * c->run_max)
        size *= 2;
    c->place_mask = size - 1;
    c->slot_mask = (2 * size > CORRELATION_SLOTS ? 2 * size : CORRELATION_SLOTS) - 1;
    c->buffer = memory_from(malloc(size * sizeof *c->buffer));
    c->next = memory_from(malloc(size * sizeof *c->next));
    c->slots =
        memory_new(c->slot_mask + 1ull, sizeof *c->slots); /* 0: no call, or it is compared */
}

void correlation_make_room(struct correlation *c)
{
    if (c->buffer)
        put_aside(c, c->run_max);
    else
        make_buffer(c);
}

void correlation_link(struct correlation *c, uint32_t process, uint32_t id, uint32_t further,
                      uint64_t at_ns)
{
    struct correlated_call *link = id == further ? NULL : correlation_add(c, process, further);
    if (link)
        *link = (struct correlated_call){.process = process,
                                         .id = further,
                                         .begin_ns = at_ns,
                                         .end_ns = at_ns,
                                         .target = id,
                                         .flags = CORRELATION_LINK};
}

/* ---- look-up --------------------------------------------------------------------------------- */

/* Whether `e` is the call, and better than `best`: calls before links, outer calls before nested
 * ones. `best` may be NULL. */
static bool is_better(const struct correlated_call *e, const struct correlated_call *best,
                      uint32_t process, uint32_t id)
{
    const unsigned marks = CORRELATION_LINK | CORRELATION_NESTED;
    if (e->process != process || e->id != id)
        return false;
    return !best || !(e->flags & marks) ||
           (best->flags & CORRELATION_LINK && !(e->flags & CORRELATION_LINK));
}

/* Whether no better match than this can follow. */
static bool is_best(const struct correlated_call *best)
{
    return best && !(best->flags & (CORRELATION_LINK | CORRELATION_NESTED));
}

/* The best match in the buffer; NULL: none. */
static struct correlated_call *find_young(const struct correlation *c, uint32_t process,
                                          uint32_t id)
{
    struct correlated_call *best = NULL;
    /* If a slot or call names one that left the buffer, so have all before it. Only a crafted file
     * has this many in one slot. */
    uint32_t number = c->count ? *correlation_slot(c, process, id) : c->added;
    for (uint32_t seen = 0;
         !is_best(best) && c->added - number < c->count && seen < CORRELATION_SAME; seen++) {
        struct correlated_call *e = &c->buffer[number & c->place_mask];
        best = is_better(e, best, process, id) ? e : best;
        number = c->next[number & c->place_mask];
    }
    return best;
}

/* The best match among stored calls; NULL: none. */
static struct correlated_call *find_old(struct correlation *c, uint32_t process, uint32_t id)
{
    struct correlated_call best = {0};
    uint32_t found = 0, number = c->stored ? *stored_slot(c, process, id) : 0;
    for (uint32_t seen = 0; number && seen < CORRELATION_SAME; seen++) {
        const struct stored_call *e = spool_at(&c->spool, number - 1u, false);
        if (is_better(&e->call, found ? &best : NULL, process, id)) {
            best = e->call;
            found = number;
            if (is_best(&best))
                break;
        }
        number = e->next;
    }
    return found ? spool_at(&c->spool, found - 1u, true) : NULL;
}

__attribute__((noinline)) bool correlation_find_among(struct correlation *c, uint32_t process,
                                                      uint32_t id, unsigned marks,
                                                      struct correlated_call *found)
{
    for (unsigned links = 0; id && links <= CORRELATION_LINKS; links++) {
        struct correlated_call *e = find_young(c, process, id) ?: find_old(c, process, id);
        if (!e)
            return false;
        *found = *e;
        if (!(e->flags & CORRELATION_LINK)) {
            e->flags |= (uint16_t)marks;
            return true;
        }
        id = e->target;
    }
    return false;
}

/* ---- unmatched calls ------------------------------------------------------------------------- */

void correlation_finish(struct correlation *c)
{
    put_aside(c, c->count);
}

/* Whether the call was open in a gap. */
static bool meets_gap(const struct correlated_call *e, const struct correlation_losses *l)
{
    uint32_t at = e->begin_ns ? ARRAY_UP_TO(l->gaps, l->gap_count, end_ns, e->begin_ns - 1) : 0;
    return at < l->gap_count && l->gaps[at].begin_ns <= e->end_ns;
}

static void count_missing(struct correlation_losses *l, const struct correlated_call *e,
                          const struct correlation_thread *t)
{
    const unsigned others = CORRELATION_LINK | CORRELATION_NESTED | CORRELATION_MATCHED;
    bool launches = e->flags & CORRELATION_LAUNCH;
    if (!(e->flags & l->kinds) || e->flags & others || meets_gap(e, l))
        return;
    if (t->is_hung && e->begin_ns >= t->last_launch_ns)
        l->pending += launches;
    else
        l->count += launches || e->begin_ns >= l->late_ns;
}

void correlation_missing(struct correlation *c, struct correlation_losses *losses,
                         const struct correlation_thread *threads)
{
    for (uint64_t i = 0; i < c->spool.count; i++) {
        const struct stored_call *e = spool_at(&c->spool, i, false);
        count_missing(&losses[e->call.process], &e->call, &threads[e->call.thread]);
    }
}
