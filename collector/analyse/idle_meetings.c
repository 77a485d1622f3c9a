/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels of communication met, and who came last (idle_ranks.h). */
#include <stdlib.h>
#include <string.h>

#include "analyse/idle_state.h"
#include "base/array.h"
#include "error.h"

static const struct span_kind kernel_kind = {KERNEL_NUMBERS,
                                             1u << KERNEL_NUMBER | 1u << KERNEL_PLACE};

void idle_ranks_init(struct idle_ranks *r)
{
    *r = (struct idle_ranks){.numbers.count_max = IDLE_SEQUENCES_MAX};
    spool_init(&r->spool, sizeof(struct byte_chunk));
    spool_init(&r->waits, sizeof(struct byte_chunk));
}

void idle_ranks_release(struct idle_ranks *r)
{
    free(r->list);
    free(r->devices);
    key_map_release(&r->numbers);
    spool_release(&r->spool);
    spool_release(&r->waits);
}

/* ---- kernels --------------------------------------------------------------------------------- */

int idle_ranks_sequence(struct idle_ranks *r, uint32_t device, uint64_t communicator,
                        const char *name, uint64_t what, uint32_t *sequence)
{
    struct key key = {device, what, communicator != 0};
    const struct rank_sequence new = {.communicator = communicator, .name = name, .device = device};
    return KEY_MAP_ITEM(&r->numbers, key, r->list, r->count, IDLE_SEQUENCES_MAX, &new, sequence);
}

struct ranked_device *idle_ranks_device(struct idle_ranks *r, uint32_t device)
{
    while (r->device_count <= device)
        if (ARRAY_PUSH(r->devices, r->device_count, NULL) < 0)
            return NULL;
    return &r->devices[device];
}

int idle_ranks_kernel(struct idle_ranks *r, const struct slice *s, uint32_t device,
                      const struct kernel_name *name, struct span *kernel)
{
    struct collective what;
    uint32_t sequence;
    int error = collective_of(s, &what);
    if (error == 0)
        error =
            idle_ranks_sequence(r, device, what.communicator, name->raw,
                                what.communicator ? what.communicator : (uintptr_t)name, &sequence);
    if (error < 0 || !sequence)
        return error;
    struct ranked_device *on = idle_ranks_device(r, device);
    if (!on)
        return GPUPROF_NO_MEMORY;
    struct rank_sequence *of = &r->list[sequence - 1];
    of->ranks = of->ranks ? of->ranks : what.ranks;
    of->is_numbered |= what.number != 0;
    kernel->begin_ns = s->event.begin_ns;
    kernel->end_ns = s->event.end_ns;
    kernel->numbers[KERNEL_NUMBER] = what.number;
    kernel->numbers[KERNEL_PLACE] = ++on->kernels;
    return span_put(&r->spool, &of->kernels.spans, kernel, kernel_kind);
}

int idle_ranks_alone(struct idle_ranks *r, uint32_t device, uint64_t begin_ns, uint64_t end_ns)
{
    struct ranked_device *on = idle_ranks_device(r, device);
    const struct span span = {.begin_ns = begin_ns, .end_ns = end_ns};
    return on ? span_put(&r->spool, &on->alone.spans, &span, (struct span_kind){0})
              : GPUPROF_NO_MEMORY;
}

void rank_spans_open(struct idle_ranks *r, struct span_reader *reader, const struct rank_spans *s)
{
    if (s->stored.at)
        span_reader_init_stored(reader, &s->stored);
    else
        span_reader_init(reader, &r->spool, &s->spans);
}

void rank_spans_close(const struct span_reader *reader, const struct rank_spans *s)
{
    if (s->numbers)
        s->numbers->has_failed |= reader->has_failed;
}

/* ---- after the last kernel: who met ---------------------------------------------------------- */

/* How kernels of a group are matched to collectives. */
enum match { BY_NUMBER, BY_COUNT, BY_TIME };

/* A sequence and its device. Views. */
struct member {
    struct rank_sequence *sequence;
    const struct idle_track *track;
};

