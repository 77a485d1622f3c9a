/* SPDX-License-Identifier: Apache-2.0 */
/* Why a device did nothing (formats/answers.md, "Idle time"). */
#include "analyse/idle_state.h"
#include "base/array.h"
#include "error.h"

/* What a thread did, by its silences, in time that no other record covers. */
enum pool { POOL_RAN, POOL_WAITED, POOL_PREEMPTED, POOL_UNSURE, POOLS };

/* Time to split, by pool. */
struct split {
    struct passage *of;
    enum idle_cause cause; /* for the time in which the thread ran */
    bool knows_ran;        /* a record shows that it ran then */
    uint64_t left[POOLS];
};

/* Time after a wait for the device that is charged to that wait. */
struct credit {
    uint64_t ns;
    enum idle_cause cause;
    struct idle_place place;
};

/* The progress through a gap. */
struct passage {
    const struct idle *idle;
    struct idle_rows *rows;
    const struct idle_gap *gap;
    uint64_t at_ns;   /* all time until here is charged */
    uint64_t call_ns; /* end of the call before that; 0: not known */
    struct credit credit;
    uint32_t thread;
    int error;
};

static const struct idle_place nowhere = {.function = IDLE_NONE};

/* The row for time at `place` around `middle_ns`. */
static struct idle_row idle_gap_row_of(const struct passage *p, enum idle_cause cause,
                                       const struct idle_place *place, uint64_t middle_ns)
{
    const struct idle_gap *g = p->gap;
    struct idle_row what = {.place = *place,
                            .process = g->process,
                            .device = g->device,
                            .thread = p->thread,
                            .cause = g->is_first ? IDLE_START_UP : cause};
    what.place.epoch =
        g->is_first ? 0 : idle_epoch(&p->idle->way.processes[g->process].early, middle_ns);
    return what;
}

/* The next stretch of that time to charge, in the gap's parts from *part on. Returns false at the
 * end. */
static bool next_time(const struct passage *p, uint32_t *part, uint64_t begin_ns, uint64_t end_ns,
                      struct time_span *time)
{
    const struct idle_gap *g = p->gap;
    for (; *part < (g->parts ? g->part_count : 1); ++*part) {
        const struct idle_gap *of = g->parts ? &g->parts[*part] : g;
        time->begin_ns = idle_cut(p->idle, max_of(begin_ns, of->begin_ns));
        time->end_ns = idle_cut(p->idle, min_of(end_ns, of->end_ns));
        if (time->begin_ns < time->end_ns) {
            ++*part;
            return true;
        }
    }
    return false;
}

/* Charges time to one cause; adds it to `left`, by pool, unless that is NULL. */
static void put_part(struct passage *p, enum idle_cause cause, const struct idle_place *place,
                     uint64_t until_ns, uint64_t *left)
{
    static const enum pool pools[IDLE_CAUSES] = {[IDLE_WAITING] = POOL_WAITED,
                                                 [IDLE_PREEMPTED] = POOL_PREEMPTED,
                                                 [IDLE_UNKNOWN] = POOL_UNSURE};
    uint64_t from_ns = p->at_ns;
    struct time_span time;
    if (until_ns <= from_ns)
        return;
    p->at_ns = until_ns;
    if (cause == IDLE_SYNC && p->gap->is_behind_unknown)
        return;
    struct idle_row what = idle_gap_row_of(p, cause, place, from_ns + (until_ns - from_ns) / 2);
    for (uint32_t i = 0; p->error == 0 && next_time(p, &i, from_ns, until_ns, &time);) {
        p->error = idle_rows_add(p->rows, &what, time.begin_ns, time.end_ns - time.begin_ns);
        if (left)
            left[pools[cause]] += time.end_ns - time.begin_ns;
    }
}

/* ---- what the thread did (idle_host.c) ------------------------------------------------------- */

/* Data loading and start-up are not divided, whatever the thread did. */
static bool idle_gap_is_whole(enum idle_cause cause)
{
    return cause == IDLE_LOADER || cause == IDLE_START_UP;
}

static void split_add(struct split *s, const struct thread_piece *piece, uint32_t did,
                      enum pool pool, uint64_t ns)
{
    static const enum idle_cause causes[POOLS] = {[POOL_WAITED] = IDLE_WAITING,
                                                  [POOL_PREEMPTED] = IDLE_PREEMPTED,
                                                  [POOL_UNSURE] = IDLE_UNKNOWN};
    struct passage *p = s->of;
    enum idle_cause cause =
        pool == POOL_RAN || idle_gap_is_whole(s->cause) ? s->cause : causes[pool];
    struct idle_row what = idle_gap_row_of(p, cause, &piece->place, piece->at_ns + ns / 2);
    what.cause = cause;
    what.did = did;
    if (ns && p->error == 0)
        p->error = idle_rows_add(p->rows, &what, piece->at_ns, ns);
}

