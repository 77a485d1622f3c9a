/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/comparison.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "error.h"

#define SIDE_BYTES  200
#define NOTED_SHARE 0.1

const char *const verdict_words[] = {
    [VERDICT_SAME] = "same",     [VERDICT_WORSE] = "worse",   [VERDICT_BETTER] = "better",
    [VERDICT_UNSURE] = "unsure", [VERDICT_ABSENT] = "absent",
};

/* ---- the numbers of a metric ----------------------------------------------------------------- */

/* A metric's values, first as they are, then as shares of a unit. */
struct metric_values {
    double lists[2][RUNS_MAX];
    uint32_t known[2];
};

static struct rank_groups groups_of(const struct metric_values *v)
{
    return (struct rank_groups){v->lists[0], v->known[0], v->lists[1], v->known[1]};
}

static bool agrees(const double *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (list[i] != list[0])
            return false;
    return true;
}

/* Makes the values shares of the old side's median step, or of its median. */
static void rescale(const struct comparison *c, enum run_metric m, const double medians[2],
                    struct metric_values *v)
{
    double steps[RUNS_MAX], unit = medians[1] > 0 ? medians[1] : medians[0];
    uint32_t count = run_set_gather(c->sides[1], RUN_STEP_TIME, steps);
    if (count && run_metric_infos[m].scale == RUN_SCALE_STEP_TIME)
        unit = rank_median(steps, count);
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < v->known[side]; i++)
            v->lists[side][i] /= unit > 0 ? unit : 1;
}

/* ---- one metric ------------------------------------------------------------------------------ */

/* Judges runs that agree. Only in counts does a difference below the threshold count. */
static void decide_exactly(const struct comparison *c, enum run_metric m,
                           struct metric_change *change)
{
    double allowed = run_metric_infos[m].scale == RUN_SCALE_EXACT ? 0 : c->threshold;
    double now = change->medians[0], before = change->medians[1];
    change->is_exact = true;
    change->shift = now == before ? 0 : before > 0 ? (now - before) / before : INFINITY;
    change->low = change->high = change->shift;
    change->coverage = 1;
    change->smallest = allowed;
    change->verdict = change->shift > allowed    ? VERDICT_WORSE
                      : change->shift < -allowed ? VERDICT_BETTER
                                                 : VERDICT_SAME;
}

/* Fills in what is known without ranks. Returns true if the metric must be judged by rank. */
static bool comparison_look(const struct comparison *c, enum run_metric m, struct metric_values *v,
                            struct metric_change *change)
{
    *change = (struct metric_change){.verdict = VERDICT_UNSURE,
                                     .medians = {NAN, NAN},
                                     .shift = NAN,
                                     .low = NAN,
                                     .high = NAN,
                                     .p = NAN,
                                     .smallest = INFINITY};
    for (unsigned side = 0; side < 2; side++) {
        v->known[side] = run_set_gather(c->sides[side], m, v->lists[side]);
        if (v->known[side])
            change->medians[side] = rank_median(v->lists[side], v->known[side]);
    }
    if (!v->known[0] && !v->known[1])
        change->verdict = VERDICT_ABSENT;
    else if (v->known[0] < c->sides[0]->count || v->known[1] < c->sides[1]->count)
        change->why = "not in all runs";
    else if (run_metric_infos[m].unit != RUN_UNIT_NS && v->known[0] >= 2 && v->known[1] >= 2 &&
             agrees(v->lists[0], v->known[0]) && agrees(v->lists[1], v->known[1]))
        decide_exactly(c, m, change);
    else
        return true;
    return false;
}

static int comparison_measure(const struct comparison *c, enum run_metric m,
                              struct metric_values *v, struct metric_change *change,
                              double *p_better)
{
    rescale(c, m, change->medians, v);
    const struct rank_groups groups = groups_of(v);
    struct rank_shift shift;
    int error = rank_shift(&shift, &groups);
    if (error < 0)
        return error;
    change->shift = shift.shift;
    change->low = shift.low;
    change->high = shift.high;
    change->coverage = shift.coverage;
    change->p = shift.p_larger;
    *p_better = shift.p_smaller;
    return 0;
}

