/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/idle.h"

#include <stdlib.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"

/* ---- start-up -------------------------------------------------------------------------------- */

/*
 * The end of start-up (formats/answers.md, "Causes"). The first steps are known only after the
 * walk; until then idle time is kept apart by their begins (idle_early). In a program without
 * steps, a long gap near the beginning is start-up if no later gap is half as long. There the
 * program compiles, loads or tunes once; one that always computes between its launches has such
 * gaps later.
 */
#define SLOW_STEP   2 /* multiple of the usual time */
#define STEPS_LEAST 2
#define STEPS_MANY  10

#define ONCE_EARLY_PART 10 /* of all work: work before a gap of start-up at most */

static void mark_step(struct idle *d)
{
    const struct steps *steps = d->way.steps;
    const struct step_mark *mark = &steps->marks[steps->mark_count - 1];
    struct idle_early *early = &d->way.processes[mark->process->index].early;
    d->way.marks_made = steps->made;
    if (early->kind != steps->kind) { /* marks of a kind with higher priority are fewer */
        early->kind = steps->kind;
        early->of_kind = 0;
    }
    if (early->count == IDLE_EARLY_MAX || early->of_kind == IDLE_EARLY_STEPS ||
        (early->count && early->at_ns[early->count - 1] >= mark->begin_ns))
        return;
    early->at_ns[early->count++] = mark->begin_ns;
    early->of_kind++;
}

/* The usual time of a step: the ninth decile after the first steps, since occasional later work (a
 * checkpoint) is no start-up. With few steps it is the median of all but the first. 0 if there are
 * too few. */
static uint64_t usual_step_ns(const struct step *list, uint32_t count)
{
    bool has_many = count >= STEPS_MANY;
    uint64_t *times = memory_new(count, sizeof *times), ns = 0;
    uint32_t whole = 0;
    for (uint32_t i = has_many ? IDLE_EARLY_STEPS - 1 : 1; i < count; i++)
        if (!list[i].is_partial)
            times[whole++] = list[i].end_ns - list[i].begin_ns;
    if (whole >= STEPS_LEAST) {
        array_sort_whole(times, whole);
        ns = times[has_many ? whole * 9ull / 10 : whole / 2];
    }
    free(times);
    return ns;
}

/* The end of the process's slow first steps; 0 if it has no steps. */
static uint64_t first_steps_end(const struct idle *d, uint32_t process)
{
    const struct steps *steps = d->way.steps;
    uint32_t first = steps->firsts[process], count = steps->firsts[process + 1] - first;
    const struct step *list = count ? &steps->list[first] : NULL;
    if (!count || steps->kind == STEPS_GRAPH)
        return 0;
    uint64_t usual_ns = usual_step_ns(list, count), end_ns = list->begin_ns;
    for (uint32_t i = 0; usual_ns && i + 1 < IDLE_EARLY_STEPS && i < count &&
                         list[i].end_ns - list[i].begin_ns > SLOW_STEP * usual_ns;
         i++)
        end_ns = list[i].end_ns;
    return end_ns;
}

static void begin_start_up(struct idle *d)
{
    const struct steps *steps = d->way.steps;
    d->way.marks_made = steps ? steps->made : 0;
    for (uint32_t i = 0; steps && steps->count && i < d->walk->rec->count; i++) {
        struct idle_early *early = &d->way.processes[i].early;
        early->at_ns[0] = first_steps_end(d, i);
        early->count = early->at_ns[0] > 0;
    }
}

/* Decides which long gaps near the process's beginning are start-up. Last gaps first, since a
 * start-up gap is no evidence against the gaps before it. */
static void judge_once(struct idle *d, const struct idle_track *t)
{
    const struct idle_process *p = &d->way.processes[t->process->index];
    struct idle_device *device = &d->devices[t->place];
    uint64_t most_ns = 0, work_ns = idle_work_ns(device);
    for (uint32_t i = t->once_count; i; i--) {
        const struct idle_once *o = &t->once[i - 1];
        bool was_recorded = !p->pause_count || p->pauses[0].begin_ns > o->end_ns;
        most_ns = max_of(most_ns, o->later_ns);
        bool is_start_up =
            was_recorded && o->host_ns >= IDLE_ONCE_NS && o->host_ns / SLOW_STEP > most_ns &&
            o->host_ns / IDLE_ONCE_PART <= work_ns && o->work_ns <= work_ns / ONCE_EARLY_PART;
        device->start_gaps |= is_start_up ? 1u << i : 0;
        most_ns = max_of(most_ns, is_start_up ? 0 : o->host_ns);
    }
}

/* True if that row is start-up, given the end of the process's slow first steps; 0: it has none. If
 * recording may have missed the first steps, none of it is. */
static bool is_start_up(const struct idle *d, const struct idle_row *row, uint64_t end_ns)
{
    const struct idle_process *p = &d->way.processes[row->process];
    bool is_late = p->pause_count && p->pauses[0].begin_ns < end_ns;
    uint32_t early = end_ns && !is_late ? idle_epoch(&p->early, end_ns) : 0;
    if ((row->place.epoch & IDLE_EPOCH_MASK) < early)
        return row->cause != IDLE_COMMUNICATION;
    return d->devices[row->device].start_gaps >> (row->place.epoch >> IDLE_EPOCH_BITS) & 1 &&
           (row->cause == IDLE_HOST || row->cause == IDLE_PREEMPTED || row->cause == IDLE_NOTHING);
}

static void charge_start_up(struct idle *d)
{
    struct idle_rows rows = d->rows;
    uint64_t *ends_ns = memory_new(d->walk->rec->count + 1u, sizeof *ends_ns);
    for (uint32_t i = 0; i < d->walk->rec->count; i++)
        if (d->way.processes[i].early.count)
            ends_ns[i] = first_steps_end(d, i);
    for (uint32_t i = 0; i < d->track_count; i++)
        if (d->tracks[i].place != IDLE_NONE && !ends_ns[d->tracks[i].process->index])
            judge_once(d, &d->tracks[i]);
    d->rows = (struct idle_rows){.gap = rows.gap};
    for (uint32_t i = 0; i < rows.count; i++) {
        struct idle_row row = rows.list[i];
        uint64_t *causes = d->devices[row.device].causes;
        if (row.place.epoch != IDLE_LATE && is_start_up(d, &row, ends_ns[row.process])) {
            causes[row.cause] -= row.did ? 0 : row.ns;
            causes[IDLE_START_UP] += row.did ? 0 : row.ns;
            row.cause = IDLE_START_UP;
        }
        row.place.epoch = 0;
        idle_rows_join(&d->rows, &row);
    }
    idle_rows_release(&rows);
    free(ends_ns);
}

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
    begin_start_up(d);
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
    sums_release(&d->totals);
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
        mark_step(d);
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
        charge_start_up(d);
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
    struct idle_row *rows = d->rows.list;
    for (uint32_t i = 0; i < d->rows.count; i++)
        if (!rows[i].text)
            idle_place_want(&d->lines, rows[i].process, &rows[i].place);
    work_places_add_lines(places, &d->lines);
    place_lines_find(&d->lines, d->walk->rec, symbol_folder);
    work_places_name(places, &d->lines);
    for (uint32_t i = 0; i < d->rows.count; i++)
        if (!rows[i].text)
            name_row(d, &rows[i]);
    idle_add_totals(d);
}
