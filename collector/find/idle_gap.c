/* SPDX-License-Identifier: Apache-2.0 */
#include "find/idle_gap.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"
#include "find/thread_time.h"

/* A time that is to be split: what of it is charged to which cause, and has no kind so far. */
struct split {
    const struct idle_gap *gap;
    struct idle_rows *rows;
    uint32_t thread;
    enum idle_cause cause; /* of the time in which the thread ran */
    bool knows_ran;        /* it is known that it ran then */
    uint64_t left[IDLE_CAUSES];
    int error;
};

/* The way through a gap. */
struct passage {
    struct idle_rows *rows;
    uint64_t *causes;
    const struct idle_gap *gap;
    uint64_t at_ns;     /* until here all is charged */
    uint64_t call_ns;   /* the end of the call before that; 0: not known */
    uint64_t credit_ns; /* of what follows so much is charged to the wait before: as this */
    enum idle_cause credit_cause;
    struct idle_place credit_place;
    uint32_t span; /* of the gap's: those before it are charged */
    uint32_t thread;
    bool is_last;        /* no work ends the gap */
    struct split *split; /* of the time that is being charged; NULL: it is not split */
    int error;
};

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void put_span(struct passage *p, const struct idle_row *what, uint64_t from_ns,
                     uint64_t to_ns)
{
    if (from_ns >= to_ns || p->error < 0)
        return;
    p->error = idle_rows_add(p->rows, what, from_ns, to_ns - from_ns);
    p->causes[what->cause] += to_ns - from_ns;
    if (p->split)
        p->split->left[what->cause] += to_ns - from_ns;
}

static void split_add(struct split *s, const struct thread_piece *piece, uint32_t did,
                      enum idle_cause cause, uint64_t ns)
{
    const struct idle_gap *g = s->gap;
    struct idle_row what = {.place = piece->place,
                            .process = g->process,
                            .device = g->device,
                            .thread = s->thread,
                            .cause = cause,
                            .did = did};
    what.place.epoch = g->is_first ? 0 : idle_epoch(g->early, piece->at_ns + ns / 2);
    if (ns && s->error == 0)
        s->error = idle_rows_add(s->rows, &what, piece->at_ns, ns);
}

static void split_piece(void *context, const struct thread_piece *piece)
{
    static const enum idle_cause orders[][5] = {
        {IDLE_WAITING, IDLE_UNKNOWN, IDLE_HOST, IDLE_PREEMPTED},
        {IDLE_HOST, IDLE_PREEMPTED, IDLE_UNKNOWN, IDLE_WAITING},
        {IDLE_PREEMPTED, IDLE_UNKNOWN, IDLE_HOST, IDLE_WAITING}};
    struct split *s = context;
    bool runs = piece->kind == DID_RUNNING || piece->kind == DID_GC;
    bool is_apart = !runs && !s->gap->is_first && s->cause != IDLE_LOADER;
    if (piece->is_sample) {
        split_add(s, piece,
                  (uint32_t)piece->kind | (piece->is_look ? DID_LOOKED : DID_SAMPLED) |
                      (piece->has_run ? DID_RAN : 0),
                  is_apart ? IDLE_WAITING : s->cause, piece->ns);
        return;
    }
    uint64_t ns = piece->ns;
    const enum idle_cause *order = orders[piece->kind == DID_THROTTLED ? 2 : runs];
    for (unsigned i = 0; i < 5; i++) {
        enum idle_cause cause = i < 4 ? order[i] : s->cause;
        if (piece->kind == DID_THROTTLED && cause != IDLE_PREEMPTED && cause != IDLE_UNKNOWN &&
            (cause != s->cause || s->knows_ran))
            continue; /* then it was not stopped */
        uint64_t taken = ns < s->left[cause] ? ns : s->left[cause];
        split_add(s, piece, piece->kind, cause, taken);
        s->left[cause] -= taken;
        ns -= taken;
    }
}

static void split_time(struct split *s, uint64_t begin_ns, uint64_t end_ns)
{
    if (begin_ns < end_ns)
        thread_times_split(s->gap->host, s->gap->process, s->thread, begin_ns, end_ns, split_piece,
                           s);
}

