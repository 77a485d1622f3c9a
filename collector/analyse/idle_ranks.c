/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/idle_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/numbers.h"
#include "error.h"
#include "resolve/collective.h"

/* The numbers of a kernel's span. */
enum {
    KERNEL_NUMBER, /* number of the collective on its communicator; 0: not known */
    KERNEL_PLACE,  /* index among those of its device, from 1 on */
    KERNEL_IDLE_NS,
    KERNEL_IDLE_PLACE,
    KERNEL_WORK_PLACE,
    KERNEL_KIND,
    KERNEL_NUMBERS
};

/* A flag above all numbers of kinds: the kernel is outside the selection. */
#define KERNEL_FILTERED UINT64_C(0x100000000)

static const struct span_kind kernel_kind = {KERNEL_NUMBERS,
                                             1u << KERNEL_NUMBER | 1u << KERNEL_PLACE};

void idle_ranks_init(struct idle_ranks *r)
{
    *r = (struct idle_ranks){.numbers.count_max = IDLE_SEQUENCES_MAX};
    spool_init(&r->spool, sizeof(struct byte_chunk));
}

void idle_ranks_release(struct idle_ranks *r)
{
    free(r->list);
    free(r->devices);
    key_map_release(&r->numbers);
    spool_release(&r->spool);
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
                      const struct kernel_name *name, const struct rank_kernel_facts *facts)
{
    const struct event *e = &s->event;
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
    const struct span kernel = {
        .begin_ns = e->begin_ns,
        .end_ns = e->end_ns,
        .numbers = {[KERNEL_NUMBER] = what.number,
                    [KERNEL_PLACE] = ++on->kernels,
                    [KERNEL_IDLE_NS] = facts->idle_place ? facts->idle_ns : 0,
                    [KERNEL_IDLE_PLACE] = facts->idle_place,
                    [KERNEL_WORK_PLACE] = facts->work_place,
                    [KERNEL_KIND] = facts->kind | (facts->is_filtered ? KERNEL_FILTERED : 0)}};
    struct rank_sequence *of = &r->list[sequence - 1];
    of->ranks = of->ranks ? of->ranks : what.ranks;
    of->is_numbered |= what.number != 0;
    return span_put(&r->spool, &of->kernels.spans, &kernel, kernel_kind);
}

int idle_ranks_alone(struct idle_ranks *r, uint32_t device, uint64_t begin_ns, uint64_t end_ns)
{
    struct ranked_device *on = idle_ranks_device(r, device);
    const struct span span = {.begin_ns = begin_ns, .end_ns = end_ns};
    return on ? span_put(&r->spool, &on->alone.spans, &span, (struct span_kind){0})
              : GPUPROF_NO_MEMORY;
}

/* ---- after the last kernel: who met ---------------------------------------------------------- */

/* How kernels of a group are matched to collectives. */
enum match { BY_NUMBER, BY_COUNT, BY_TIME };

/* A sequence and its device. Views. */
struct member {
    const struct rank_sequence *sequence;
    const struct rank_device *device;
};

/* The position in a sequence. */
struct comer {
    struct span kernel;
    struct span_reader ahead; /* at the next kernel */
    const struct rank_sequence *sequence;
    uint64_t number, since; /* last number, and kernels since then; 0: this kernel has it */
    bool has_next;
    bool has_begun; /* the first kernel is past */
    bool is_of_it;  /* it belongs to the next collective */
    bool loses;     /* kernels after its last one may be lost */
};

struct telling {
    struct idle_ranks *ranks;
    const struct rank_listener *listener;
    struct rank_waits waits;
    bool leaves_out;
};

static void open_reader(struct idle_ranks *r, struct span_reader *reader,
                        const struct rank_spans *s)
{
    if (s->packed.in)
        span_reader_init_packed(reader, &s->packed);
    else
        span_reader_init(reader, &r->spool, &s->spans);
}

static void close_reader(const struct span_reader *reader, const struct rank_spans *s)
{
    if (s->numbers)
        s->numbers->has_failed |= reader->has_failed;
}