static void split_piece(void *context, const struct thread_piece *piece)
{
    static const enum pool orders[][POOLS] = {{POOL_WAITED, POOL_UNSURE, POOL_RAN, POOL_PREEMPTED},
                                              {POOL_RAN, POOL_PREEMPTED, POOL_UNSURE, POOL_WAITED},
                                              {POOL_PREEMPTED, POOL_UNSURE, POOL_RAN, POOL_WAITED}};
    struct split *s = context;
    bool runs = piece->kind == DID_RUNNING || piece->kind == DID_GC;
    if (piece->is_sample) {
        split_add(s, piece,
                  (uint32_t)piece->kind | (piece->is_look ? DID_LOOKED : DID_SAMPLED) |
                      (piece->has_run ? DID_RAN : 0),
                  runs ? POOL_RAN : POOL_WAITED, piece->ns);
        return;
    }
    uint64_t ns = piece->ns;
    const enum pool *order = orders[piece->kind == DID_THROTTLED ? 2 : runs];
    for (unsigned i = 0; i < POOLS; i++) {
        enum pool pool = order[i];
        if (piece->kind == DID_THROTTLED &&
            (pool == POOL_WAITED || (pool == POOL_RAN && s->knows_ran)))
            continue; /* it was not stopped then */
        uint64_t taken = min_of(ns, s->left[pool]);
        split_add(s, piece, piece->kind, pool, taken);
        s->left[pool] -= taken;
        ns -= taken;
    }
}

/* Divides time that was charged as a whole by the thread's silences. */
static void share_out(struct split *s, uint64_t from_ns)
{
    struct thread_shares shares = {0};
    struct passage *p = s->of;
    struct time_span time;
    for (uint32_t i = 0; next_time(p, &i, from_ns, p->at_ns, &time);)
        thread_times_silences(&p->idle->host, p->thread, time.begin_ns, time.end_ns, &shares);
    uint64_t known_ns = shares.ran_ns + shares.waited_ns + shares.preempted_ns + shares.off_ns;
    if (!known_ns)
        return;
    s->knows_ran = true;
    s->left[POOL_WAITED] = shares.waited_ns;
    s->left[POOL_PREEMPTED] = shares.preempted_ns;
    s->left[POOL_UNSURE] = s->left[POOL_RAN] - known_ns + shares.off_ns;
    s->left[POOL_RAN] = shares.ran_ns;
}

/* Adds rows for the time from then on by what the thread did. */
static void split_time(struct split *s, uint64_t from_ns)
{
    struct passage *p = s->of;
    struct time_span time;
    if (idle_gap_is_whole(s->cause) && !s->knows_ran)
        share_out(s, from_ns);
    for (uint32_t i = 0; next_time(p, &i, from_ns, p->at_ns, &time);)
        thread_times_split(&p->idle->host, p->gap->process, p->thread, time.begin_ns, time.end_ns,
                           split_piece, s);
    const struct thread_piece rest = {.place = nowhere, .at_ns = idle_cut(p->idle, from_ns)};
    for (unsigned pool = 0; pool < POOLS; pool++) {
        enum thread_did kind = pool == POOL_WAITED                ? DID_WAITED
                               : pool == POOL_PREEMPTED           ? DID_PREEMPTED
                               : pool == POOL_RAN && s->knows_ran ? DID_RUNNING
                                                                  : DID_UNKNOWN;
        split_add(s, &rest, kind, (enum pool)pool, s->left[pool]);
    }
}

/* ---- parts of a gap -------------------------------------------------------------------------- */

/* Charges to the wait what would have ended earlier without it. */
static void put_credit(struct passage *p, uint64_t until_ns)
{
    uint64_t ns = until_ns > p->at_ns ? min_of(until_ns - p->at_ns, p->credit.ns) : 0;
    p->credit.ns -= ns;
    put_part(p, p->credit.cause, &p->credit.place, p->at_ns + ns, NULL);
}

/* Charges time of any cause. In time without a call the thread ran (`cause`), or did what `look`
 * says. NULL: not known, and no wait gets a credit. */
