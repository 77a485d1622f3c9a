/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The finding that a device was slowed down. Its cost is how much longer the slowed steps of a
 * process were than the others. It needs many steps of both kinds, and nearly all slowed ones must
 * be longer than nearly all others: else the cause is not certain.
 */
#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "analyse/findings.h"
#include "analyse/report_make.h"
#include "base/array.h"
#include "base/memory.h"

#define SLOWED_SHARE 0.2 /* part of a step that makes it a slowed one */
#define FREE_SHARE   0.02
#define STEPS_MIN    5 /* steps of each kind */
#define PART_BEYOND  4 /* 1/PART_BEYOND of each kind may be exceptions */

/* Steps that throttling hardly touched, and those that it slowed. */
enum { FREE, SLOWED, KINDS };

struct slowed {
    uint64_t *ns[KINDS]; /* owned: durations */
    uint32_t count[KINDS];
    uint64_t by_ns[THROTTLES]; /* of the slowed steps, by reason */
    uint64_t longest_ns;
    uint64_t longest_at_ns;
};

static void add_step(struct slowed *s, const struct device_row *row, const struct step *step)
{
    uint64_t step_ns = step->end_ns - step->begin_ns, ns[THROTTLES], most_ns = 0;
    for (unsigned why = 0; why < THROTTLES; why++) {
        if (!device_throttled_between(row, (enum throttle)why, step->begin_ns, step->end_ns,
                                      &ns[why]))
            return;
        most_ns = max_of(most_ns, ns[why]);
    }
    bool is_slowed = (double)most_ns >= SLOWED_SHARE * (double)step_ns;
    if (is_slowed || (double)most_ns < FREE_SHARE * (double)step_ns)
        s->ns[is_slowed][s->count[is_slowed]++] = step_ns;
    for (unsigned why = 0; why < THROTTLES && is_slowed; why++)
        s->by_ns[why] += ns[why];
    if (is_slowed && step_ns > s->longest_ns) {
        s->longest_ns = step_ns;
        s->longest_at_ns = step->begin_ns;
    }
}

/* The time beyond the median of the other steps, *usual_ns; 0 if it may be chance. */
static uint64_t cost_of(struct slowed *s, uint64_t *usual_ns)
{
    uint32_t free_count = s->count[FREE], count = s->count[SLOWED];
    uint64_t cost_ns = 0;
    if (free_count < STEPS_MIN || count < STEPS_MIN)
        return 0;
    array_sort_whole(s->ns[FREE], free_count);
    array_sort_whole(s->ns[SLOWED], count);
    *usual_ns = s->ns[FREE][(free_count - 1) / 2];
    if (s->ns[SLOWED][count / PART_BEYOND] <=
        s->ns[FREE][free_count - 1 - free_count / PART_BEYOND])
        return 0;
    for (uint32_t i = 0; i < count; i++)
        cost_ns += max_of(s->ns[SLOWED][i], *usual_ns) - *usual_ns;
    return cost_ns;
}

/* *word gets the reason of the worst device. */
static void throttle_finding_weigh(struct finding *to, const struct device_row *row,
                                   const struct steps *steps, struct slowed *s, const char **word)
{
    uint32_t first = steps->firsts[row->process->index], worst = 0;
    uint32_t end = steps->firsts[row->process->index + 1];
    uint64_t window_ns = 0, usual_ns = 0;
    *s = (struct slowed){.ns = {s->ns[FREE], s->ns[SLOWED]}};
    for (uint32_t i = first; i < end; i++) {
        window_ns += steps->list[i].end_ns - steps->list[i].begin_ns;
        if (!steps->list[i].is_partial)
            add_step(s, row, &steps->list[i]);
    }
    uint64_t ns = cost_of(s, &usual_ns);
    if (!finding_worth_it(to->kind, ns, window_ns, 1))
        return;
    to->devices++;
    to->total_ns += ns;
    if (ns <= to->ns)
        return;
    for (unsigned why = 0; why < THROTTLES; why++)
        worst = s->by_ns[why] > s->by_ns[worst] ? why : worst;
    *word = throttle_words[worst];
    to->ns = ns;
    to->of_ns = to->window_ns = window_ns;
    to->process = row->process;
    to->device = row->device;
    to->rows[0] = (struct finding_row){.count = s->count[SLOWED],
                                       .ns = ns,
                                       .longest_ns = min_of(s->longest_ns - usual_ns, ns),
                                       .at_ns = s->longest_at_ns};
}

/* Runs after all findings except the memory's. */
static void throttle_finding_analysis_end(struct report *report)
{
    struct findings *f = report->findings;
    const struct device_report *r = report->devices;
    const struct steps *steps = report->program_steps;
    struct finding found = {.kind = &finding_kinds[FINDING_THROTTLED]};
    uint32_t count = steps ? steps->count : 0;
    struct slowed s = {.ns = {memory_new(count, sizeof **s.ns), memory_new(count, sizeof **s.ns)}};
    const char *word = "";
    for (uint32_t i = 0; count && i < r->count; i++)
        if (r->rows[i].samples)
            throttle_finding_weigh(&found, &r->rows[i], steps, &s, &word);
    free(s.ns[FREE]);
    free(s.ns[SLOWED]);
    if (found.devices) {
        found.rows[0].name = memory_text(word);
        found.row_count = 1;
        f->list[f->count++] = found;
    }
    findings_sort(f);
}

const struct analysis throttle_analysis = {.end = throttle_finding_analysis_end};
