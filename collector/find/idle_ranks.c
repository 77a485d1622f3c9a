/* SPDX-License-Identifier: Apache-2.0 */
#include "find/idle_ranks.h"

#include <stdlib.h>

#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "model/nccl_call.h"

struct kernel_span {
    uint64_t begin_ns;
    uint64_t next; /* the next one of its device + 1; 0: none */
    uint32_t device;
    uint32_t collective; /* place + 1; 0: of none */
};

struct alone_span {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t device;
};

void idle_ranks_init(struct idle_ranks *r)
{
    *r = (struct idle_ranks){.communicators.count_max = IDLE_COLLECTIVES_MAX,
                             .counts.count_max = IDLE_COLLECTIVES_MAX,
                             .numbers.count_max = IDLE_COLLECTIVES_MAX};
    spool_init(&r->kernels, sizeof(struct kernel_span));
    spool_init(&r->alone, sizeof(struct alone_span));
    spool_init(&r->last, sizeof(uint64_t));
}

void idle_ranks_release(struct idle_ranks *r)
{
    free(r->list);
    key_map_release(&r->communicators);
    key_map_release(&r->counts);
    key_map_release(&r->numbers);
    spool_release(&r->kernels);
    spool_release(&r->alone);
    spool_release(&r->last);
}

int idle_ranks_call(struct idle_ranks *r, const struct slice *s)
{
    const struct event *e = &s->event;
    struct nccl_call call;
    if (!e->record->correlation || e->function->class != API_LAUNCH)
        return 0;
    const struct range *range = walk_range(s, false);
    if (!range || !nccl_call_of(range, &call) || !call.communicator)
        return 0;
    struct key key = {e->process->index, e->record->correlation, 0};
    int error = key_map_set(&r->communicators, key, call.communicator);
    return error == GPUPROF_LIMIT ? 0 : error;
}

/* The collective that a kernel is part of: place + 1, 0: none. 0 or GPUPROF_NO_MEMORY. */
static int collective_of(struct idle_ranks *r, const struct slice *s, uint32_t device,
                         const struct kernel_name *name, uint32_t *place)
{
    struct key launch = {s->event.process->index, s->event.record->correlation, 0};
    uint64_t communicator = key_map_get(&r->communicators, launch);
    uint64_t what = communicator ? communicator : (uintptr_t)name;
    struct key count_key = {device, what, communicator != 0};
    uint64_t count = key_map_get(&r->counts, count_key);
    /* Communicators have numbers of their own; names are the same in all jobs. */
    struct key key = {what, count ? count : 1, communicator ? 0 : 1 + s->event.process->job};
    *place = 0;
    if (communicator)
        key_map_remove(&r->communicators, launch);
    int error = key_map_set(&r->counts, count_key, key.b + 1);
    if (error < 0)
        return error == GPUPROF_LIMIT ? 0 : error;
    uint64_t number = key_map_get(&r->numbers, key);
    if (!number) {
        struct idle_collective *list =
            array_room(r->list, r->count, &r->capacity, sizeof *list, 256);
        if (!list)
            return GPUPROF_NO_MEMORY;
        r->list = list;
        if ((error = key_map_set(&r->numbers, key, r->count + 1ull)) < 0)
            return error == GPUPROF_LIMIT ? 0 : error;
        list[r->count] =
            (struct idle_collective){.first_end_ns = UINT64_MAX, .by_name = !communicator};
        number = ++r->count;
    }
    *place = (uint32_t)number;
    return 0;
}

int idle_ranks_kernel(struct idle_ranks *r, const struct slice *s, uint32_t device,
                      const struct kernel_name *name)
{
    const struct event *e = &s->event;
    struct kernel_span span = {.begin_ns = e->begin_ns, .device = device};
    int error = collective_of(r, s, device, name, &span.collective);
    if (error < 0)
        return error;
    if (span.collective) {
        struct idle_collective *c = &r->list[span.collective - 1];
        c->first_ns = c->count++ ? c->first_ns : e->begin_ns;
        c->last = device; /* they come in the order of time */
        c->last_ns = e->begin_ns;
        c->first_end_ns = e->end_ns < c->first_end_ns ? e->end_ns : c->first_end_ns;
    }
    static const uint64_t none;
    while (r->last.count <= device)
        if ((error = spool_append(&r->last, &none)) < 0)
            return error;
    uint64_t *last = spool_at(&r->last, device, true, &error);
    if (!last)
        return error;
    uint64_t before = *last;
    *last = r->kernels.count + 1;
    if ((error = spool_append(&r->kernels, &span)) < 0 || !before)
        return error;
    struct kernel_span *previous = spool_at(&r->kernels, before - 1, true, &error);
    if (!previous)
        return error;
    previous->next = r->kernels.count;
    return 0;
}