static void put(struct passage *p, enum idle_cause cause, const struct idle_place *place,
                const struct silence_look *look, uint64_t until_ns)
{
    const struct idle_gap *g = p->gap;
    bool is_silent = cause == IDLE_HOST || cause == IDLE_NOTHING;
    bool is_split = (is_silent || cause == IDLE_LOADER) && p->thread != IDLE_NONE && !g->is_last &&
                    thread_times_has(&p->idle->host, g->process);
    struct split split = {.of = p,
                          .cause = g->is_first ? IDLE_START_UP : cause,
                          .knows_ran = is_silent && look && look->is_known};
    uint64_t *left = is_split ? split.left : NULL;
    if (look && (cause == IDLE_HOST || cause == IDLE_LAUNCH))
        put_credit(p, until_ns);
    uint64_t at_ns = p->at_ns, ns = until_ns > at_ns ? until_ns - at_ns : 0;
    if (is_silent && look) {
        const uint32_t shares[] = {look->waiting, look->waiting + look->preempted,
                                   look->waiting + look->preempted + look->unknown};
        static const enum idle_cause causes[] = {IDLE_WAITING, IDLE_PREEMPTED, IDLE_UNKNOWN};
        for (unsigned i = 0; i < sizeof shares / sizeof shares[0]; i++) {
            uint64_t so_far = (uint64_t)((double)ns * shares[i] / SILENCE_ALL);
            so_far = shares[i] == SILENCE_ALL ? ns : so_far;
            put_part(p, causes[i], place, at_ns + so_far, left);
        }
    }
    put_part(p, cause, place, until_ns, left);
    if (is_split && p->error == 0)
        split_time(&split, at_ns);
}

/* The place of time without a call from since_ns on. It lies between the previous call, if any, and
 * the next one, or in the next one's range or operator if that was open for half of it. */
static struct idle_place towards(const struct idle_entry *from, const struct idle_entry *to,
                                 uint64_t since_ns)
{
    struct idle_place place = to->place;
    if (idle_entry_is_call(to))
        place.side = !to->since_ns || 2 * to->since_ns > since_ns + to->begin_ns ? IDLE_BEFORE
                     : to->is_around                                             ? IDLE_AT
                                                                                 : IDLE_TOWARDS;
    if (from && !idle_place_same(&from->place, &place) &&
        (place.side == IDLE_BEFORE || place.side == IDLE_TOWARDS)) {
        place.from_function = from->place.function + 1;
        place.from_word = from->place.word;
        place.from_stack = from->place.stack;
        place.from_kind = from->place.kind;
    }
    return place;
}

/* Charges time without a call between `from`, which may be NULL, and `next`; `to` is the call that
 * it leads to. */
static void between(struct passage *p, const struct idle_entry *from, const struct idle_entry *next,
                    const struct idle_entry *to, uint64_t until_ns)
{
    struct idle_place first = idle_text("import and the program's start");
    struct idle_place more = idle_text("between the calls before the first work");
    uint64_t since_ns = p->call_ns ? p->call_ns : p->at_ns;
    uint64_t ns = next->begin_ns > since_ns ? next->begin_ns - since_ns : 0;
    enum idle_cause cause = ns < IDLE_NEAR_NS      ? (enum idle_cause)next->cause
                            : ns < IDLE_NOTHING_NS ? IDLE_HOST
                                                   : IDLE_NOTHING;
    bool is_silent = cause == IDLE_HOST || cause == IDLE_NOTHING;
    struct idle_place place = is_silent               ? towards(from, to, since_ns)
                              : cause == IDLE_UNKNOWN ? nowhere
                              : cause == IDLE_LAUNCH  ? to->place
                                                      : next->place;
    if (!p->gap->is_first) {
        put(p, cause, &place, &to->look, until_ns);
        return;
    }
    put(p, cause, &first, NULL,
        min_of(until_ns, p->idle->way.processes[p->gap->process].first_call_ns));
    put(p, cause, &more, NULL, until_ns);
}

/* The cause of time that a thread lost by waiting in such a call: freeing memory waits for all
 * kernels, too. */
static enum idle_cause cause_of_wait(const struct idle_entry *e)
{
    return e->cause == IDLE_ALLOCATION ? IDLE_ALLOCATION : IDLE_SYNC;
}

static void inside(struct passage *p, const struct idle_entry *e, uint64_t until_ns)
{
    uint64_t busy_ns = p->gap->busy_ns;
    uint64_t waited_ns = e->cause == IDLE_COPY ? p->gap->compute_ns : busy_ns;
    put(p, (enum idle_cause)e->cause, &e->place, &e->look, min_of(until_ns, e->end_ns));
    p->call_ns = max_of(p->call_ns, e->end_ns);
    if (e->waits && e->begin_ns < busy_ns && busy_ns < e->end_ns) {
        p->credit = (struct credit){waited_ns > e->begin_ns ? waited_ns - e->begin_ns : 0,
                                    cause_of_wait(e), e->place};
        p->credit.place.side = IDLE_AFTER;
    }
}

