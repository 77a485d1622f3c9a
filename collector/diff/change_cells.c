/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "diff/comparison.h"

/* Formats an amount. The median of counts may end in .5. */
static void put_amount(char text[CHANGE_CELL_BYTES], enum run_metric m, double amount)
{
    char unit[UNIT_TEXT_BYTES];
    if (isnan(amount)) {
        *text = '\0';
        return;
    }
    switch (run_metric_infos[m].unit) {
    case RUN_UNIT_NS: time_text(unit, (uint64_t)amount); break;
    case RUN_UNIT_BYTES: bytes_text(unit, (uint64_t)amount); break;
    case RUN_UNIT_MJ: energy_text(unit, (uint64_t)amount); break;
    default:
        if (amount == floor(amount))
            count_text(unit, (uint64_t)amount);
        else
            snprintf(unit, sizeof unit, "%.1f", amount);
    }
    snprintf(text, CHANGE_CELL_BYTES, "%s", unit);
}

void change_put_ns(char text[CHANGE_CELL_BYTES], double ns)
{
    char unit[UNIT_TEXT_BYTES];
    snprintf(text, CHANGE_CELL_BYTES, "%c%s", ns < 0 ? '-' : '+',
             time_text(unit, (uint64_t)fabs(ns)));
}

/* Formats "+5.1 %", or "x 12.3" from ten times as much on. 0.0 % has no sign. */
static void put_share(char text[CHANGE_CELL_BYTES], double share, bool with_sign)
{
    with_sign &= fabs(share) >= 0.0005;
    if (isnan(share))
        *text = '\0';
    else if (isinf(share))
        snprintf(text, CHANGE_CELL_BYTES, "from 0");
    else if (share >= 10)
        snprintf(text, CHANGE_CELL_BYTES, "x %.1f", share + 1);
    else
        snprintf(text, CHANGE_CELL_BYTES, with_sign ? "%+.1f %%" : "%.1f %%",
                 100 * (with_sign ? share : fabs(share)));
}

static void fill_cells(struct change_cells *cells, const struct comparison *c, enum run_metric m,
                       bool has_steps)
{
    static const char *const words[] = {[VERDICT_SAME] = "same",
                                        [VERDICT_WORSE] = "worse",
                                        [VERDICT_BETTER] = "better",
                                        [VERDICT_UNSURE] = "unsure",
                                        [VERDICT_ABSENT] = "absent"};
    const struct metric_change *change = &c->metrics[m];
    char low[CHANGE_CELL_BYTES], high[CHANGE_CELL_BYTES];
    cells->name = m == RUN_STEP_TIME && !has_steps ? "run time" : run_metric_infos[m].text;
    if (run_metric_infos[m].scale == RUN_SCALE_STEP_TIME)
        cells->of = has_steps ? "of the step before" : "of the run before";
    cells->word = words[change->verdict];
    for (unsigned side = 0; side < 2; side++)
        put_amount(cells->sides[side], m, change->medians[side]);
    if (!diff_compares(c))
        return;
    put_share(cells->shift, change->shift, true);
    put_share(low, change->low, true);
    put_share(high, change->high, true);
    if (change->is_exact)
        snprintf(cells->interval, sizeof cells->interval, "exact");
    else if (*low && *high && change->coverage >= RANK_COVERAGE)
        snprintf(cells->interval, sizeof cells->interval, "%.20s to %.20s", low, high);
    if (change->is_exact && change->smallest == 0)
        snprintf(cells->smallest, sizeof cells->smallest, "any");
    else if (isinf(change->smallest))
        snprintf(cells->smallest, sizeof cells->smallest, "none");
    else
        put_share(cells->smallest, change->smallest, false);
    snprintf(cells->verdict, sizeof cells->verdict, "%s%s%s", cells->word, change->why ? ": " : "",
             change->why ? change->why : "");
}

/* Appends the metrics with that verdict: "step time +5.1 %, GPU idle ...". */
static void put_metrics(struct comparison *c, enum verdict verdict)
{
    const char *separator = "";
    for (enum run_metric m = 0; m < RUN_METRICS; m++) {
        const struct change_cells *cells = &c->cells[m];
        size_t at = strlen(c->headline);
        if (!c->metrics[m].gates || c->metrics[m].verdict != verdict)
            continue;
        snprintf(c->headline + at, HEADLINE_BYTES - at, "%s%s %s%s%s", separator, cells->name,
                 verdict == VERDICT_UNSURE ? cells->smallest : cells->shift, cells->of ? " " : "",
                 cells->of ? cells->of : "");
        separator = ", ";
    }
}

/* Returns the largest of the metrics' smallest visible shifts, and its metric. */
static double least_seen(const struct comparison *c, enum run_metric *of)
{
    double least = 0;
    for (enum run_metric m = 0; m < RUN_METRICS; m++)
        if (c->metrics[m].gates && c->metrics[m].verdict != VERDICT_ABSENT &&
            !c->metrics[m].is_exact && c->metrics[m].smallest >= least) {
            least = c->metrics[m].smallest;
            *of = m;
        }
    return least;
}

void change_cells_fill(struct comparison *c)
{
    enum run_metric of = RUN_STEP_TIME;
    char least[CHANGE_CELL_BYTES], *text = c->headline;
    bool has_steps = c->sides[0]->runs[0].steps && c->sides[1]->runs[0].steps;
    c->per_what = has_steps ? "a step" : "a run";
    for (enum run_metric m = 0; m < RUN_METRICS; m++)
        fill_cells(&c->cells[m], c, m, has_steps);
    put_share(least, least_seen(c, &of), false);
    if (c->result == RESULT_WORSE) {
        snprintf(text, HEADLINE_BYTES, "worse: ");
        put_metrics(c, VERDICT_WORSE);
    } else if (c->result == RESULT_NOT_COMPARABLE) {
        snprintf(text, HEADLINE_BYTES, "not comparable: %s", c->reasons.texts[0]);
    } else if (c->result == RESULT_SAME) {
        snprintf(text, HEADLINE_BYTES,
                 "no regression shown; one of %s would have been seen in each metric (%s has the "
                 "most noise)",
                 least, c->cells[of].name);
    } else if (c->sides[0]->count < COMPARISON_RUNS_MIN ||
               c->sides[1]->count < COMPARISON_RUNS_MIN) {
        snprintf(text, HEADLINE_BYTES,
                 "inconclusive: too few runs for all but exact metrics: record %d or more on each "
                 "side",
                 COMPARISON_RUNS_MIN + 1);
    } else {
        snprintf(text, HEADLINE_BYTES,
                 "inconclusive: a regression of %g %% could have been missed (record more runs, or "
                 "set a wider --gate); smallest visible change: ",
                 100 * c->gate);
        put_metrics(c, VERDICT_UNSURE);
    }
}
