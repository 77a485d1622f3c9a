/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of start-up (formats/answers.md, "Causes"). The first steps are known only after the
 * walk; until then idle time is kept apart by their begins (idle_early). In a program without
 * steps, a long gap near the beginning is start-up if no later gap is half as long. There the
 * program compiles, loads or tunes once; one that always computes between its launches has such
 * gaps later.
 */
#include "analyse/idle.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"

#define SLOW_STEP   2 /* multiple of the usual time */
#define STEPS_LEAST 2
#define STEPS_MANY  10

#define ONCE_NS         50000000u
#define ONCE_WORK_PART  4  /* of the gap: work before it at most, all work at least */
#define ONCE_EARLY_PART 10 /* of all work: work before the gap at most */

void idle_start_mark(struct idle *d)
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

void idle_start_begin(struct idle *d)
{
    const struct steps *steps = d->way.steps;
    d->way.marks_made = steps ? steps->made : 0;
    for (uint32_t i = 0; steps && steps->count && i < d->walk->rec->count; i++) {
        struct idle_early *early = &d->way.processes[i].early;
        early->at_ns[0] = first_steps_end(d, i);
        early->count = early->at_ns[0] > 0;
    }
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

void idle_start_gap(struct idle *d, struct idle_track *t, struct idle_gap *gap)
{
    const struct walk_filter *f = d->walk->filter;
    uint64_t ns = gap->end_ns > gap->begin_ns ? gap->end_ns - gap->begin_ns : 0;
    if (!d->way.steps || (f && f->is_of_time) || gap->is_first || t->once_count == IDLE_ONCE_MAX ||
        ns < ONCE_NS || most_work_ns(d, t->process) > ns / ONCE_WORK_PART)
        return;
    t->once[t->once_count] =
        (struct idle_once){.end_ns = gap->end_ns, .work_ns = idle_work_ns(&d->devices[t->place])};
    gap->once = (uint16_t)++t->once_count;
}

void idle_start_host(struct idle_track *t, uint64_t end_ns, uint64_t ns)
{
    struct idle_once *o = &t->once[t->once_count - 1];
    uint64_t *most_ns = end_ns == o->end_ns ? &o->host_ns : &o->later_ns;
    *most_ns = max_of(*most_ns, ns);
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
            was_recorded && o->host_ns >= ONCE_NS && o->host_ns / SLOW_STEP > most_ns &&
            o->host_ns / ONCE_WORK_PART <= work_ns && o->work_ns <= work_ns / ONCE_EARLY_PART;
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

void idle_start_charge(struct idle *d)
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
