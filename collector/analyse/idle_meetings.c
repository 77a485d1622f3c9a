/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels of communication met, who came last, and which devices only waited for that. */
#include <stdlib.h>
#include <string.h>

#include "analyse/idle.h"
#include "base/array.h"
#include "base/memory.h"

/* A wait: from the begin of a kernel to that of the last one. Its number: the device waited for. */
static const struct span_kind wait_kind = {1, 0};

void idle_ranks_init(struct idle_ranks *r)
{
    *r = (struct idle_ranks){.numbers.count_max = IDLE_SEQUENCES_MAX};
    spool_init(&r->spool, sizeof(struct byte_chunk));
    spool_init(&r->waits, sizeof(struct byte_chunk));
}

void idle_ranks_release(struct idle_ranks *r)
{
    free(r->list);
    key_map_release(&r->numbers);
    spool_release(&r->spool);
    spool_release(&r->waits);
}

/* ---- kernels --------------------------------------------------------------------------------- */

uint32_t idle_ranks_sequence(struct idle_ranks *r, uint32_t device, uint64_t communicator,
                             const char *name, uint64_t what)
{
    struct key key = {device, what, communicator != 0};
    const struct rank_sequence new = {.communicator = communicator, .name = name, .device = device};
    return KEY_MAP_ITEM(&r->numbers, key, r->list, r->count, IDLE_SEQUENCES_MAX, &new);
}

static void rank_spans_open(struct idle_ranks *r, struct span_reader *reader,
                            const struct rank_spans *s)
{
    if (s->stored.at)
        span_reader_init_stored(reader, &s->stored);
    else
        span_reader_init(reader, &r->spool, &s->spans);
}

/* Notes damage in a part's spans. */
static void rank_spans_close(const struct span_reader *reader, const struct rank_spans *s)
{
    if (s->numbers)
        s->numbers->has_failed |= reader->has_failed;
}

/* ---- after the last kernel: who met ---------------------------------------------------------- */

/* How kernels of a group are matched to collectives. */
enum match { BY_NUMBER, BY_COUNT, BY_TIME };

/* The position in a sequence. */
struct comer {
    struct comer *next; /* of the group: sequences at their end are left out */
    struct rank_sequence *sequence;
    struct span kernel;
    struct span_reader ahead; /* at the next kernel */
    uint64_t number, since;   /* last number, and kernels since then; 0: this kernel has it */
    bool has_next;
    bool has_begun; /* the first kernel is past */
    bool is_of_it;  /* it belongs to the next collective */
};

/* The sequences of a communicator or name. */
struct group {
    struct idle *idle;
    struct comer *first; /* NULL: none */
    enum match by;
    enum rank_miss otherwise; /* why kernels without a meeting are missed */
    bool lacks;               /* some rank is missing altogether */
    bool has_lost;            /* a rank at its end may have lost kernels */
};

static struct idle_track *track_of(const struct idle *d, const struct rank_sequence *s)
{
    return &d->tracks[s->device];
}

/* Orders sequences by communicator, or by job and name. < 0, 0, > 0. */
static int compare_groups(const struct idle *d, const struct rank_sequence *a,
                          const struct rank_sequence *b)
{
    int order = ORDER(a->communicator, b->communicator);
    return order || a->communicator
               ? order
               : ORDER(track_of(d, a)->job, track_of(d, b)->job) ?: strcmp(a->name, b->name);
}

static int compare_sequences(const void *left, const void *right, void *context)
{
    const struct rank_sequence *a = *(struct rank_sequence *const *)left,
                               *b = *(struct rank_sequence *const *)right;
    const struct idle *d = context;
    return compare_groups(d, a, b) ?:
           ORDER(track_of(d, a)->process->index, track_of(d, b)->process->index) ?:
           ORDER(track_of(d, a)->device, track_of(d, b)->device);
}

/* Advances to the next kernel, which must exist. */
static void next_kernel(const struct group *g, struct comer *c)
{
    c->kernel = c->ahead.span;
    c->since++;
    if (g->by == BY_NUMBER && c->kernel.numbers[KERNEL_NUMBER]) {
        c->number = c->kernel.numbers[KERNEL_NUMBER];
        c->since = 0;
    }
    c->has_next = span_next(&c->ahead, kernel_kind);
}

static uint64_t shared_ns(const struct span *a, const struct span *b)
{
    return overlap_ns(a->begin_ns, a->end_ns, b->begin_ns, b->end_ns);
}

/* Kernels belong to a collective that the last one's rank lacks if they did not run with the one
 * that began last, or if their successor did so for longer. */
