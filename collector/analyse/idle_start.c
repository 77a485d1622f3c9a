/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of start-up (formats/answers.md, "Causes"). The first steps are known only after the
 * walk; until then idle time is kept apart by their begins (idle_early). In a program without
 * steps, a long gap near the beginning is start-up if no later gap is half as long. There the
 * program compiles, loads or tunes once; one that always computes between its launches has such
 * gaps later.
 */
#include "analyse/idle_state.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

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
 * too few, or out of memory (*error). */
static uint64_t usual_step_ns(const struct step *list, uint32_t count, int *error)
{
    bool has_many = count >= STEPS_MANY;
    uint64_t *times = malloc(count * sizeof *times), ns = 0;
    uint32_t whole = 0;
    *error = times ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = has_many ? IDLE_EARLY_STEPS - 1 : 1; times && i < count; i++)
        if (!list[i].is_partial)
            times[whole++] = list[i].end_ns - list[i].begin_ns;
    if (whole >= STEPS_LEAST) {
        array_sort_whole(times, whole);
        ns = times[has_many ? whole * 9ull / 10 : whole / 2];
    }
    free(times);
    return ns;
}

/* Sets *end_ns to the end of the process's slow first steps; 0 if it has no steps. */
static int first_steps_end(const struct idle *d, uint32_t process, uint64_t *end_ns)
{
    const struct steps *steps = d->way.steps;
    uint32_t first = steps->firsts[process], count = steps->firsts[process + 1] - first;
    const struct step *list = count ? &steps->list[first] : NULL;
    int error = 0;
    *end_ns = 0;
    if (!count || steps->kind == STEPS_GRAPH)
        return 0;
    uint64_t usual_ns = usual_step_ns(list, count, &error);
    *end_ns = list->begin_ns;
    for (uint32_t i = 0; usual_ns && i + 1 < IDLE_EARLY_STEPS && i < count &&
                         list[i].end_ns - list[i].begin_ns > SLOW_STEP * usual_ns;
         i++)
        *end_ns = list[i].end_ns;
    return error;
}

int idle_start_begin(struct idle *d)
{
    const struct steps *steps = d->way.steps;
    int error = 0;
    d->way.marks_made = steps ? steps->made : 0;
    for (uint32_t i = 0; steps && steps->count && error == 0 && i < d->walk->rec->count; i++) {
        struct idle_early *early = &d->way.processes[i].early;
        error = first_steps_end(d, i, &early->at_ns[0]);
        early->count = early->at_ns[0] > 0;
    }
    return error;
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

void idle_start_gap(struct idle *d, struct idle_track *t, const struct idle_gap *gap)
{
    struct idle_early *early = &d->way.processes[t->process->index].early;
    const struct walk_filter *f = d->walk->filter;
    uint64_t ns = gap->end_ns > gap->begin_ns ? gap->end_ns - gap->begin_ns : 0;
    if (!d->way.steps || (f && f->is_of_time) || gap->is_first ||
        early->once_count == IDLE_ONCE_MAX || t->once_count == IDLE_ONCE_DEVICE || ns < ONCE_NS ||
        most_work_ns(d, t->process) > ns / ONCE_WORK_PART)
        return;
    early->once[early->once_count] =
        (struct idle_once){.begin_ns = gap->begin_ns,
                           .end_ns = gap->end_ns,
                           .work_ns = idle_work_ns(&d->devices[t->place]),
                           .device = t->place};
    t->once = ++early->once_count;
    t->once_count++;
    early->once_until_ns = max_of(early->once_until_ns, gap->end_ns);
}

void idle_start_host(struct idle *d, const struct idle_track *t, uint64_t end_ns, uint64_t ns)
{
    struct idle_early *early = &d->way.processes[t->process->index].early;
    struct idle_once *o = &early->once[t->once - 1];
    uint64_t *most_ns = end_ns == o->end_ns ? &o->host_ns : &o->later_ns;
    *most_ns = max_of(*most_ns, ns);
}

/* Decides which long gaps near the process's beginning are start-up. Last gaps first, since a
 * start-up gap is no evidence against the gaps before it. */
static void judge_once(const struct idle *d, struct idle_process *p)
{
    for (uint32_t i = p->early.once_count; i; i--) {
        struct idle_once *o = &p->early.once[i - 1];
        uint64_t most_ns = o->later_ns;
        for (uint32_t k = i; k < p->early.once_count; k++) {
            const struct idle_once *then = &p->early.once[k];
            if (then->device == o->device)
                most_ns =
                    max_of(most_ns, max_of(then->later_ns, then->is_start_up ? 0 : then->host_ns));
        }
        bool was_recorded = !p->pause_count || p->pauses[0].begin_ns > o->end_ns;
        uint64_t work_ns = idle_work_ns(&d->devices[o->device]);
        o->is_start_up =
            was_recorded && o->host_ns >= ONCE_NS && o->host_ns / SLOW_STEP > most_ns &&
            o->host_ns / ONCE_WORK_PART <= work_ns && o->work_ns <= work_ns / ONCE_EARLY_PART;
    }
}

/* True if that row is start-up; the first `early` epochs of its process are. */
static bool is_start_up(const struct idle *d, const struct idle_row *row, uint32_t early)
{
    const struct idle_early *e = &d->way.processes[row->process].early;
    uint32_t once = row->place.epoch >> IDLE_EPOCH_BITS;
    if ((row->place.epoch & IDLE_EPOCH_MASK) < early)
        return row->cause != IDLE_COMMUNICATION;
    return once && once <= e->once_count && e->once[once - 1].is_start_up &&
           e->once[once - 1].device == row->device &&
           (row->cause == IDLE_HOST || row->cause == IDLE_PREEMPTED || row->cause == IDLE_NOTHING);
}

/* Sets *count to the number of epochs that are start-up; 0 if recording may have missed the
 * process's first steps. */
static int count_early(const struct idle *d, uint32_t process, uint32_t *count)
{
    struct idle_process *p = &d->way.processes[process];
    uint64_t end_ns = 0;
    int error = p->early.count ? first_steps_end(d, process, &end_ns) : 0;
    *count = !end_ns || (p->pause_count && p->pauses[0].begin_ns < end_ns)
                 ? 0
                 : idle_epoch(&p->early, end_ns) & IDLE_EPOCH_MASK;
    if (!end_ns)
        judge_once(d, p);
    return error;
}

int idle_start_charge(struct idle *d)
{
    struct idle_rows rows = d->rows;
    uint32_t *early = calloc(d->walk->rec->count + 1u, sizeof *early);
    int error = early ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; error == 0 && i < d->walk->rec->count; i++)
        error = count_early(d, i, &early[i]);
    d->rows = (struct idle_rows){.gap = rows.gap};
    for (uint32_t i = 0; error == 0 && i < rows.count; i++) {
        struct idle_row row = rows.list[i];
        uint64_t *causes = d->devices[row.device].causes;
        if (is_start_up(d, &row, early[row.process])) {
            causes[row.cause] -= row.did ? 0 : row.ns;
            causes[IDLE_START_UP] += row.did ? 0 : row.ns;
            row.cause = IDLE_START_UP;
        }
        row.place.epoch = 0;
        error = idle_rows_join(&d->rows, &row);
    }
    idle_rows_release(&rows);
    free(early);
    return error;
}