static void split_rest(struct split *s, uint64_t at_ns)
{
    const struct thread_piece nothing = {.place = {.function = IDLE_NONE}, .at_ns = at_ns};
    for (unsigned cause = 0; cause < IDLE_CAUSES; cause++) {
        enum thread_did kind = cause == IDLE_WAITING               ? DID_WAITED
                               : cause == IDLE_PREEMPTED           ? DID_PREEMPTED
                               : cause == s->cause && s->knows_ran ? DID_RUNNING
                                                                   : DID_UNKNOWN;
        split_add(s, &nothing, kind, (enum idle_cause)cause, s->left[cause]);
    }
}

/* What is charged until split_end, from at_ns on, is split by what the thread did. */
static void split_begin(struct passage *p, struct split *split, enum idle_cause cause,
                        bool knows_ran)
{
    const struct idle_gap *g = p->gap;
    *split = (struct split){.gap = g,
                            .rows = p->rows,
                            .thread = p->thread,
                            .cause = g->is_first ? IDLE_START_UP : cause,
                            .knows_ran = knows_ran};
    if (g->host && thread_times_has(g->host, g->process) && p->thread != IDLE_NONE && !p->is_last)
        p->split = split;
}

static void split_end(struct passage *p, uint64_t from_ns)
{
    struct split *split = p->split;
    uint64_t to_ns = earlier(p->at_ns, p->gap->to_ns);
    p->split = NULL;
    if (!split || p->error < 0)
        return;
    from_ns = later(from_ns, p->gap->from_ns);
    if (!p->gap->spans)
        split_time(split, from_ns, to_ns);
    for (uint32_t i = 0; i < p->gap->span_count; i++)
        split_time(split, later(from_ns, p->gap->spans[i].begin_ns),
                   earlier(to_ns, p->gap->spans[i].end_ns));
    split_rest(split, from_ns);
    p->error = split->error;
}

static void put_whole(struct passage *p, enum idle_cause cause, const struct idle_place *place,
                      uint64_t until_ns)
{
    uint64_t middle_ns = p->at_ns + (until_ns > p->at_ns ? (until_ns - p->at_ns) / 2 : 0);
    uint64_t from_ns = later(p->at_ns, p->gap->from_ns);
    uint64_t to_ns = earlier(until_ns, p->gap->to_ns);
    p->at_ns = later(p->at_ns, until_ns);
    if (from_ns >= to_ns || p->error < 0)
        return;
    if (cause == IDLE_SYNC && p->gap->unknown_ns) {
        *p->gap->unknown_ns += to_ns - from_ns;
        return;
    }
    struct idle_row what = {.place = *place,
                            .process = p->gap->process,
                            .device = p->gap->device,
                            .thread = p->thread,
                            .cause = p->gap->is_first ? IDLE_START_UP : cause};
    what.place.epoch = p->gap->is_first ? 0 : idle_epoch(p->gap->early, middle_ns);
    if (!p->gap->spans)
        put_span(p, &what, from_ns, to_ns);
    for (; p->span < p->gap->span_count; p->span++) {
        const struct idle_span *s = &p->gap->spans[p->span];
        put_span(p, &what, later(from_ns, s->begin_ns), earlier(to_ns, s->end_ns));
        if (s->end_ns > to_ns)
            return;
    }
}

static void put(struct passage *p, enum idle_cause cause, const struct idle_place *place,
                uint64_t until_ns)
{
    struct split split;
    uint64_t from_ns = p->at_ns;
    bool is_start = p->gap->is_first && (cause == IDLE_HOST || cause == IDLE_NOTHING);
    bool splits = !p->split && (cause == IDLE_LOADER || is_start);
    if (splits)
        split_begin(p, &split, cause, false);
    put_whole(p, cause, place, until_ns);
    if (splits)
        split_end(p, from_ns);
}

