/* SPDX-License-Identifier: Apache-2.0 */
#include "report/overview.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyse/idle.h"
#include "analyse/step_report.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "rank.h"
#include "read/process.h"

/* The share of a thread's time says enough if it lived no longer than this times its steps. */
#define STEPS_NEWS 1.5

static void count_devices(struct overview *o)
{
    const struct idle *idle = o->report->idle;
    struct key_map known = {0};
    for (uint32_t i = 0; idle && i < idle->device_count; i++) {
        const struct idle_device *d = &idle->devices[i];
        const struct surveyed_device *s = survey_device(&idle->walk->survey, d->process, d->device);
        if (s && s->name[0] && !o->device)
            o->device = s->name;
        key_map_set(&known, surveyed_device_key(s, d->process, d->device), 1);
    }
    o->devices = known.count;
    const struct device_sources *sources = &o->report->walk.sources; /* they have names, too */
    if (o->devices && !o->device && sources->count && sources->list[0]->title[0])
        o->device = sources->list[0]->title;
    key_map_release(&known);
}

/* Counts processes that lack GPU work and have no device: in a job that hangs often all but one. */
static void count_workless(struct overview *o)
{
    const struct report *r = o->report;
    bool *works = memory_new(r->rec->count, sizeof *works);
    for (uint32_t i = 0; r->idle && i < r->idle->device_count; i++)
        works[r->idle->devices[i].process->index] = true;
    for (uint32_t i = 0; !r->selection && i < r->rec->count; i++)
        o->workless += !works[i] && r->walk.losses[i].gpu_missing;
    free(works);
}

bool overview_has_missing(const struct report *r, const struct missing_ranks *m)
{
    return missing_ranks_are_sure(m) || (r->idle && idle_communicates(r->idle, m->job));
}

char *overview_missing_text(const struct report *r)
{
    const struct recording *rec = r->rec;
    const struct missing_ranks *first = NULL;
    char ranks[MISSING_RANKS_BYTES], job[32] = "";
    for (uint32_t i = 0; !first && i < rec->missing_count; i++)
        first = overview_has_missing(r, &rec->missing[i]) ? &rec->missing[i] : NULL;
    if (!first)
        return NULL;
    if (rec->job_count > 1)
        snprintf(job, sizeof job, "in job %u ", first->job);
    return text_printf("%s%s %s no file%s", job, missing_ranks_text(first, ranks),
                       first->count > 1 ? "have" : "has",
                       r->idle && idle_lacks_ranks(r->idle) ? "; who waited for whom is not known"
                                                            : "");
}

double overview_cost_of_steps(const struct report *r)
{
    const struct steps *steps = r->selection ? NULL : r->program_steps;
    double worst = 0;
    for (uint32_t i = 0; steps && steps->firsts && i < r->rec->count; i++) {
        const uint64_t *sum = r->rec->processes[i]->costs.sum;
        uint64_t steps_ns = 0;
        for (uint32_t k = steps->firsts[i]; k < steps->firsts[i + 1]; k++)
            steps_ns += steps->list[k].end_ns - steps->list[k].begin_ns;
        double share = cost_share(sum[COST_SUM_WORST_COST_NS], steps_ns);
        bool is_news = (double)sum[COST_SUM_WORST_WALL_NS] > STEPS_NEWS * (double)steps_ns;
        worst = is_news && share <= 1 && share > worst ? share : worst;
    }
    return worst;
}

uint64_t overview_held_back(const struct report *r)
{
    uint64_t held = 0;
    for (uint32_t i = 0; i < r->rec->count; i++)
        held += unfinished_waits(&r->hang.unfinished, r->rec->processes[i])
                    ? r->walk.losses[i].gpu_missing
                    : 0;
    return held < r->losses.gpu_missing ? held : r->losses.gpu_missing;
}

uint64_t overview_start_up_ns(const struct report *r)
{
    const struct idle *idle = r->idle;
    if (r->is_selection && (!idle || !idle->all.causes[IDLE_START_UP]))
        return 0;
    uint64_t until_ns = idle && idle->device_count ? idle->devices[0].begin_ns : r->begin_ns;
    until_ns = until_ns < r->wall_end_ns ? until_ns : r->wall_end_ns;
    uint64_t ns = until_ns > r->wall_begin_ns ? until_ns - r->wall_begin_ns : 0;
    /* Only recorded time can be start-up. */
    return ns + (idle && idle->device_count ? idle->devices[0].causes[IDLE_START_UP] : 0);
}

const char *overview_start_up_end(const struct overview *o)
{
    const struct idle *idle = o->report->idle;
    const struct idle_device *first = idle && idle->device_count ? &idle->devices[0] : NULL;
    if (!first)
        return "the first call";
    if (first->begin_ns + first->causes[IDLE_START_UP] <= first->first_ns)
        return "a GPU's first work";
    return o->steps && o->marks->kind != STEPS_GRAPH
               ? "the steps ran"
               : "a GPU's first work, and long pauses soon after it";
}

/* Finds the slowest step and the median as in the table of steps. */
static void measure_steps(struct overview *o)
{
    const struct report *r = o->report;
    const struct steps *s = r->program_steps;
    o->marks = s;
    if (!s || !s->count)
        return;
    uint64_t *times = memory_new(s->count, sizeof *times);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct step *step = &s->list[i];
        uint64_t ns = step->end_ns - step->begin_ns;
        if (step->is_partial)
            continue;
        times[o->steps++] = ns;
        bool is_slowest = !o->slowest || ns > o->slowest->end_ns - o->slowest->begin_ns;
        if (is_slowest && !step_has_only_waited(s, step))
            o->slowest = step;
    }
    if (o->steps) {
        array_sort_whole(times, o->steps);
        o->step_median_ns = times[(o->steps - 1) / 2];
    }
    free(times);
}

/* Returns whether the process is the first of its rank; forked children have the same number.
 * Processes are sorted by rank, so those of one rank, in any job, are neighbours. */
static bool is_first_of_rank(const struct recording *rec, uint32_t index)
{
    const struct process *p = rec->processes[index];
    if (p->rank == RANK_NONE)
        return false;
    for (uint32_t i = index; i > 0 && rec->processes[i - 1]->rank == p->rank; i--)
        if (rec->processes[i - 1]->job == p->job)
            return false;
    return true;
}

void overview_init(struct overview *o, const struct report *r)
{
    *o = (struct overview){.report = r};
    for (uint32_t i = 0; i < r->rec->count; i++) {
        o->ranks += is_first_of_rank(r->rec, i);
        uint64_t windows = r->walk.recorded[i].window;
        o->windows = windows > o->windows ? windows : o->windows;
        o->schedule =
            o->schedule ? o->schedule : process_meta(r->rec->processes[i], "schedule_steps");
    }
    if (r->rec->count) {
        const char *command = process_meta(r->rec->processes[0], "cmdline");
        o->program = command && command[0] ? command : process_meta(r->rec->processes[0], "exe");
    }
    count_devices(o);
    count_workless(o);
    measure_steps(o);
}