/* ---- all metrics ----------------------------------------------------------------------------- */

struct ranked {
    enum run_metric metric;
    double p;
    double p_better;
};

static int smaller_p_first(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return a->p != b->p ? (a->p > b->p) - (a->p < b->p) : (int)a->metric - (int)b->metric;
}

/* With tied values the test may find a shift that the wider interval does not: both must show
 * it. */
static void comparison_judge(const struct comparison *c, struct metric_change *change,
                             bool is_shown, bool is_shown_better)
{
    bool is_larger = is_shown && change->shift > c->threshold;
    if (c->sides[0]->count < COMPARISON_RUNS_MIN || c->sides[1]->count < COMPARISON_RUNS_MIN) {
        change->why = "few runs";
        change->smallest = INFINITY;
    } else if (is_larger && change->low > 0) {
        change->verdict = VERDICT_WORSE;
    } else if (is_shown_better && change->shift < -c->threshold && change->high < 0) {
        change->verdict = VERDICT_BETTER;
    } else if (change->smallest <= c->gate && !is_larger) {
        change->verdict = VERDICT_SAME;
    } else {
        change->why = isinf(change->smallest) ? "few runs" : "too much noise";
    }
}

/* Applies Holm's method: the smallest p must not exceed alpha / count, the next one alpha / (count
 * - 1), and so on until one fails. Metrics that do not gate are judged alone. */
static void judge_all(struct comparison *c, struct ranked *list, uint32_t count, uint32_t gating)
{
    uint32_t left = gating;
    qsort(list, count, sizeof *list, smaller_p_first);
    bool holds = true;
    for (uint32_t i = 0; i < count; i++) {
        bool gates = run_metric_infos[list[i].metric].gates;
        double alpha = gates ? COMPARISON_ALPHA / left : COMPARISON_ALPHA;
        bool is_shown = list[i].p <= alpha && (holds || !gates);
        comparison_judge(c, &c->metrics[list[i].metric], is_shown,
                         list[i].p_better <=
                             (gates ? COMPARISON_ALPHA / gating : COMPARISON_ALPHA));
        if (gates) {
            holds = is_shown;
            left--;
        }
    }
}

/* ---- lines of text --------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
comparison_say(struct comparison_lines *lines, const char *format, ...)
{
    va_list list;
    if (lines->count == COMPARISON_LINES)
        return;
    va_start(list, format);
    vsnprintf(lines->texts[lines->count++], COMPARISON_LINE_BYTES, format, list);
    va_end(list);
}

/* ---- why the sides cannot be compared -------------------------------------------------------- */

/* Returns the fact of the first run that has it, and the run's name; NULL: none. */
static const char *first_with(const struct run_set *s, enum run_fact fact, const char **name)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->runs[i].facts[fact]) {
            *name = s->names[i];
            return s->runs[i].facts[fact];
        }
    return NULL;
}

/* Reports the first run that differs from the first old run: one is enough. */
static void compare_fact(struct comparison *c, enum run_fact fact)
{
    const struct run_fact_info *info = &run_fact_infos[fact];
    const char *name = c->sides[1]->names[0], *first = c->sides[1]->runs[0].facts[fact];
    for (unsigned side = 2; info->matters == FACT_IF_KNOWN && !first && side-- > 0;)
        first = first_with(c->sides[side], fact, &name);
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < c->sides[side]->count; i++) {
            const char *other = c->sides[side]->runs[i].facts[fact];
            bool is_same = first && other ? strcmp(first, other) == 0
                                          : first == other || info->matters == FACT_IF_KNOWN;
            if (is_same)
                continue;
            comparison_say(&c->reasons, "%s: %.150s (%.80s), %.150s (%.80s)", info->text,
                           other ? other : "none", c->sides[side]->names[i], first ? first : "none",
                           name);
            return;
        }
}

