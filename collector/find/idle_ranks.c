/* SPDX-License-Identifier: Apache-2.0 */
#include "find/idle_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "model/nccl_call.h"
#include "record/gpu_record.h"

struct chain {
    uint64_t first, last; /* kernels of a device + 1 */
};

void idle_ranks_init(struct idle_ranks *r, bool is_part)
{
    *r = (struct idle_ranks){.is_part = is_part,
                             .communicators.count_max = IDLE_SEQUENCES_MAX,
                             .counted.count_max = IDLE_SEQUENCES_MAX,
                             .handles.count_max = IDLE_SEQUENCES_MAX,
                             .numbers.count_max = IDLE_SEQUENCES_MAX};
    spool_init(&r->kernels, sizeof(struct rank_kernel));
    spool_init(&r->alone, sizeof(struct rank_span));
    spool_init(&r->devices, sizeof(struct chain));
}

void idle_ranks_release(struct idle_ranks *r)
{
    free(r->list);
    key_map_release(&r->communicators);
    key_map_release(&r->counted);
    key_map_release(&r->handles);
    key_map_release(&r->numbers);
    spool_release(&r->kernels);
    spool_release(&r->alone);
    spool_release(&r->devices);
}

/* Beyond the bound there is nothing to know. */
static int set(struct key_map *map, struct key key, uint64_t value)
{
    int error = key_map_set(map, key, value);
    return error == GPUPROF_LIMIT ? 0 : error;
}

/* ---- which communicator ---------------------------------------------------------------------- */

int idle_ranks_library(struct idle_ranks *r, struct nccl_talk *t, const struct event *e)
{
    const struct record *record = e->record;
    if (record->type == RECORD_COMMUNICATOR) {
        uint64_t id = record_arg(record, COMMUNICATOR_ID);
        struct key key = {e->process->index, record_arg(record, COMMUNICATOR_HANDLE), 0};
        return id ? set(&r->handles, key, id) : 0;
    }
    nccl_talk_call(t, &r->handles, e);
    return 0;
}

int idle_ranks_call(struct idle_ranks *r, struct nccl_talk *t, const struct slice *s)
{
    const struct event *e = &s->event;
    struct nccl_call call = {0};
    if (!e->record->correlation || e->function->class != API_LAUNCH)
        return 0;
    const struct range *range = walk_range(s, false);
    if (!range || !nccl_call_of(range, &call) || !call.communicator)
        call.communicator = t->communicator;
    uint64_t number = nccl_talk_launch(t, e);
    struct key key = {e->process->index, e->record->correlation, 0};
    int error = call.communicator ? set(&r->communicators, key, call.communicator) : 0;
    return error == 0 && call.communicator && number ? set(&r->counted, key, number) : error;
}

/* ---- kernels --------------------------------------------------------------------------------- */

int idle_ranks_sequence(struct idle_ranks *r, uint32_t device, uint64_t communicator,
                        const char *name, uint64_t what, uint32_t *sequence)
{
    struct key key = {device, what, communicator != 0};
    *sequence = (uint32_t)key_map_get(&r->numbers, key);
    if (*sequence || r->count == IDLE_SEQUENCES_MAX)
        return 0;
    struct rank_sequence *list = array_room(r->list, r->count, &r->capacity, sizeof *list, 64);
    if (!list)
        return GPUPROF_NO_MEMORY;
    r->list = list;
    int error = key_map_set(&r->numbers, key, r->count + 1ull);
    if (error < 0)
        return error == GPUPROF_LIMIT ? 0 : error;
    list[r->count] =
        (struct rank_sequence){.communicator = communicator, .name = name, .device = device};
    *sequence = ++r->count;
    return 0;
}

/* Makes `next` of the kernel that was the last one; `place`: where the new one is, + 1. */
static int follow(struct idle_ranks *r, uint64_t before, bool is_device, uint64_t place)
{
    int error = 0;
    struct rank_kernel *k = before ? spool_at(&r->kernels, before - 1, true, &error) : NULL;
    if (k)
        *(is_device ? &k->next_there : &k->next) = place;
    return error;
}

int idle_ranks_add(struct idle_ranks *r, const struct rank_kernel *kernel)
{
    static const struct chain nothing;
    struct rank_sequence *sequence = &r->list[kernel->sequence];
    int error = 0;
    while (r->devices.count <= sequence->device)
        if ((error = spool_append(&r->devices, &nothing)) < 0)
            return error;
    struct chain *chain = spool_at(&r->devices, sequence->device, true, &error);
    if (!chain)
        return error;
    uint64_t place = r->kernels.count + 1, before = chain->last;
    chain->first = chain->first ? chain->first : place;
    chain->last = place;
    if ((error = spool_append(&r->kernels, kernel)) < 0 ||
        (error = follow(r, before, true, place)) < 0 ||
        (error = follow(r, sequence->last, false, place)) < 0)
        return error;
    sequence->first = sequence->first ? sequence->first : place;
    sequence->last = place;
    sequence->count++;
    sequence->is_numbered |= kernel->number != 0;
    return 0;
}

