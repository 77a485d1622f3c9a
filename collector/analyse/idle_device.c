/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each device: work by kind, and gaps. */
#include "analyse/idle.h"
#include "base/array.h"
#include "record/gpu_record.h"

/* True for a selection of steps, ranges or windows. A device's window then begins with them, or
 * after the work before its first there. It ends with them, or with its last work there. So windows
 * of consecutive steps are consecutive, too. */
static bool is_selection(const struct idle *d)
{
    const struct walk_filter *f = d->walk->filter;
    return f && f->is_of_time && !f->is_span;
}

/* The track of the event's device, created if new; NULL if there are too many. A view
 * until the next call. */
static struct idle_track *track_of(struct idle *d, const struct event *e)
{
    uint64_t device = record_arg(e->record, KERNEL_DEVICE);
    uint32_t *recent = &d->way.recent[(e->process->index ^ device << 3) % IDLE_RECENT];
    struct idle_track *last = *recent ? &d->tracks[*recent - 1] : NULL;
    if (last && last->process == e->process && last->device == device)
        return last;
    const struct idle_track new = {.process = e->process, .device = device, .place = IDLE_NONE};
    *recent = KEY_MAP_ITEM(&d->way.track_of, ((struct key){e->process->index, device, 0}),
                           d->tracks, d->track_count, IDLE_DEVICES_MAX, &new);
    return *recent ? &d->tracks[*recent - 1] : NULL;
}

/* Opens a device's window at its first selected work. */
static void open_window(struct idle *d, const struct idle_process *p, struct idle_track *t,
                        const struct event *e)
{
    struct time_span span = {p->begin_ns, 0};
    if (is_selection(d))
        span = d->walk->filter->bounds(d->walk->filter->context, e->process);
    t->front.at_ns = min_of(max_of(t->front.until_ns[IDLE_OTHER], span.begin_ns), e->begin_ns);
    t->front.to_ns = span.end_ns;
    t->place = d->device_count;
    const struct idle_device device = {.process = e->process,
                                       .device = t->device,
                                       .begin_ns = idle_cut(d, t->front.at_ns),
                                       .first_ns = e->begin_ns};
    ARRAY_PUSH(d->devices, d->device_count, &device);
}

/* Charges time to a part, after all parts of higher priority. Returns when it began. */
static inline uint64_t spend_part(struct idle *d, struct idle_track *t, enum idle_part part,
                                  uint64_t to_ns)
{
    uint64_t end_ns = min_of(t->front.until_ns[part], to_ns), at_ns = t->front.at_ns;
    if (end_ns > at_ns) {
        d->devices[t->place].parts[part] += idle_cut(d, end_ns) - idle_cut(d, at_ns);
        t->front.at_ns = end_ns;
    }
    return at_ns;
}

/* Charges the device's time up to then, without the gap at its end, which begins at at_ns. */
static inline void idle_device_spend(struct idle *d, struct idle_track *t, uint64_t to_ns)
{
    spend_part(d, t, IDLE_COMPUTE, to_ns);
    uint64_t at_ns =
        max_of(spend_part(d, t, IDLE_COMMUNICATING, to_ns), t->front.until_ns[IDLE_OTHER]);
    const struct span alone = {idle_cut(d, at_ns), idle_cut(d, t->front.at_ns), {0}};
    if (d->follows_ranks && at_ns < t->front.at_ns)
        span_put(&d->ranks.spool, &t->alone.spans, &alone, (struct span_kind){0});
    spend_part(d, t, IDLE_COPYING, to_ns);
    spend_part(d, t, IDLE_OTHER, to_ns);
}

uint64_t idle_work_ns(const struct idle_device *device)
{
    uint64_t ns = 0;
    for (unsigned part = 0; part < IDLE_BUSY_PARTS; part++)
        ns += device->parts[part];
    return ns;
}

