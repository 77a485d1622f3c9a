/* SPDX-License-Identifier: Apache-2.0 */
#include "find/idle.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "find/work_places.h"
#include "model/nccl_call.h"
#include "model/op_kind.h"
#include "record/gpu_record.h"

enum kernel_class { KERNEL_UNSEEN, KERNEL_COMPUTES, KERNEL_COMMUNICATES, KERNEL_UNNAMED };

static int start(struct idle *d)
{
    const struct recording *rec = d->walk->rec;
    idle_ranks_init(&d->ranks);
    idle_waits_init(d);
    place_lines_init(&d->lines, &d->walk->survey.stacks, recording_bytes(rec));
    if (arrivals_init(&d->arrivals, rec->count) < 0)
        return GPUPROF_NO_MEMORY;
    d->processes = calloc(rec->count + 1u, sizeof *d->processes);
    d->threads = calloc(rec->thread_count + 1u, sizeof(struct idle_thread *));
    if (!d->processes || !d->threads)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < rec->count; i++)
        d->processes[i].first_call_ns = UINT64_MAX;
    return 0;
}

int idle_init(struct idle *d, struct walk *walk)
{
    *d = (struct idle){.walk = walk};
    return start(d);
}

void idle_release(struct idle *d)
{
    const struct recording *rec = d->walk->rec;
    for (uint32_t i = 0; d->processes && i < rec->count; i++) {
        free(d->processes[i].pauses);
        free(d->processes[i].kernels);
    }
    for (uint32_t i = 0; d->threads && i < rec->thread_count; i++)
        if (d->threads[i]) {
            idle_thread_release(d->threads[i]);
            free(d->threads[i]);
        }
    for (uint32_t i = 0; i < d->total_count; i++)
        free(d->totals[i].place);
    free(d->processes);
    free(d->threads);
    free(d->devices);
    free(d->totals);
    idle_rows_release(&d->rows);
    place_lines_release(&d->lines);
    idle_ranks_release(&d->ranks);
    arrivals_release(&d->arrivals);
    spool_release(&d->waits);
    key_map_release(&d->device_of);
    key_map_release(&d->loaders);
    *d = (struct idle){.walk = d->walk};
}

/* ---- processes, threads, devices ------------------------------------------------------------- */

static struct idle_process *process_of(struct idle *d, const struct event *e)
{
    struct idle_process *p = &d->processes[e->process->index];
    if (!p->begin_ns && event_is_visible(e->record->type)) {
        uint64_t start_ns = process_start_ns(e->process);
        p->begin_ns = start_ns && start_ns < e->begin_ns ? start_ns : e->begin_ns;
    }
    return p;
}

static struct idle_thread *thread_of(struct idle *d, const struct thread *thread)
{
    struct idle_thread **t = &d->threads[thread->index];
    if (!*t)
        *t = calloc(1, sizeof **t);
    return *t;
}

static struct idle_maker maker_of(const struct idle *d, uint32_t thread)
{
    return (struct idle_maker){.thread = d->threads[thread], .index = thread};
}

/* Then a device's window is from its first to its last work: before and behind it there may have
 * been other work, and nobody waited for that of the piece. */
static bool is_piece(const struct idle *d)
{
    return d->walk->filter && d->walk->filter->is_of_time;
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
    if (!place) {
        *error = GPUPROF_NO_MEMORY;
        struct idle_device *devices =
            array_room(d->devices, d->device_count, &d->device_capacity, sizeof *devices, 16);
        if (!devices)
            return NULL;
        uint64_t begin_ns = is_piece(d) ? e->begin_ns : p->begin_ns;
        d->devices = devices;
        devices[d->device_count] = (struct idle_device){.process = e->process,
                                                        .device = number,
                                                        .begin_ns = begin_ns,
                                                        .first_ns = e->begin_ns,
                                                        .at_ns = begin_ns};
        if (key_map_set(&d->device_of, key, place = ++d->device_count) < 0)
            return NULL;
        *error = 0;
    }
    d->last_device = (uint32_t)place - 1;
    return &d->devices[d->last_device];
}

