/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/idle.h"

#include <stdlib.h>

#include "api/api.h"
#include "base/array.h"
#include "error.h"

/* ---- work lost by a kill or a full disk: launched, but not delivered by CUPTI ---------------- */

/* True if the call launches work that always has a record. */
static bool launches(const struct event *e)
{
    unsigned does = e->function->does;
    return (does == API_DOES_LAUNCH || does == API_DOES_GRAPH_LAUNCH) && !e->record->result &&
           !(e->record->flags & (RECORD_CAPTURED | RECORD_NESTED | RECORD_STALE | RECORD_OPEN));
}

static void idle_lost_call(struct idle_lost *lost, const struct event *e)
{
    uint64_t ns = e->begin_ns;
    lost->has_hung |= e->record->flags & RECORD_OPEN && e->end_ns - ns >= SURVEY_HANG_NS;
    if (!launches(e))
        return;
    lost->last_ns = ns;
    lost->returned_ns = max_of(lost->returned_ns, e->end_ns);
    lost->pending_ns = lost->pending_ns ? lost->pending_ns : ns;
}

/* All launches before the last launch precede the end of the last work. Work without a known call
 * may belong to any of them. */
static void idle_lost_work(struct idle_lost *lost, const struct slice *s)
{
    uint64_t made_ns = s->is_called ? s->call.begin_ns : lost->last_ns;
    lost->made_ns = max_of(lost->made_ns, made_ns);
    lost->worked_ns = max_of(lost->worked_ns, s->event.end_ns);
    lost->pending_ns = lost->last_ns > lost->made_ns ? lost->last_ns : 0;
}

bool idle_lost_span(const struct idle_lost *lost, uint64_t end_ns, struct time_span *span)
{
    bool goes_on = end_ns < lost->returned_ns + SURVEY_HANG_NS;
    *span = (struct time_span){max_of(lost->pending_ns, lost->worked_ns),
                               goes_on ? end_ns : lost->last_ns};
    return lost->may_be && !lost->has_hung && lost->pending_ns && span->begin_ns < span->end_ns;
}

