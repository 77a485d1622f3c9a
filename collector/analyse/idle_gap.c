/* SPDX-License-Identifier: Apache-2.0 */
/* Why a device did nothing (formats/answers.md, "Idle time"). */
#include "analyse/idle.h"
#include "base/array.h"

/* Time to split by what the thread did. `left` is what its silences show: how long it was
 * IDLE_WAITING or IDLE_PREEMPTED, IDLE_UNKNOWN if none covers it, and IDLE_HOST while it ran. */
struct split {
    struct passage *of;
    enum idle_cause cause; /* for the time in which the thread ran */
    bool knows_ran;        /* a record shows that it ran then */
    uint64_t left[IDLE_CAUSES];
};

/* Time after a wait for the device that is charged to that wait. */
struct credit {
    uint64_t ns;
    enum idle_cause cause;
    struct idle_place place;
};

/* The progress through gaps that one call explains; waits are for what ran before the first. */
struct passage {
    struct idle *idle;
    const struct idle_gap *first, *gap;
    uint64_t at_ns;   /* all time until here is charged */
    uint64_t call_ns; /* end of the call before that; 0: not known */
    struct credit credit;
    uint32_t thread;
    uint16_t epoch; /* of the time that is charged next */
};

static const struct idle_place nowhere = {.function = IDLE_NONE};

/* The row for time at `place`. */
static struct idle_row idle_gap_row_of(const struct passage *p, enum idle_cause cause,
                                       const struct idle_place *place)
{
    const struct idle_gap *g = p->gap;
    struct idle_row what = {.place = *place,
                            .process = g->process,
                            .device = g->device,
                            .thread = p->thread,
                            .cause = g->is_first ? IDLE_START_UP : cause};
    what.place.epoch = p->epoch;
    return what;
}

static enum idle_cause pool_of(enum idle_cause cause)
{
    bool is_own = cause == IDLE_WAITING || cause == IDLE_PREEMPTED || cause == IDLE_UNKNOWN;
    return is_own ? cause : IDLE_HOST;
}

/* Charges time to one cause; adds it to `left` (struct split) unless that is NULL. */
static void put_part(struct passage *p, enum idle_cause cause, const struct idle_place *place,
                     uint64_t until_ns, uint64_t *left)
{
    uint64_t from_ns = p->at_ns, begin_ns = idle_cut(p->idle, from_ns);
    if (until_ns <= from_ns)
        return;
    p->at_ns = until_ns;
    uint64_t ns = idle_cut(p->idle, until_ns) - begin_ns;
    if (!ns || (cause == IDLE_SYNC && p->gap->is_behind_unknown))
        return;
    struct idle_row what = idle_gap_row_of(p, cause, place);
    idle_rows_add(&p->idle->rows, &what, begin_ns, ns);
    if (left)
        left[pool_of(cause)] += ns;
}

/* ---- what the thread did (idle_host.c) ------------------------------------------------------- */

/* Data loading and start-up are not divided, whatever the thread did. */
static bool idle_gap_is_whole(enum idle_cause cause)
{
    return cause == IDLE_LOADER || cause == IDLE_START_UP;
}

static void split_add(struct split *s, const struct thread_piece *piece, uint32_t did,
                      enum idle_cause pool, uint64_t ns)
{
    struct passage *p = s->of;
    enum idle_cause cause = pool == IDLE_HOST || idle_gap_is_whole(s->cause) ? s->cause : pool;
    struct idle_row what = idle_gap_row_of(p, cause, &piece->place);
    what.cause = cause;
    what.did = did;
    if (ns)
        idle_rows_add(&p->idle->rows, &what, piece->at_ns, ns);
}

static void split_piece(void *context, const struct thread_piece *piece)
{
    /* What such a piece takes time from. What a quota stopped did not wait. */
    static const enum idle_cause orders[][4] = {
        {IDLE_WAITING, IDLE_UNKNOWN, IDLE_HOST, IDLE_PREEMPTED},
        {IDLE_HOST, IDLE_PREEMPTED, IDLE_UNKNOWN, IDLE_WAITING},
        {IDLE_PREEMPTED, IDLE_UNKNOWN, IDLE_HOST, IDLE_HOST}};
    struct split *s = context;
    bool runs = (piece->did & 0xff) == DID_RUNNING || piece->did == DID_GC;
    bool is_stopped = piece->did == DID_THROTTLED;
    if (piece->did & (DID_SAMPLED | DID_LOOKED)) {
        split_add(s, piece, piece->did, runs ? IDLE_HOST : IDLE_WAITING, piece->ns);
        return;
    }
    uint64_t ns = piece->ns;
    for (unsigned i = 0; i < 4; i++) {
        enum idle_cause pool = orders[is_stopped ? 2 : runs][i];
        if (is_stopped && pool == IDLE_HOST && s->knows_ran)
            break;
        uint64_t taken = min_of(ns, s->left[pool]);
        split_add(s, piece, piece->did, pool, taken);
        s->left[pool] -= taken;
        ns -= taken;
    }
}