/* ---- what a thread does ---------------------------------------------------------------------- */

static enum idle_cause cause_of(const struct event *e)
{
    const struct function *f = e->function;
    if (e->record->flags & RECORD_CAPTURED)
        return IDLE_CAPTURE;
    if (f->class == API_LAUNCH) /* most are, whatever else they do */
        return IDLE_LAUNCH;
    switch (f->does) {
    case API_DOES_SET:
    case API_DOES_EVENT_RECORD:
    case API_DOES_CONTEXT_RECORD:
    case API_DOES_EVENT_WAIT: return IDLE_LAUNCH;
    default: break;
    }
    switch (f->class) {
    case API_GRAPH_LAUNCH: return IDLE_LAUNCH;
    case API_ALLOC: return IDLE_ALLOCATION;
    case API_COPY: return IDLE_COPY;
    case API_SYNC: return IDLE_SYNC;
    case API_GRAPH: return IDLE_CAPTURE;
    default: return IDLE_UNKNOWN;
    }
}

static struct idle_place named(const struct kernel_name *name)
{
    return (struct idle_place){
        .word = (uintptr_t)name, .function = IDLE_NONE, .kind = name ? IDLE_WORD_NAME : 0};
}

static struct idle_place place_of_op(const struct op *op)
{
    if (op->text)
        return named(op->text);
    return (struct idle_place){.word = op->name, .function = IDLE_NONE, .kind = IDLE_WORD_OP};
}

/* Member by member, into where it stays: to copy what was written in pieces a moment before makes
 * the processor wait for all of them. */
static void set_place(struct idle_place *place, const struct slice *s)
{
    const struct op *op = walk_op(s);
    const struct range *range = op ? NULL : walk_range(s, false);
    const struct kernel_name *name = op ? op->text : range ? range->text : NULL;
    bool is_number = op && !name;
    place->word = is_number ? op->name : (uintptr_t)name;
    place->kind = is_number ? IDLE_WORD_OP : name ? IDLE_WORD_NAME : 0;
    place->stack = walk_stack(s);
    place->function = s->event.function->index;
}

static bool submits(const struct function *f)
{
    return f->class == API_LAUNCH || f->class == API_COPY || f->class == API_GRAPH_LAUNCH;
}

static __attribute__((noinline)) int take_call(struct idle *d, struct idle_process *p,
                                               const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    if (r->flags & RECORD_NESTED)
        return 0;
    struct idle_thread *t = thread_of(d, e->thread);
    if (!t)
        return GPUPROF_NO_MEMORY;
    enum idle_cause cause = cause_of(e);
    struct idle_entry call = {.begin_ns = e->begin_ns,
                              .end_ns = e->end_ns,
                              .cause = (uint8_t)cause,
                              .waits = cause == IDLE_SYNC || cause == IDLE_COPY,
                              .is_open = r->flags & RECORD_OPEN};
    set_place(&call.place, s);
    if (p->first_call_ns > e->begin_ns)
        p->first_call_ns = e->begin_ns;
    int error = idle_follows_ranks(d) ? idle_ranks_call(&d->ranks, &t->talk, s) : 0;
    if (submits(e->function)) {
        p->maker = maker_of(d, e->thread->index);
        p->call_begin_ns = e->begin_ns;
        p->call_end_ns = e->end_ns;
    }
    if (error < 0)
        return error;
    if (e->function->does == API_DOES_CAPTURE_BEGIN && !r->result) {
        idle_thread_enter(t, &call);
        return 0;
    }
    if (e->function->does == API_DOES_CAPTURE_END && t->depth && t->in.cause == IDLE_CAPTURE) {
        call.begin_ns = t->in.begin_ns;
        return idle_thread_leave(t, &call);
    }
    return idle_thread_call(t, &call);
}

/* The thread that an overhead is of: that of its call, or that which it says; else it is most
 * likely that of the last work. IDLE_NONE: nobody knows. */