static void match_by_time(struct comer *first)
{
    const struct comer *last = first;
    bool is_one = true;
    for (struct comer *c = first; c; c = c->next)
        last = c->kernel.begin_ns >= last->kernel.begin_ns ? c : last;
    for (struct comer *c = first; c; c = c->next) {
        uint64_t ns = shared_ns(&c->kernel, &last->kernel);
        c->is_of_it =
            c != last && (!ns || (c->has_next && shared_ns(&c->ahead.span, &last->kernel) > ns));
        is_one &= !c->is_of_it;
    }
    for (struct comer *c = first; is_one && c; c = c->next)
        c->is_of_it = true;
}

static bool is_before(const struct comer *a, const struct comer *b)
{
    return a->number != b->number ? a->number < b->number : a->since < b->since;
}

static void match_by_number(struct comer *all)
{
    const struct comer *first = all;
    for (struct comer *c = all; c; c = c->next)
        first = is_before(c, first) ? c : first;
    for (struct comer *c = all; c; c = c->next)
        c->is_of_it = !is_before(first, c);
}

/* Kernels match by count if all ranks have equally many, or there is no common clock. */
static void choose_match(struct group *g, struct rank_sequence *const *list, uint32_t count)
{
    const struct walk_filter *f = g->idle->walk->filter;
    bool is_numbered = true, has_as_many = true, is_one_clock = true;
    for (uint32_t i = 0; i < count; i++) {
        is_numbered &= list[i]->is_numbered;
        has_as_many &= list[i]->kernels.spans.count == list[0]->kernels.spans.count;
        is_one_clock &=
            track_of(g->idle, list[i])->process->host == track_of(g->idle, list[0])->process->host;
    }
    g->otherwise = is_numbered || has_as_many ? RANK_MISS_TIME : RANK_MISS_NUMBER;
    bool may_count = has_as_many && !(f && f->is_near); /* not all kernels were read */
    g->by = is_numbered ? BY_NUMBER : may_count || !is_one_clock ? BY_COUNT : BY_TIME;
}

static void translate(struct rank_numbers *n, const uint32_t *list, uint32_t count,
                      uint64_t *number)
{
    n->has_failed |= *number >= count;
    *number = *number < count ? list[*number] : 0;
}

/* The kernel with the numbers of the whole instead of its part's. Parts have no selection, so no
 * kind has the flag. */
static struct span kernel_of(const struct comer *c)
{
    struct span kernel = c->kernel;
    struct rank_numbers *n = c->sequence->kernels.numbers;
    if (n) {
        translate(n, n->kinds, n->kind_count, &kernel.numbers[KERNEL_KIND]);
        translate(n, n->places, n->place_count, &kernel.numbers[KERNEL_IDLE_PLACE]);
        translate(n, n->places, n->place_count, &kernel.numbers[KERNEL_WORK_PLACE]);
    }
    return kernel;
}

/* Keeps the wait of a kernel until all of its device are known. */
static void keep_wait(struct idle *d, const struct comer *c, uint64_t until_ns, uint32_t waited_for)
{
    struct rank_sequence *s = c->sequence;
    struct idle_track *track = track_of(d, s);
    const struct span wait = {c->kernel.begin_ns, until_ns, {waited_for}};
    if (wait.begin_ns >= until_ns)
        return;
    if (!s->waits.count) {
        s->next = track->waiting;
        track->waiting = (uint32_t)(s - d->ranks.list) + 1;
    }
    span_put(&d->ranks.waits, &s->waits, &wait, wait_kind);
}

/* Adds a meeting. If ranks are missing, the others waited until the last known one came. */
static void add_meeting(struct group *g, const struct rank_meeting *m, bool is_short)
{
    struct idle *d = g->idle;
    uint32_t last = m->sequence->device;
    uint64_t late_ns = m->last.begin_ns - m->first_ns;
    bool counts = !is_short && !(m->last.numbers[KERNEL_KIND] & KERNEL_FILTERED);
    if (counts)
        arrivals_met(&d->arrivals, m, d->tracks[last].process->job);
    for (const struct comer *c = g->first; c; c = c->next) {
        struct idle_device *device = idle_device_of(d, c->sequence->device);
        bool is_last = c->sequence->device == last;
        if (!c->is_of_it)
            continue;
        if (counts && device) {
            device->met.collectives++;
            device->met.late += is_last && late_ns;
            device->met.late_ns += is_last ? late_ns : 0;
        }
        if (!is_last)
            keep_wait(d, c, m->last.begin_ns, is_short ? IDLE_NONE : last);
    }
}

/* Advances the ranks of the collective to their next kernel, and drops those at their end. */
static void move_on(struct group *g)
{
    for (struct comer **at = &g->first, *c; (c = *at);) {
        if (c->is_of_it && !c->has_next) {
            g->has_lost |= track_of(g->idle, c->sequence)->loses_work;
            *at = c->next;
            continue;
        }
        if (c->is_of_it) {
            c->has_begun = true;
            next_kernel(g, c);
        }
        at = &c->next;
    }
}