/* What would have been over had the thread not waited is the wait's. */
static void put_host(struct passage *p, enum idle_cause cause, const struct idle_place *place,
                     uint64_t until_ns)
{
    uint64_t ns = until_ns > p->at_ns ? earlier(until_ns - p->at_ns, p->credit_ns) : 0;
    p->credit_ns -= ns;
    put(p, p->credit_cause, &p->credit_place, p->at_ns + ns);
    put(p, cause, place, until_ns);
}

/* The same of time in which the thread made no call: it ran (`cause`), or did what `look` says. */
static void put_silent(struct passage *p, enum idle_cause cause, const struct idle_place *place,
                       const struct silence_look *look, uint64_t until_ns)
{
    if (cause == IDLE_HOST && until_ns > p->at_ns) /* but for what a wait before has of it */
        put_host(p, cause, place, earlier(until_ns, p->at_ns + p->credit_ns));
    const struct {
        enum idle_cause cause;
        uint32_t share;
    } parts[] = {{IDLE_WAITING, look->waiting},
                 {IDLE_PREEMPTED, look->preempted},
                 {IDLE_UNKNOWN, look->unknown}};
    uint64_t at_ns = p->at_ns, ns = until_ns > at_ns ? until_ns - at_ns : 0;
    uint32_t share = 0;
    struct split split;
    split_begin(p, &split, cause, look->is_known);
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        share += parts[i].share;
        uint64_t so_far = (uint64_t)((double)ns * share / SILENCE_ALL);
        put(p, parts[i].cause, place, at_ns + (share == SILENCE_ALL ? ns : so_far));
    }
    put(p, cause, place, until_ns);
    split_end(p, at_ns);
}

/* The time from since_ns on, in which the thread made no call, is between the one before, if there
 * is one, and the one that it comes to; if that one's range or operator was open for half of the
 * time, in that. */
static struct idle_place towards(const struct idle_entry *from, const struct idle_entry *to,
                                 uint64_t since_ns)
{
    struct idle_place place = to->place;
    if (idle_entry_is_call(to))
        place.side = !to->since_ns || 2 * to->since_ns > since_ns + to->begin_ns ? IDLE_BEFORE
                     : to->is_around                                             ? IDLE_AT
                                                                                 : IDLE_TOWARDS;
    const struct idle_place *a = from ? &from->place : NULL, *b = &place;
    bool is_same = a && a->function == b->function && a->word == b->word && a->stack == b->stack &&
                   a->kind == b->kind;
    if (from && !is_same && (place.side == IDLE_BEFORE || place.side == IDLE_TOWARDS)) {
        place.from_function = from->place.function + 1;
        place.from_word = from->place.word;
        place.from_stack = from->place.stack;
        place.from_kind = from->place.kind;
    }
    return place;
}

/* The thread makes no call between `from`, which may be NULL, and the next one; `to` is that which
 * it comes to. */
static void between(struct passage *p, const struct idle_entry *from, const struct idle_entry *next,
                    const struct idle_entry *to, uint64_t until_ns)
{
    static const struct idle_place nowhere = {.function = IDLE_NONE};
    struct idle_place first = idle_text("import and the program's start");
    struct idle_place more = idle_text("between the calls before the first work");
    uint64_t since_ns = p->call_ns ? p->call_ns : p->at_ns;
    uint64_t ns = next->begin_ns > since_ns ? next->begin_ns - since_ns : 0;
    enum idle_cause cause = ns < IDLE_NEAR_NS      ? (enum idle_cause)next->cause
                            : ns < IDLE_NOTHING_NS ? IDLE_HOST
                                                   : IDLE_NOTHING;
    struct idle_place before = towards(from, to, since_ns);
    if (p->gap->is_first) {
        put(p, cause, &first, earlier(until_ns, p->gap->first_call_ns));
        put(p, cause, &more, until_ns);
    } else if (cause == IDLE_NOTHING || cause == IDLE_HOST) {
        put_silent(p, cause, &before, &to->look, until_ns);
    } else if (cause == IDLE_LAUNCH) {
        put_host(p, cause, &to->place, until_ns);
    } else {
        put(p, cause, cause == IDLE_UNKNOWN ? &nowhere : &next->place, until_ns);
    }
}