static uint32_t overhead_thread(const struct idle_process *p, const struct slice *s)
{
    const struct record *r = s->event.record;
    const struct thread_table *threads = &s->event.process->threads;
    bool says = record_arg(r, OVERHEAD_OBJECT) == OBJECT_THREAD && record_arg(r, OVERHEAD_THREAD);
    if (s->is_called)
        return s->call.thread;
    for (uint32_t i = 0; says && i < threads->count; i++)
        if (threads->threads[i]->number &&
            threads->threads[i]->tid == record_arg(r, OVERHEAD_THREAD))
            return threads->threads[i]->index;
    return p->maker.thread ? p->maker.index : IDLE_NONE;
}

/* Compilation, and the loading of what is first used, are records of the device's driver: inside of
 * the call that needed it, or where that is not recorded, as those that load libraries' modules are
 * not, between two calls. */
static int take_overhead(struct idle *d, const struct idle_process *p, const struct slice *s)
{
    const struct event *e = &s->event;
    uint64_t kind = record_arg(e->record, OVERHEAD_KIND);
    struct idle_entry part = {.begin_ns = e->begin_ns,
                              .end_ns = e->end_ns,
                              .place = idle_text(overhead_kind_text(kind)),
                              .cause = IDLE_CAPTURE};
    bool is_loading = kind == OVERHEAD_COMPILER || kind == OVERHEAD_MODULE_LOADING ||
                      kind == OVERHEAD_LAZY_LOADING;
    uint32_t thread = is_loading ? overhead_thread(p, s) : IDLE_NONE;
    return thread != IDLE_NONE && d->threads[thread] ? idle_thread_part(d->threads[thread], &part)
                                                     : 0;
}

/* ---- data loading ---------------------------------------------------------------------------- */

static int load(struct idle *d, const struct thread *thread, const struct kernel_name *name,
                bool begins, uint64_t begin_ns, uint64_t end_ns)
{
    struct idle_thread *t = thread_of(d, thread);
    if (!t)
        return GPUPROF_NO_MEMORY;
    struct idle_entry what = {
        .begin_ns = begin_ns, .end_ns = end_ns, .place = named(name), .cause = IDLE_LOADER};
    if (!begins)
        return idle_thread_leave(t, &what);
    idle_thread_enter(t, &what);
    return 0;
}

static int take_op(struct idle *d, const struct slice *s)
{
    const struct op *op = s->op;
    const struct kernel_name *name;
    int error = 0;
    if (s->op_change == OP_CLOSED && !op->is_moved && (op_works(op) || op_is_label(op)) &&
        d->threads[op->thread->index])
        idle_thread_ended(d->threads[op->thread->index], place_of_op(op), op->begin_ns, op->end_ns);
    if (s->replaced && op_is_label(s->replaced) &&
        op_kind_of(s->replaced->scope, name = walk_op_name(d->walk, s->replaced)) == OP_KIND_LOADER)
        error = load(d, s->replaced->thread, name, false, s->replaced->begin_ns, s->event.begin_ns);
    if (error < 0 || s->op_change == OP_SAME || s->op_change == OP_LEFT || !op_is_label(op) ||
        op->is_traced || op_kind_of(op->scope, name = walk_op_name(d->walk, op)) != OP_KIND_LOADER)
        return error;
    return load(d, op->thread, name, s->op_change == OP_OPENED, op->begin_ns, op->end_ns);
}

static int take_range(struct idle *d, const struct slice *s)
{
    const struct range *range = s->range;
    bool opens = s->change == RANGE_OPENED;
    if ((!opens && s->change != RANGE_CLOSED) || !range->nested || !range->text)
        return 0;
    struct key key = {(uintptr_t)range->text, 0, 0};
    uint64_t says = key_map_get(&d->loaders, key);
    if (!opens && d->threads[range->thread->index])
        idle_thread_ended(d->threads[range->thread->index], named(range->text), range->begin_ns,
                          range->end_ns);
    if (!says) {
        says = 1 + idle_says_loading(range->text->shown);
        int error = key_map_set(&d->loaders, key, says);
        if (error == GPUPROF_NO_MEMORY)
            return error;
    }
    return says == 1 ? 0
                     : load(d, range->thread, range->text, opens, range->begin_ns, range->end_ns);
}