/* Reports runs with losses, whose numbers are wrong. */
static void compare_losses(struct comparison *c)
{
    const char *name = "", *text[2];
    for (unsigned side = 0; side < 2; side++)
        if ((text[side] = first_with(c->sides[side], RUN_FACT_LOSSES, &name)))
            comparison_say(&c->reasons, "losses: %.80s: %.300s", name, text[side]);
    for (unsigned side = 0; side < 2; side++)
        text[side] = first_with(c->sides[side], RUN_FACT_GIVEN_UP, &name);
    if (!text[0] != !text[1])
        comparison_say(&c->reasons,
                       "given up to keep --overhead-max, on one side only: %.80s: %.300s", name,
                       text[0] ? text[0] : text[1]);
}

/* Reports a difference in gpuprof's own cost, which is part of the metrics. */
static void compare_cost(struct comparison *c)
{
    double costs[2];
    for (unsigned side = 0; side < 2; side++) {
        double list[RUNS_MAX];
        uint32_t count = 0;
        for (uint32_t i = 0; i < c->sides[side]->count; i++)
            if (!isnan(c->sides[side]->runs[i].cost))
                list[count++] = c->sides[side]->runs[i].cost;
        costs[side] = count ? rank_median(list, count) : NAN;
    }
    double shift = fabs(c->metrics[RUN_STEP_TIME].shift);
    double allowed = isfinite(shift) && shift > c->threshold ? shift : c->threshold;
    if (fabs(costs[0] - costs[1]) > allowed)
        comparison_say(&c->reasons,
                       "gpuprof's own cost: %.1f %% of the threads' time; before: %.1f %%",
                       100 * costs[0], 100 * costs[1]);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* Formats "2 steps of each run", or "1 to 47 steps of a run". */
static void warm_up_text(const struct run_set *s, char text[SIDE_BYTES])
{
    unsigned long long high = 0, low = UINT64_MAX;
    for (uint32_t i = 0; i < s->count; i++) {
        high = s->runs[i].warm_up > high ? s->runs[i].warm_up : high;
        low = s->runs[i].warm_up < low ? s->runs[i].warm_up : low;
    }
    if (high == low)
        snprintf(text, SIDE_BYTES, "%llu step%s%s", high, plural_end(high),
                 s->count > 1 ? " of each run" : "");
    else
        snprintf(text, SIDE_BYTES, "%llu to %llu step%s of a run", low, high, plural_end(high));
}

static void note_warm_up(struct comparison *c)
{
    char texts[2][SIDE_BYTES];
    bool is_any = false;
    for (unsigned side = 0; side < 2; side++) {
        warm_up_text(c->sides[side], texts[side]);
        for (uint32_t i = 0; i < c->sides[side]->count; i++)
            is_any |= c->sides[side]->runs[i].warm_up > 0;
    }
    if (is_any && strcmp(texts[0], texts[1]) == 0)
        comparison_say(&c->notes, "left out as warm-up: %s", texts[0]);
    else if (is_any)
        comparison_say(&c->notes, "left out as warm-up: %s; before: %s", texts[0], texts[1]);
}

static void note_outweighed(struct comparison *c)
{
    for (unsigned m = 0; m < RUN_METRICS; m++)
        if (run_metric_infos[m].gates && !c->metrics[m].gates)
            comparison_say(&c->notes,
                           "%s is worse by %.1f %% of the time before, but the whole is better by "
                           "%.1f %%: it does not gate",
                           run_metric_infos[m].text, 100 * c->metrics[m].shift,
                           -100 * c->metrics[RUN_STEP_TIME].shift);
}

/* Returns the median of a numeric fact; NAN: no run has it. */
static double median_of(const struct run_set *s, enum run_fact fact)
{
    double list[RUNS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->runs[i].facts[fact]) {
            char *end;
            double number = strtod(s->runs[i].facts[fact], &end);
            if (!*end && isfinite(number))
                list[count++] = number;
        }
    return count ? rank_median(list, count) : NAN;
}

/* Sets reasons and notes, once the metrics are known. */
static void comparability_find(struct comparison *c)
{
    compare_losses(c); /* first: a killed run may also lack facts */
    for (unsigned i = 0; i < RUN_FACTS; i++)
        if (run_fact_infos[i].matters <= FACT_IF_KNOWN)
            compare_fact(c, (enum run_fact)i);
    compare_cost(c);
    note_warm_up(c);
    note_outweighed(c);
    for (unsigned i = 0; i < RUN_FACTS; i++)
        if (run_fact_infos[i].matters == FACT_NOTED) {
            double now = median_of(c->sides[0], (enum run_fact)i);
            double before = median_of(c->sides[1], (enum run_fact)i);
            if (fabs(now - before) > NOTED_SHARE * fmax(fabs(now), fabs(before)))
                comparison_say(&c->notes, "%s: %.4g, before: %.4g", run_fact_infos[i].text, now,
                               before);
        }
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Returns whether the step improved by more. Both changes are shares of the old step. */
static bool is_outweighed(const struct comparison *c, enum run_metric m)
{
    const struct metric_change *step = &c->metrics[RUN_STEP_TIME], *part = &c->metrics[m];
    return run_metric_infos[m].scale == RUN_SCALE_STEP_TIME && part->verdict == VERDICT_WORSE &&
           step->verdict == VERDICT_BETTER && part->shift < -step->shift;
}

static void conclude(struct comparison *c)
{
    bool is_worse = false, is_unsure = false;
    for (unsigned m = 0; m < RUN_METRICS; m++)
        if (c->metrics[m].gates) {
            is_worse |= c->metrics[m].verdict == VERDICT_WORSE;
            is_unsure |= c->metrics[m].verdict == VERDICT_UNSURE;
        }
    c->result = c->reasons.count && !c->insists ? RESULT_NOT_COMPARABLE
                : is_worse                      ? RESULT_WORSE
                : is_unsure                     ? RESULT_UNSURE
                                                : RESULT_SAME;
}

int comparison_make(struct comparison *c, const struct run_set *runs, const struct run_set *against,
                    double gate, bool insists)
{
    struct metric_values values[RUN_METRICS];
    struct ranked ranked[RUN_METRICS];
    uint32_t count = 0, gating = 0;
    *c = (struct comparison){
        .sides = {runs, against}, .gate = gate, .threshold = gate / 2, .insists = insists};
    for (unsigned m = 0; m < RUN_METRICS; m++) {
        if (!comparison_look(c, (enum run_metric)m, &values[m], &c->metrics[m]))
            continue;
        struct ranked *r = &ranked[count++];
        *r = (struct ranked){.metric = (enum run_metric)m};
        if (comparison_measure(c, r->metric, &values[m], &c->metrics[m], &r->p_better) < 0)
            return GPUPROF_NO_MEMORY;
        r->p = c->metrics[m].p;
        gating += run_metric_infos[m].gates;
    }
    for (uint32_t i = 0; i < count; i++) {
        enum run_metric m = ranked[i].metric;
        double alpha = run_metric_infos[m].gates ? COMPARISON_ALPHA / gating : COMPARISON_ALPHA;
        const struct rank_groups groups = groups_of(&values[m]);
        if (rank_smallest(&c->metrics[m].smallest, &groups, alpha, c->threshold) < 0)
            return GPUPROF_NO_MEMORY;
    }
    judge_all(c, ranked, count, gating);
    for (unsigned m = 0; m < RUN_METRICS; m++)
        c->metrics[m].gates = run_metric_infos[m].gates && !is_outweighed(c, (enum run_metric)m);
    comparability_find(c);
    conclude(c);
    return 0;
}
