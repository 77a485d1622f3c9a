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

void change_cells_make(struct change_cells *cells, const struct comparison *c, enum run_metric m)
{
    const struct metric_change *change = &c->metrics[m];
    char low[CHANGE_CELL_BYTES], high[CHANGE_CELL_BYTES];
    memset(cells, 0, sizeof *cells);
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
    snprintf(cells->verdict, sizeof cells->verdict, "%s%s%s", verdict_words[change->verdict],
             change->why ? ": " : "", change->why ? change->why : "");
}

static bool has_steps(const struct comparison *c)
{
    return c->sides[0]->runs[0].steps && c->sides[1]->runs[0].steps;
}

const char *diff_metric_text(const struct comparison *c, enum run_metric m)
{
    return m == RUN_STEP_TIME && !has_steps(c) ? "run time" : run_metric_infos[m].text;
}

const char *diff_per_what(const struct comparison *c)
{
    return has_steps(c) ? "a step" : "a run";
}

const char *diff_change_of(const struct comparison *c, enum run_metric m)
{
    return run_metric_infos[m].scale != RUN_SCALE_STEP_TIME ? NULL
           : has_steps(c)                                   ? "of the step before"
                                                            : "of the run before";
}

static size_t put_metrics(const struct comparison *c, enum verdict verdict, char *text, size_t at)
{
    const char *separator = "";
    for (unsigned m = 0; m < RUN_METRICS && at < HEADLINE_BYTES; m++) {
        struct change_cells cells;
        if (!c->metrics[m].gates || c->metrics[m].verdict != verdict)
            continue;
        change_cells_make(&cells, c, (enum run_metric)m);
        const char *of = diff_change_of(c, (enum run_metric)m);
        at += (size_t)snprintf(text + at, HEADLINE_BYTES - at, "%s%s %s%s%s", separator,
                               diff_metric_text(c, (enum run_metric)m),
                               verdict == VERDICT_UNSURE ? cells.smallest : cells.shift,
                               of ? " " : "", of ? of : "");
        separator = ", ";
    }
    return at;
}

/* Returns the largest of the metrics' smallest visible shifts, and its metric. */
static double least_seen(const struct comparison *c, enum run_metric *of)
{
    double least = 0;
    for (unsigned m = 0; m < RUN_METRICS; m++)
        if (c->metrics[m].gates && c->metrics[m].verdict != VERDICT_ABSENT &&
            !c->metrics[m].is_exact && c->metrics[m].smallest >= least) {
            least = c->metrics[m].smallest;
            *of = (enum run_metric)m;
        }
    return least;
}

const char *diff_headline(const struct comparison *c, char text[HEADLINE_BYTES])
{
    enum run_metric of = RUN_STEP_TIME;
    char least[CHANGE_CELL_BYTES];
    size_t at = 0;
    put_share(least, least_seen(c, &of), false);
    switch (c->result) {
    case RESULT_WORSE:
        at = (size_t)snprintf(text, HEADLINE_BYTES, "worse: ");
        put_metrics(c, VERDICT_WORSE, text, at);
        break;
    case RESULT_UNSURE:
        if (c->sides[0]->count < COMPARISON_RUNS_MIN || c->sides[1]->count < COMPARISON_RUNS_MIN) {
            snprintf(text, HEADLINE_BYTES,
                     "inconclusive: too few runs for all but exact metrics: record %d or more on "
                     "each side",
                     COMPARISON_RUNS_MIN + 1);
            break;
        }
        at = (size_t)snprintf(text, HEADLINE_BYTES,
                              "inconclusive: a regression of %g %% could have been missed (record "
                              "more runs, or set a wider --gate); smallest visible change: ",
                              100 * c->gate);
        put_metrics(c, VERDICT_UNSURE, text, at);
        break;
    case RESULT_NOT_COMPARABLE:
        snprintf(text, HEADLINE_BYTES, "not comparable: %s", c->reasons.texts[0]);
        break;
    default:
        snprintf(text, HEADLINE_BYTES,
                 "no regression shown; one of %s would have been seen in each metric (%s has the "
                 "most noise)",
                 least, diff_metric_text(c, of));
    }
    return text;
}