/* ---- what a device does ---------------------------------------------------------------------- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The device's time up to then, but for a gap at its end, which begins at at_ns. 0 or an error. */
static int spend(struct idle *d, struct idle_device *device, uint64_t to_ns)
{
    int error = 0;
    for (unsigned part = IDLE_COMPUTE; part < IDLE_BUSY_PARTS; part++) {
        /* What goes before it is over by now. */
        uint64_t end_ns = earlier(device->until_ns[part], to_ns), at_ns = device->at_ns;
        if (end_ns <= at_ns)
            continue;
        device->parts[part] += end_ns - at_ns;
        device->at_ns = end_ns;
        if (part == IDLE_COMMUNICATING && idle_follows_ranks(d))
            error = idle_ranks_alone(&d->ranks, (uint32_t)(device - d->devices), at_ns, end_ns);
    }
    return error;
}

/* The gap, but for the time in which nothing was recorded. */
static int charge(struct idle *d, struct idle_device *device, struct idle_gap *gap,
                  int (*how)(struct idle_rows *, uint64_t *, const struct idle_gap *))
{
    const struct idle_process *p = &d->processes[device->process->index];
    uint64_t end_ns = gap->end_ns;
    int error = 0;
    d->rows.most_ns = 0;
    while (error == 0 && gap->begin_ns < end_ns) {
        const struct idle_pause *pause =
            device->pause < p->pause_count ? &p->pauses[device->pause] : NULL;
        if (pause && pause->end_ns <= gap->begin_ns) {
            device->pause++;
            continue;
        }
        gap->end_ns = pause ? earlier(later(pause->begin_ns, gap->begin_ns), end_ns) : end_ns;
        if (gap->begin_ns < gap->end_ns) {
            device->idle_ns += gap->end_ns - gap->begin_ns;
            error = how(&d->rows, device->causes, gap);
        }
        gap->begin_ns = gap->end_ns;
        if (pause && gap->begin_ns < end_ns) {
            uint64_t until_ns = earlier(pause->end_ns, end_ns);
            device->stopped_ns += until_ns - gap->begin_ns;
            gap->begin_ns = until_ns;
        }
    }
    device->at_ns = end_ns;
    if (d->rows.most_ns > device->rested_ns) {
        device->rested_ns = d->rows.most_ns;
        device->rested = d->rows.most;
    }
    return error;
}

static uint64_t last_work_ns(const struct idle_device *device)
{
    uint64_t ns = 0;
    for (unsigned part = IDLE_COMPUTE; part < IDLE_BUSY_PARTS; part++)
        ns = later(ns, device->until_ns[part]);
    return ns;
}

static struct idle_gap gap_of(const struct idle *d, const struct idle_device *device,
                              uint64_t end_ns)
{
    const struct idle_process *p = &d->processes[device->process->index];
    uint64_t compute_ns =
        later(device->until_ns[IDLE_COMPUTE], device->until_ns[IDLE_COMMUNICATING]);
    return (struct idle_gap){.begin_ns = device->at_ns,
                             .end_ns = end_ns,
                             .busy_ns = last_work_ns(device),
                             .compute_ns = compute_ns,
                             .process = device->process->index,
                             .device = (uint32_t)(device - d->devices),
                             .before = device->before,
                             .is_first = !p->has_worked,
                             .first_call_ns = p->first_call_ns};
}

static enum idle_part part_of(struct idle *d, struct idle_process *p, const struct event *e,
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
    *name = walk_kernel(d->walk, e->process, number);
    bool communicates = *name && nccl_is_kernel(*name);
    if (communicates && class && *class == KERNEL_UNNAMED)
        d->has_guessed = true; /* when it had no name yet */
    if (class)
        *class = communicates ? KERNEL_COMMUNICATES : *name ? KERNEL_COMPUTES : KERNEL_UNNAMED;
    return communicates ? IDLE_COMMUNICATING : IDLE_COMPUTE;
}