/* The position in a sequence. */
struct comer {
    struct span kernel;
    struct span_reader ahead; /* at the next kernel */
    struct rank_sequence *sequence;
    uint64_t number, since; /* last number, and kernels since then; 0: this kernel has it */
    bool has_next;
    bool has_begun; /* the first kernel is past */
    bool is_of_it;  /* it belongs to the next collective */
    bool loses;     /* kernels after its last one may be lost */
};

/* Orders members by communicator, or by job and name. < 0, 0, > 0. */
static int compare_groups(const struct member *a, const struct member *b)
{
    const struct rank_sequence *x = a->sequence, *y = b->sequence;
    int order = ORDER(x->communicator, y->communicator);
    return order || x->communicator
               ? order
               : ORDER(a->track->job, b->track->job) ?: strcmp(x->name, y->name);
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    return compare_groups(a, b) ?:
           ORDER(a->track->process->index, b->track->process->index) ?:
           ORDER(a->track->device, b->track->device);
}

/* Advances to the next kernel, which must exist. 0 or an error. */
static int next_kernel(struct comer *c, enum match by)
{
    c->kernel = c->ahead.span;
    c->since++;
    if (by == BY_NUMBER && c->kernel.numbers[KERNEL_NUMBER]) {
        c->number = c->kernel.numbers[KERNEL_NUMBER];
        c->since = 0;
    }
    int more = span_next(&c->ahead, kernel_kind);
    c->has_next = more > 0;
    return more < 0 ? more : 0;
}

static uint64_t shared_ns(const struct span *a, const struct span *b)
{
    return overlap_ns(a->begin_ns, a->end_ns, b->begin_ns, b->end_ns);
}

/* Kernels belong to a collective that the last one's rank lacks if they did not run with the one
 * that began last, or if their successor did so for longer. */
static void match_by_time(struct comer **comers, uint32_t count)
{
    const struct comer *last = comers[0];
    bool is_one = true;
    for (uint32_t i = 1; i < count; i++)
        last = comers[i]->kernel.begin_ns >= last->kernel.begin_ns ? comers[i] : last;
    for (uint32_t i = 0; i < count; i++) {
        struct comer *c = comers[i];
        uint64_t ns = shared_ns(&c->kernel, &last->kernel);
        c->is_of_it =
            c != last && (!ns || (c->has_next && shared_ns(&c->ahead.span, &last->kernel) > ns));
        is_one &= !c->is_of_it;
    }
    for (uint32_t i = 0; is_one && i < count; i++)
        comers[i]->is_of_it = true;
}

static bool is_before(const struct comer *a, const struct comer *b)
{
    return a->number != b->number ? a->number < b->number : a->since < b->since;
}

static void match_by_number(struct comer **comers, uint32_t count)
{
    const struct comer *first = comers[0];
    for (uint32_t i = 1; i < count; i++)
        first = is_before(comers[i], first) ? comers[i] : first;
    for (uint32_t i = 0; i < count; i++)
        comers[i]->is_of_it = !is_before(first, comers[i]);
}

/* Kernels match by count if all ranks have equally many, or there is no common clock. *otherwise:
 * why kernels without a meeting are missed. */
static enum match match_of(const struct member *members, uint32_t count, enum rank_miss *otherwise)
{
    bool is_numbered = true, has_as_many = true, is_one_clock = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct rank_sequence *s = members[i].sequence;
        is_numbered &= s->is_numbered;
        has_as_many &= s->kernels.spans.count == members[0].sequence->kernels.spans.count;
        is_one_clock &= members[i].track->process->host == members[0].track->process->host;
    }
    *otherwise = is_numbered || has_as_many ? RANK_MISS_TIME : RANK_MISS_NUMBER;
    return is_numbered ? BY_NUMBER : has_as_many || !is_one_clock ? BY_COUNT : BY_TIME;
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

