/* SPDX-License-Identifier: Apache-2.0 */
/* What devices do: work of a kind, or nothing. */
#include "find/idle_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "find/work_places.h"
#include "model/nccl_call.h"
#include "record/gpu_record.h"

enum kernel_class { KERNEL_UNSEEN /* 0 */, KERNEL_COMPUTES, KERNEL_COMMUNICATES };

/* Of steps, ranges or windows: then a device's window is from their begin, or the end of the work
 * before its first there, to their end, or that of its last work there. So those of steps that
 * follow one another do so, too. */
static bool is_piece(const struct idle *d)
{
    const struct walk_filter *f = d->walk->filter;
    return f && f->is_of_time && !f->is_span;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Of a piece from one time to another devices are followed as in the whole, and what is before and
 * behind it is not counted. */
static uint64_t cut(const struct idle *d, uint64_t ns)
{
    const struct walk_filter *f = d->walk->filter;
    return f && f->is_span ? earlier(later(ns, f->from_ns), f->to_ns) : ns;
}

/* What of that time is counted. */
static uint64_t counted_ns(const struct idle *d, uint64_t begin_ns, uint64_t end_ns)
{
    return cut(d, end_ns) - cut(d, begin_ns);
}

/* NULL: no memory, or too many of them (*error is 0). */
static struct idle_device *device_of(struct idle *d, const struct idle_process *p,
                                     const struct event *e, int *error)
{
    uint64_t number = record_arg(e->record, KERNEL_DEVICE);
    struct idle_device *device = d->device_count ? &d->devices[d->last_device] : NULL;
    if (device && device->process == e->process && device->device == number)
        return device;
    struct key key = {e->process->index, number, 0};
    uint64_t place = key_map_get(&d->device_of, key);
    *error = 0;
    if (!place && d->device_count == IDLE_DEVICES_MAX)
        return NULL;
    uint32_t ranked = place ? 0 : idle_ranked(d, e->process, number, error);
    if (!place && !ranked)
        return NULL;
    if (!place) {
        *error = GPUPROF_NO_MEMORY;
        if (ARRAY_PUSH(d->devices, d->device_count, NULL) < 0)
            return NULL;
        struct idle_device *made = &d->devices[d->device_count - 1];
        uint64_t number_before = is_piece(d) ? key_map_get(&d->before_of, key) : 0;
        const struct idle_before *before =
            number_before ? &d->befores[number_before - 1] : &(struct idle_before){0};
        struct time_span span = {p->begin_ns, 0};
        if (is_piece(d))
            span = d->walk->filter->bounds(d->walk->filter->context, e->process);
        uint64_t begin_ns = earlier(later(before->until_ns, span.begin_ns), e->begin_ns);
        *made = (struct idle_device){.process = e->process,
                                     .device = number,
                                     .ranked = ranked - 1,
                                     .begin_ns = cut(d, begin_ns),
                                     .to_ns = span.end_ns,
                                     .first_ns = e->begin_ns,
                                     .at_ns = begin_ns,
                                     .kernel_ns = before->kernel_ns,
                                     .before = before->last,
                                     .launcher = before->launcher};
        made->until_ns[IDLE_OTHER] = before->until_ns;
        if (key_map_set(&d->device_of, key, place = d->device_count) < 0)
            return NULL;
        d->ranked[ranked - 1].place = d->device_count - 1;
        *error = 0;
    }
    d->last_device = (uint32_t)place - 1;
    return &d->devices[d->last_device];
}

/* Of a part, before which the others are over. Returns when it began. */
static inline uint64_t spend_part(const struct idle *d, struct idle_device *device,
                                  enum idle_part part, uint64_t to_ns)
{
    uint64_t end_ns = earlier(device->until_ns[part], to_ns), at_ns = device->at_ns;
    if (end_ns > at_ns) {
        device->parts[part] += counted_ns(d, at_ns, end_ns);
        device->at_ns = end_ns;
    }
    return at_ns;
}

/* The device's time up to then, but for a gap at its end, which begins at at_ns. 0 or an error. */
static inline int spend(struct idle *d, struct idle_device *device, uint64_t to_ns)
{
    int error = 0;
    spend_part(d, device, IDLE_COMPUTE, to_ns);
    uint64_t at_ns =
        later(spend_part(d, device, IDLE_COMMUNICATING, to_ns), device->until_ns[IDLE_OTHER]);
    if (idle_follows_ranks(d) && at_ns < device->at_ns)
        error = idle_ranks_alone(&d->ranks, device->ranked, cut(d, at_ns), cut(d, device->at_ns));
    spend_part(d, device, IDLE_COPYING, to_ns);
    spend_part(d, device, IDLE_OTHER, to_ns);
    return error;
}

static uint64_t last_work_ns(const struct idle_device *device, unsigned parts)
{
    uint64_t ns = 0;
    for (unsigned part = IDLE_COMPUTE; part < parts; part++)
        ns = later(ns, device->until_ns[part]);
    return ns;
}

static struct idle_rows *rows_of(struct idle *d, const struct idle_device *device)
{
    return device->aside && device->aside->is_open ? &device->aside->rows : &d->rows;
}

/* Was some of what the rows got since most_ns was set to 0 the longest gap? */
static void keep_rest(struct idle *d, struct idle_device *device, const struct idle_rows *rows)
{
    if (rows == &d->rows && rows->most_ns > device->rested_ns) {
        device->rested_ns = rows->most_ns;
        device->rested = rows->most;
    }
}

/* What is held of the device's gaps is the copies' that ended them, all of it, or (call_ns) what a
 * call that begins then may have waited for. 0 or GPUPROF_NO_MEMORY. */
static int give_held(struct idle *d, struct idle_device *device, uint64_t call_ns)
{
    struct idle_rows *rows = rows_of(d, device);
    if (!device->held || !device->held->span_count)
        return 0;
    d->held_count -= device->held->span_count;
    rows->most_ns = 0;
    int error = idle_held_give(device->held, last_work_ns(device, IDLE_PARTS), call_ns, rows,
                               device->causes);
    keep_rest(d, device, rows);
    return error;
}

/* From the end of the device's time in the piece on. */
static int open_aside(struct idle_device *device)
{
    if (!device->aside)
        device->aside = calloc(1, sizeof *device->aside);
    if (!device->aside)
        return GPUPROF_NO_MEMORY;
    struct idle_aside *a = device->aside;
    a->idle_ns = device->idle_ns;
    a->stopped_ns = device->stopped_ns;
    a->other_ns = device->parts[IDLE_OTHER];
    memcpy(a->causes, device->causes, sizeof a->causes);
    a->own = device->own;
    a->is_open = true;
    return 0;
}

static bool has_aside(const struct idle_device *device)
{
    return device->aside && device->aside->is_open;
}

/* Is what it has aside in the device's time after all? 0 or an error. */
static int close_aside(struct idle *d, struct idle_device *device, bool counts)
{
    struct idle_aside *a = device->aside;
    int error = give_held(d, device, 0);
    for (uint32_t i = 0; counts && error == 0 && i < a->rows.count; i++)
        error = idle_rows_add_sum(&d->rows, &a->rows.list[i]);
    if (!counts) {
        device->idle_ns = a->idle_ns;
        device->stopped_ns = a->stopped_ns;
        device->parts[IDLE_OTHER] = a->other_ns;
        memcpy(device->causes, a->causes, sizeof a->causes);
        device->own = a->own;
    }
    idle_rows_release(&a->rows);
    a->is_open = false;
    return error;
}

/* The first time that is not over at at_ns and of which nothing is known of the device: recording
 * was stopped, or there were calls alone. False: there is none. */
static bool find_unknown(const struct idle_process *p, struct idle_device *device, uint64_t at_ns,
                         struct idle_pause *unknown)
{
    for (; device->pause < p->pause_count && p->pauses[device->pause].end_ns <= at_ns;
         device->pause++)
        device->unknown_ns = later(device->unknown_ns, p->pauses[device->pause].end_ns);
    for (; device->blind < p->blind_count && p->blind[device->blind].end_ns <= at_ns;
         device->blind++)
        device->unknown_ns = later(device->unknown_ns, p->blind[device->blind].end_ns);
    bool is_paused = device->pause < p->pause_count, is_blind = device->blind < p->blind_count;
    *unknown = is_paused ? p->pauses[device->pause] : (struct idle_pause){0};
    if (is_blind && (!is_paused || p->blind[device->blind].begin_ns < unknown->begin_ns))
        *unknown =
            (struct idle_pause){p->blind[device->blind].begin_ns, p->blind[device->blind].end_ns};
    return is_paused || is_blind;
}

/* The gap, but for the time in which nothing was recorded. `how` NULL: it is held. */
static int charge(struct idle *d, struct idle_device *device, struct idle_gap *gap,
                  int (*how)(struct idle_rows *, uint64_t *, const struct idle_gap *))
{
    const struct idle_process *p = &d->processes[device->process->index];
    uint64_t end_ns = gap->end_ns;
    struct idle_rows *rows = rows_of(d, device);
    int error = 0;
    rows->most_ns = 0;
    while (error == 0 && gap->begin_ns < end_ns) {
        struct idle_pause unknown;
        bool is_known = !find_unknown(p, device, gap->begin_ns, &unknown);
        uint64_t waited_ns = 0;
        gap->end_ns = is_known ? end_ns : earlier(later(unknown.begin_ns, gap->begin_ns), end_ns);
        gap->unknown_ns =
            how == idle_gap_charge && device->unknown_ns > gap->busy_ns ? &waited_ns : NULL;
        if (gap->begin_ns < gap->end_ns) {
            device->idle_ns += counted_ns(d, gap->begin_ns, gap->end_ns);
            error = how ? how(rows, device->causes, gap) : idle_held_add(device->held, gap);
        }
        gap->unknown_ns = NULL;
        device->idle_ns -= waited_ns;
        device->stopped_ns += waited_ns;
        gap->begin_ns = gap->end_ns;
        if (!is_known && gap->begin_ns < end_ns) {
            uint64_t until_ns = earlier(unknown.end_ns, end_ns);
            device->stopped_ns += counted_ns(d, gap->begin_ns, until_ns);
            gap->begin_ns = until_ns;
        }
    }
    device->at_ns = end_ns;
    keep_rest(d, device, rows);
    return error;
}

static struct idle_gap gap_of(const struct idle *d, const struct idle_device *device,
                              uint64_t end_ns)
{
    const struct idle_process *p = &d->processes[device->process->index];
    return (struct idle_gap){.begin_ns = device->at_ns,
                             .end_ns = end_ns,
                             .busy_ns = last_work_ns(device, IDLE_PARTS),
                             .compute_ns = device->kernel_ns,
                             .from_ns = cut(d, 0),
                             .to_ns = cut(d, UINT64_MAX),
                             .process = device->process->index,
                             .device = (uint32_t)(device - d->devices),
                             .before = device->before,
                             .early = &p->early,
                             .host = &d->host,
                             .is_first = !p->has_worked,
                             .first_call_ns = p->first_call_ns};
}

/* By the kernel's name. */
static enum idle_part part_of_name(struct idle *d, const struct event *e, uint64_t number,
                                   uint8_t *class, const struct kernel_name **name)
{
    *name = walk_kernel(d->walk, e->process, number);
    bool communicates = *name && nccl_is_kernel(*name);
    if (class)
        *class = communicates ? KERNEL_COMMUNICATES : KERNEL_COMPUTES;
    return communicates ? IDLE_COMMUNICATING : IDLE_COMPUTE;
}

static inline enum idle_part part_of(struct idle *d, struct idle_process *p, const struct event *e,
                                     const struct kernel_name **name)
{
    const struct record *r = e->record;
    *name = NULL;
    if (r->type == RECORD_COPY || r->type == RECORD_SET)
        return IDLE_COPYING;
    uint64_t number = r->type == RECORD_KERNEL ? record_arg(r, KERNEL_NAME_INDEX) : 0;
    uint8_t *class = number < p->kernel_count ? &p->kernels[number] : NULL;
    if (!number || (class && *class == KERNEL_COMPUTES))
        return IDLE_COMPUTE;
    if (class && *class == KERNEL_COMMUNICATES && !idle_follows_ranks(d))
        return IDLE_COMMUNICATING;
    return part_of_name(d, e, number, class, name);
}

/* Room for what a kernel of that number is; each has a record. 0 or GPUPROF_NO_MEMORY. */
static int know_kernel(struct idle_process *p, const struct record *r, uint64_t record_count)
{
    uint64_t number = r->type == RECORD_KERNEL ? record_arg(r, KERNEL_NAME_INDEX) : 0;
    if (number < p->kernel_count || number >= IDLE_KERNELS_MAX || number > record_count)
        return 0;
    uint8_t *kernels = array_reach(p->kernels, &p->kernel_count, (uint32_t)number, sizeof *kernels);
    p->kernels = kernels ? kernels : p->kernels;
    return kernels ? 0 : GPUPROF_NO_MEMORY;
}

/* As idle_gap_charge does where the host was ahead: mostly it is. */
static void charge_own(const struct idle *d, struct idle_device *device, uint64_t to_ns)
{
    uint64_t end_ns = later(to_ns, device->at_ns), ns = counted_ns(d, device->at_ns, end_ns);
    device->own.ns += ns;
    device->own.count += ns > 0;
    if (ns > device->own.longest_ns) {
        device->own.longest_ns = ns;
        device->own.longest_at_ns = cut(d, device->at_ns);
    }
    device->at_ns = end_ns;
}

/* Until the process's first work, on another device, one that it uses later starts up, too. */
static int charge_start(struct idle *d, const struct idle_process *p, struct idle_device *device)
{
    struct idle_gap gap = p->first;
    gap.begin_ns = device->at_ns;
    gap.device = (uint32_t)(device - d->devices);
    return charge(d, device, &gap, idle_gap_charge);
}

static bool is_copy(const struct slice *s)
{
    unsigned type = s->event.record->type;
    return type == RECORD_COPY || type == RECORD_SET;
}

static bool has_held(const struct idle_device *device)
{
    return device->held && device->held->span_count;
}

/* Does that work tell whose it is? */
static bool tells_held(const struct idle_device *device, const struct slice *s)
{
    return has_held(device) && !is_copy(s);
}

/* What that work ends. */
static struct idle_gap ended_gap(const struct idle *d, const struct idle_device *device,
                                 const struct slice *s, struct idle_maker maker)
{
    const struct idle_process *p = &d->processes[device->process->index];
    struct idle_gap gap = gap_of(d, device, s->event.begin_ns);
    gap.maker = maker;
    gap.call_begin_ns = s->is_called ? s->call.begin_ns : p->call_begin_ns;
    gap.call_end_ns = s->is_called ? s->call.end_ns : p->call_end_ns;
    gap.function = s->is_called ? s->call.function : IDLE_NONE;
    gap.stack = s->is_called ? s->call.stack : 0;
    return gap;
}

/* That work, which is not in the piece, is behind the device's time there: until then it did no
 * more than others that are not. 0 or an error. */
static int leave_piece(struct idle *d, struct idle_device *device, const struct slice *s,
                       struct idle_maker maker)
{
    int error = give_held(d, device, 0);
    if (error == 0)
        error = spend(d, device, device->to_ns);
    if (error == 0 && device->at_ns < device->to_ns) {
        struct idle_gap gap = ended_gap(d, device, s, maker);
        gap.end_ns = device->to_ns;
        error = charge(d, device, &gap, idle_gap_charge);
    }
    return error == 0 ? open_aside(device) : error;
}

/* Of a copy's gap: whose it is will be known when a kernel comes. 0 or an error. */
static int hold(struct idle *d, struct idle_device *device, struct idle_gap *gap)
{
    struct idle_held *h = device->held ? device->held : calloc(1, sizeof *h);
    if (!h)
        return GPUPROF_NO_MEMORY;
    device->held = h;
    if (!h->span_count)
        h->serial = ++d->held_serial;
    d->threads[gap->maker.index]->held = h->serial;
    d->held_count -= h->span_count;
    int error = charge(d, device, gap, NULL);
    d->held_count += h->span_count;
    return error;
}

/* A kernel comes: what is held of those who copied is theirs, unless it is known to be another's. A
 * thread that has made no call yet (a damaged file has work before its call) is another one. 0 or
 * an error. */
static int settle_held(struct idle *d, struct idle_device *device, const struct slice *s,
                       const struct idle_thread *maker)
{
    const struct idle_held *h = device->held;
    bool is_others = s->is_called && (!maker || maker->held != h->serial);
    return give_held(d, device, is_others ? s->call.begin_ns : 0);
}

/* And the rest is of him who made the kernel. 0 or an error. */
static int charge_held(struct idle *d, struct idle_device *device, const struct slice *s,
                       struct idle_maker maker)
{
    struct idle_rows *rows = rows_of(d, device);
    struct idle_gap gap = ended_gap(d, device, s, maker);
    gap.before = device->launcher;
    rows->most_ns = 0;
    int error = idle_held_charge(device->held, &gap, rows, device->causes);
    keep_rest(d, device, rows);
    return error;
}

/* The gap before that work; before the process's first work there may be none. */
static __attribute__((noinline)) int take_gap(struct idle *d, struct idle_device *device,
                                              const struct slice *s, struct idle_maker maker)
{
    struct idle_process *p = &d->processes[device->process->index];
    struct idle_gap gap = ended_gap(d, device, s, maker);
    int error = 0;
    if (!p->has_worked)
        p->first = gap;
    else if (device->at_ns < p->first.end_ns)
        error = charge_start(d, p, device);
    gap.begin_ns = device->at_ns;
    if (!is_copy(s) && device->launcher.thread) /* others may have copied beside its kernel */
        gap.before = device->launcher;
    bool holds =
        is_copy(s) && maker.thread && s->is_called && idle_held_may_hold(&gap, &device->launcher);
    if (error == 0 && holds && d->held_count >= IDLE_HELD_MAX)
        error = give_held(d, device, 0);
    if (error == 0 && holds && d->held_count < IDLE_HELD_MAX)
        return hold(d, device, &gap);
    if (error < 0)
        return error;
    if (!tells_held(device, s))
        idle_start_gap(d, device, &gap);
    return charge(d, device, &gap, tells_held(device, s) ? NULL : idle_gap_charge);
}

/* Of the work since the last collective the longest. 0 or an error. */
static int keep_longest(struct idle *d, struct idle_device *device, const struct slice *s)
{
    uint64_t ns = s->event.end_ns - s->event.begin_ns;
    if (ns <= device->worked_ns)
        return 0;
    device->worked_ns = ns;
    device->worked = (struct idle_place){.function = IDLE_NONE};
    return s->is_called ? work_place_of(d->walk, &s->call, &device->worked) : 0;
}

/* With where the device was since the one before. A hidden one take_hidden_collective has. 0 or an
 * error. */
static int take_collective(struct idle *d, struct idle_device *device, const struct slice *s,
                           const struct kernel_name *name)
{
    struct rank_kernel_facts facts = {.idle_ns = device->rested_ns};
    struct arrival_place place = {.process = s->event.process->index};
    struct idle_place worked = device->worked;
    bool has_rested = device->rested_ns > 0;
    device->rested_ns = device->worked_ns = 0;
    device->worked = (struct idle_place){.function = IDLE_NONE};
    if (s->is_hidden)
        return 0;
    int error = arrivals_kind(&d->arrivals, name, &facts.kind);
    if (error == 0 && has_rested) {
        place.place = d->rows.list[device->rested].place;
        place.place.epoch = 0;
        place.cause = d->rows.list[device->rested].cause;
        error = arrivals_place(&d->arrivals, &place, &facts.idle_place);
    }
    if (error == 0 && (worked.stack || worked.kind)) {
        place.place = worked;
        place.cause = ARRIVAL_WORKED;
        error = arrivals_place(&d->arrivals, &place, &facts.work_place);
    }
    return error < 0 ? error : idle_ranks_kernel(&d->ranks, s, device->ranked, name, &facts);
}

/* Where calls are passed by, the last one that is recorded says nothing of work without its call.
 */
static struct idle_maker maker_of(const struct idle *d, const struct idle_process *p,
                                  const struct slice *s)
{
    if (s->is_called && s->call.thread < d->walk->rec->thread_count)
        return idle_maker_of(d, s->call.thread);
    return s->event.begin_ns < p->sampled_ns ? p->maker : (struct idle_maker){0};
}

/* In which the program's own code ran, or could have. */
static inline uint64_t host_ns(const struct idle_device *device)
{
    return device->causes[IDLE_HOST] + device->causes[IDLE_PREEMPTED] +
           device->causes[IDLE_NOTHING];
}

/* What began before a piece of time lasts into it. */
static bool is_counted(const struct idle *d, const struct slice *s)
{
    return !s->is_hidden || d->walk->filter->is_whole;
}

int idle_take_work(struct idle *d, struct idle_process *p, const struct slice *s)
{
    const struct event *e = &s->event;
    int error = know_kernel(p, e->record, e->process->record_count);
    struct idle_device *device = error < 0 ? NULL : device_of(d, p, e, &error);
    if (!device)
        return error;
    struct idle_maker maker = maker_of(d, p, s);
    uint64_t before_ns = host_ns(device);
    if (tells_held(device, s))
        error = settle_held(d, device, s, maker.thread);
    if (!s->is_hidden)
        device->to_ns = later(device->to_ns, e->end_ns);
    else if (error == 0 && is_piece(d) && e->begin_ns >= device->to_ns && !has_aside(device))
        error = leave_piece(d, device, s, maker);
    if (error < 0 || (error = spend(d, device, e->begin_ns)) < 0)
        return error;
    if (s->is_called && s->call.end_ns <= device->at_ns && !p->pause_count && !p->blind_count &&
        p->has_worked && e->begin_ns - device->at_ns < IDLE_NEAR_NS) {
        charge_own(d, device, e->begin_ns);
    } else if (device->at_ns < e->begin_ns || !p->has_worked) {
        error = take_gap(d, device, s, maker);
    }
    if (error == 0 && tells_held(device, s))
        error = charge_held(d, device, s, maker);
    if (device->once && host_ns(device) > before_ns)
        idle_start_host(d, device, e->begin_ns, host_ns(device) - before_ns);
    const struct kernel_name *name;
    enum idle_part part = part_of(d, p, e, &name);
    if (part != IDLE_COPYING) {
        device->kernel_ns = later(device->kernel_ns, e->end_ns);
        device->launcher = s->is_called ? maker : (struct idle_maker){0};
    }
    part = is_counted(d, s) ? part : IDLE_OTHER;
    if (error == 0 && part != IDLE_OTHER && idle_follows_ranks(d))
        error = part == IDLE_COMMUNICATING ? take_collective(d, device, s, name)
                                           : keep_longest(d, device, s);
    if (device->until_ns[part] < e->end_ns)
        device->until_ns[part] = e->end_ns;
    if (maker.thread) {
        device->before = maker;
        d->threads[maker.index]->work_ns += s->is_hidden ? 0 : e->end_ns - e->begin_ns;
    }
    p->has_worked = true;
    return error < 0 || s->is_hidden || !has_aside(device) ? error : close_aside(d, device, true);
}

/* Of another rank it may be that a collective in the piece waited for. 0 or an error. */
static int take_hidden_collective(struct idle *d, struct idle_process *p, const struct slice *s)
{
    const struct walk_filter *f = d->walk->filter;
    const struct event *e = &s->event;
    uint64_t device = record_arg(e->record, KERNEL_DEVICE);
    struct rank_kernel_facts facts = {.is_hidden = true};
    const struct kernel_name *name;
    int error = know_kernel(p, e->record, e->process->record_count);
    if (error < 0 || part_of(d, p, e, &name) != IDLE_COMMUNICATING)
        return error;
    if (!f->reaches(f->context, NULL, device, 0, 0)) {
        d->leaves_out_ranks = true;
        return 0;
    }
    uint32_t ranked = idle_ranked(d, e->process, device, &error);
    if (ranked)
        error = arrivals_kind(&d->arrivals, name, &facts.kind);
    return ranked && error == 0 ? idle_ranks_kernel(&d->ranks, s, ranked - 1, name, &facts) : error;
}

/* Of what is before and behind a piece from one time to another, and far from the gaps at its
 * edges, only what comes last matters. False: it is near by. */
static bool pass_far(struct idle *d, const struct idle_process *p, const struct slice *s)
{
    const struct walk_filter *f = d->walk->filter;
    const struct event *e = &s->event;
    struct idle_device *device = d->device_count ? &d->devices[d->last_device] : NULL;
    if (!f->is_span || !device || device->process != e->process || !p->has_worked ||
        device->device != record_arg(e->record, KERNEL_DEVICE) ||
        (e->end_ns > f->from_ns && device->at_ns < f->to_ns))
        return false;
    struct idle_maker maker = maker_of(d, p, s);
    bool may_hold = is_copy(s) && device->launcher.thread != maker.thread;
    if (has_held(device) || (may_hold && e->end_ns <= f->from_ns))
        return false;
    if (!is_copy(s)) {
        device->kernel_ns = later(device->kernel_ns, e->end_ns);
        device->launcher = s->is_called ? maker : (struct idle_maker){0};
    }
    device->until_ns[IDLE_OTHER] = later(device->until_ns[IDLE_OTHER], e->end_ns);
    device->at_ns = later(device->at_ns, e->begin_ns);
    if (maker.thread)
        device->before = maker;
    return true;
}

/* Of what is before the device's first work in a piece only what comes last matters. 0 or an error.
 */
static int take_before(struct idle *d, struct idle_process *p, const struct slice *s)
{
    const struct event *e = &s->event;
    struct key key = {e->process->index, record_arg(e->record, KERNEL_DEVICE), 0};
    uint32_t number;
    int error = KEY_MAP_ITEM(&d->before_of, key, d->befores, d->before_count, IDLE_DEVICES_MAX,
                             NULL, &number);
    p->has_worked = true;
    if (!number)
        return error;
    struct idle_before *before = &d->befores[number - 1];
    struct idle_maker maker = maker_of(d, p, s);
    before->until_ns = later(before->until_ns, e->end_ns);
    if (maker.thread)
        before->last = maker;
    if (!is_copy(s)) {
        before->kernel_ns = later(before->kernel_ns, e->end_ns);
        before->launcher = s->is_called ? maker : (struct idle_maker){0};
    }
    return 0;
}

__attribute__((noinline)) int idle_take_hidden_work(struct idle *d, struct idle_process *p,
                                                    const struct slice *s)
{
    const struct walk_filter *f = d->walk->filter;
    const struct event *e = &s->event;
    struct key key = {e->process->index, record_arg(e->record, KERNEL_DEVICE), 0};
    int error = idle_follows_ranks(d) ? take_hidden_collective(d, p, s) : 0;
    if (error < 0 || pass_far(d, p, s))
        return error;
    if (is_piece(d))
        return key_map_get(&d->device_of, key) ? idle_take_work(d, p, s) : take_before(d, p, s);
    return f->has_work && f->reaches(f->context, e->process, key.b, p->begin_ns,
                                     d->walk->last_ns[e->process->index])
               ? idle_take_work(d, p, s)
               : 0;
}

/* It does nothing any more, up to then. 0 or an error. */
static int charge_last(struct idle *d, struct idle_device *device, uint64_t end_ns)
{
    struct idle_gap gap = gap_of(d, device, end_ns);
    return charge(d, device, &gap, idle_gap_charge_last);
}

/* What it did where work is lost nobody knows, with what was not recorded in any case. 0 or an
 * error. */
static int pass_lost(struct idle *d, struct idle_device *device, uint64_t end_ns)
{
    struct time_span lost;
    int error = 0;
    if (!idle_lost_span(&d->processes[device->process->index].lost, end_ns, &lost))
        return 0;
    if (device->at_ns < lost.begin_ns)
        error = charge_last(d, device, lost.begin_ns);
    device->stopped_ns += counted_ns(d, device->at_ns, lost.end_ns);
    device->at_ns = later(device->at_ns, lost.end_ns);
    return error;
}

int idle_device_end(struct idle *d, struct idle_device *device)
{
    uint64_t end_ns = d->walk->last_ns[device->process->index];
    if (is_piece(d))
        end_ns = earlier(device->to_ns, later(end_ns, last_work_ns(device, IDLE_BUSY_PARTS)));
    device->end_ns = later(cut(d, end_ns), device->begin_ns);
    int error = give_held(d, device, 0);
    if (error == 0 && has_aside(device))
        error = close_aside(d, device, false);
    if (error == 0)
        error = spend(d, device, end_ns);
    if (error == 0 && !is_piece(d) && !d->walk->is_cut)
        error = pass_lost(d, device, end_ns);
    return error < 0 || device->at_ns >= end_ns ? error : charge_last(d, device, end_ns);
}
