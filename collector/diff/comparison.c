/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/comparison.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"

#define NOTED_SHARE 0.1
#define RANK_POWER  0.9 /* the chance of being found that "would have been found" means */
#define DRAWS       2000
#define PAIRS_MAX   (RUNS_MAX * RUNS_MAX)

/* ---- ranks ----------------------------------------------------------------------------------- */

/*
 * Tells whether one group of numbers is larger than another, by how much, and how large a
 * difference would have been found. Uses ranks (Mann, Whitney; Hodges, Lehmann), with exact
 * chances, since there are few numbers of unknown distribution. Memory: 30 KB for RUNS_MAX numbers
 * a group.
 */
struct rank_groups {
    double list[2 * RUNS_MAX]; /* the test asks whether the first group is larger than the second */
    uint32_t counts[2], all;
};

/* The sum of all ranks. They are doubled, so that the shared ranks of equal numbers are whole. */
static uint32_t rank_sum(uint32_t all)
{
    return all * (all + 1);
}

/* Returns the chance of each sum, up to rank_sum, of `count` out of `all` ranks, all choices
 * equally likely; the caller frees it. */
static double *sum_chances(const uint32_t *ranks, uint32_t all, uint32_t count)
{
    size_t width = rank_sum(all) + 1u;
    double total = 0, *ways = memory_new((count + 1u) * width, sizeof *ways);
    ways[0] = 1;
    for (uint32_t i = 0; i < all; i++)
        for (uint32_t k = i + 1 < count ? i + 1 : count; k > 0; k--)
            for (size_t sum = ranks[i]; sum < width; sum++)
                ways[k * width + sum] += ways[(k - 1) * width + sum - ranks[i]];
    for (size_t sum = 0; sum < width; sum++)
        total += ways[count * width + sum];
    for (size_t sum = 0; sum < width; sum++)
        ways[sum] = ways[count * width + sum] / total;
    return ways;
}

static double chance_between(const double *chances, uint32_t from, uint32_t to)
{
    double chance = 0;
    for (uint32_t sum = from; sum <= to; sum++)
        chance += chances[sum];
    return chance < 1 ? chance : 1;
}

/* Returns how many pairs may be the wrong way round with a chance of at most `alpha`, if all
 * numbers differ, as in `untied`; -1: none, not even 0. */
static int64_t pairs_allowed(const double *untied, const struct rank_groups *g, double alpha)
{
    int64_t least = rank_sum(g->counts[0]), most = rank_sum(g->all), pairs = -1;
    double chance = 0;
    while (least + 2 * (pairs + 2) <= most && (chance += untied[least + 2 * (pairs + 1)]) <= alpha)
        pairs++;
    return pairs;
}

static void find_p(struct metric_change *change, const struct rank_groups *g)
{
    uint32_t ranks[2 * RUNS_MAX] = {0}, sum = 0;
    for (uint32_t i = 0; i < g->all; i++) {
        ranks[i] = 1;
        for (uint32_t k = 0; k < g->all; k++)
            ranks[i] += g->list[k] < g->list[i] ? 2 : g->list[k] == g->list[i];
        sum += i < g->counts[0] ? ranks[i] : 0;
    }
    double *chances = sum_chances(ranks, g->all, g->counts[0]);
    change->p = chance_between(chances, sum, rank_sum(g->all));
    change->p_better = chance_between(chances, 0, sum);
    free(chances);
}

/* Fills `list` with all differences; returns their number. */
static uint32_t differences(const struct rank_groups *g, double list[PAIRS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->counts[0]; i++)
        for (uint32_t k = g->counts[0]; k < g->all; k++)
            list[count++] = g->list[i] - g->list[k];
    return count;
}

/* Draws the same numbers each time, so that a report is reproducible. */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * acos(-1) * uniform(state));
}

/* Returns the standard deviation within the groups. */
static double noise_of(const struct rank_groups *g)
{
    double squares = 0;
    for (unsigned side = 0; side < 2; side++) {
        const double *list = g->list + side * g->counts[0];
        double mean = 0;
        for (uint32_t i = 0; i < g->counts[side]; i++)
            mean += list[i] / g->counts[side];
        for (uint32_t i = 0; i < g->counts[side]; i++)
            squares += (list[i] - mean) * (list[i] - mean);
    }
    return sqrt(squares / ((double)g->all - 2));
}

/* Returns the smallest shift that the test finds with a chance of RANK_POWER: it finds one when all
 * pairs but the allowed ones are the right way round, and the median difference exceeds the
 * threshold. A shift is added to all differences. */