/* Room for what a kernel of that number is; each has a record. 0 or GPUPROF_NO_MEMORY. */
static int know_kernel(struct idle_process *p, const struct record *r, uint64_t record_count)
{
    uint64_t number = r->type == RECORD_KERNEL ? record_arg(r, KERNEL_NAME_INDEX) : 0;
    if (number < p->kernel_count || number >= IDLE_KERNELS_MAX || number > record_count)
        return 0;
    uint32_t count = p->kernel_count ? p->kernel_count : 64;
    while (count <= number)
        count *= 2;
    uint8_t *kernels = realloc(p->kernels, count);
    if (!kernels)
        return GPUPROF_NO_MEMORY;
    memset(kernels + p->kernel_count, KERNEL_UNSEEN, count - p->kernel_count);
    p->kernels = kernels;
    p->kernel_count = count;
    return 0;
}

/* As idle_gap_charge does where the host was ahead: mostly it is. */
static void charge_own(struct idle_device *device, uint64_t to_ns)
{
    uint64_t ns = to_ns > device->at_ns ? to_ns - device->at_ns : 0;
    device->own.ns += ns;
    device->own.count += ns > 0;
    if (ns > device->own.longest_ns) {
        device->own.longest_ns = ns;
        device->own.longest_at_ns = device->at_ns;
    }
    device->at_ns += ns;
}

/* Until the process's first work, on another device, one that it uses later starts up, too. */
static int charge_start(struct idle *d, const struct idle_process *p, struct idle_device *device)
{
    struct idle_gap gap = p->first;
    gap.begin_ns = device->at_ns;
    gap.device = (uint32_t)(device - d->devices);
    return charge(d, device, &gap, idle_gap_charge);
}