int idle_ranks_kernel(struct idle_ranks *r, const struct slice *s, uint32_t device,
                      const struct kernel_name *name, const struct rank_kernel_facts *facts)
{
    const struct event *e = &s->event;
    struct key launch = {e->process->index, e->record->correlation, 0};
    uint64_t communicator = key_map_get(&r->communicators, launch);
    uint64_t number = communicator ? key_map_get(&r->counted, launch) : 0;
    uint32_t sequence;
    if (communicator)
        key_map_remove(&r->communicators, launch);
    if (number)
        key_map_remove(&r->counted, launch);
    int error = idle_ranks_sequence(r, device, communicator, name->raw,
                                    communicator ? communicator : (uintptr_t)name, &sequence);
    if (error < 0 || !sequence)
        return error;
    const struct rank_kernel kernel = {.begin_ns = e->begin_ns,
                                       .end_ns = e->end_ns,
                                       .number = number,
                                       .sequence = sequence - 1,
                                       .facts = *facts};
    return r->is_part ? spool_append(&r->kernels, &kernel) : idle_ranks_add(r, &kernel);
}

int idle_ranks_alone(struct idle_ranks *r, uint32_t device, uint64_t begin_ns, uint64_t end_ns)
{
    struct rank_span span = {.begin_ns = begin_ns, .end_ns = end_ns, .device = device};
    return spool_append(&r->alone, &span);
}

/* ---- behind the last: who met ---------------------------------------------------------------- */

/* By what kernels of a group are known to be of one collective. */
enum match { BY_NUMBER, BY_COUNT, BY_TIME };

/* A sequence, what puts it into order, and where one is in it. */
struct member {
    struct rank_device device;
    uint64_t communicator;
    const char *name;
    uint64_t at; /* the kernel + 1 */
    uint64_t next;
    uint64_t begin_ns, end_ns;
    uint64_t number, since; /* the last number, and kernels since: 0, it is this one's */
    uint32_t sequence;
    bool has_begun; /* it is not the first */
    bool is_of_it;  /* of the collective that is next */
};

/* Are they of one communicator, or of one name in a job? < 0, 0, > 0. */
static int compare_groups(const struct member *a, const struct member *b)
{
    if (a->communicator != b->communicator)
        return a->communicator < b->communicator ? -1 : 1;
    if (a->communicator)
        return 0;
    if (a->device.job != b->device.job)
        return a->device.job < b->device.job ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    int order = compare_groups(a, b);
    if (order)
        return order;
    if (a->device.process != b->device.process)
        return a->device.process < b->device.process ? -1 : 1;
    return a->device.device < b->device.device ? -1 : a->device.device > b->device.device;
}

/* Did all of them run when the last one began? */
static bool is_meeting(const struct rank_meeting *m, uint64_t first_end_ns)
{
    return m->count >= 2 && first_end_ns > m->last.begin_ns;
}

static int look(struct idle_ranks *r, struct member *m, enum match by)
{
    int error = 0;
    const struct rank_kernel *k = spool_at(&r->kernels, m->at - 1, false, &error);
    if (!k)
        return error;
    m->next = k->next;
    m->begin_ns = k->begin_ns;
    m->end_ns = k->end_ns;
    m->since++;
    if (by == BY_NUMBER && k->number) {
        m->number = k->number;
        m->since = 0;
    }
    return 0;
}