int idle_ranks_alone(struct idle_ranks *r, uint32_t device, uint64_t begin_ns, uint64_t end_ns)
{
    struct alone_span span = {.begin_ns = begin_ns, .end_ns = end_ns, .device = device};
    return spool_append(&r->alone, &span);
}

/* ---- behind the last ------------------------------------------------------------------------- */

/* Where one is on the way through the kernels of a device. */
struct place {
    uint64_t next; /* kernel + 1; 0: none */
    struct kernel_span kernel;
    uint64_t until_ns; /* for so long it waited ... */
    uint32_t waited_for;
    bool is_told;
};

/* The collective that the kernel and another rank's are; NULL: none. */
static const struct idle_collective *joined_by(const struct idle_ranks *r, const bool *job,
                                               const struct kernel_span *kernel)
{
    const struct idle_collective *c = kernel->collective ? &r->list[kernel->collective - 1] : NULL;
    bool is_one = c && c->count >= 2 && c->first_end_ns > c->last_ns &&
                  (!c->by_name || (job[kernel->device] && job[c->last]));
    return is_one ? c : NULL;
}

/* Until when the kernel waited for another rank; 0: it did not. */
static uint64_t waits_until(const struct idle_ranks *r, const bool *job,
                            const struct kernel_span *kernel, uint32_t *waited_for)
{
    const struct idle_collective *c = joined_by(r, job, kernel);
    if (!c || c->last == kernel->device)
        return 0;
    *waited_for = c->last;
    return c->last_ns;
}

static int go_on(struct idle_ranks *r, const bool *job, struct place *p)
{
    int error = 0;
    const struct kernel_span *kernel = spool_at(&r->kernels, p->next - 1, false, &error);
    if (!kernel)
        return error;
    p->kernel = *kernel;
    p->next = kernel->next;
    p->until_ns = waits_until(r, job, kernel, &p->waited_for);
    p->is_told = false;
    return 0;
}

static int tell_span(struct idle_ranks *r, const bool *job, struct place *p,
                     const struct alone_span *span, idle_wait_fn *tell, void *context)
{
    uint64_t at_ns = span->begin_ns;
    int error = 0;
    while (error == 0 && at_ns < span->end_ns) {
        if (p->until_ns <= at_ns) {
            if (!p->next)
                return 0;
            error = go_on(r, job, p);
            continue;
        }
        at_ns = at_ns > p->kernel.begin_ns ? at_ns : p->kernel.begin_ns;
        uint64_t end_ns = p->until_ns < span->end_ns ? p->until_ns : span->end_ns;
        if (at_ns >= end_ns)
            return 0;
        error = tell(context, span->device, p->waited_for, !p->is_told, at_ns, end_ns);
        p->is_told = true;
        at_ns = end_ns;
    }
    return error;
}

int idle_ranks_tell(struct idle_ranks *r, const bool *job, uint32_t device_count,
                    idle_joined_fn *joined, idle_wait_fn *tell, void *context)
{
    struct place *places = calloc(device_count + 1u, sizeof *places);
    int error = places ? 0 : GPUPROF_NO_MEMORY;
    for (uint64_t i = r->kernels.count; error == 0 && i; i--) {
        const struct kernel_span *kernel = spool_at(&r->kernels, i - 1, false, &error);
        const struct idle_collective *c = kernel ? joined_by(r, job, kernel) : NULL;
        if (kernel)
            places[kernel->device].next = i; /* at last its first one */
        if (c)
            joined(context, kernel->device, c);
    }
    for (uint64_t i = 0; error == 0 && i < r->alone.count; i++) {
        const struct alone_span *found = spool_at(&r->alone, i, false, &error);
        if (!found)
            break;
        struct alone_span span = *found;
        error = tell_span(r, job, &places[span.device], &span, tell, context);
    }
    free(places);
    return error;
}