static double smallest_shift(const struct rank_groups *g, uint32_t allowed, double threshold)
{
    struct rank_groups drawn = {.counts = {g->counts[0], g->counts[1]}, .all = g->all};
    double found[DRAWS], list[PAIRS_MAX], noise = noise_of(g);
    uint64_t state = 1;
    for (unsigned i = 0; i < DRAWS; i++) {
        for (uint32_t k = 0; k < g->all; k++)
            drawn.list[k] = noise * normal(&state);
        double by_size = threshold - array_median(list, differences(&drawn, list));
        found[i] = fmax(-list[allowed], by_size);
    }
    array_sort(found, DRAWS);
    return found[(unsigned)(RANK_POWER * DRAWS)];
}

/*
 * Sets the shift of *change with its interval and its chances, and the smallest shift that the test
 * finds with a chance of RANK_POWER in groups with as much noise as these. The test needs p <=
 * `alpha` and a shift above `threshold`. Each group has 1 to RUNS_MAX finite numbers.
 */
static void rank_compare(struct metric_change *change, const struct rank_groups *g, double alpha,
                         double threshold)
{
    double list[PAIRS_MAX];
    uint32_t ranks[2 * RUNS_MAX] = {0}, least = rank_sum(g->counts[0]);
    for (uint32_t i = 0; i < g->all; i++)
        ranks[i] = 2 * (i + 1);
    double *untied = sum_chances(ranks, g->all, g->counts[0]);
    find_p(change, g);
    int64_t cut = pairs_allowed(untied, g, (1 - RANK_COVERAGE) / 2);
    int64_t allowed = pairs_allowed(untied, g, alpha);
    uint32_t behind = cut < 0 ? 0 : (uint32_t)cut, pairs = differences(g, list);
    change->shift = array_median(list, pairs);
    change->low = list[behind];
    change->high = list[pairs - 1 - behind];
    change->coverage = fmax(0, 1 - 2 * chance_between(untied, least, least + 2 * behind));
    change->smallest =
        allowed < 0 || g->all < 3 ? INFINITY : smallest_shift(g, (uint32_t)allowed, threshold);
    free(untied);
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
static bool comparison_look(const struct comparison *c, enum run_metric m, struct rank_groups *g,
                            struct metric_change *change)
{
    *change = (struct metric_change){.verdict = VERDICT_UNSURE,
                                     .medians = {NAN, NAN},
                                     .shift = NAN,
                                     .low = NAN,
                                     .high = NAN,
                                     .p = NAN,
                                     .smallest = INFINITY};
    bool agree = true;
    for (unsigned side = 0; side < 2; side++) {
        double sorted[RUNS_MAX], *list = g->list + g->all;
        uint32_t count = g->counts[side] = run_set_gather(c->sides[side], m, list);
        g->all += count;
        memcpy(sorted, list, count * sizeof *sorted);
        if (count)
            change->medians[side] = array_median(sorted, count);
        agree &= count >= 2 && sorted[0] == sorted[count - 1];
    }
    if (!g->all)
        change->verdict = VERDICT_ABSENT;
    else if (g->counts[0] < c->sides[0]->count || g->counts[1] < c->sides[1]->count)
        change->why = "not in all runs";
    else if (run_metric_infos[m].unit != RUN_UNIT_NS && agree)
        decide_exactly(c, m, change);
    else
        return true;
    return false;
}

/* Makes the values shares of the old side's median step, or of its median, measures the shift, and
 * judges it. With tied values the test may find a shift that the wider interval does not: both must
 * show it. */
static void comparison_judge(const struct comparison *c, enum run_metric m, struct rank_groups *g,
                             double alpha, struct metric_change *change)
{
    double unit = change->medians[change->medians[1] > 0];
    double step = c->metrics[RUN_STEP_TIME].medians[1];
    if (run_metric_infos[m].scale == RUN_SCALE_STEP_TIME && !isnan(step))
        unit = step;
    for (uint32_t i = 0; i < g->all; i++)
        g->list[i] /= unit > 0 ? unit : 1;
    rank_compare(change, g, alpha, c->threshold);
    bool is_larger = change->p <= alpha && change->shift > c->threshold;
    if (c->sides[0]->count < COMPARISON_RUNS_MIN || c->sides[1]->count < COMPARISON_RUNS_MIN) {
        change->why = "few runs";
        change->smallest = INFINITY;
    } else if (is_larger && change->low > 0) {
        change->verdict = VERDICT_WORSE;
    } else if (change->p_better <= alpha && change->shift < -c->threshold && change->high < 0) {
        change->verdict = VERDICT_BETTER;
    } else if (change->smallest <= c->gate && !is_larger) {
        change->verdict = VERDICT_SAME;
    } else {
        change->why = isinf(change->smallest) ? "few runs" : "too much noise";
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
            *name = s->runs[i].name;
            return s->runs[i].facts[fact];
        }
    return NULL;
}

/* Reports the first run that differs from the first old run: one is enough. */
static void compare_fact(struct comparison *c, enum run_fact fact)
{
    const struct run_fact_info *info = &run_fact_infos[fact];
    const char *name = c->sides[1]->runs[0].name, *first = c->sides[1]->runs[0].facts[fact];
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
                           other ? other : "none", c->sides[side]->runs[i].name,
                           first ? first : "none", name);
            return;
        }
}

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

