/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each device: work by kind, and gaps. */
#include "analyse/idle_state.h"
#include "base/array.h"
#include "record/gpu_record.h"
#include "resolve/nccl_call.h"

/* True for a selection of steps, ranges or windows. A device's window then begins with them, or
 * after the work before its first there. It ends with them, or with its last work there. So windows
 * of consecutive steps are consecutive, too. */
static bool is_selection(const struct idle *d)
{
    const struct walk_filter *f = d->walk->filter;
    return f && f->is_of_time && !f->is_span;
}

/* The track of the event's device, created if new. NULL if out of memory, or with *error 0 if there
 * are too many. A view until the next call. */
static struct idle_track *track_of(struct idle *d, const struct event *e, int *error)
{
    uint64_t device = record_arg(e->record, KERNEL_DEVICE);
    uint32_t *recent = &d->way.recent[(e->process->index ^ device << 3) % IDLE_RECENT];
    struct idle_track *last = *recent ? &d->tracks[*recent - 1] : NULL;
    *error = 0;
    if (last && last->process == e->process && last->device == device)
        return last;
    const struct idle_track new = {.process = e->process, .device = device, .place = IDLE_NONE};
    *error = KEY_MAP_ITEM(&d->way.track_of, ((struct key){e->process->index, device, 0}), d->tracks,
                          d->track_count, IDLE_DEVICES_MAX, &new, recent);
    return *recent ? &d->tracks[*recent - 1] : NULL;
}

/* Opens a device's window at its first selected work. */
static int open_window(struct idle *d, const struct idle_process *p, struct idle_track *t,
                       const struct event *e)
{
    struct time_span span = {p->begin_ns, 0};
    if (is_selection(d))
        span = d->walk->filter->bounds(d->walk->filter->context, e->process);
    t->at_ns = min_of(max_of(t->until_ns[IDLE_OTHER], span.begin_ns), e->begin_ns);
    t->to_ns = span.end_ns;
    t->place = d->device_count;
    const struct idle_device device = {.process = e->process,
                                       .device = t->device,
                                       .begin_ns = idle_cut(d, t->at_ns),
                                       .first_ns = e->begin_ns};
    return ARRAY_PUSH(d->devices, d->device_count, &device);
}

/* Charges time to a part, after all parts of higher priority. Returns when it began. */
static inline uint64_t spend_part(struct idle *d, struct idle_track *t, enum idle_part part,
                                  uint64_t to_ns)
{
    uint64_t end_ns = min_of(t->until_ns[part], to_ns), at_ns = t->at_ns;
    if (end_ns > at_ns) {
        d->devices[t->place].parts[part] += idle_cut(d, end_ns) - idle_cut(d, at_ns);
        t->at_ns = end_ns;
    }
    return at_ns;
}

/* Charges the device's time up to then, without the gap at its end, which begins at at_ns. */
static inline int idle_device_spend(struct idle *d, struct idle_track *t, uint64_t to_ns)
{
    int error = 0;
    spend_part(d, t, IDLE_COMPUTE, to_ns);
    uint64_t at_ns = max_of(spend_part(d, t, IDLE_COMMUNICATING, to_ns), t->until_ns[IDLE_OTHER]);
    if (d->follows_ranks && at_ns < t->at_ns)
        error = idle_ranks_alone(&d->ranks, (uint32_t)(t - d->tracks), idle_cut(d, at_ns),
                                 idle_cut(d, t->at_ns));
    spend_part(d, t, IDLE_COPYING, to_ns);
    spend_part(d, t, IDLE_OTHER, to_ns);
    return error;
}