/* Collects the kernels of a collective; m->count is their number. */
static void gather(struct comer *const *comers, uint32_t count, struct rank_meeting *m,
                   uint64_t *first_end_ns)
{
    const struct comer *last = NULL;
    *m = (struct rank_meeting){.first_ns = UINT64_MAX};
    *first_end_ns = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct comer *c = comers[i];
        if (!c->is_of_it)
            continue;
        m->count++;
        last = !last || c->kernel.begin_ns >= last->kernel.begin_ns ? c : last;
        m->first_ns = min_of(c->kernel.begin_ns, m->first_ns);
        *first_end_ns = min_of(c->kernel.end_ns, *first_end_ns);
    }
    m->last = kernel_of(last); /* at least one kernel belongs to it */
    m->sequence = last->sequence;
}

/* Counts a meeting for a device with selected work. */
static void join(struct idle *d, uint32_t number, const struct rank_meeting *m)
{
    struct idle_device *device = idle_device_of(d, number);
    if (!device)
        return;
    device->collectives++;
    if (m->sequence->device != number || m->last.begin_ns == m->first_ns)
        return;
    device->late++;
    device->late_ns += m->last.begin_ns - m->first_ns;
}

/* Keeps the wait of a kernel for idle_waits.c, in the order of its sequence. */
static int keep_wait(struct idle_ranks *r, const struct comer *c, uint64_t until_ns,
                     uint32_t waited_for)
{
    struct rank_sequence *s = c->sequence;
    struct ranked_device *device = idle_ranks_device(r, s->device);
    const struct span wait = {
        .begin_ns = c->kernel.begin_ns,
        .end_ns = until_ns,
        .numbers = {[WAIT_PLACE] = c->kernel.numbers[KERNEL_PLACE], [WAIT_FOR] = waited_for}};
    if (!device || wait.begin_ns >= until_ns)
        return device ? 0 : GPUPROF_NO_MEMORY;
    if (!s->waits.count) {
        s->next = device->first;
        device->first = (uint32_t)(s - r->list) + 1;
    }
    return span_put(&r->waits, &s->waits, &wait, wait_kind);
}

/* Adds a meeting. If ranks are missing, the others waited until the last known one came. */
static int add_meeting(struct idle *d, struct comer *const *comers, uint32_t count,
                       const struct rank_meeting *m, bool is_short)
{
    uint32_t last = m->sequence->device;
    bool counts = !is_short && !(m->last.numbers[KERNEL_KIND] & KERNEL_FILTERED);
    int error = counts ? arrivals_met(&d->arrivals, m, d->tracks[last].process->job) : 0;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        const struct comer *c = comers[i];
        if (c->is_of_it && counts)
            join(d, c->sequence->device, m);
        if (c->is_of_it && c->sequence->device != last)
            error = keep_wait(&d->ranks, c, m->last.begin_ns, is_short ? IDLE_NONE : last);
    }
    return error;
}

/* Advances the ranks of the collective to their next kernel, and drops those at their end. Sets
 * *lost if such a rank may have lost kernels. */
static int move_on(struct comer **comers, uint32_t *count, enum match by, bool *lost)
{
    uint32_t left = 0;
    int error = 0;
    for (uint32_t i = 0; i < *count && error == 0; i++) {
        struct comer *c = comers[i];
        bool has_left = c->is_of_it && !c->has_next;
        *lost |= has_left && c->loses;
        if (has_left)
            continue;
        if (c->is_of_it) {
            c->has_begun = true;
            error = next_kernel(c, by);
        }
        comers[left++] = c;
    }
    *count = left;
    return error;
}

/* Adds a group's meetings. Messages and groups without numbers need not include all ranks, so a
 * rank without one is no miss. `lacks`: some rank is missing altogether. */