/* Divides time that was charged as a whole by the thread's silences. */
static void share_out(struct split *s, uint64_t begin_ns, uint64_t end_ns)
{
    struct thread_shares shares = {0};
    thread_times_silences(&s->of->idle->host, s->of->thread, begin_ns, end_ns, &shares);
    uint64_t known_ns = shares.ran_ns + shares.waited_ns + shares.preempted_ns + shares.off_ns;
    if (!known_ns)
        return;
    s->knows_ran = true;
    s->left[IDLE_WAITING] = shares.waited_ns;
    s->left[IDLE_PREEMPTED] = shares.preempted_ns;
    s->left[IDLE_UNKNOWN] = s->left[IDLE_HOST] - known_ns + shares.off_ns;
    s->left[IDLE_HOST] = shares.ran_ns;
}

/* Adds rows for the time from then on by what the thread did. */
static void split_time(struct split *s, uint64_t from_ns)
{
    static const struct {
        enum idle_cause pool;
        enum thread_did did;
    } pools[] = {{IDLE_HOST, DID_RUNNING},
                 {IDLE_WAITING, DID_WAITED},
                 {IDLE_PREEMPTED, DID_PREEMPTED},
                 {IDLE_UNKNOWN, DID_UNKNOWN}};
    struct passage *p = s->of;
    uint64_t begin_ns = idle_cut(p->idle, from_ns), end_ns = idle_cut(p->idle, p->at_ns);
    const struct thread_piece rest = {.place = nowhere, .at_ns = begin_ns};
    if (begin_ns >= end_ns)
        return;
    if (idle_gap_is_whole(s->cause) && !s->knows_ran)
        share_out(s, begin_ns, end_ns);
    thread_times_split(&p->idle->host, p->gap->process, p->thread, begin_ns, end_ns, split_piece,
                       s);
    for (unsigned i = 0; i < 4; i++)
        split_add(s, &rest, i || s->knows_ran ? pools[i].did : DID_UNKNOWN, pools[i].pool,
                  s->left[pools[i].pool]);
}

/* True for a call, false for the time between two. */
static bool is_call(const struct idle_entry *e)
{
    return e->cause != IDLE_HOST && e->cause != IDLE_NOTHING;
}

/* True if it is loading by a call that is not recorded. It says nothing about the time before
 * it. */
static bool is_loading(const struct idle_entry *e)
{
    return e->place.kind == IDLE_WORD_OURS;
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
    if (until_ns <= p->at_ns)
        return;
    p->epoch = (uint16_t)(g->once << IDLE_EPOCH_BITS);
    if (!g->is_first)
        p->epoch |= idle_epoch(&p->idle->way.processes[g->process].early,
                               p->at_ns + (until_ns - p->at_ns) / 2);
    if (look && (cause == IDLE_HOST || cause == IDLE_LAUNCH))
        put_credit(p, until_ns);
    uint64_t at_ns = p->at_ns, ns = until_ns > at_ns ? until_ns - at_ns : 0;
    if (is_silent && look) {
        static const enum idle_cause causes[] = {IDLE_WAITING, IDLE_PREEMPTED, IDLE_UNKNOWN};
        const uint32_t shares[] = {look->waiting, look->preempted, look->unknown};
        uint32_t sum = 0;
        for (unsigned i = 0; i < 3; i++) {
            sum += shares[i];
            uint64_t so_far = (uint64_t)((double)ns * sum / SILENCE_ALL);
            put_part(p, causes[i], place, at_ns + (sum == SILENCE_ALL ? ns : so_far), left);
        }
    }
    put_part(p, cause, place, until_ns, left);
    if (is_split)
        split_time(&split, at_ns);
}

/* The place of time without a call from since_ns on. It lies between the previous call, if any, and
 * the next one, or in the next one's range or operator if that was open for half of it. */