static uint64_t shared_ns(uint64_t begin_ns, uint64_t end_ns, const struct member *with)
{
    uint64_t from_ns = begin_ns > with->begin_ns ? begin_ns : with->begin_ns;
    uint64_t to_ns = end_ns < with->end_ns ? end_ns : with->end_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* Those that did not run with the one that began last, or whose next one did so for longer, are of
 * a collective of which that one lacks its kernel. */
static int match_by_time(struct idle_ranks *r, struct member *members, uint32_t count)
{
    const struct member *last = members;
    bool is_one = true;
    int error = 0;
    for (uint32_t i = 1; i < count; i++)
        last = members[i].begin_ns >= last->begin_ns ? &members[i] : last;
    for (uint32_t i = 0; i < count; i++) {
        struct member *m = &members[i];
        uint64_t ns = shared_ns(m->begin_ns, m->end_ns, last);
        const struct rank_kernel *next =
            m != last && m->next ? spool_at(&r->kernels, m->next - 1, false, &error) : NULL;
        if (error < 0)
            return error;
        m->is_of_it =
            m != last && (!ns || (next && shared_ns(next->begin_ns, next->end_ns, last) > ns));
        is_one &= !m->is_of_it;
    }
    for (uint32_t i = 0; is_one && i < count; i++)
        members[i].is_of_it = true;
    return 0;
}

static bool is_before(const struct member *a, const struct member *b)
{
    return a->number != b->number ? a->number < b->number : a->since < b->since;
}

static void match_by_number(struct member *members, uint32_t count)
{
    const struct member *first = members;
    for (uint32_t i = 1; i < count; i++)
        first = is_before(&members[i], first) ? &members[i] : first;
    for (uint32_t i = 0; i < count; i++)
        members[i].is_of_it = !is_before(first, &members[i]);
}

/* Where all have as many, or no one clock, the n-th are of one. *otherwise: why those are
 * none that do not meet. */
static enum match match_of(const struct idle_ranks *r, const struct member *members, uint32_t count,
                           enum rank_miss *otherwise)
{
    bool is_numbered = true, has_as_many = true, is_one_clock = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct rank_sequence *s = &r->list[members[i].sequence];
        is_numbered &= s->is_numbered;
        has_as_many &= s->count == r->list[members[0].sequence].count;
        is_one_clock &= members[i].device.host == members[0].device.host;
    }
    *otherwise = is_numbered || has_as_many ? RANK_MISS_TIME : RANK_MISS_NUMBER;
    return is_numbered ? BY_NUMBER : has_as_many || !is_one_clock ? BY_COUNT : BY_TIME;
}

/* The kernels of a collective; m->count is how many there are. 0 or an error. */
static int gather(struct idle_ranks *r, const struct member *members, uint32_t count,
                  struct rank_meeting *m, uint64_t *first_end_ns)
{
    int error = 0;
    *m = (struct rank_meeting){.first_ns = UINT64_MAX};
    *first_end_ns = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct rank_kernel *k =
            members[i].is_of_it ? spool_at(&r->kernels, members[i].at - 1, false, &error) : NULL;
        if (error < 0)
            return error;
        if (!k)
            continue;
        if (!m->count++ || k->begin_ns >= m->last.begin_ns) {
            m->last = *k;
            m->sequence = &r->list[members[i].sequence];
            m->last_device = m->sequence->device;
        }
        m->first_ns = k->begin_ns < m->first_ns ? k->begin_ns : m->first_ns;
        *first_end_ns = k->end_ns < *first_end_ns ? k->end_ns : *first_end_ns;
    }
    return 0;
}

static int tell_meeting(struct idle_ranks *r, const struct member *members, uint32_t count,
                        const struct rank_meeting *m, const struct rank_listener *l)
{
    int error = l->met(l->context, m);
    for (uint32_t i = 0; i < count && error == 0; i++) {
        uint32_t device = r->list[members[i].sequence].device;
        if (!members[i].is_of_it)
            continue;
        l->joined(l->context, device, m);
        if (device == m->last_device)
            continue;
        struct rank_kernel *k = spool_at(&r->kernels, members[i].at - 1, true, &error);
        if (!k)
            break;
        k->until_ns = m->last.begin_ns;
        k->waited_for = m->last_device;
    }
    return error;
}

/* Those of the collective go on to their next kernel, or leave the list if they have none. */
static int move_on(struct idle_ranks *r, struct member *members, uint32_t *count, enum match by)
{
    uint32_t left = 0;
    int error = 0;
    for (uint32_t i = 0; i < *count && error == 0; i++) {
        struct member m = members[i];
        if (m.is_of_it) {
            m.at = m.next;
            m.has_begun = true;
            error = m.at ? look(r, &m, by) : 0;
        }
        if (m.at)
            members[left++] = m;
    }
    *count = left;
    return error;
}

/* Of one communicator or name. Messages and groups, which have no numbers among those that do, are
 * not of all ranks: that somebody has none of them is no miss. */
static int tell_group(struct idle_ranks *r, struct member *members, uint32_t count,
                      const struct rank_listener *l)
{
    enum rank_miss otherwise;
    enum match by = match_of(r, members, count, &otherwise);
    int error = 0;
    for (uint32_t i = 0; i < count && error == 0; i++)
        error = look(r, &members[i], by);
    while (error == 0 && count >= 2) {
        struct rank_meeting m;
        uint64_t first_end_ns;
        bool is_of_all = true, is_missed = false;
        if (by == BY_TIME)
            error = match_by_time(r, members, count);
        else
            match_by_number(members, count);
        for (uint32_t i = 0; i < count; i++) {
            is_of_all &= by != BY_NUMBER || !members[i].is_of_it || !members[i].since;
            is_missed |= !members[i].is_of_it && members[i].has_begun;
        }
        if (error == 0)
            error = gather(r, members, count, &m, &first_end_ns);
        is_missed &= is_of_all;
        if (error == 0 && !is_missed && is_meeting(&m, first_end_ns))
            error = tell_meeting(r, members, count, &m, l);
        else if (error == 0 && is_of_all && (is_missed || m.count >= 2))
            l->missed(l->context, &m.last,
                      is_missed && by == BY_NUMBER ? RANK_MISS_KERNEL : otherwise);
        if (error == 0)
            error = move_on(r, members, &count, by);
    }
    return error;
}