static uint64_t last_work_ns(const struct idle_track *t, unsigned parts)
{
    uint64_t ns = 0;
    for (unsigned part = IDLE_COMPUTE; part < parts; part++)
        ns = max_of(ns, t->front.until_ns[part]);
    return ns;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

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
static void charge(struct idle *d, struct idle_track *t, struct idle_gap gap, bool holds)
{
    const struct idle_process *p = &d->way.processes[t->process->index];
    uint64_t end_ns = gap.end_ns, over_ns;
    d->rows.rest = &t->since.rest;
    while (gap.begin_ns < end_ns) {
        struct time_span unknown = next_unknown(p, gap.begin_ns, &over_ns);
        gap.end_ns = min_of(max_of(unknown.begin_ns, gap.begin_ns), end_ns);
        gap.is_behind_unknown = !holds && !gap.is_last && over_ns > gap.busy_ns;
        if (gap.begin_ns < gap.end_ns && holds)
            idle_held_add(&t->held, &gap);
        else if (gap.begin_ns < gap.end_ns)
            idle_gap_charge(d, &gap, 1);
        gap.begin_ns = max_of(gap.end_ns, min_of(unknown.end_ns, end_ns));
    }
    t->front.at_ns = max_of(t->front.at_ns, end_ns);
}

/* The gap from at_ns on; `call` NULL: no work ends it. */
static struct idle_gap gap_of(const struct idle *d, const struct idle_track *t, uint64_t end_ns,
                              const struct idle_submit *call)
{
    return (struct idle_gap){.begin_ns = t->front.at_ns,
                             .end_ns = end_ns,
                             .busy_ns = last_work_ns(t, IDLE_PARTS),
                             .compute_ns = t->front.kernel_ns,
                             .process = t->process->index,
                             .device = t->place,
                             .call = call ? *call : (struct idle_submit){0},
                             .before = t->before,
                             .is_first = !d->way.processes[t->process->index].has_worked,
                             .is_last = !call};
}

/* Charges held gaps to the copies that ended them. If `call` is given, only those in which its
 * kernel may have waited for a copy. */
static void give_held(struct idle *d, struct idle_track *t, const struct idle_submit *call)
{
    d->rows.rest = &t->since.rest;
    if (t->held.count)
        idle_held_give(d, &t->held, last_work_ns(t, IDLE_PARTS), call);
}

/* Fast path of idle_gap_charge for work that was queued in time, the usual case. */
static void charge_own(const struct idle *d, struct idle_track *t, uint64_t to_ns)
{
    uint64_t end_ns = max_of(to_ns, t->front.at_ns), at_ns = idle_cut(d, t->front.at_ns);
    uint64_t ns = idle_cut(d, end_ns) - at_ns;
    t->own.ns += ns;
    t->own.count += ns > 0;
    if (ns > t->own.longest_ns) {
        t->own.longest_ns = ns;
        t->own.longest_at_ns = at_ns;
    }
    t->front.at_ns = end_ns;
}

static bool is_copy(const struct slice *s)
{
    unsigned type = s->event.record->type;
    return type == RECORD_COPY || type == RECORD_SET;
}

/* The work of the process's busiest device so far: a process that works is not starting up. */
static uint64_t most_work_ns(const struct idle *d, const struct process *process)
{
    uint64_t most_ns = 0;
    for (uint32_t i = 0; i < d->device_count; i++)
        if (d->devices[i].process == process)
            most_ns = max_of(most_ns, idle_work_ns(&d->devices[i]));
    return most_ns;
}

/* Notes a gap that may be start-up, before it is charged. */
static void note_once(struct idle *d, struct idle_track *t, struct idle_gap *gap)
{
    const struct walk_filter *f = d->walk->filter;
    uint64_t ns = gap->end_ns > gap->begin_ns ? gap->end_ns - gap->begin_ns : 0;
    if (!d->way.steps || (f && f->is_of_time) || gap->is_first || t->once_count == IDLE_ONCE_MAX ||
        ns < IDLE_ONCE_NS || most_work_ns(d, t->process) > ns / IDLE_ONCE_PART)
        return;
    t->once[t->once_count] =
        (struct idle_once){.end_ns = gap->end_ns, .work_ns = idle_work_ns(&d->devices[t->place])};
    gap->once = (uint16_t)++t->once_count;
}

/* With t->once_count set: adds the time that the program's own code ran, or could have, in a gap
 * that ended at end_ns. */
static void add_host(struct idle_track *t, uint64_t end_ns, uint64_t ns)
{
    struct idle_once *o = &t->once[t->once_count - 1];
    uint64_t *most_ns = end_ns == o->end_ns ? &o->host_ns : &o->later_ns;
    *most_ns = max_of(*most_ns, ns);
}

/* Charges or holds the gap before work; before the process's first work it may be empty. A copy's
 * gap may have to be held until the next kernel. */
static __attribute__((noinline)) void take_gap(struct idle *d, struct idle_track *t,
                                               const struct slice *s,
                                               const struct idle_submit *call)
{
    struct idle_process *p = &d->way.processes[t->process->index];
    struct idle_gap gap = gap_of(d, t, s->event.begin_ns, call);
    if (!p->has_worked)
        p->first = gap;
    else if (t->front.at_ns < p->first.end_ns) { /* a later device starts up until then, too */
        struct idle_gap start = p->first;
        start.begin_ns = t->front.at_ns;
        start.device = t->place;
        charge(d, t, start, false);
    }
    gap.begin_ns = t->front.at_ns;
    if (!is_copy(s) && t->launcher) /* others may have copied beside its kernel */
        gap.before = t->launcher;
    bool holds =
        is_copy(s) && s->is_called && call->thread && idle_held_may_hold(&gap, t->launcher);
    if (holds && t->held.count >= IDLE_HELD_MAX)
        give_held(d, t, NULL);
    holds |= !is_copy(s) && t->held.count;
    if (!holds)
        note_once(d, t, &gap);
    charge(d, t, gap, holds);
}

/* ---- work ------------------------------------------------------------------------------------ */

const struct idle_name *idle_kernel(struct idle *d, const struct process *p, uint64_t number)
{
    struct idle_name *known = &d->way.names[(number ^ (uint64_t)p->index << 4) % IDLE_NAMES];
    if (known->number == number && known->process == p)
        return known;
    const struct kernel_name *name = walk_kernel(d->walk, p, number);
    struct key key = {(uintptr_t)name, 0, 0};
    uint64_t class = name ? key_map_get(&d->way.classes, key) : KERNEL_PLAIN + 1u;
    if (!class) /* if the map is full, it is found again the next time */
        (void)key_map_set(&d->way.classes, key, class = kernel_class_of(name) + 1u);
    *known = (struct idle_name){p, number, name, (enum kernel_class)(class - 1)};
    return known;
}

static enum idle_part idle_device_part_of(struct idle *d, const struct event *e,
                                          const struct kernel_name **name)
{
    const struct record *r = e->record;
    *name = NULL;
    if (r->type == RECORD_COPY || r->type == RECORD_SET)
        return IDLE_COPYING;
    if (r->type != RECORD_KERNEL)
        return IDLE_COMPUTE;
    const struct idle_name *known = idle_kernel(d, e->process, record_arg(r, KERNEL_NAME_INDEX));
    *name = known->name;
    return known->class == KERNEL_COMMUNICATION ? IDLE_COMMUNICATING : IDLE_COMPUTE;
}

/* Notes the longest work since the last collective. */
static void keep_longest(struct idle *d, struct idle_track *t, const struct slice *s)
{
    uint64_t ns = s->event.end_ns - s->event.begin_ns;
    if (ns <= t->since.worked_ns)
        return;
    t->since.worked_ns = ns;
    t->since.worked = s->is_called ? work_place_of(d->walk, &s->call)
                                   : (struct idle_place){.function = IDLE_NONE};
}

static uint32_t number_place(struct idle *d, const struct idle_track *t,
                             const struct idle_place *at, uint32_t cause)
{
    struct work_place place = {*at, t->process->index, cause, false, NULL};
    place.place.epoch = 0;
    return work_places_number(&d->arrivals.places, &place);
}

/* Adds a communication kernel, with the numbers that the caller knows. */
static void put_kernel(struct idle *d, const struct idle_track *t, const struct slice *s,
                       const struct kernel_name *name, struct span *kernel)
{
    struct idle_ranks *r = &d->ranks;
    struct collective what;
    collective_of(s, &what);
    uint32_t kind = arrivals_kind(&d->arrivals, name);
    uint32_t sequence =
        idle_ranks_sequence(r, (uint32_t)(t - d->tracks), what.communicator, name->raw,
                            what.communicator ? what.communicator : (uintptr_t)name);
    if (!sequence)
        return;
    struct rank_sequence *of = &r->list[sequence - 1];
    of->ranks = of->ranks ? of->ranks : what.ranks;
    of->is_numbered |= what.number != 0;
    kernel->begin_ns = s->event.begin_ns;
    kernel->end_ns = s->event.end_ns;
    kernel->numbers[KERNEL_NUMBER] = what.number;
    kernel->numbers[KERNEL_KIND] = kind | (s->is_filtered ? KERNEL_FILTERED : 0);
    span_put(&r->spool, &of->kernels.spans, kernel, kernel_kind);
}

/* Adds a collective, with its device's longest gap and work since the previous one. */
static void take_collective(struct idle *d, struct idle_track *t, const struct slice *s,
                            const struct kernel_name *name)
{
    const struct idle_since since = t->since;
    const struct idle_row *gap = since.rest.ns ? &d->rows.list[since.rest.row] : NULL;
    uint32_t idle = gap ? number_place(d, t, &gap->place, gap->cause) : 0;
    struct span kernel = {
        .numbers = {[KERNEL_IDLE_NS] = idle ? since.rest.ns : 0, [KERNEL_IDLE_PLACE] = idle}};
    t->since = (struct idle_since){.worked = {.function = IDLE_NONE}};
    if (since.worked.stack || since.worked.kind)
        kernel.numbers[KERNEL_WORK_PLACE] = number_place(d, t, &since.worked, ARRIVAL_WORKED);
    if (!s->is_filtered) /* take_filtered_collective adds the others */
        put_kernel(d, t, s, name, &kernel);
}

/* Adds an unselected collective, since a selected one may have waited for it. */
static void take_filtered_collective(struct idle *d, const struct slice *s)
{
    const struct walk_filter *f = d->walk->filter;
    const struct event *e = &s->event;
    const struct kernel_name *name;
    if (idle_device_part_of(d, e, &name) != IDLE_COMMUNICATING)
        return;
    bool is_left_out = !f->reaches(f->context, NULL, record_arg(e->record, KERNEL_DEVICE), 0, 0);
    const struct idle_track *t = is_left_out ? NULL : track_of(d, e);
    d->way.leaves_out_ranks |= is_left_out;
    if (t)
        put_kernel(d, t, s, name, &(struct span){0});
}

/* The call of the work. Work without a known call most likely belongs to the last one, unless calls
 * are sampled or lost. */
static struct idle_submit call_of(const struct idle *d, const struct idle_process *p,
                                  const struct slice *s)
{
    const struct correlated_call *c = &s->call;
    if (!s->is_called && s->event.begin_ns < p->sampled_ns &&
        !walk_may_lack_calls(d->walk, s->event.process))
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
        t->front.kernel_ns = max_of(t->front.kernel_ns, s->event.end_ns);
        t->launcher = s->is_called ? call->thread : NULL;
    }
    t->front.until_ns[part] = max_of(t->front.until_ns[part], s->event.end_ns);
    if (call->thread)
        t->before = call->thread;
}