/* Orders members by communicator, or by job and name. < 0, 0, > 0. */
static int compare_groups(const struct member *a, const struct member *b)
{
    const struct rank_sequence *x = a->sequence, *y = b->sequence;
    int order = ORDER(x->communicator, y->communicator);
    return order || x->communicator
               ? order
               : ORDER(a->device->job, b->device->job) ?: strcmp(x->name, y->name);
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    return compare_groups(a, b) ?:
           ORDER(a->device->process, b->device->process) ?:
           ORDER(a->device->device, b->device->device);
}

/* Advances to the next kernel, which must exist. 0 or an error. */
static int idle_ranks_look(struct comer *c, enum match by)
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

static bool idle_ranks_is_before(const struct comer *a, const struct comer *b)
{
    return a->number != b->number ? a->number < b->number : a->since < b->since;
}

static void match_by_number(struct comer **comers, uint32_t count)
{
    const struct comer *first = comers[0];
    for (uint32_t i = 1; i < count; i++)
        first = idle_ranks_is_before(comers[i], first) ? comers[i] : first;
    for (uint32_t i = 0; i < count; i++)
        comers[i]->is_of_it = !idle_ranks_is_before(first, comers[i]);
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
        is_one_clock &= members[i].device->host == members[0].device->host;
    }
    *otherwise = is_numbered || has_as_many ? RANK_MISS_TIME : RANK_MISS_NUMBER;
    return is_numbered ? BY_NUMBER : has_as_many || !is_one_clock ? BY_COUNT : BY_TIME;
}

static uint32_t meant(struct rank_numbers *n, const uint32_t *list, uint32_t count, uint64_t number)
{
    n->has_failed |= number >= count;
    return number < count ? list[number] : 0;
}

static struct rank_kernel kernel_of(const struct comer *c)
{
    const uint64_t *numbers = c->kernel.numbers;
    struct rank_numbers *n = c->sequence->kernels.numbers;
    struct rank_kernel_facts f = {.idle_ns = numbers[KERNEL_IDLE_NS],
                                  .idle_place = (uint32_t)numbers[KERNEL_IDLE_PLACE],
                                  .work_place = (uint32_t)numbers[KERNEL_WORK_PLACE],
                                  .kind = (uint32_t)numbers[KERNEL_KIND],
                                  .is_filtered = numbers[KERNEL_KIND] & KERNEL_FILTERED};
    if (n) { /* parts have no selection, so no kind has the flag */
        f.is_filtered = false;
        f.kind = meant(n, n->kinds, n->kind_count, numbers[KERNEL_KIND]);
        f.idle_place = meant(n, n->places, n->place_count, numbers[KERNEL_IDLE_PLACE]);
        f.work_place = meant(n, n->places, n->place_count, numbers[KERNEL_WORK_PLACE]);
    }
    return (struct rank_kernel){c->kernel.begin_ns, c->kernel.end_ns, f};
}

/* Collects the kernels of a collective; m->count is their number. */
static void idle_ranks_gather(struct comer *const *comers, uint32_t count, struct rank_meeting *m,
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

static int report_meeting(struct telling *t, struct comer *const *comers, uint32_t count,
                          const struct rank_meeting *m, bool is_short)
{
    const struct rank_listener *l = t->listener;
    bool is_reported = !is_short && !m->last.facts.is_filtered;
    int error = is_reported ? l->met(l->context, m) : 0;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        const struct comer *c = comers[i];
        if (!c->is_of_it)
            continue;
        if (is_reported)
            l->joined(l->context, c->sequence->device, m);
        const struct rank_wait wait = {.begin_ns = c->kernel.begin_ns,
                                       .end_ns = m->last.begin_ns,
                                       .place = c->kernel.numbers[KERNEL_PLACE],
                                       .waited_for =
                                           is_short ? RANK_NOT_KNOWN : m->sequence->device};
        if (c->sequence->device != m->sequence->device)
            error = rank_waits_put(&t->waits, (uint32_t)(c->sequence - t->ranks->list),
                                   c->sequence->device, &wait);
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
            error = idle_ranks_look(c, by);
        }
        comers[left++] = c;
    }
    *count = left;
    return error;
}