static int add_meetings(struct idle *d, struct comer **comers, uint32_t count, enum match by,
                        bool lacks, enum rank_miss otherwise)
{
    bool is_lost = false;
    int error = 0;
    while (error == 0 && count >= (lacks || is_lost ? 1 : 2)) {
        bool is_short = lacks || is_lost;
        struct rank_meeting m;
        uint64_t first_end_ns;
        bool is_of_all = true, is_missed = false;
        if (by == BY_TIME)
            match_by_time(comers, count);
        else
            match_by_number(comers, count);
        for (uint32_t i = 0; i < count; i++) {
            is_of_all &= by != BY_NUMBER || !comers[i]->is_of_it || !comers[i]->since;
            is_missed |= !comers[i]->is_of_it && comers[i]->has_begun;
        }
        gather(comers, count, &m, &first_end_ns);
        is_missed &= is_of_all;
        /* All of them ran when the last one began. */
        bool meets = !is_missed && m.count >= 2 && first_end_ns > m.last.begin_ns;
        if (meets)
            error = add_meeting(d, comers, count, &m, is_short);
        if (is_of_all && (is_short || (!meets && (is_missed || m.count >= 2))))
            arrivals_missed(&d->arrivals, &m.last,
                            lacks                          ? RANK_MISS_SELECTION
                            : is_lost                      ? RANK_MISS_LOST
                            : is_missed && by == BY_NUMBER ? RANK_MISS_KERNEL
                                                           : otherwise);
        if (error == 0)
            error = move_on(comers, &count, by, &is_lost);
    }
    return error;
}

/* True if ranks of the communicator are missing, or may be left out. */
static bool is_short_of_ranks(const struct idle *d, const struct member *members, uint32_t count)
{
    uint32_t ranks = 0;
    bool leaves_out = d->walk->rec->left_out_ranks || d->way.leaves_out_ranks;
    for (uint32_t i = 0; i < count; i++) {
        ranks = (uint32_t)max_of(ranks, members[i].sequence->ranks);
        leaves_out |= missing_ranks_of(d->walk->rec, members[i].track->process->job) != NULL;
    }
    return ranks ? count < ranks : leaves_out;
}

/* Adds the meetings of one communicator or name. */
static int add_group(struct idle *d, const struct member *members, uint32_t count)
{
    struct comer *all = calloc(count, sizeof *all);
    struct comer **comers = calloc(count, sizeof(struct comer *));
    enum rank_miss otherwise;
    enum match by = match_of(members, count, &otherwise);
    uint32_t there = 0;
    int error = all && comers ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        struct comer *c = &all[i];
        c->sequence = members[i].sequence;
        c->loses = members[i].track->loses_work;
        rank_spans_open(&d->ranks, &c->ahead, &c->sequence->kernels);
        int more = span_next(&c->ahead, kernel_kind);
        error = more > 0 ? next_kernel(c, by) : more;
        if (more > 0)
            comers[there++] = c;
    }
    bool is_short = is_short_of_ranks(d, members, count);
    d->ranks.lacks_some |= is_short;
    if (error == 0)
        error = add_meetings(d, comers, there, by, is_short, otherwise);
    for (uint32_t i = 0; all && i < count; i++)
        if (all[i].sequence)
            rank_spans_close(&all[i].ahead, &all[i].sequence->kernels);
    free(comers);
    free(all);
    return error;
}

int idle_meetings_find(struct idle *d)
{
    struct idle_ranks *r = &d->ranks;
    struct member *members = calloc(r->count + 1u, sizeof *members);
    int error = members ? 0 : GPUPROF_NO_MEMORY;
    uint32_t count = 0;
    for (uint32_t i = 0; members && i < r->count; i++) {
        const struct idle_track *track = &d->tracks[r->list[i].device];
        if (r->list[i].communicator || track->job != JOB_NONE)
            members[count++] = (struct member){&r->list[i], track};
    }
    if (members)
        qsort(members, count, sizeof *members, compare_members);
    for (uint32_t i = 0, next; i < count && error == 0; i = next) {
        for (next = i + 1; next < count && compare_groups(&members[i], &members[next]) == 0; next++)
            ;
        bool is_one = next == i + 1 && !is_short_of_ranks(d, members + i, 1);
        error = is_one ? 0 : add_group(d, members + i, next - i);
    }
    free(members);
    return error;
}