/* Ends the device's time in the selection, which began with its selected work: beyond it only
 * unselected work is known until more of the selected work comes. */
static void leave_selection(struct idle *d, struct idle_track *t, const struct slice *s,
                            const struct idle_submit *call)
{
    give_held(d, t, NULL);
    idle_device_spend(d, t, t->front.to_ns);
    if (t->front.at_ns < t->front.to_ns)
        charge(d, t, gap_of(d, t, t->front.to_ns, call), false);
    keep_last(t, s, IDLE_OTHER, call);
}

static void idle_device_follow(struct idle *d, struct idle_process *p, struct idle_track *t,
                               const struct slice *s, const struct idle_submit *call)
{
    const struct event *e = &s->event;
    const struct kernel_name *name;
    uint64_t host_ns = d->rows.host_ns;
    if (t->held.count && !is_copy(s))
        give_held(d, t, s->is_called ? call : NULL);
    if (!s->is_filtered)
        t->front.to_ns = max_of(t->front.to_ns, e->end_ns);
    else if (is_selection(d) && e->begin_ns >= t->front.to_ns) {
        leave_selection(d, t, s, call);
        return;
    }
    idle_device_spend(d, t, e->begin_ns);
    if (s->is_called && call->end_ns <= t->front.at_ns && !p->pause_count && !p->blind_count &&
        p->has_worked && e->begin_ns - t->front.at_ns < IDLE_NEAR_NS)
        charge_own(d, t, e->begin_ns);
    else if (t->front.at_ns < e->begin_ns || !p->has_worked)
        take_gap(d, t, s, call);
    if (!is_copy(s) && t->held.count)
        idle_held_charge(d, &t->held, call, t->launcher);
    if (t->once_count && d->rows.host_ns > host_ns)
        add_host(t, e->begin_ns, d->rows.host_ns - host_ns);
    enum idle_part part = idle_device_part_of(d, e, &name);
    /* Work that began before a span of time lasts into it. */
    part = s->is_filtered && !d->walk->filter->is_whole ? IDLE_OTHER : part;
    if (part == IDLE_COMMUNICATING && d->follows_ranks)
        take_collective(d, t, s, name);
    else if (part != IDLE_OTHER && d->follows_ranks)
        keep_longest(d, t, s);
    keep_last(t, s, part, call);
    if (call->thread && !s->is_filtered)
        d->way.threads[call->thread->index]->work_ns += e->end_ns - e->begin_ns;
    p->has_worked = true;
}