/* Returns a fact that is a number, or the cost of a run for RUN_FACTS; NAN: not known. */
static double number_of(const struct run_summary *run, unsigned fact)
{
    char *end;
    if (fact == RUN_FACTS)
        return run->cost;
    double number = run->facts[fact] ? strtod(run->facts[fact], &end) : NAN;
    return run->facts[fact] && !*end ? number : NAN;
}

static double median_of(const struct run_set *s, unsigned fact)
{
    double list[RUNS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        list[count] = number_of(&s->runs[i], fact);
        count += isfinite(list[count]) != 0;
    }
    return count ? array_median(list, count) : NAN;
}

/* Reports a difference in gpuprof's own cost, which is part of the metrics. */
static void compare_cost(struct comparison *c)
{
    double now = median_of(c->sides[0], RUN_FACTS), before = median_of(c->sides[1], RUN_FACTS);
    double shift = fabs(c->metrics[RUN_STEP_TIME].shift);
    double allowed = isfinite(shift) && shift > c->threshold ? shift : c->threshold;
    if (fabs(now - before) > allowed)
        comparison_say(&c->reasons,
                       "gpuprof's own cost: %.1f %% of the threads' time; before: %.1f %%",
                       100 * now, 100 * before);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void note_warm_up(struct comparison *c)
{
    unsigned long long most[2] = {0};
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < c->sides[side]->count; i++)
            most[side] = max_of(most[side], c->sides[side]->runs[i].warm_up);
    if (most[0] || most[1])
        comparison_say(&c->notes,
                       "left out as warm-up: at most %llu step%s of a run; before: at most %llu",
                       most[0], plural_end(most[0]), most[1]);
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

/* Sets reasons and notes, once the metrics are known. */
static void comparability_find(struct comparison *c)
{
    compare_losses(c); /* first: a killed run may also lack facts */
    for (enum run_fact i = 0; i < RUN_FACTS; i++)
        if (run_fact_infos[i].matters <= FACT_IF_KNOWN)
            compare_fact(c, i);
    compare_cost(c);
    note_warm_up(c);
    note_outweighed(c);
    for (enum run_fact i = 0; i < RUN_FACTS; i++) {
        double now = median_of(c->sides[0], i), before = median_of(c->sides[1], i);
        if (run_fact_infos[i].matters == FACT_NOTED &&
            fabs(now - before) > NOTED_SHARE * fmax(fabs(now), fabs(before)))
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

void comparison_make(struct comparison *c, const struct run_set *runs,
                     const struct run_set *against, double gate, bool insists)
{
    struct rank_groups groups[RUN_METRICS] = {{.all = 0}};
    bool is_ranked[RUN_METRICS];
    unsigned gating = 0;
    *c = (struct comparison){
        .sides = {runs, against}, .gate = gate, .threshold = gate / 2, .insists = insists};
    for (enum run_metric m = 0; m < RUN_METRICS; m++) {
        is_ranked[m] = comparison_look(c, m, &groups[m], &c->metrics[m]);
        gating += is_ranked[m] && run_metric_infos[m].gates;
    }
    for (enum run_metric m = 0; m < RUN_METRICS; m++)
        if (is_ranked[m])
            comparison_judge(c, m, &groups[m],
                             COMPARISON_ALPHA / (run_metric_infos[m].gates ? gating : 1),
                             &c->metrics[m]);
    for (enum run_metric m = 0; m < RUN_METRICS; m++)
        c->metrics[m].gates = run_metric_infos[m].gates && !is_outweighed(c, m);
    comparability_find(c);
    conclude(c);
    change_cells_fill(c);
}