/* The gap before that work; before the process's first work there may be none. */
static __attribute__((noinline)) int take_gap(struct idle *d, struct idle_device *device,
                                              const struct slice *s, struct idle_maker maker)
{
    struct idle_process *p = &d->processes[device->process->index];
    struct idle_gap gap = gap_of(d, device, s->event.begin_ns);
    int error = 0;
    gap.maker = maker;
    gap.call_begin_ns = s->is_called ? s->call.begin_ns : p->call_begin_ns;
    gap.call_end_ns = s->is_called ? s->call.end_ns : p->call_end_ns;
    gap.function = s->is_called ? s->call.function : IDLE_NONE;
    gap.stack = s->is_called ? s->call.stack : 0;
    if (!p->has_worked)
        p->first = gap;
    else if (device->at_ns < p->first.end_ns)
        error = charge_start(d, p, device);
    gap.begin_ns = device->at_ns;
    return error < 0 ? error : charge(d, device, &gap, idle_gap_charge);
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

/* With where the device was since the one before. 0 or an error. */
static int take_collective(struct idle *d, struct idle_device *device, const struct slice *s,
                           const struct kernel_name *name)
{
    struct rank_kernel_facts facts = {.idle_ns = device->rested_ns};
    struct arrival_place place = {.process = s->event.process->index};
    int error = arrivals_kind(&d->arrivals, name, &facts.kind);
    if (error == 0 && device->rested_ns) {
        place.place = d->rows.list[device->rested].place;
        place.cause = d->rows.list[device->rested].cause;
        error = arrivals_place(&d->arrivals, &place, &facts.idle_place);
    }
    if (error == 0 && (device->worked.stack || device->worked.kind)) {
        place.place = device->worked;
        place.cause = ARRIVAL_WORKED;
        error = arrivals_place(&d->arrivals, &place, &facts.work_place);
    }
    device->rested_ns = device->worked_ns = 0;
    device->worked = (struct idle_place){.function = IDLE_NONE};
    return error < 0
               ? error
               : idle_ranks_kernel(&d->ranks, s, (uint32_t)(device - d->devices), name, &facts);
}

static __attribute__((noinline)) int take_work(struct idle *d, struct idle_process *p,
                                               const struct slice *s)
{
    const struct event *e = &s->event;
    int error = know_kernel(p, e->record, e->process->record_count);
    struct idle_device *device = error < 0 ? NULL : device_of(d, p, e, &error);
    if (!device)
        return error;
    if ((error = spend(d, device, e->begin_ns)) < 0)
        return error;
    struct idle_maker maker = p->maker;
    if (s->is_called && s->call.thread < d->walk->rec->thread_count)
        maker = maker_of(d, s->call.thread);
    if (s->is_called && s->call.end_ns <= device->at_ns && !p->pause_count && p->has_worked &&
        e->begin_ns - device->at_ns < IDLE_NEAR_NS) {
        charge_own(device, e->begin_ns);
    } else if (device->at_ns < e->begin_ns || !p->has_worked) {
        error = take_gap(d, device, s, maker);
    }
    const struct kernel_name *name;
    enum idle_part part = part_of(d, p, e, &name);
    if (error == 0 && idle_follows_ranks(d))
        error = part == IDLE_COMMUNICATING ? take_collective(d, device, s, name)
                                           : keep_longest(d, device, s);
    if (device->until_ns[part] < e->end_ns)
        device->until_ns[part] = e->end_ns;
    if (maker.thread)
        device->before = maker;
    p->has_worked = true;
    return error;
}

static int take_pause(struct idle *d, struct idle_process *p, const struct event *e, bool begins)
{
    if (begins == p->is_paused)
        return 0;
    if (begins && d->pause_count == IDLE_PAUSES_MAX)
        return 0;
    p->is_paused = begins;
    if (!begins) {
        p->pauses[p->pause_count - 1].end_ns = e->begin_ns;
        return 0;
    }
    struct idle_pause *pauses =
        array_room(p->pauses, p->pause_count, &p->pause_capacity, sizeof *pauses, 4);
    if (!pauses)
        return GPUPROF_NO_MEMORY;
    p->pauses = pauses;
    pauses[p->pause_count++] = (struct idle_pause){e->begin_ns, UINT64_MAX};
    d->pause_count++;
    return 0;
}

static int take_library(struct idle *d, const struct event *e)
{
    struct idle_thread *t = idle_follows_ranks(d) ? thread_of(d, e->thread) : NULL;
    if (!idle_follows_ranks(d))
        return 0;
    return t ? idle_ranks_library(&d->ranks, &t->talk, e) : GPUPROF_NO_MEMORY;
}

static __attribute__((noinline)) int take_other(struct idle *d, const struct slice *s)
{
    const struct event *e = &s->event;
    unsigned type = e->record->type;
    if (s->change == RANGE_LEFT || s->op_change == OP_LEFT)
        return 0;
    struct idle_process *p = process_of(d, e);
    if (type == RECORD_OVERHEAD)
        return take_overhead(d, p, s);
    if (type == RECORD_COMMUNICATOR || type == RECORD_LIBRARY_BEGIN || type == RECORD_LIBRARY_END)
        return take_library(d, e);
    if (s->pause_change)
        return take_pause(d, p, e, s->pause_change == PAUSE_BEGINS);
    int error = s->op_change != OP_SAME || s->replaced ? take_op(d, s) : 0;
    return error == 0 && s->change != RANGE_NONE ? take_range(d, s) : error;
}

/* Most are the first two, which stand by themselves: nobody else's registers are saved for them. */
static int take(void *context, const struct slice *s)
{
    struct idle *d = context;
    if (s->event.record->type == RECORD_CALL)
        return take_call(d, process_of(d, &s->event), s);
    if (is_stream_work(s->event.record->type))
        return take_work(d, process_of(d, &s->event), s);
    return take_other(d, s);
}

/* ---- when all is known ----------------------------------------------------------------------- */

/* Was a kernel taken for one that computes, and is none? */
static bool has_guessed(const struct idle *d)
{
    const struct walk *w = d->walk;
    for (uint32_t i = 0; i < w->rec->count; i++)
        for (uint32_t k = 0; k < d->processes[i].kernel_count; k++) {
            const struct kernel_name *name = d->processes[i].kernels[k] == KERNEL_UNNAMED
                                                 ? walk_kernel(w, w->rec->processes[i], k)
                                                 : NULL;
            if (name && nccl_is_kernel(name))
                return true;
        }
    return false;
}

static int end(void *context)
{
    struct idle *d = context;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < d->device_count; i++) {
        struct idle_device *device = &d->devices[i];
        device->end_ns =
            is_piece(d) ? last_work_ns(device) : d->walk->last_ns[device->process->index];
        device->end_ns = later(device->end_ns, device->begin_ns);
        error = spend(d, device, device->end_ns);
        if (error == 0 && device->at_ns < device->end_ns) {
            struct idle_gap gap = gap_of(d, device, device->end_ns);
            error = charge(d, device, &gap, idle_gap_charge_last);
        }
    }
    for (uint32_t i = 0; error == 0 && i < d->device_count; i++) {
        struct idle_device *device = &d->devices[i];
        device->own.place = idle_text(idle_on_device);
        device->own.process = device->process->index;
        device->own.device = i;
        device->own.thread = IDLE_NONE;
        device->own.cause = IDLE_LAUNCH;
        device->idle_ns += device->own.ns;
        device->causes[IDLE_LAUNCH] += device->own.ns;
        error = device->own.count ? idle_rows_add_sum(&d->rows, &device->own) : 0;
    }
    d->has_guessed = d->has_guessed || has_guessed(d);
    /* Of a part, this is done when all of them are there. */
    return error < 0 || d->walk->rec->share ? error : idle_waits_charge(d);
}