/* What time is called that a thread lost by waiting in such a call: freeing memory waits for all
 * kernels, too. */
static enum idle_cause cause_of_wait(const struct idle_entry *e)
{
    return e->cause == IDLE_ALLOCATION ? IDLE_ALLOCATION : IDLE_SYNC;
}

static void inside(struct passage *p, const struct idle_entry *e, uint64_t until_ns)
{
    uint64_t waited_ns = e->cause == IDLE_COPY ? p->gap->compute_ns : p->gap->busy_ns;
    until_ns = earlier(until_ns, e->end_ns);
    if (e->cause == IDLE_HOST || e->cause == IDLE_NOTHING)
        put_silent(p, (enum idle_cause)e->cause, &e->place, &e->look, until_ns);
    else if (e->cause == IDLE_LAUNCH)
        put_host(p, (enum idle_cause)e->cause, &e->place, until_ns);
    else
        put(p, (enum idle_cause)e->cause, &e->place, until_ns);
    p->call_ns = later(p->call_ns, e->end_ns);
    if (e->waits && e->begin_ns < p->gap->busy_ns && p->gap->busy_ns < e->end_ns) {
        p->credit_ns = waited_ns > e->begin_ns ? waited_ns - e->begin_ns : 0;
        p->credit_cause = cause_of_wait(e);
        p->credit_place = e->place;
        p->credit_place.side = IDLE_AFTER;
    }
}

/* Of the entries from `i` on the first that says where the thread was, or else `next`. */
static const struct idle_entry *comes_to(const struct idle_thread *t, uint32_t i,
                                         const struct idle_entry *next)
{
    while (i < t->count && idle_entry_is_loading(idle_thread_entry(t, i)))
        i++;
    return i < t->count ? idle_thread_entry(t, i) : next;
}

static const struct idle_entry *before_entry(const struct idle_thread *t, uint32_t i)
{
    return i ? idle_thread_entry(t, i - 1) : NULL;
}

/* What that thread did until then; `next` is its call that is not over then. */
static void follow(struct passage *p, const struct idle_maker *maker, const struct idle_entry *next,
                   uint64_t until_ns)
{
    static const struct idle_place nowhere = {.function = IDLE_NONE};
    const struct idle_thread *t = maker->thread;
    uint32_t i = t->count;
    p->thread = maker->index;
    while (i && idle_thread_entry(t, i - 1)->end_ns > p->at_ns)
        i--;
    if (i)
        p->call_ns = later(p->call_ns, idle_thread_entry(t, i - 1)->end_ns);
    else if (t->has_forgotten)
        put(p, IDLE_UNKNOWN, &nowhere, earlier(until_ns, idle_thread_entry(t, 0)->begin_ns));
    for (; i < t->count && p->at_ns < until_ns; i++) {
        const struct idle_entry *e = idle_thread_entry(t, i);
        if (e->begin_ns >= until_ns)
            break;
        between(p, before_entry(t, i), e, comes_to(t, i, next), e->begin_ns);
        inside(p, e, until_ns);
    }
    if (t->depth && t->in.begin_ns < until_ns) {
        between(p, before_entry(t, i), &t->in, &t->in, t->in.begin_ns);
        put(p, (enum idle_cause)t->in.cause, &t->in.place, until_ns);
    }
    const struct idle_entry *then = i < t->count ? idle_thread_entry(t, i) : next;
    between(p, before_entry(t, i), then, comes_to(t, i, next), earlier(until_ns, then->begin_ns));
    put(p, IDLE_LAUNCH, &next->place, until_ns);
}