/* Adds the next collective of a group. Messages and groups without numbers need not include all
 * ranks, so a rank without one is no miss. */
static void add_collective(struct group *g)
{
    struct rank_meeting m = {.first_ns = UINT64_MAX};
    const struct comer *last = NULL;
    uint64_t first_end_ns = UINT64_MAX;
    bool is_short = g->lacks || g->has_lost, is_of_all = true, is_missed = false;
    if (g->by == BY_TIME)
        match_by_time(g->first);
    else
        match_by_number(g->first);
    for (const struct comer *c = g->first; c; c = c->next) {
        if (!c->is_of_it) {
            is_missed |= c->has_begun;
            continue;
        }
        m.count++;
        m.first_ns = min_of(c->kernel.begin_ns, m.first_ns);
        first_end_ns = min_of(c->kernel.end_ns, first_end_ns);
        last = !last || c->kernel.begin_ns >= last->kernel.begin_ns ? c : last;
        is_of_all &= g->by != BY_NUMBER || !c->since;
    }
    m.last = kernel_of(last); /* at least one kernel belongs to it */
    m.sequence = last->sequence;
    is_missed &= is_of_all;
    /* All of them ran when the last one began. */
    bool meets = !is_missed && m.count >= 2 && first_end_ns > m.last.begin_ns;
    if (meets)
        add_meeting(g, &m, is_short);
    if (is_of_all && (is_short || (!meets && (is_missed || m.count >= 2))))
        arrivals_missed(&g->idle->arrivals, &m.last,
                        g->lacks                          ? RANK_MISS_SELECTION
                        : g->has_lost                     ? RANK_MISS_LOST
                        : is_missed && g->by == BY_NUMBER ? RANK_MISS_KERNEL
                                                          : g->otherwise);
    move_on(g);
}

/* True if ranks of the communicator are missing, or may be left out. */
static bool is_short_of_ranks(const struct idle *d, struct rank_sequence *const *list,
                              uint32_t count)
{
    uint32_t ranks = 0;
    bool leaves_out = d->walk->rec->left_out_ranks || d->way.leaves_out_ranks;
    for (uint32_t i = 0; i < count; i++) {
        ranks = (uint32_t)max_of(ranks, list[i]->ranks);
        leaves_out |= missing_ranks_of(d->walk->rec, track_of(d, list[i])->process->job) != NULL;
    }
    return ranks ? count < ranks : leaves_out;
}

/* Adds the meetings of one communicator or name. */
static void add_group(struct idle *d, struct rank_sequence *const *list, uint32_t count)
{
    struct group g = {.idle = d, .lacks = is_short_of_ranks(d, list, count)};
    struct comer *all = memory_new(count, sizeof *all), **at = &g.first;
    d->ranks.lacks_some |= g.lacks;
    choose_match(&g, list, count);
    for (uint32_t i = 0; i < count; i++) {
        struct comer *c = &all[i];
        c->sequence = list[i];
        rank_spans_open(&d->ranks, &c->ahead, &c->sequence->kernels);
        if (span_next(&c->ahead, kernel_kind)) {
            next_kernel(&g, c);
            *at = c;
            at = &c->next;
        }
    }
    while (g.first && (g.first->next || g.lacks || g.has_lost))
        add_collective(&g);
    for (uint32_t i = 0; i < count; i++)
        rank_spans_close(&all[i].ahead, &all[i].sequence->kernels);
    free(all);
}

static void find_meetings(struct idle *d)
{
    struct idle_ranks *r = &d->ranks;
    struct rank_sequence **list = memory_new(r->count + 1u, sizeof(struct rank_sequence *));
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (r->list[i].communicator || track_of(d, &r->list[i])->job != JOB_NONE)
            list[count++] = &r->list[i];
    qsort_r(list, count, sizeof(struct rank_sequence *), compare_sequences, d);
    for (uint32_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && compare_groups(d, list[i], list[next]) == 0; next++)
            ;
        if (next > i + 1 || is_short_of_ranks(d, list + i, 1))
            add_group(d, list + i, next - i);
    }
    free(list);
}

/* ---- waits ----------------------------------------------------------------------------------- */

bool idle_wait_at(struct idle *d, uint32_t number, uint64_t place, struct idle_wait *wait)
{
    const struct idle_waits *waits = &d->devices[number].waits;
    if (place >= waits->end - waits->first)
        return false;
    *wait = *(const struct idle_wait *)spool_at(&d->waits, waits->first + place, false);
    return true;
}

/* The waits of a sequence, at the next one. */
struct waiter {
    struct span_reader waits;
    bool has_more;
    bool is_charged; /* a part of the wait is */
};