struct consumer idle_consumer(struct idle *d)
{
    return (struct consumer){.context = d,
                             .needs = WALK_RANGES | WALK_WORK | WALK_OPS | WALK_STACKS,
                             .take = take,
                             .end = end};
}

static int walk_again(struct idle *d)
{
    struct walk *walk = d->walk;
    struct losses *losses = walk->losses;
    idle_release(d);
    walk->losses = calloc(walk->rec->count + 1u, sizeof *losses);
    int error = walk->losses ? start(d) : GPUPROF_NO_MEMORY;
    struct consumer consumer = idle_consumer(d);
    if (error == 0)
        error = walk_run(walk, NULL, &consumer, 1);
    free(walk->losses);
    walk->losses = losses; /* those of the walk before are all there are */
    return error;
}

const struct thread *idle_row_thread(const struct idle *d, const struct idle_row *row)
{
    const struct process *p = d->devices[row->device].process;
    if (row->place.kind == IDLE_WORD_TOLD)
        return ((const struct idle_told *)(uintptr_t)row->place.word)->thread;
    for (uint32_t i = 0; row->thread != IDLE_NONE && i < p->threads.count; i++)
        if (p->threads.threads[i]->index == row->thread && p->threads.threads[i]->tid)
            return p->threads.threads[i];
    return NULL;
}

int idle_finish(struct idle *d)
{
    int error = d->has_guessed && d->walk->is_surveyed && !d->walk->is_cut ? walk_again(d) : 0;
    for (uint32_t i = 0; i < d->device_count; i++) {
        const struct idle_device *device = &d->devices[i];
        d->window_ns += device->end_ns - device->begin_ns;
        d->idle_ns += device->idle_ns;
        d->stopped_ns += device->stopped_ns;
        for (unsigned k = 0; k < IDLE_BUSY_PARTS; k++)
            d->parts[k] += device->parts[k];
        for (unsigned k = 0; k < IDLE_CAUSES; k++)
            d->causes[k] += device->causes[k];
    }
    return error;
}

int idle_name(struct idle *d, const char *symbol_folder)
{
    bool is_part = d->walk->rec->share;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < d->rows.count; i++)
        error = place_lines_add(&d->lines, d->rows.list[i].process, d->rows.list[i].place.stack);
    if (error == 0)
        error = arrivals_want(&d->arrivals, &d->lines, is_part);
    if (error == 0)
        error = place_lines_find(&d->lines, symbol_folder);
    if (error == 0)
        error = arrivals_name(&d->arrivals, d->walk, &d->lines, is_part);
    return error < 0 ? error
                     : idle_totals(d->walk, &d->lines, &d->rows, &d->totals, &d->total_count);
}
