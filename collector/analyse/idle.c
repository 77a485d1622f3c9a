/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/idle.h"

#include <stdlib.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"

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

/* ---- the walk -------------------------------------------------------------------------------- */

static void start_process(struct idle_process *p, struct process *process)
{
    uint64_t sampled_ns = cost_table_step_ns(&process->costs, LADDER_TENTH);
    bool may_be_killed = !process->end_reason || process->end_reason == END_KILLED;
    p->lost.may_be =
        may_be_killed && process_expects_gpu(process) && process_wants_kernels(process);
    p->first_call_ns = UINT64_MAX;
    p->sampled_ns =
        sampled_ns < CLOCK_NS_MAX ? clock_map_ns(&process->clock, sampled_ns) : UINT64_MAX;
    p->blind_count = blind_times_find(&process->blind, &process->clock, &p->blind);
}

/* Later charges start at the oldest open or held gap. */
static uint64_t oldest_gap_ns(void *context, uint32_t process)
{
    const struct idle *d = context;
    uint64_t ns = UINT64_MAX;
    for (uint32_t i = 0; i < d->track_count; i++) {
        const struct idle_track *t = &d->tracks[i];
        uint64_t own_ns = t->held.count ? t->held.gaps[0].begin_ns : t->front.at_ns;
        if (t->process->index == process && t->place != IDLE_NONE && own_ns < ns)
            ns = own_ns;
    }
    return ns == UINT64_MAX ? 0 : ns;
}

/* A scheduler's "get_next_batch_to_run" is about requests: it only contains a loader's name, and
 * does not count. */
static const char loading[] =
    "data[_ ]?loader|\\b(data[_ ]loading|load[_ ](data|batch)|((get|load)[_ ])?next[_ ]batch|"
    "(get|fetch)[_ ]batch)\\b";

