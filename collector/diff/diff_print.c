/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as texts, and printed as text, JSON, and JUnit tests. Lists of words have the order
 * of their enums. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/text.h"
#include "diff/comparison.h"
#include "table/screen.h"

#define KERNELS_TEXT 4 /* slower ones, and as many faster ones */
#define KERNELS_JSON 1000

#define DIFF_JSON_VERSION 1

/* ---- texts of metrics ------------------------------------------------------------------------ */

/* Formats an amount. The median of counts may end in .5. */
static void put_amount(char text[CHANGE_CELL_BYTES], enum run_metric m, double amount)
{
    _Static_assert(CHANGE_CELL_BYTES > UNIT_TEXT_BYTES, "an amount and its sign fit");
    static const char *(*const whole[])(char *, uint64_t) = {time_text, bytes_text, energy_text,
                                                             count_text};
    enum run_unit unit = run_metric_infos[m].unit;
    if (isnan(amount))
        *text = '\0';
    else if (unit == RUN_UNIT_COUNT && amount != floor(amount))
        snprintf(text, CHANGE_CELL_BYTES, "%.1f", amount);
    else
        whole[unit](text, (uint64_t)amount);
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
    static const char *const words[] = {"same", "worse", "better", "unsure", "absent"};
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

void change_cells_fill(struct comparison *c)
{
    enum run_metric of = RUN_STEP_TIME;
    double most = 0; /* of the metrics' smallest visible shifts */
    char least[CHANGE_CELL_BYTES], *text = c->headline;
    bool has_steps = c->sides[0]->runs[0].steps && c->sides[1]->runs[0].steps;
    c->per_what = has_steps ? "a step" : "a run";
    for (enum run_metric m = 0; m < RUN_METRICS; m++) {
        const struct metric_change *change = &c->metrics[m];
        bool is_judged = change->gates && change->verdict != VERDICT_ABSENT && !change->is_exact;
        fill_cells(&c->cells[m], c, m, has_steps);
        if (is_judged && change->smallest >= most) {
            most = change->smallest;
            of = m;
        }
    }
    put_share(least, most, false);
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

/* ---- kernels --------------------------------------------------------------------------------- */

static const char *const match_words[MATCH_KINDS] = {"same",     "renamed", "fused", "split",
                                                     "replaced", "new",     "gone",  "seldom"};

/* Prints a name on one line, cut unless `width` is 0. */
static void put_name(const char *name, size_t width, FILE *out)
{
    char *line = json_line(name);
    char *cut = width ? text_cut(line, strlen(line), width) : NULL;
    fputs(cut ? cut : line, out);
    free(cut);
    free(line);
}

/* Prints the longest-running name; the others differ only in template arguments. */
static void put_side(const struct match_row *row, enum match_which side, size_t width, FILE *out)
{
    put_name(row->side[side].name, width, out);
    if (row->kind == MATCH_SAME && row->side[side].names > 1)
        fprintf(out, " and %u more", row->side[side].names - 1);
}

/* Prints a row: its name; "new: NAME", "gone: NAME"; "renamed: OLD -> NEW (same operator:
 * aten::mm)". */
static void put_row(const struct match_row *row, size_t width, FILE *out)
{
    static const char *const places[RUN_TEXTS] = {
        [RUN_OPERATOR] = "operator", "call", "range", "line"};
    const char *before = row->side[MATCH_BASE].name, *now = row->side[MATCH_OTHER].name;
    if (row->kind != MATCH_SAME)
        fprintf(out, "%s: ", match_words[row->kind]);
    if (before)
        put_side(row, MATCH_BASE, width, out);
    if (now && before && strcmp(before, now) == 0)
        return;
    if (now && before)
        fputs(" -> ", out);
    if (now)
        put_side(row, MATCH_OTHER, width, out);
    if (row->place) {
        fprintf(out, " (same %s: ", places[row->where]);
        put_name(row->place, width, out);
        fputs(")", out);
    }
}

static void text_kernels(const struct comparison *c, const struct kernel_match *m, FILE *out)
{
    bool has_title = false;
    for (int sign = 1; sign >= -1; sign -= 2)
        for (uint32_t i = 0, shown = 0; i < m->count && shown < KERNELS_TEXT; i++) {
            char added[CHANGE_CELL_BYTES];
            if (sign * m->rows[i].added_ns < 1)
                continue;
            if (!has_title)
                fprintf(out, "\nkernels that changed most, in %s (they explain, but do not gate)\n",
                        c->per_what);
            *added = sign > 0 ? '+' : '-';
            time_text(added + 1, (uint64_t)fabs(m->rows[i].added_ns));
            fprintf(out, "%12s  ", added);
            put_row(&m->rows[i], m->name_width, out);
            fputc('\n', out);
            has_title = true;
            shown++;
        }
}

/* ---- the comparison -------------------------------------------------------------------------- */

static void put_sides(const struct comparison *c, FILE *out)
{
    bool is_whole = false;
    for (unsigned side = 0; side < 2; side++) {
        const struct run_set *s = c->sides[side];
        unsigned long long steps = 0;
        for (uint32_t i = 0; i < s->count; i++)
            steps += s->runs[i].steps;
        fprintf(out, side ? " against %u" : s->count == 1 ? "%u run" : "%u runs", s->count);
        if (steps)
            fprintf(out, " (%llu step%s)", steps, plural_end(steps));
        is_whole |= !steps;
    }
    if (is_whole)
        fputs("; metrics of a side with no steps are for whole runs", out);
    fprintf(
        out,
        "\ngate %g %%: a metric is worse if it grew by over %g %% and its interval is above 0\n",
        100 * c->gate, 100 * c->threshold);
    for (uint32_t i = 0; i < c->notes.count; i++)
        fprintf(out, "%s\n", c->notes.texts[i]);
}

/* Prints the metrics; of sides that cannot be compared only the amounts: they may explain why. */
static void put_changes(const struct comparison *c, FILE *out)
{
    bool compares = diff_compares(c);
    fprintf(out, "\n%-26s %10s %10s", c->per_what, "before", "now");
    if (compares)
        fprintf(out, " %8s  %-18s %9s  %s", "change", "95 % interval", "seen from", "verdict");
    for (unsigned m = 0; m < RUN_METRICS; m++) {
        const struct change_cells *cells = &c->cells[m];
        if (c->metrics[m].verdict == VERDICT_ABSENT)
            continue;
        fprintf(out, "\n%-26s %10s %10s", cells->name, cells->sides[1], cells->sides[0]);
        if (compares)
            fprintf(out, " %8s  %-18s %9s  %s%s", cells->shift, cells->interval, cells->smallest,
                    cells->verdict, c->metrics[m].gates ? "" : " (does not gate)");
    }
    fputc('\n', out);
    for (unsigned m = 0; compares && m < RUN_METRICS; m++)
        if (c->cells[m].of && c->metrics[m].verdict != VERDICT_ABSENT)
            fprintf(out, "change of %s is a share %s\n", c->cells[m].name, c->cells[m].of);
}

/* If the sides cannot be compared, says so before anything else. */
void diff_print_text(const struct comparison *c, const struct kernel_match *kernels, FILE *out)
{
    if (!diff_compares(c)) {
        fprintf(out, "%s\n", c->headline);
        for (uint32_t i = 1; i < c->reasons.count; i++) /* the headline has reason 0 */
            fprintf(out, "and: %s\n", c->reasons.texts[i]);
        fputc('\n', out);
        put_sides(c, out);
        if (!c->sides[0]->runs[0].steps == !c->sides[1]->runs[0].steps) /* the same unit */
            put_changes(c, out);
        return;
    }
    put_sides(c, out);
    put_changes(c, out);
    text_kernels(c, kernels, out);
    for (uint32_t i = 0; c->insists && i < c->reasons.count; i++)
        fprintf(out, "%sdiffers: %s\n", i ? "" : "\n", c->reasons.texts[i]);
    fprintf(out, "\n%s\n", c->headline);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_metric(const struct comparison *c, enum run_metric m, FILE *out)
{
    static const char *const units[] = {"ns", "bytes", "mj", "count"};
    const struct metric_change *change = &c->metrics[m];
    const struct run_metric_info *info = &run_metric_infos[m];
    json_printf(out, "{\"metric\": %s, \"text\": %s, \"unit\": %s", info->key, c->cells[m].name,
                units[info->unit]);
    fputs(change->gates ? ", \"gates\": true" : ", \"gates\": false", out);
    json_printf(out, ", \"verdict\": %s, \"why\": %s", c->cells[m].word, change->why);
    fputs(change->is_exact ? ", \"exact\": true" : ", \"exact\": false", out);
    json_printf(out,
                ", \"before\": %.15g, \"now\": %.15g, \"change\": %.15g, \"change_is\": %s"
                ", \"low\": %.15g, \"high\": %.15g, \"coverage\": %.15g, \"p\": %.15g"
                ", \"seen_from\": %.15g}",
                change->medians[1], change->medians[0], change->shift, c->cells[m].of, change->low,
                change->high, change->coverage, change->p, change->smallest);
}

static void json_kernels(const struct kernel_match *m, FILE *out)
{
    static const char *const keys[MATCH_SIDES] = {[MATCH_BASE] = "before", [MATCH_OTHER] = "now"};
    fputs(",\n\"kernels\": [", out);
    for (uint32_t i = 0; i < m->count && i < KERNELS_JSON; i++) {
        const struct match_row *row = &m->rows[i];
        fputs(i ? ",\n" : "\n", out);
        json_printf(out, "{\"kind\": %s, \"by\": %s, \"place\": %s, \"added_ns\": %.15g",
                    match_words[row->kind], row->by, row->place, row->added_ns);
        for (enum match_which side = 0; side < MATCH_SIDES; side++)
            json_printf(out, ", %s: {\"name\": %s, \"names\": %u, \"count\": %.15g, \"ns\": %.15g}",
                        keys[side], row->side[side].name, row->side[side].names,
                        row->side[side].count, row->side[side].ns);
        fputc('}', out);
    }
    fprintf(out, "],\n\"kernel_rows\": %u", m->count);
}

static void json_lines(const char *before, const struct comparison_lines *lines, FILE *out)
{
    fputs(before, out);
    for (uint32_t i = 0; i < lines->count; i++)
        json_printf(out, i ? ", %s" : "%s", lines->texts[i]);
}

void diff_print_json(const struct comparison *c, const struct kernel_match *kernels, FILE *out)
{
    static const char *const results[] = {"same", "worse", "inconclusive", "not comparable"};
    json_printf(out,
                "{\"gpuprof_diff\": %u, \"result\": %s, \"says\": %s, \"gate\": %.15g"
                ", \"threshold\": %.15g, \"alpha\": %g,\n",
                DIFF_JSON_VERSION, results[c->result], c->headline, c->gate, c->threshold,
                COMPARISON_ALPHA);
    json_lines("\"differs\": [", &c->reasons, out);
    json_lines("], \"notes\": [", &c->notes, out);
    fputs("],\n\"metrics\": [", out);
    for (enum run_metric m = 0; m < RUN_METRICS; m++) {
        fputs(m ? ",\n" : "\n", out);
        put_metric(c, m, out);
    }
    for (unsigned side = 0; side < 2; side++) {
        fputs(side ? "],\n\"against\": [" : "],\n\"runs\": [", out);
        for (uint32_t i = 0; i < c->sides[side]->count; i++) {
            fputs(i ? ",\n" : "\n", out);
            run_put_json(&c->sides[side]->runs[i], true, out);
        }
    }
    fputc(']', out);
    json_kernels(kernels, out);
    fputs("}\n", out);
}

/* ---- JUnit ----------------------------------------------------------------------------------- */

static void put_xml(const char *text, FILE *out)
{
    char *escaped = xml_string(text);
    fputs(escaped, out);
    free(escaped);
}

/* Returns the element for a metric, in agreement with the exit code; NULL: it passed.
 * --inconclusive=fail is for CI that counts a skipped test as passed. */
static const char *junit_element(const struct comparison *c, enum run_metric m)
{
    if (!diff_compares(c) || c->metrics[m].verdict == VERDICT_UNSURE)
        return c->fails_unsure ? "failure type=\"inconclusive\"" : "skipped";
    return c->metrics[m].verdict == VERDICT_WORSE && c->metrics[m].gates
               ? "failure type=\"regression\""
               : NULL;
}

static void put_case(const struct comparison *c, enum run_metric m, FILE *out)
{
    const struct change_cells *cells = &c->cells[m];
    const struct metric_change *change = &c->metrics[m];
    const char *element = junit_element(c, m);
    fprintf(out, "  <testcase classname=\"gpuprof\" name=\"%s\"", cells->name);
    if (run_metric_infos[m].unit == RUN_UNIT_NS && !isnan(change->medians[0]))
        fprintf(out, " time=\"%.9f\"", change->medians[0] / 1e9);
    fputs(">\n", out);
    if (element) {
        fprintf(out, "    <%s message=\"%s%s", element, cells->shift, *cells->shift ? " " : "");
        put_xml(diff_compares(c) ? cells->verdict : c->reasons.texts[0], out);
        fputs("\"/>\n", out);
    }
    fprintf(out, "    <system-out>before %s, now %s", cells->sides[1], cells->sides[0]);
    if (*cells->shift)
        fprintf(out, ", change %s", cells->shift);
    if (*cells->interval)
        fprintf(out, " (%s)", cells->interval);
    if (diff_compares(c) && !isinf(change->smallest))
        fprintf(out, ", seen from %s", cells->smallest);
    fputs("</system-out>\n  </testcase>\n", out);
}

void diff_print_junit(const struct comparison *c, const struct kernel_match *kernels, FILE *out)
{
    (void)kernels;
    unsigned count = 0, failed = 0, skipped = 0;
    for (enum run_metric m = 0; m < RUN_METRICS; m++)
        if (run_metric_infos[m].gates && c->metrics[m].verdict != VERDICT_ABSENT) {
            const char *element = junit_element(c, m);
            count++;
            failed += element && *element == 'f';
            skipped += element && *element == 's';
        }
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n<testsuite name=\"gpuprof diff\" tests=\"%u\" failures=\"%u\" "
            "errors=\"0\" skipped=\"%u\">\n  <properties>\n    <property name=\"result\" value=\"",
            count, failed, skipped);
    put_xml(c->headline, out);
    fputs("\"/>\n  </properties>\n", out);
    for (enum run_metric m = 0; m < RUN_METRICS; m++)
        if (run_metric_infos[m].gates && c->metrics[m].verdict != VERDICT_ABSENT)
            put_case(c, m, out);
    fputs("</testsuite>\n</testsuites>\n", out);
}