/* The first entry from `i` on that shows where the thread was, else `next`. */
static const struct idle_entry *comes_to(const struct idle_thread *t, uint32_t i,
                                         const struct idle_entry *next)
{
    while (i < t->count && idle_entry_is_loading(idle_thread_entry(t, i)))
        i++;
    return i < t->count ? idle_thread_entry(t, i) : next;
}

/* Charges what the thread did until then; `next` is its call that ends later. */
static void idle_gap_follow(struct passage *p, const struct idle_thread *t,
                            const struct idle_entry *next, uint64_t until_ns)
{
    uint32_t i = t->count;
    const struct idle_entry *before;
    p->thread = t->index;
    while (i && idle_thread_entry(t, i - 1)->end_ns > p->at_ns)
        i--;
    before = i ? idle_thread_entry(t, i - 1) : NULL;
    if (before)
        p->call_ns = max_of(p->call_ns, before->end_ns);
    else if (t->has_forgotten)
        put(p, IDLE_UNKNOWN, &nowhere, NULL, min_of(until_ns, idle_thread_entry(t, 0)->begin_ns));
    for (; i < t->count && p->at_ns < until_ns; i++) {
        const struct idle_entry *e = idle_thread_entry(t, i);
        if (e->begin_ns >= until_ns)
            break;
        between(p, before, e, comes_to(t, i, next), e->begin_ns);
        inside(p, e, until_ns);
        before = e;
    }
    if (t->depth && t->in.begin_ns < until_ns) {
        between(p, before, &t->in, &t->in, t->in.begin_ns);
        put(p, (enum idle_cause)t->in.cause, &t->in.place, NULL, until_ns);
    }
    const struct idle_entry *then = i < t->count ? idle_thread_entry(t, i) : next;
    between(p, before, then, comes_to(t, i, next), min_of(until_ns, then->begin_ns));
    put(p, IDLE_LAUNCH, &next->place, NULL, until_ns);
}

/* The last entry of the thread that begins before `ns`, a call if `is_call`; NULL if there is
 * none. */
static const struct idle_entry *entry_before(const struct idle_thread *t, uint64_t ns, bool is_call)
{
    for (uint32_t i = t->count; i; i--) {
        const struct idle_entry *e = idle_thread_entry(t, i - 1);
        if (e->begin_ns < ns && (!is_call || idle_entry_is_call(e)))
            return e;
    }
    return NULL;
}

/* Until when the previous thread made calls, if the launching thread made none that explains the
 * gap. */
static uint64_t handed_over(const struct passage *p)
{
    const struct idle_thread *t = p->gap->call.thread, *b = p->gap->before;
    uint64_t call_ns = p->gap->call.begin_ns;
    if (!b || b == t || t->depth)
        return 0;
    const struct idle_entry *own = entry_before(t, call_ns, true);
    if (own && own->end_ns > p->at_ns)
        return 0;
    if (b->depth)
        return call_ns;
    const struct idle_entry *last = entry_before(b, call_ns, false);
    bool still_waits = last && last->cause == IDLE_SYNC && last->end_ns > call_ns;
    return !last || still_waits ? 0 : min_of(last->end_ns, call_ns);
}

/* The gap's call from its thread's entries; if that is forgotten, only its function is known. */
static struct idle_entry idle_gap_entry_of(const struct idle_submit *call)
{
    struct idle_entry entry = {.begin_ns = call->begin_ns,
                               .end_ns = call->end_ns,
                               .place = {.stack = call->stack, .function = call->function}};
    const struct idle_entry *e = entry_before(call->thread, call->begin_ns + 1, false);
    if (e && (call->begin_ns < e->end_ns || call->begin_ns == e->begin_ns)) {
        entry = *e;
        entry.begin_ns = call->begin_ns;
        entry.end_ns = call->end_ns;
    }
    entry.cause = IDLE_LAUNCH;
    return entry;
}