void idle_init(struct idle *d, struct walk *walk, const struct steps *steps)
{
    const struct recording *rec = walk->rec;
    *d = (struct idle){.walk = walk, .way.steps = steps};
    d->follows_ranks = rec->count > 1 || rec->share;
    idle_ranks_init(&d->ranks);
    spool_init(&d->waits, sizeof(struct idle_wait));
    d->lines = (struct place_lines){.stacks = &walk->survey.stacks, .has_callers = true};
    arrivals_init(&d->arrivals, walk);
    thread_times_init(&d->host, d->walk, oldest_gap_ns, d);
    if (regcomp(&d->way.loading, loading, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
        memory_missing();
    d->way.processes = memory_new(rec->count + 1u, sizeof *d->way.processes);
    d->way.threads = memory_new(rec->thread_count + 1u, sizeof(struct idle_thread *));
    for (uint32_t i = 0; i < rec->count; i++)
        start_process(&d->way.processes[i], rec->processes[i]);
    idle_start_begin(d);
}

void idle_release(struct idle *d)
{
    const struct recording *rec = d->walk->rec;
    for (uint32_t i = 0; i < rec->count; i++) {
        free(d->way.processes[i].pauses);
        free(d->way.processes[i].blind);
    }
    for (uint32_t i = 0; i < rec->thread_count; i++)
        if (d->way.threads[i]) {
            free(d->way.threads[i]->entries);
            free(d->way.threads[i]);
        }
    for (uint32_t i = 0; i < d->track_count; i++)
        free(d->tracks[i].held.gaps);
    regfree(&d->way.loading);
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
    key_map_release(&d->way.classes);
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

static void idle_take_pause(struct idle *d, struct idle_process *p, const struct event *e,
                            bool begins)
{
    if (begins == p->is_paused || (begins && d->way.pause_count == IDLE_PAUSES_MAX))
        return;
    p->is_paused = begins;
    d->way.pause_count += begins;
    if (begins)
        ARRAY_PUSH(p->pauses, p->pause_count, (&(struct time_span){e->begin_ns, UINT64_MAX}));
    else
        p->pauses[p->pause_count - 1].end_ns = e->begin_ns;
}

static int idle_take(void *context, const struct slice *s)
{
    struct idle *d = context;
    const struct event *e = &s->event;
    unsigned type = e->record->type;
    if (s->change == SPAN_LEFT)
        return 0;
    struct idle_process *p = process_of(d, e);
    if (type == RECORD_OVERHEAD)
        idle_take_overhead(d, p, s);
    else if (type == RECORD_SILENCE)
        idle_take_silence(d, s);
    else if (s->pause_change)
        idle_take_pause(d, p, e, s->pause_change == PAUSE_BEGINS);
    else if (type >= RECORD_SAMPLE && type <= RECORD_HOST_COUNTERS)
        thread_times_take(&d->host, s);
    else if (slice_change(s, SPAN_OP))
        idle_take_op(d, s);
    else if (slice_change(s, SPAN_RANGE))
        idle_take_range(d, s);
    return 0;
}

static int idle_own_take_call(void *context, const struct slice *s)
{
    struct idle *d = context;
    struct idle_process *p = process_of(d, &s->event);
    if (p->lost.may_be)
        idle_lost_call(&p->lost, &s->event);
    idle_take_call(d, p, s);
    return 0;
}

static int idle_own_take_work(void *context, const struct slice *s)
{
    struct idle *d = context;
    struct idle_process *p = process_of(d, &s->event);
    if (p->lost.may_be)
        idle_lost_work(&p->lost, s);
    idle_take_work(d, p, s);
    return 0;
}

/* ---- after the walk -------------------------------------------------------------------------- */

static int idle_end(void *context)
{
    struct idle *d = context;
    idle_devices_end(d);
    if (!d->walk->rec->share) /* for a part, this is done when all parts are combined */
        idle_waits_charge(d);
    return 0;
}

struct consumer idle_consumer(struct idle *d)
{
    return (struct consumer){.context = d,
                             .needs = WALK_SPANS | WALK_WORK | WALK_STACKS,
                             .sees_filtered = true,
                             .take = idle_take,
                             .take_call = idle_own_take_call,
                             .take_work = idle_own_take_work,
                             .end = idle_end};
}

bool idle_communicates(const struct idle *d, uint32_t job)
{
    for (uint32_t i = 0; i < d->device_count; i++)
        if (d->devices[i].process->job == job && idle_device_communicates(&d->devices[i]))
            return true;
    return false;
}

void idle_finish(struct idle *d)
{
    const struct recording *rec = d->walk->rec;
    if (d->way.steps)
        idle_start_charge(d);
    idle_host_settle(d);
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        for (uint32_t k = 0; k < p->thread_count; k++) {
            const struct idle_thread *t = d->way.threads[p->first_thread + k];
            d->way.processes[i].work_ns += t ? t->work_ns : 0;
        }
    }
    for (uint32_t i = 0; i < d->device_count; i++)
        idle_device_add(&d->all, &d->devices[i]);
    d->window_ns = d->all.end_ns;
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
    sum->met.collectives += device->met.collectives;
    sum->met.late += device->met.late;
    sum->met.late_ns += device->met.late_ns;
    sum->met.awaited_ns += device->met.awaited_ns;
}

static void name_row(struct idle *d, struct idle_row *row)
{
    const struct process *p = d->devices[row->device].process;
    const struct idle_thread *t = row->thread == IDLE_NONE ? NULL : d->way.threads[row->thread];
    uint64_t own_ns = t ? t->work_ns : 0, all_ns = d->way.processes[p->index].work_ns;
    bool is_known = row->thread != IDLE_NONE && all_ns;
    for (uint32_t i = 0; row->thread != IDLE_NONE && i < p->threads.count; i++)
        if (p->threads.threads[i]->index == row->thread)
            row->tid = p->threads.threads[i]->tid;
    row->work_share = is_known ? (uint32_t)(1e6 * (double)own_ns / (double)all_ns) : IDLE_NONE;
    idle_row_name(d->walk, &d->lines, row);
}

void idle_name(struct idle *d, const char *symbol_folder)
{
    struct work_places *places = &d->arrivals.places;
    struct idle_row *row = d->rows.list, *end = row + d->rows.count;
    for (; row < end; row++)
        if (!row->text)
            idle_place_want(&d->lines, row->process, &row->place);
    work_places_add_lines(places, &d->lines);
    place_lines_find(&d->lines, d->walk->rec, symbol_folder);
    work_places_name(places, &d->lines);
    for (row = d->rows.list; row < end; row++)
        if (!row->text)
            name_row(d, row);
    idle_add_totals(d);
}