static void next_wait(struct waiter *w)
{
    w->has_more = span_next(&w->waits, wait_kind);
    w->is_charged = false;
}

/* Charges a time in which the device of track `number` only waited. */
static void charge_wait(struct idle *d, uint32_t number, struct waiter *w, uint64_t begin_ns,
                        uint64_t end_ns)
{
    struct idle_device *device = idle_device_of(d, number);
    uint64_t waited_for = w->waits.span.numbers[0], ns = end_ns - begin_ns;
    const struct idle_track *other = waited_for < d->track_count ? &d->tracks[waited_for] : NULL;
    struct idle_row what = {.place = idle_text("a rank, maybe one that is not here"),
                            .process = device->process->index,
                            .device = d->tracks[number].place,
                            .thread = IDLE_NONE,
                            .cause = IDLE_COMMUNICATION};
    const struct idle_wait wait = {begin_ns, end_ns, other ? other->process->index : IDLE_NONE};
    if (other)
        what.place = (struct idle_place){.word = other->device << 32 | other->process->index,
                                         .function = IDLE_NONE,
                                         .kind = IDLE_WORD_DEVICE};
    d->rows.gap += !w->is_charged;
    w->is_charged = true;
    device->parts[IDLE_COMMUNICATING] -= ns;
    device->idle_ns += ns;
    device->causes[IDLE_COMMUNICATION] += ns;
    if (other && other->place != IDLE_NONE)
        d->devices[other->place].met.awaited_ns += ns;
    if (!device->waits.end)
        device->waits.first = d->waits.count;
    device->waits.end = d->waits.count + 1;
    spool_append(&d->waits, &wait);
    idle_rows_add(&d->rows, &what, begin_ns, ns);
}

/* Charges the parts of waits within a time in which nothing else ran. */
static void charge_alone(struct idle *d, uint32_t number, struct waiter *list, uint32_t count,
                         const struct span *alone)
{
    for (uint64_t begin_ns, at_ns = alone->begin_ns;;) {
        struct waiter *first = NULL;
        for (struct waiter *w = list; w < list + count; w++) {
            while (w->has_more && w->waits.span.end_ns <= at_ns)
                next_wait(w);
            if (w->has_more && (!first || w->waits.span.begin_ns < first->waits.span.begin_ns))
                first = w;
        }
        begin_ns = first ? max_of(at_ns, first->waits.span.begin_ns) : alone->end_ns;
        if (begin_ns >= alone->end_ns)
            break;
        at_ns = min_of(first->waits.span.end_ns, alone->end_ns);
        charge_wait(d, number, first, begin_ns, at_ns);
    }
}

static void charge_device(struct idle *d, uint32_t number)
{
    struct idle_ranks *ranks = &d->ranks;
    const struct idle_track *track = &d->tracks[number];
    struct span_reader alone;
    uint32_t count = 0;
    for (uint32_t i = track->waiting; i; i = ranks->list[i - 1].next)
        count++;
    if (!count)
        return;
    struct waiter *list = memory_new(count, sizeof *list), *w = list;
    for (uint32_t i = track->waiting; i; i = ranks->list[i - 1].next, w++) {
        span_reader_init(&w->waits, &ranks->waits, &ranks->list[i - 1].waits);
        next_wait(w);
    }
    rank_spans_open(ranks, &alone, &track->alone);
    while (span_next(&alone, (struct span_kind){0}))
        charge_alone(d, number, list, count, &alone.span);
    rank_spans_close(&alone, &track->alone);
    free(list);
}

/* Finds the job of each device. If several processes share a rank, their devices get none: it is
 * not known which of them the others meet. */
static void find_jobs(struct idle *d)
{
    struct key_map ranks = {0}; /* -> process index + 1 */
    for (uint32_t i = 0; i < d->track_count; i++) {
        const struct process *p = d->tracks[i].process;
        struct key key = {p->rank, p->job, 0};
        uint64_t known = key_map_get(&ranks, key);
        if (known != p->index + 1u)
            key_map_set(&ranks, key, known ? UINT64_MAX : p->index + 1u);
    }
    for (uint32_t i = 0; i < d->track_count; i++) {
        const struct process *p = d->tracks[i].process;
        bool is_one = key_map_get(&ranks, (struct key){p->rank, p->job, 0}) == p->index + 1u;
        d->tracks[i].job = is_one ? p->job : JOB_NONE;
    }
    key_map_release(&ranks);
}

void idle_waits_charge(struct idle *d)
{
    find_jobs(d);
    find_meetings(d);
    for (uint32_t i = 0; i < d->track_count; i++)
        charge_device(d, i);
    arrivals_finish(d);
}