static struct idle_place towards(const struct idle_entry *from, const struct idle_entry *to,
                                 uint64_t since_ns)
{
    struct idle_place place = to->place;
    if (is_call(to))
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

/* Whether recording was stopped between these times: the thread may have made calls meanwhile. */
static bool was_paused(const struct passage *p, uint64_t since_ns, uint64_t until_ns)
{
    const struct idle_process *process = &p->idle->way.processes[p->gap->process];
    uint32_t i = ARRAY_UP_TO(process->pauses, process->pause_count, end_ns, since_ns);
    return i < process->pause_count && process->pauses[i].begin_ns < until_ns;
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
    if (is_silent && !to->look.is_known && was_paused(p, since_ns, next->begin_ns)) {
        cause = IDLE_UNKNOWN;
        is_silent = false;
    }
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
    uint64_t busy_ns = p->first->busy_ns;
    uint64_t waited_ns = e->cause == IDLE_COPY ? p->first->compute_ns : busy_ns;
    put(p, (enum idle_cause)e->cause, &e->place, &e->look, min_of(until_ns, e->end_ns));
    p->call_ns = max_of(p->call_ns, e->end_ns);
    if (idle_entry_waits(e) && e->begin_ns < busy_ns && busy_ns < e->end_ns) {
        p->credit = (struct credit){waited_ns > e->begin_ns ? waited_ns - e->begin_ns : 0,
                                    cause_of_wait(e), e->place};
        p->credit.place.side = IDLE_AFTER;
    }
}

/* The first entry from `i` on that shows where the thread was, else `next`. */
static const struct idle_entry *comes_to(const struct idle_thread *t, uint32_t i,
                                         const struct idle_entry *next)
{
    while (i < t->count && is_loading(&t->entries[i]))
        i++;
    return i < t->count ? &t->entries[i] : next;
}

/* Charges what the thread did until then; `next` is its call that ends later. */
static void idle_gap_follow(struct passage *p, const struct idle_thread *t,
                            const struct idle_entry *next, uint64_t until_ns)
{
    uint32_t i = t->count;
    const struct idle_entry *before;
    p->thread = t->index;
    while (i && t->entries[i - 1].end_ns > p->at_ns)
        i--;
    before = i ? &t->entries[i - 1] : NULL;
    if (before)
        p->call_ns = max_of(p->call_ns, before->end_ns);
    else if (t->has_forgotten)
        put(p, IDLE_UNKNOWN, &nowhere, NULL, min_of(until_ns, t->entries[0].begin_ns));
    for (; i < t->count && p->at_ns < until_ns; i++) {
        const struct idle_entry *e = &t->entries[i];
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
    const struct idle_entry *then = i < t->count ? &t->entries[i] : next;
    between(p, before, then, comes_to(t, i, next), min_of(until_ns, then->begin_ns));
    put(p, IDLE_LAUNCH, &next->place, NULL, until_ns);
}

/* The last entry of the thread that begins before `ns`, a call if `of_call`; NULL if there is
 * none. */
static const struct idle_entry *entry_before(const struct idle_thread *t, uint64_t ns, bool of_call)
{
    for (uint32_t i = t->count; i; i--) {
        const struct idle_entry *e = &t->entries[i - 1];
        if (e->begin_ns < ns && (!of_call || is_call(e)))
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
    if (own && own->end_ns > p->first->begin_ns)
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
    if (last && last->place.is_open && idle_entry_waits(last)) {
        p->thread = g->before->index;
        put(p, IDLE_NOTHING, &behind, NULL, min_of(max_of(last->begin_ns, g->begin_ns), g->end_ns));
        put(p, cause_of_wait(last), &last->place, NULL, g->end_ns);
    }
    p->thread = IDLE_NONE;
    put(p, IDLE_NOTHING, &behind, NULL, g->end_ns);
}

void idle_gap_charge(struct idle *d, const struct idle_gap *gaps, uint32_t count)
{
    struct passage p = {.idle = d, .first = gaps, .thread = IDLE_NONE};
    d->rows.gap++;
    for (p.gap = gaps; p.gap < gaps + count; p.gap++) {
        p.at_ns = p.gap->begin_ns;
        if (p.gap->is_last)
            charge_last(&p);
        else if (p.gap->call.thread)
            charge_call(&p);
        else
            put(&p, IDLE_UNKNOWN, &nowhere, NULL, p.gap->end_ns);
    }
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

void idle_held_add(struct idle_held *h, const struct idle_gap *gap)
{
    (void)ARRAY_ROOM(h->gaps, h->count, h->capacity, 16);
    h->gaps[h->count++] = *gap;
}

void idle_held_give(struct idle *d, struct idle_held *h, uint64_t busy_ns,
                    const struct idle_submit *call)
{
    uint32_t kept = h->count;
    for (uint32_t i = 0; call && i < h->count; i++)
        if (h->gaps[i].call.thread == call->thread)
            call = NULL; /* the kernel's thread made the copy, too */
    uint64_t call_ns = call ? call->begin_ns : 0;
    uint64_t idle_ns = call_ns > busy_ns ? call_ns - busy_ns : 0; /* before the call */
    /* Decides for each gap, last first, whether the kernel may have waited for the copy that ended
     * it: it was launched before half of the gap had passed, or soon after the copy. */
    for (uint32_t i = h->count; i; i--) {
        const struct idle_gap g = h->gaps[i - 1];
        uint64_t ns = g.end_ns - g.begin_ns;
        bool is_soon = g.call.end_ns <= call_ns && idle_ns < ns / SOON_PART;
        if (!is_soon && call_ns > g.begin_ns + ns / 2)
            h->gaps[--kept] = g;
        else
            idle_gap_charge(d, &g, 1);
        if (call_ns > g.begin_ns)
            idle_ns += min_of(call_ns, g.end_ns) - g.begin_ns;
    }
    h->count -= kept;
    memmove(h->gaps, h->gaps + kept, h->count * sizeof *h->gaps);
}

void idle_held_charge(struct idle *d, struct idle_held *h, const struct idle_submit *call,
                      const struct idle_thread *before)
{
    uint32_t count = h->count;
    for (uint32_t i = 0; i < count; i++) {
        h->gaps[i].call = *call;
        h->gaps[i].before = before; /* a copy may have been the last to begin before it */
    }
    h->count = 0;
    idle_gap_charge(d, h->gaps, count);
}