void idle_take_work(struct idle *d, struct idle_process *p, const struct slice *s)
{
    const struct walk_filter *f = d->walk->filter;
    const struct event *e = &s->event;
    if (s->is_filtered && d->follows_ranks)
        take_filtered_collective(d, s);
    if (s->is_filtered && !is_selection(d) &&
        (!f->has_work || !f->reaches(f->context, e->process, record_arg(e->record, KERNEL_DEVICE),
                                     p->begin_ns, d->walk->last_ns[e->process->index])))
        return;
    struct idle_track *t = track_of(d, e);
    if (!t)
        return;
    const struct idle_submit call = call_of(d, p, s);
    if (s->is_filtered && is_selection(d) && t->place == IDLE_NONE) { /* it is before it */
        t->front.at_ns = max_of(t->front.at_ns, e->begin_ns);
        keep_last(t, s, IDLE_OTHER, &call);
        p->has_worked = true;
        return;
    }
    if (t->place == IDLE_NONE)
        open_window(d, p, t, e);
    idle_device_follow(d, p, t, s, &call);
}

/* ---- after the last work --------------------------------------------------------------------- */

/* Charges the idle time until then, which no work ends. */
static void charge_last(struct idle *d, struct idle_track *t, uint64_t end_ns)
{
    charge(d, t, gap_of(d, t, end_ns, NULL), false);
}