/* Until when the thread before made calls, if the other one made none that could tell why. */
static uint64_t handed_over(const struct passage *p, const struct idle_gap *g)
{
    const struct idle_thread *t = g->maker.thread, *b = g->before.thread;
    if (!b || b == t || t->depth)
        return 0;
    for (uint32_t i = t->count; i; i--) {
        const struct idle_entry *e = idle_thread_entry(t, i - 1);
        if (e->begin_ns >= g->call_begin_ns || !idle_entry_is_call(e))
            continue;
        if (e->end_ns > p->at_ns)
            return 0;
        break;
    }
    if (b->depth)
        return g->call_begin_ns;
    for (uint32_t i = b->count; i; i--) {
        const struct idle_entry *e = idle_thread_entry(b, i - 1);
        if (e->begin_ns < g->call_begin_ns) /* but for what it still waits for */
            return e->cause == IDLE_SYNC && e->end_ns > g->call_begin_ns
                       ? 0
                       : earlier(e->end_ns, g->call_begin_ns);
    }
    return 0;
}

/* Where the call stands in what its thread did; if that is forgotten, it is known by its function.
 */
static void set_place(struct idle_entry *call, const struct idle_gap *g)
{
    const struct idle_thread *t = g->maker.thread;
    const struct idle_entry *e = NULL;
    for (uint32_t i = t->count; i && !e; i--)
        if (idle_thread_entry(t, i - 1)->begin_ns <= g->call_begin_ns)
            e = idle_thread_entry(t, i - 1);
    if (e && (g->call_begin_ns < e->end_ns || g->call_begin_ns == e->begin_ns)) {
        call->place = e->place;
        call->look = e->look;
        call->since_ns = e->since_ns;
        call->is_around = e->is_around;
    } else {
        call->place = (struct idle_place){.stack = g->stack, .function = g->function};
    }
}

int idle_gap_charge(struct idle_rows *rows, uint64_t causes[static IDLE_CAUSES],
                    const struct idle_gap *g)
{
    static const struct idle_place nowhere = {.function = IDLE_NONE};
    struct idle_place device = idle_text(idle_on_device);
    struct passage p = {
        .rows = rows, .causes = causes, .gap = g, .at_ns = g->begin_ns, .thread = IDLE_NONE};
    rows->gap++;
    if (!g->maker.thread) {
        put(&p, IDLE_UNKNOWN, &nowhere, g->end_ns);
        return p.error;
    }
    if (g->call_end_ns > g->begin_ns) { /* mostly the host is ahead */
        uint64_t until_ns = earlier(handed_over(&p, g), g->end_ns);
        struct idle_entry call = {
            .begin_ns = g->call_begin_ns, .end_ns = g->call_end_ns, .cause = IDLE_LAUNCH};
        set_place(&call, g);
        if (until_ns > p.at_ns)
            follow(&p, &g->before, &call, until_ns);
        follow(&p, &g->maker, &call, earlier(g->call_end_ns, g->end_ns));
    }
    /* It was queued in time, or is on its way. */
    p.thread = IDLE_NONE;
    put(&p, g->end_ns - p.at_ns < IDLE_NEAR_NS ? IDLE_LAUNCH : IDLE_SYNC, &device, g->end_ns);
    return p.error;
}

int idle_gap_charge_last(struct idle_rows *rows, uint64_t causes[static IDLE_CAUSES],
                         const struct idle_gap *g)
{
    struct idle_place behind = idle_text(idle_behind_all);
    struct passage p = {.rows = rows,
                        .causes = causes,
                        .gap = g,
                        .at_ns = g->begin_ns,
                        .thread = IDLE_NONE,
                        .is_last = true};
    const struct idle_entry *last = g->before.thread ? idle_thread_last(g->before.thread) : NULL;
    rows->gap++;
    if (last && last->is_open && last->waits) {
        p.thread = g->before.index;
        put(&p, IDLE_NOTHING, &behind, earlier(later(last->begin_ns, g->begin_ns), g->end_ns));
        put(&p, cause_of_wait(last), &last->place, g->end_ns);
    }
    p.thread = IDLE_NONE;
    put(&p, IDLE_NOTHING, &behind, g->end_ns);
    return p.error;
}

/* ---- gaps that are held ---------------------------------------------------------------------- */

/* A launch so soon behind a copy, as a part of what the device had been idle before that, may have
 * waited for it. */
#define SOON_PART 10

void idle_held_release(struct idle_held *h)
{
    free(h->spans);
    free(h->rows);
    *h = (struct idle_held){0};
}