/* Reports a group's meetings. Messages and groups without numbers need not include all ranks, so a
 * rank without one is no miss. `lacks`: some rank is missing altogether. */
static int report_comers(struct telling *t, struct comer **comers, uint32_t count, enum match by,
                         bool lacks, enum rank_miss otherwise)
{
    const struct rank_listener *l = t->listener;
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
        idle_ranks_gather(comers, count, &m, &first_end_ns);
        is_missed &= is_of_all;
        /* All of them ran when the last one began. */
        bool meets = !is_missed && m.count >= 2 && first_end_ns > m.last.begin_ns;
        if (meets)
            error = report_meeting(t, comers, count, &m, is_short);
        if (is_of_all && (is_short || (!meets && (is_missed || m.count >= 2))) &&
            !m.last.facts.is_filtered)
            l->missed(l->context, &m.last,
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
static bool is_short_of_ranks(const struct telling *t, const struct member *members, uint32_t count)
{
    uint32_t ranks = 0;
    bool leaves_out = t->leaves_out;
    for (uint32_t i = 0; i < count; i++) {
        ranks = (uint32_t)max_of(ranks, members[i].sequence->ranks);
        leaves_out |= members[i].device->lacks_ranks;
    }
    return ranks ? count < ranks : leaves_out;
}

/* Reports the meetings of one communicator or name. */
static int report_group(struct telling *t, const struct member *members, uint32_t count)
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
        c->loses = members[i].device->loses_work;
        open_reader(t->ranks, &c->ahead, &c->sequence->kernels);
        int more = span_next(&c->ahead, kernel_kind);
        error = more > 0 ? idle_ranks_look(c, by) : more;
        if (more > 0)
            comers[there++] = c;
    }
    bool is_short = is_short_of_ranks(t, members, count);
    t->ranks->lacks_some |= is_short;
    if (error == 0)
        error = report_comers(t, comers, there, by, is_short, otherwise);
    for (uint32_t i = 0; all && i < count; i++)
        if (all[i].sequence)
            close_reader(&all[i].ahead, &all[i].sequence->kernels);
    free(comers);
    free(all);
    return error;
}

static int report_meetings(struct telling *t, const struct rank_device *devices)
{
    struct idle_ranks *r = t->ranks;
    struct member *members = calloc(r->count + 1u, sizeof *members);
    int error = members ? 0 : GPUPROF_NO_MEMORY;
    uint32_t count = 0;
    for (uint32_t i = 0; members && i < r->count; i++) {
        const struct rank_sequence *s = &r->list[i];
        if (s->communicator || devices[s->device].job != JOB_NONE)
            members[count++] = (struct member){s, &devices[s->device]};
    }
    if (members)
        qsort(members, count, sizeof *members, compare_members);
    for (uint32_t i = 0, next; i < count && error == 0; i = next) {
        for (next = i + 1; next < count && compare_groups(&members[i], &members[next]) == 0; next++)
            ;
        bool is_one = next == i + 1 && !is_short_of_ranks(t, members + i, 1);
        error = is_one ? 0 : report_group(t, members + i, next - i);
    }
    free(members);
    return error;
}

int idle_ranks_report(struct idle_ranks *r, const struct rank_device *devices,
                      uint32_t device_count, bool leaves_out, const struct rank_listener *l)
{
    struct telling t = {.ranks = r, .listener = l, .leaves_out = leaves_out};
    int error = rank_waits_init(&t.waits, r->count, device_count);
    if (error == 0)
        error = report_meetings(&t, devices);
    for (uint32_t i = 0; i < device_count && i < r->device_count && error == 0; i++) {
        const struct rank_spans *alone = &r->devices[i].alone;
        struct span_reader reader;
        open_reader(r, &reader, alone);
        error = rank_waits_report(&t.waits, i, &reader, l->waited, l->context);
        close_reader(&reader, alone);
    }
    rank_waits_release(&t.waits);
    return error;
}