/* Charges a gap that work ended. */
static void charge_call(struct passage *p)
{
    const struct idle_gap *g = p->gap;
    struct idle_place device = idle_text(idle_on_device);
    if (g->call.end_ns > g->begin_ns) { /* usually the host is ahead */
        uint64_t until_ns = min_of(handed_over(p), g->end_ns);
        const struct idle_entry call = idle_gap_entry_of(&g->call);
        if (until_ns > p->at_ns)
            idle_gap_follow(p, g->before, &call, until_ns);
        idle_gap_follow(p, g->call.thread, &call, min_of(g->call.end_ns, g->end_ns));
    }
    /* The rest was queued in time, or is on its way. */
    p->thread = IDLE_NONE;
    put(p, g->end_ns - p->at_ns < IDLE_NEAR_NS ? IDLE_LAUNCH : IDLE_SYNC, &device, NULL, g->end_ns);
}

static void charge_last(struct passage *p)
{
    const struct idle_gap *g = p->gap;
    struct idle_place behind = idle_text(idle_behind_all);
    const struct idle_entry *last = g->before ? idle_thread_last(g->before) : NULL;
    if (last && last->is_open && last->waits) {
        p->thread = g->before->index;
        put(p, IDLE_NOTHING, &behind, NULL, min_of(max_of(last->begin_ns, g->begin_ns), g->end_ns));
        put(p, cause_of_wait(last), &last->place, NULL, g->end_ns);
    }
    p->thread = IDLE_NONE;
    put(p, IDLE_NOTHING, &behind, NULL, g->end_ns);
}

int idle_gap_charge(const struct idle *d, struct idle_rows *rows, const struct idle_gap *g)
{
    struct passage p = {
        .idle = d, .rows = rows, .gap = g, .at_ns = g->begin_ns, .thread = IDLE_NONE};
    rows->gap++;
    if (g->is_last)
        charge_last(&p);
    else if (g->call.thread)
        charge_call(&p);
    else
        put(&p, IDLE_UNKNOWN, &nowhere, NULL, g->end_ns);
    return p.error;
}

/* ---- held gaps: those that copies ended, until the next kernel decides who they belong to ---- */

/* A launch may have waited for a copy if it follows within this fraction of the idle time before
 * it. */
#define SOON_PART 10

bool idle_held_may_hold(const struct idle_gap *gap, const struct idle_thread *launcher)
{
    const struct idle_entry *last = launcher ? idle_thread_last(launcher) : NULL;
    if (!last || launcher == gap->call.thread || gap->call.end_ns <= gap->begin_ns)
        return false;
    return launcher->depth || last->cause != IDLE_SYNC || gap->end_ns >= last->end_ns;
}

int idle_held_add(struct idle_held *h, const struct idle_gap *gap)
{
    if (!ARRAY_ROOM(h->gaps, h->count, h->capacity, 16))
        return GPUPROF_NO_MEMORY;
    h->gaps[h->count++] = *gap;
    return 0;
}

int idle_held_give(const struct idle *d, struct idle_held *h, uint64_t busy_ns,
                   const struct idle_submit *call, struct idle_rows *rows)
{
    uint32_t kept = 0;
    int error = 0;
    for (uint32_t i = 0; call && i < h->count; i++)
        if (h->gaps[i].call.thread == call->thread)
            call = NULL; /* the kernel's thread made the copy, too */
    uint64_t call_ns = call ? call->begin_ns : 0;
    uint64_t idle_ns = call_ns > busy_ns ? call_ns - busy_ns : 0; /* before the call */
    /* Decides for each gap, last first, whether the kernel may have waited for the copy that ended
     * it: it was launched before half of the gap had passed, or soon after the copy. */
    for (uint32_t i = h->count; i; i--) {
        struct idle_gap *g = &h->gaps[i - 1];
        uint64_t ns = g->end_ns - g->begin_ns;
        bool is_soon = g->call.end_ns <= call_ns && idle_ns < ns / SOON_PART;
        g->is_given = is_soon || call_ns <= g->begin_ns + ns / 2;
        if (call_ns > g->begin_ns)
            idle_ns += min_of(call_ns, g->end_ns) - g->begin_ns;
    }
    for (uint32_t i = 0; i < h->count; i++) {
        if (h->gaps[i].is_given && error == 0)
            error = idle_gap_charge(d, rows, &h->gaps[i]);
        else
            h->gaps[kept++] = h->gaps[i];
    }
    h->count = kept;
    return error;
}

int idle_held_charge(const struct idle *d, struct idle_held *h, const struct idle_submit *call,
                     const struct idle_thread *before, struct idle_rows *rows)
{
    struct idle_gap gap = h->gaps[0];
    gap.end_ns = h->gaps[h->count - 1].end_ns;
    gap.parts = h->gaps;
    gap.part_count = h->count;
    gap.call = *call;
    gap.before = before; /* a copy may have been the last to begin before it */
    h->count = 0;
    return idle_gap_charge(d, rows, &gap);
}