static uint64_t last_work_ns(const struct idle_track *t, unsigned parts)
{
    uint64_t ns = 0;
    for (unsigned part = IDLE_COMPUTE; part < parts; part++)
        ns = max_of(ns, t->until_ns[part]);
    return ns;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* The rows to charge to. */
static struct idle_rows *rows_of(struct idle *d, struct idle_track *t)
{
    struct idle_rows *rows = t->aside.is_open ? &t->aside.rows : &d->rows;
    rows->rest = t->aside.is_open ? NULL : &t->since.rest;
    return rows;
}

/* The first unknown time of the process's devices that ends after at_ns: recording was stopped, or
 * only calls were recorded. *over_ns: the end of the last one before. */
static struct time_span next_unknown(const struct idle_process *p, uint64_t at_ns,
                                     uint64_t *over_ns)
{
    struct time_span next = {UINT64_MAX, UINT64_MAX};
    uint32_t pause = ARRAY_UP_TO(p->pauses, p->pause_count, end_ns, at_ns);
    uint32_t blind = ARRAY_UP_TO(p->blind, p->blind_count, end_ns, at_ns);
    *over_ns =
        max_of(pause ? p->pauses[pause - 1].end_ns : 0, blind ? p->blind[blind - 1].end_ns : 0);
    if (pause < p->pause_count)
        next = p->pauses[pause];
    if (blind < p->blind_count && p->blind[blind].begin_ns < next.begin_ns)
        next = (struct time_span){p->blind[blind].begin_ns, p->blind[blind].end_ns};
    return next;
}

/* Charges or holds the gap without unknown time. */
static int charge(struct idle *d, struct idle_track *t, struct idle_gap gap, bool holds)
{
    const struct idle_process *p = &d->way.processes[t->process->index];
    struct idle_rows *rows = rows_of(d, t);
    uint64_t end_ns = gap.end_ns, over_ns;
    int error = 0;
    while (error == 0 && gap.begin_ns < end_ns) {
        struct time_span unknown = next_unknown(p, gap.begin_ns, &over_ns);
        gap.end_ns = min_of(max_of(unknown.begin_ns, gap.begin_ns), end_ns);
        gap.is_behind_unknown = !holds && !gap.is_last && over_ns > gap.busy_ns;
        if (gap.begin_ns < gap.end_ns)
            error = holds ? idle_held_add(&t->held, &gap) : idle_gap_charge(d, rows, &gap);
        gap.begin_ns = max_of(gap.end_ns, min_of(unknown.end_ns, end_ns));
    }
    t->at_ns = max_of(t->at_ns, end_ns);
    return error;
}

/* The gap from at_ns on; `call` NULL: no work ends it. */
static struct idle_gap gap_of(const struct idle *d, const struct idle_track *t, uint64_t end_ns,
                              const struct idle_submit *call)
{
    return (struct idle_gap){.begin_ns = t->at_ns,
                             .end_ns = end_ns,
                             .busy_ns = last_work_ns(t, IDLE_PARTS),
                             .compute_ns = t->kernel_ns,
                             .process = t->process->index,
                             .device = t->place,
                             .call = call ? *call : (struct idle_submit){0},
                             .before = t->before,
                             .is_first = !d->way.processes[t->process->index].has_worked,
                             .is_last = !call};
}

/* Charges held gaps to the copies that ended them. If `call` is given, only those in which its
 * kernel may have waited for a copy. */
static int give_held(struct idle *d, struct idle_track *t, const struct idle_submit *call)
{
    return t->held.count
               ? idle_held_give(d, &t->held, last_work_ns(t, IDLE_PARTS), call, rows_of(d, t))
               : 0;
}

/* Fast path of idle_gap_charge for work that was queued in time, the usual case. */
static void charge_own(const struct idle *d, struct idle_track *t, uint64_t to_ns)
{
    uint64_t end_ns = max_of(to_ns, t->at_ns), at_ns = idle_cut(d, t->at_ns);
    uint64_t ns = idle_cut(d, end_ns) - at_ns;
    t->own.ns += ns;
    t->own.count += ns > 0;
    if (ns > t->own.longest_ns) {
        t->own.longest_ns = ns;
        t->own.longest_at_ns = at_ns;
    }
    t->at_ns = end_ns;
}

static bool is_copy(const struct slice *s)
{
    unsigned type = s->event.record->type;
    return type == RECORD_COPY || type == RECORD_SET;
}

/* Charges or holds the gap before work; before the process's first work it may be empty. A copy's
 * gap may have to be held until the next kernel. */
static __attribute__((noinline)) int take_gap(struct idle *d, struct idle_track *t,
                                              const struct slice *s, const struct idle_submit *call)
{
    struct idle_process *p = &d->way.processes[t->process->index];
    struct idle_gap gap = gap_of(d, t, s->event.begin_ns, call);
    int error = 0;
    if (!p->has_worked)
        p->first = gap;
    else if (t->at_ns < p->first.end_ns) { /* a later device starts up until then, too */
        struct idle_gap start = p->first;
        start.begin_ns = t->at_ns;
        start.device = t->place;
        error = charge(d, t, start, false);
    }
    gap.begin_ns = t->at_ns;
    if (!is_copy(s) && t->launcher) /* others may have copied beside its kernel */
        gap.before = t->launcher;
    bool holds =
        is_copy(s) && s->is_called && call->thread && idle_held_may_hold(&gap, t->launcher);
    if (error == 0 && holds && t->held.count >= IDLE_HELD_MAX)
        error = give_held(d, t, NULL);
    holds |= !is_copy(s) && t->held.count;
    if (!holds)
        idle_start_gap(d, t, &gap);
    return error < 0 ? error : charge(d, t, gap, holds);
}

/* Unselected work ends the device's time in the selection: until then only unselected work ran.
 * What follows is set aside. */
static int leave_selection(struct idle *d, struct idle_track *t, const struct idle_submit *call)
{
    int error = give_held(d, t, NULL);
    if (error == 0)
        error = idle_device_spend(d, t, t->to_ns);
    if (error == 0 && t->at_ns < t->to_ns)
        error = charge(d, t, gap_of(d, t, t->to_ns, call), false);
    t->aside = (struct idle_aside){
        .other_ns = d->devices[t->place].parts[IDLE_OTHER], .own = t->own, .is_open = true};
    return error;
}

/* Adds the set-aside time to the device's time if it counts, else drops it. */
static int close_aside(struct idle *d, struct idle_track *t, bool counts)
{
    struct idle_aside *a = &t->aside;
    int error = a->is_open ? give_held(d, t, NULL) : 0;
    for (uint32_t i = 0; counts && error == 0 && i < a->rows.count; i++)
        error = idle_rows_add_sum(&d->rows, &a->rows.list[i]);
    if (a->is_open && !counts) {
        d->devices[t->place].parts[IDLE_OTHER] = a->other_ns;
        t->own = a->own;
    }
    idle_rows_release(&a->rows);
    a->is_open = false;
    return error;
}

/* ---- work ------------------------------------------------------------------------------------ */

static enum idle_part idle_device_part_of(struct idle *d, const struct event *e,
                                          const struct kernel_name **name)
{
    const struct record *r = e->record;
    *name = NULL;
    if (r->type == RECORD_COPY || r->type == RECORD_SET)
        return IDLE_COPYING;
    uint64_t number = r->type == RECORD_KERNEL ? record_arg(r, KERNEL_NAME_INDEX) : 0;
    struct idle_name *known =
        &d->way.names[(number ^ (uint64_t)e->process->index << 4) % IDLE_NAMES];
    if (!number)
        return IDLE_COMPUTE;
    if (known->number != number || known->process != e->process) {
        const struct kernel_name *found = walk_kernel(d->walk, e->process, number);
        *known = (struct idle_name){e->process, number, found, found && nccl_is_kernel(found)};
    }
    *name = known->name;
    return known->communicates ? IDLE_COMMUNICATING : IDLE_COMPUTE;
}

/* Notes the longest work since the last collective. */
static int keep_longest(struct idle *d, struct idle_track *t, const struct slice *s)
{
    uint64_t ns = s->event.end_ns - s->event.begin_ns;
    if (ns <= t->since.worked_ns)
        return 0;
    t->since.worked_ns = ns;
    t->since.worked = (struct idle_place){.function = IDLE_NONE};
    return s->is_called ? work_place_of(d->walk, &s->call, &t->since.worked) : 0;
}

static int number_place(struct idle *d, const struct idle_track *t, const struct idle_place *at,
                        uint32_t cause, uint32_t *number)
{
    struct work_place place = {*at, t->process->index, cause, false, NULL};
    place.place.epoch = 0;
    return work_places_number(&d->arrivals.places, &place, number);
}

/* Adds a collective, with its device's longest gap and work since the previous one. */
static int take_collective(struct idle *d, struct idle_track *t, const struct slice *s,
                           const struct kernel_name *name)
{
    const struct idle_since since = t->since;
    const struct idle_row *gap = since.rest.ns ? &d->rows.list[since.rest.row] : NULL;
    struct span kernel = {0};
    uint32_t kind, idle = 0, work = 0;
    t->since = (struct idle_since){.worked = {.function = IDLE_NONE}};
    if (s->is_filtered) /* take_filtered_collective adds it */
        return 0;
    int error = arrivals_kind(&d->arrivals, name, &kind);
    if (error == 0 && gap)
        error = number_place(d, t, &gap->place, gap->cause, &idle);
    if (error == 0 && (since.worked.stack || since.worked.kind))
        error = number_place(d, t, &since.worked, ARRIVAL_WORKED, &work);
    if (error < 0)
        return error;
    kernel.numbers[KERNEL_KIND] = kind;
    kernel.numbers[KERNEL_IDLE_NS] = idle ? since.rest.ns : 0;
    kernel.numbers[KERNEL_IDLE_PLACE] = idle;
    kernel.numbers[KERNEL_WORK_PLACE] = work;
    return idle_ranks_kernel(&d->ranks, s, (uint32_t)(t - d->tracks), name, &kernel);
}

/* Adds an unselected collective, since a selected one may have waited for it. */
static int take_filtered_collective(struct idle *d, const struct slice *s)
{
    const struct walk_filter *f = d->walk->filter;
    const struct event *e = &s->event;
    const struct kernel_name *name;
    struct span kernel = {0};
    uint32_t kind;
    int error = 0;
    if (idle_device_part_of(d, e, &name) != IDLE_COMMUNICATING)
        return 0;
    if (!f->reaches(f->context, NULL, record_arg(e->record, KERNEL_DEVICE), 0, 0)) {
        d->way.leaves_out_ranks = true;
        return 0;
    }
    const struct idle_track *t = track_of(d, e, &error);
    if (!t || (error = arrivals_kind(&d->arrivals, name, &kind)) < 0)
        return error;
    kernel.numbers[KERNEL_KIND] = kind | KERNEL_FILTERED;
    return idle_ranks_kernel(&d->ranks, s, (uint32_t)(t - d->tracks), name, &kernel);
}

/* The call of the work. Work without a known call most likely belongs to the last one, unless calls
 * are sampled. */
static struct idle_submit call_of(const struct idle *d, const struct idle_process *p,
                                  const struct slice *s)
{
    const struct correlated_call *c = &s->call;
    if (!s->is_called && s->event.begin_ns < p->sampled_ns)
        return p->call;
    if (!s->is_called || c->thread >= d->walk->rec->thread_count)
        return (struct idle_submit){0};
    return (struct idle_submit){d->way.threads[c->thread], c->begin_ns, c->end_ns, c->function,
                                c->stack};
}

/* Stores what the device did last, for the work that follows. */
static void keep_last(struct idle_track *t, const struct slice *s, enum idle_part part,
                      const struct idle_submit *call)
{
    if (!is_copy(s)) {
        t->kernel_ns = max_of(t->kernel_ns, s->event.end_ns);
        t->launcher = s->is_called ? call->thread : NULL;
    }
    t->until_ns[part] = max_of(t->until_ns[part], s->event.end_ns);
    if (call->thread)
        t->before = call->thread;
}

static int idle_device_follow(struct idle *d, struct idle_process *p, struct idle_track *t,
                              const struct slice *s, const struct idle_submit *call)
{
    const struct event *e = &s->event;
    const struct kernel_name *name;
    uint64_t host_ns = d->rows.host_ns;
    bool is_own, reports_held = t->held.count && !is_copy(s);
    int error = reports_held ? give_held(d, t, s->is_called ? call : NULL) : 0;
    if (!s->is_filtered)
        t->to_ns = max_of(t->to_ns, e->end_ns);
    else if (error == 0 && is_selection(d) && e->begin_ns >= t->to_ns && !t->aside.is_open)
        error = leave_selection(d, t, call);
    if (error < 0 || (error = idle_device_spend(d, t, e->begin_ns)) < 0)
        return error;
    is_own = s->is_called && call->end_ns <= t->at_ns && !p->pause_count && !p->blind_count &&
             p->has_worked && e->begin_ns - t->at_ns < IDLE_NEAR_NS;
    if (is_own)
        charge_own(d, t, e->begin_ns);
    else if (t->at_ns < e->begin_ns || !p->has_worked)
        error = take_gap(d, t, s, call);
    if (error == 0 && !is_copy(s) && t->held.count)
        error = idle_held_charge(d, &t->held, call, t->launcher, rows_of(d, t));
    if (t->once && d->rows.host_ns > host_ns)
        idle_start_host(d, t, e->begin_ns, d->rows.host_ns - host_ns);
    enum idle_part part = idle_device_part_of(d, e, &name);
    /* Work that began before a span of time lasts into it. */
    part = s->is_filtered && !d->walk->filter->is_whole ? IDLE_OTHER : part;
    if (error == 0 && part != IDLE_OTHER && d->follows_ranks)
        error = part == IDLE_COMMUNICATING ? take_collective(d, t, s, name) : keep_longest(d, t, s);
    keep_last(t, s, part, call);
    if (call->thread && !s->is_filtered)
        d->way.threads[call->thread->index]->work_ns += e->end_ns - e->begin_ns;
    p->has_worked = true;
    return error < 0 || s->is_filtered ? error : close_aside(d, t, true);
}

int idle_take_work(struct idle *d, struct idle_process *p, const struct slice *s)
{
    const struct walk_filter *f = d->walk->filter;
    const struct event *e = &s->event;
    int error = s->is_filtered && d->follows_ranks ? take_filtered_collective(d, s) : 0;
    if (error < 0 ||
        (s->is_filtered && !is_selection(d) &&
         (!f->has_work || !f->reaches(f->context, e->process, record_arg(e->record, KERNEL_DEVICE),
                                      p->begin_ns, d->walk->last_ns[e->process->index]))))
        return error;
    struct idle_track *t = track_of(d, e, &error);
    if (!t)
        return error;
    const struct idle_submit call = call_of(d, p, s);
    if (s->is_filtered && is_selection(d) && t->place == IDLE_NONE) { /* it is before it */
        t->at_ns = max_of(t->at_ns, e->begin_ns);
        keep_last(t, s, IDLE_OTHER, &call);
        p->has_worked = true;
        return 0;
    }
    error = t->place == IDLE_NONE ? open_window(d, p, t, e) : 0;
    return error < 0 ? error : idle_device_follow(d, p, t, s, &call);
}

/* ---- after the last work --------------------------------------------------------------------- */

/* Charges the idle time until then, which no work ends. */
static int charge_last(struct idle *d, struct idle_track *t, uint64_t end_ns)
{
    return charge(d, t, gap_of(d, t, end_ns, NULL), false);
}

/* Completes a device. Its time is unknown where work is lost. */
static int end_of(struct idle *d, struct idle_track *t)
{
    struct idle_device *device = &d->devices[t->place];
    uint64_t end_ns = d->walk->last_ns[t->process->index];
    struct time_span lost;
    if (is_selection(d))
        end_ns = min_of(t->to_ns, max_of(end_ns, last_work_ns(t, IDLE_BUSY_PARTS)));
    device->end_ns = max_of(idle_cut(d, end_ns), device->begin_ns);
    int error = give_held(d, t, NULL);
    if (error == 0)
        error = close_aside(d, t, false);
    if (error == 0)
        error = idle_device_spend(d, t, end_ns);
    if (error == 0 && !is_selection(d) && !d->walk->is_cut &&
        idle_lost_span(&d->way.processes[t->process->index].lost, end_ns, &lost)) {
        error = charge_last(d, t, lost.begin_ns);
        t->at_ns = max_of(t->at_ns, lost.end_ns);
    }
    if (error == 0)
        error = charge_last(d, t, end_ns);
    t->own.place = idle_text(idle_on_device);
    t->own.place.epoch = IDLE_LATE;
    t->own.process = t->process->index;
    t->own.device = t->place;
    t->own.thread = IDLE_NONE;
    t->own.cause = IDLE_LAUNCH;
    return error == 0 && t->own.count ? idle_rows_add_sum(&d->rows, &t->own) : error;
}

int idle_devices_end(struct idle *d)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < d->track_count; i++)
        error = d->tracks[i].place == IDLE_NONE ? 0 : end_of(d, &d->tracks[i]);
    for (uint32_t i = 0; i < d->rows.count; i++) {
        const struct idle_row *row = &d->rows.list[i];
        d->devices[row->device].causes[row->cause] += row->did ? 0 : row->ns;
        d->devices[row->device].idle_ns += row->did ? 0 : row->ns;
    }
    for (uint32_t i = 0; i < d->device_count; i++) {
        struct idle_device *device = &d->devices[i];
        uint64_t window_ns = device->end_ns - device->begin_ns;
        uint64_t known_ns = idle_work_ns(device) + device->parts[IDLE_OTHER] + device->idle_ns;
        device->stopped_ns = window_ns > known_ns ? window_ns - known_ns : 0;
    }
    d->rows.rest = NULL;
    return error;
}