static int tell_meetings(struct idle_ranks *r, const struct rank_device *devices,
                         const struct rank_listener *l)
{
    struct member *members = calloc(r->count + 1u, sizeof *members);
    int error = members ? 0 : GPUPROF_NO_MEMORY;
    uint32_t count = 0;
    for (uint32_t i = 0; members && i < r->count; i++) {
        const struct rank_sequence *s = &r->list[i];
        if (s->communicator || devices[s->device].job != JOB_NONE)
            members[count++] = (struct member){.sequence = i,
                                               .device = devices[s->device],
                                               .communicator = s->communicator,
                                               .name = s->name,
                                               .at = s->first};
    }
    if (members)
        qsort(members, count, sizeof *members, compare_members);
    for (uint32_t i = 0, next; i < count && error == 0; i = next) {
        for (next = i + 1; next < count && compare_groups(&members[i], &members[next]) == 0; next++)
            ;
        error = next > i + 1 ? tell_group(r, members + i, next - i, l) : 0;
    }
    free(members);
    return error;
}

/* ---- and who waited -------------------------------------------------------------------------- */

/* Where one is on the way through the kernels of a device. */
struct place {
    uint64_t next; /* kernel + 1; 0: none */
    uint64_t begin_ns, until_ns;
    uint32_t waited_for;
    bool is_told;
};

static int go_on(struct idle_ranks *r, struct place *p)
{
    int error = 0;
    const struct rank_kernel *k = spool_at(&r->kernels, p->next - 1, false, &error);
    if (!k)
        return error;
    *p = (struct place){.next = k->next_there,
                        .begin_ns = k->begin_ns,
                        .until_ns = k->until_ns,
                        .waited_for = k->waited_for};
    return 0;
}

static int tell_span(struct idle_ranks *r, struct place *p, const struct rank_span *span,
                     const struct rank_listener *l)
{
    uint64_t at_ns = span->begin_ns;
    int error = 0;
    while (error == 0 && at_ns < span->end_ns) {
        if (p->until_ns <= at_ns) {
            if (!p->next || p->begin_ns >= span->end_ns) /* as all behind it do */
                return 0;
            error = go_on(r, p);
            continue;
        }
        at_ns = at_ns > p->begin_ns ? at_ns : p->begin_ns;
        uint64_t end_ns = p->until_ns < span->end_ns ? p->until_ns : span->end_ns;
        if (at_ns >= end_ns)
            return 0;
        error = l->waited(l->context, span->device, p->waited_for, !p->is_told, at_ns, end_ns);
        p->is_told = true;
        at_ns = end_ns;
    }
    return error;
}

/* The first kernel of each device. 0 or an error. */
static int find_first(struct idle_ranks *r, struct place *places, uint32_t device_count)
{
    int error = 0;
    for (uint32_t i = 0; i < device_count && i < r->devices.count && error == 0; i++) {
        const struct chain *chain = spool_at(&r->devices, i, false, &error);
        places[i].next = chain ? chain->first : 0;
    }
    return error;
}

/* On the way through those that are kept here. */
struct kept_spans {
    struct spool *spool;
    uint64_t at;
};

static int next_kept(void *context, struct rank_span *span)
{
    struct kept_spans *kept = context;
    int error = 0;
    const struct rank_span *found =
        kept->at < kept->spool->count ? spool_at(kept->spool, kept->at++, false, &error) : NULL;
    if (!found)
        return error;
    *span = *found;
    return 1;
}

int idle_ranks_tell(struct idle_ranks *r, const struct rank_device *devices, uint32_t device_count,
                    const struct rank_spans *alone, const struct rank_listener *l)
{
    struct place *places = calloc(device_count + 1u, sizeof *places);
    struct kept_spans kept = {.spool = &r->alone};
    const struct rank_spans here = {&kept, next_kept};
    struct rank_span span;
    int error = places ? tell_meetings(r, devices, l) : GPUPROF_NO_MEMORY;
    if (error == 0)
        error = find_first(r, places, device_count);
    alone = alone ? alone : &here;
    while (error == 0 && (error = alone->next(alone->context, &span)) > 0)
        error = tell_span(r, &places[span.device], &span, l);
    free(places);
    return error;
}