/* Completes a device. Its time is unknown where work is lost (NULL: nowhere). */
static void end_of(struct idle *d, struct idle_track *t, uint64_t end_ns,
                   const struct time_span *lost)
{
    struct idle_device *device = &d->devices[t->place];
    if (is_selection(d))
        end_ns = min_of(t->front.to_ns, max_of(end_ns, last_work_ns(t, IDLE_BUSY_PARTS)));
    device->end_ns = max_of(idle_cut(d, end_ns), device->begin_ns);
    device->loses_work = t->loses_work;
    give_held(d, t, NULL);
    idle_device_spend(d, t, end_ns);
    if (lost && !is_selection(d)) {
        charge_last(d, t, lost->begin_ns);
        t->front.at_ns = max_of(t->front.at_ns, lost->end_ns);
    }
    charge_last(d, t, end_ns);
    t->own.place = idle_text(idle_on_device);
    t->own.place.epoch = IDLE_LATE;
    t->own.process = t->process->index;
    t->own.device = t->place;
    t->own.thread = IDLE_NONE;
    t->own.cause = IDLE_LAUNCH;
    if (t->own.count)
        idle_rows_add_sum(&d->rows, &t->own);
}

void idle_devices_end(struct idle *d)
{
    for (uint32_t i = 0; i < d->track_count; i++) {
        struct idle_track *t = &d->tracks[i];
        uint64_t end_ns = d->walk->last_ns[t->process->index];
        struct time_span lost;
        t->loses_work = !d->walk->is_cut &&
                        idle_lost_span(&d->way.processes[t->process->index].lost, end_ns, &lost);
        if (t->place != IDLE_NONE)
            end_of(d, t, end_ns, t->loses_work ? &lost : NULL);
    }
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
}