/* Marks the devices whose last work may be lost. */
static void idle_lost_end(struct idle *d)
{
    const struct walk *w = d->walk;
    for (uint32_t i = 0; i < d->track_count && !w->is_cut; i++) {
        struct idle_track *t = &d->tracks[i];
        uint32_t process = t->process->index;
        struct time_span span;
        t->loses_work = idle_lost_span(&d->way.processes[process].lost, w->last_ns[process], &span);
        if (t->place != IDLE_NONE)
            d->devices[t->place].loses_work = t->loses_work;
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int start_process(struct idle_process *p, struct process *process)
{
    uint64_t sampled_ns = cost_table_step_ns(&process->costs, LADDER_TENTH);
    int64_t count = blind_times_find(&process->blind, &process->clock, &p->blind);
    bool may_be_killed = !process->end_reason || process->end_reason == END_KILLED;
    p->lost.may_be =
        may_be_killed && process_expects_gpu(process) && process_wants_kernels(process);
    p->first_call_ns = UINT64_MAX;
    p->sampled_ns =
        sampled_ns < CLOCK_NS_MAX ? clock_map_ns(&process->clock, sampled_ns) : UINT64_MAX;
    p->blind_count = count < 0 ? 0 : (uint32_t)count;
    return count < 0 ? (int)count : 0;
}

/* Later charges start at the oldest open or held gap. */
static uint64_t oldest_gap_ns(void *context, uint32_t process)
{
    const struct idle *d = context;
    uint64_t ns = UINT64_MAX;
    for (uint32_t i = 0; i < d->track_count; i++) {
        const struct idle_track *t = &d->tracks[i];
        uint64_t own_ns = t->held.count ? t->held.gaps[0].begin_ns : t->at_ns;
        if (t->process->index == process && t->place != IDLE_NONE && own_ns < ns)
            ns = own_ns;
    }
    return ns == UINT64_MAX ? 0 : ns;
}

int idle_init(struct idle *d, struct walk *walk, const struct steps *steps)
{
    const struct recording *rec = walk->rec;
    *d = (struct idle){.walk = walk, .way.steps = steps};
    d->follows_ranks = rec->count > 1 || rec->share;
    idle_ranks_init(&d->ranks);
    spool_init(&d->waits, sizeof(struct idle_wait));
    d->lines = (struct place_lines){.stacks = &walk->survey.stacks, .has_callers = true};
    if (arrivals_init(&d->arrivals, walk) < 0 ||
        thread_times_init(&d->host, d->walk, oldest_gap_ns, d) < 0)
        return GPUPROF_NO_MEMORY;
    d->way.processes = calloc(rec->count + 1u, sizeof *d->way.processes);
    d->way.threads = calloc(rec->thread_count + 1u, sizeof(struct idle_thread *));
    if (!d->way.processes || !d->way.threads)
        return GPUPROF_NO_MEMORY;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < rec->count; i++)
        error = start_process(&d->way.processes[i], rec->processes[i]);
    return error == 0 ? idle_start_begin(d) : error;
}

void idle_release(struct idle *d)
{
    if (!d->walk) /* out of memory before it was set up */
        return;
    const struct recording *rec = d->walk->rec;
    for (uint32_t i = 0; d->way.processes && i < rec->count; i++) {
        free(d->way.processes[i].pauses);
        free(d->way.processes[i].blind);
    }
    for (uint32_t i = 0; d->way.threads && i < rec->thread_count; i++)
        if (d->way.threads[i]) {
            free(d->way.threads[i]->entries);
            free(d->way.threads[i]);
        }
    for (uint32_t i = 0; i < d->totals.count; i++)
        free(d->totals.list[i].place);
    for (uint32_t i = 0; i < d->track_count; i++) {
        idle_rows_release(&d->tracks[i].aside.rows);
        free(d->tracks[i].held.gaps);
    }
    free(d->way.processes);
    free(d->way.threads);
    free(d->devices);
    free(d->tracks);
    free(d->totals.list);
    idle_rows_release(&d->rows);
    place_lines_release(&d->lines);
    idle_ranks_release(&d->ranks);
    arrivals_release(&d->arrivals);
    thread_times_release(&d->host);
    spool_release(&d->waits);
    key_map_release(&d->way.track_of);
    key_map_release(&d->way.loaders);
    *d = (struct idle){.walk = d->walk, .way.steps = d->way.steps};
}

static __attribute__((noinline)) void begin_process(struct idle *d, const struct process *process)
{
    uint64_t start_ns = process_start_ns(process);
    uint64_t first_ns = d->walk->first_ns[process->index]; /* 0: no event yet */
    d->way.processes[process->index].begin_ns =
        start_ns && start_ns < first_ns ? start_ns : first_ns;
}

/* The state of the event's process; notes the steps that have begun since the last event. */
static inline struct idle_process *process_of(struct idle *d, const struct event *e)
{
    struct idle_process *p = &d->way.processes[e->process->index];
    if (!p->begin_ns)
        begin_process(d, e->process);
    if (d->way.steps && d->way.steps->made != d->way.marks_made)
        idle_start_mark(d);
    return p;
}

static int idle_take_pause(struct idle *d, struct idle_process *p, const struct event *e,
                           bool begins)
{
    if (begins == p->is_paused || (begins && d->way.pause_count == IDLE_PAUSES_MAX))
        return 0;
    p->is_paused = begins;
    d->way.pause_count += begins;
    if (begins)
        return ARRAY_PUSH(p->pauses, p->pause_count,
                          (&(struct time_span){e->begin_ns, UINT64_MAX}));
    p->pauses[p->pause_count - 1].end_ns = e->begin_ns;
    return 0;
}

static int idle_take(void *context, const struct slice *s)
{
    struct idle *d = context;
    const struct event *e = &s->event;
    unsigned type = e->record->type;
    if (s->change == RANGE_LEFT || s->op_change == OP_LEFT)
        return 0;
    struct idle_process *p = process_of(d, e);
    if (type == RECORD_OVERHEAD)
        return idle_take_overhead(d, p, s);
    if (type == RECORD_SILENCE)
        return idle_take_silence(d, s);
    if (s->pause_change)
        return idle_take_pause(d, p, e, s->pause_change == PAUSE_BEGINS);
    if (type >= RECORD_SAMPLE && type <= RECORD_HOST_COUNTERS)
        return thread_times_take(&d->host, s);
    int error = s->op_change != OP_SAME || s->replaced ? idle_take_op(d, s) : 0;
    return error == 0 && s->change != RANGE_NONE ? idle_take_range(d, s) : error;
}

static int idle_own_take_call(void *context, const struct slice *s)
{
    struct idle *d = context;
    struct idle_process *p = process_of(d, &s->event);
    if (p->lost.may_be)
        idle_lost_call(&p->lost, &s->event);
    return idle_take_call(d, p, s);
}

static int idle_own_take_work(void *context, const struct slice *s)
{
    struct idle_process *p = process_of(context, &s->event);
    if (p->lost.may_be)
        idle_lost_work(&p->lost, s);
    return idle_take_work(context, p, s);
}

/* ---- after the walk -------------------------------------------------------------------------- */

static int idle_end(void *context)
{
    struct idle *d = context;
    int error = idle_devices_end(d);
    idle_lost_end(d);
    /* For a part, this is done when all parts are combined. */
    return error < 0 || d->walk->rec->share ? error : idle_waits_charge(d);
}

struct consumer idle_consumer(struct idle *d)
{
    return (struct consumer){.context = d,
                             .needs = WALK_RANGES | WALK_WORK | WALK_OPS | WALK_STACKS,
                             .sees_filtered = true,
                             .take = idle_take,
                             .take_call = idle_own_take_call,
                             .take_work = idle_own_take_work,
                             .end = idle_end};
}

uint32_t idle_row_tid(const struct idle *d, const struct idle_row *row)
{
    const struct process *p = d->devices[row->device].process;
    const struct idle_reported *reported = idle_reported_of(row);
    if (reported)
        return reported->tid;
    for (uint32_t i = 0; row->thread != IDLE_NONE && i < p->threads.count; i++)
        if (p->threads.threads[i]->index == row->thread)
            return p->threads.threads[i]->tid;
    return 0;
}

uint32_t idle_row_work_share(const struct idle *d, const struct idle_row *row)
{
    const struct process *p = d->devices[row->device].process;
    const struct idle_reported *reported = idle_reported_of(row);
    if (reported)
        return reported->work_share;
    const struct idle_thread *t = row->thread == IDLE_NONE ? NULL : d->way.threads[row->thread];
    uint64_t own_ns = t ? t->work_ns : 0, all_ns = d->way.processes[p->index].work_ns;
    return row->thread != IDLE_NONE && all_ns ? (uint32_t)(1e6 * (double)own_ns / (double)all_ns)
                                              : IDLE_NONE;
}

bool idle_communicates(const struct idle *d, uint32_t job)
{
    for (uint32_t i = 0; i < d->device_count; i++)
        if (d->devices[i].process->job == job && idle_device_communicates(&d->devices[i]))
            return true;
    return false;
}

int idle_finish(struct idle *d)
{
    int error = d->way.steps ? idle_start_charge(d) : 0;
    if (error == 0)
        error = idle_host_settle(d);
    const struct recording *rec = d->walk->rec;
    for (uint32_t i = 0; error == 0 && i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        for (uint32_t k = 0; k < p->thread_count; k++) {
            const struct idle_thread *t = d->way.threads[p->first_thread + k];
            d->way.processes[i].work_ns += t ? t->work_ns : 0;
        }
    }
    for (uint32_t i = 0; i < d->device_count; i++)
        idle_device_add(&d->all, &d->devices[i]);
    d->window_ns = d->all.end_ns;
    return error;
}

void idle_device_add(struct idle_device *sum, const struct idle_device *device)
{
    sum->end_ns += device->end_ns - device->begin_ns;
    for (unsigned k = 0; k < IDLE_PARTS; k++)
        sum->parts[k] += device->parts[k];
    sum->idle_ns += device->idle_ns;
    sum->stopped_ns += device->stopped_ns;
    for (unsigned k = 0; k < IDLE_CAUSES; k++)
        sum->causes[k] += device->causes[k];
    sum->collectives += device->collectives;
    sum->late += device->late;
    sum->late_ns += device->late_ns;
    sum->awaited_ns += device->awaited_ns;
}

int idle_name(struct idle *d, const char *symbol_folder)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < d->rows.count; i++)
        error = idle_place_want(&d->lines, d->rows.list[i].process, &d->rows.list[i].place);
    if (error == 0)
        error = work_places_add_lines(&d->arrivals.places, &d->lines);
    if (error == 0)
        error = place_lines_find(&d->lines, d->walk->rec, symbol_folder);
    if (error == 0)
        error = work_places_name(&d->arrivals.places, &d->lines);
    return error < 0 ? error
                     : idle_totals(d->walk, &d->lines, &d->rows, &d->totals.list, &d->totals.count);
}