bool idle_held_may_hold(const struct idle_gap *gap, const struct idle_maker *launcher)
{
    const struct idle_thread *t = launcher->thread;
    const struct idle_entry *last = t ? idle_thread_last(t) : NULL;
    if (!last || t == gap->maker.thread || gap->call_end_ns <= gap->begin_ns)
        return false;
    return t->depth || last->cause != IDLE_SYNC || gap->end_ns >= last->end_ns;
}

int idle_held_add(struct idle_held *h, const struct idle_gap *gap)
{
    struct idle_rows rows = {0};
    uint64_t causes[IDLE_CAUSES] = {0};
    int error = idle_gap_charge(&rows, causes, gap);
    struct idle_span *spans =
        array_room(h->spans, h->span_count, &h->span_capacity, sizeof *spans, 16);
    h->spans = spans ? spans : h->spans;
    for (uint32_t i = 0; i < rows.count && spans && error == 0; i++) {
        struct idle_row *list =
            array_room(h->rows, h->row_count, &h->row_capacity, sizeof *list, 16);
        if (!list)
            error = GPUPROF_NO_MEMORY;
        h->rows = list ? list : h->rows;
        if (list)
            list[h->row_count++] = rows.list[i];
    }
    idle_rows_release(&rows);
    if (!spans || error < 0)
        return GPUPROF_NO_MEMORY;
    if (!h->span_count)
        h->gap = *gap;
    h->gap.end_ns = gap->end_ns;
    spans[h->span_count++] = (struct idle_span){.begin_ns = gap->begin_ns,
                                                .end_ns = gap->end_ns,
                                                .call_end_ns = gap->call_end_ns,
                                                .rows_end = h->row_count};
    return 0;
}

/* Of each: may the kernel have waited for the copy that ended it, as it had been called for half of
 * the time, or its call, as it came soon behind? */
static void judge(struct idle_held *h, uint64_t busy_ns, uint64_t call_ns)
{
    uint64_t idle_ns = call_ns > busy_ns ? call_ns - busy_ns : 0; /* before the call */
    for (uint32_t i = h->span_count; i; i--) {
        struct idle_span *s = &h->spans[i - 1];
        uint64_t ns = s->end_ns - s->begin_ns;
        bool is_soon = s->call_end_ns <= call_ns && idle_ns < ns / SOON_PART;
        s->is_given = is_soon || call_ns <= s->begin_ns + ns / 2;
        if (call_ns > s->begin_ns)
            idle_ns += (call_ns < s->end_ns ? call_ns : s->end_ns) - s->begin_ns;
    }
}

int idle_held_give(struct idle_held *h, uint64_t busy_ns, uint64_t call_ns, struct idle_rows *rows,
                   uint64_t causes[static IDLE_CAUSES])
{
    uint32_t kept = 0, row = 0;
    int error = 0;
    judge(h, busy_ns, call_ns);
    for (uint32_t i = 0; i < h->span_count; i++) {
        const struct idle_span *s = &h->spans[i];
        for (; row < s->rows_end; row++) {
            const struct idle_row *r = &h->rows[row];
            if (s->is_given && error == 0) {
                error = idle_rows_add_sum(rows, r);
                causes[r->cause] += r->did ? 0 : r->ns;
            }
        }
        if (!s->is_given)
            h->spans[kept++] = *s;
    }
    h->span_count = kept;
    h->row_count = 0;
    return error;
}

int idle_held_charge(struct idle_held *h, const struct idle_gap *of, struct idle_rows *rows,
                     uint64_t causes[static IDLE_CAUSES])
{
    struct idle_gap gap = h->gap;
    gap.begin_ns = h->spans[0].begin_ns;
    gap.spans = h->spans;
    gap.span_count = h->span_count;
    gap.maker = of->maker;
    gap.before = of->before; /* a copy may have been the last to begin before it */
    gap.call_begin_ns = of->call_begin_ns;
    gap.call_end_ns = of->call_end_ns;
    gap.function = of->function;
    gap.stack = of->stack;
    h->span_count = h->row_count = 0;
    return idle_gap_charge(rows, causes, &gap);
}
