/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a comparison as text, JSON, and JUnit tests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "diff/comparison.h"
#include "table/screen.h"

#define KERNELS_TEXT 4 /* slower ones, and as many faster ones */
#define KERNELS_JSON 1000

#define DIFF_JSON_VERSION 1

/* ---- kernels --------------------------------------------------------------------------------- */

/* Returns the next row from *at on that became slower (or faster); advances *at. NULL: none. */
static const struct match_row *next_row(const struct kernel_match *m, bool slower, uint32_t *at)
{
    while (*at < m->count) {
        const struct match_row *row = &m->rows[(*at)++];
        double added = match_added(m, row);
        if (slower ? added > 0 : added < 0)
            return row;
    }
    return NULL;
}

/* Prints a name on one line, cut unless `width` is 0. */
static void put_name(const char *name, size_t width, FILE *out)
{
    char *line = json_line(name);
    char *cut = line && width ? text_cut(line, strlen(line), width) : NULL;
    fputs(cut ? cut : line ? line : "?", out);
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
    static const char *const places[RUN_PLACES] = {[RUN_OPERATOR] = "operator",
                                                   [RUN_LIBRARY] = "call",
                                                   [RUN_RANGE] = "range",
                                                   [RUN_LINE] = "line"};
    const char *before = row->side[MATCH_BASE].name, *now = row->side[MATCH_OTHER].name;
    if (row->kind != MATCH_SAME)
        fprintf(out, "%s: ", match_kind_text(row->kind));
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
    char title[80];
    const char *before = title;
    snprintf(title, sizeof title,
             "\nkernels that changed most, in %s (they explain, but do not gate)\n",
             diff_per_what(c));
    for (unsigned slower = 2; slower-- > 0;) {
        const struct match_row *row;
        uint32_t at = 0;
        for (unsigned i = 0; i < KERNELS_TEXT && (row = next_row(m, slower, &at)); i++) {
            char added[CHANGE_CELL_BYTES];
            change_put_ns(added, match_added(m, row));
            fprintf(out, "%s%12s  ", before, added);
            put_row(row, m->name_width, out);
            fputc('\n', out);
            before = "";
        }
    }
}

/* ---- the comparison -------------------------------------------------------------------------- */

static void put_steps(uint64_t count, FILE *out)
{
    if (count)
        fprintf(out, " (%llu step%s)", (unsigned long long)count, count == 1 ? "" : "s");
}

static void put_sides(const struct comparison *c, FILE *out)
{
    uint64_t steps[2] = {0};
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < c->sides[side]->count; i++)
            steps[side] += c->sides[side]->runs[i].steps;
    fprintf(out, "%u run%s", c->sides[0]->count, c->sides[0]->count == 1 ? "" : "s");
    put_steps(steps[0], out);
    fprintf(out, " against %u", c->sides[1]->count);
    put_steps(steps[1], out);
    if (!steps[0] || !steps[1])
        fputs("; metrics of a side with no steps are for whole runs", out);
    fprintf(
        out,
        "\ngate %g %%: a metric is worse if it grew by over %g %% and its interval is above 0\n",
        100 * c->gate, 100 * c->threshold);
    for (uint32_t i = 0; i < c->notes.count; i++)
        fprintf(out, "%s\n", c->notes.texts[i]);
}

/* Prints both sides' amounts without comparing them: they may explain the difference. */
static void put_amounts(const struct comparison *c, FILE *out)
{
    fprintf(out, "\n%-26s %10s %10s\n", diff_per_what(c), "before", "now");
    for (unsigned m = 0; m < RUN_METRICS; m++) {
        struct change_cells cells;
        change_cells_make(&cells, c, (enum run_metric)m);
        if (*cells.sides[0] || *cells.sides[1])
            fprintf(out, "%-26s %10s %10s\n", diff_metric_text(c, (enum run_metric)m),
                    cells.sides[1], cells.sides[0]);
    }
}

static void put_changes(const struct comparison *c, FILE *out)
{
    fprintf(out, "\n%-26s %10s %10s %8s  %-18s %9s  %s\n", diff_per_what(c), "before", "now",
            "change", "95 % interval", "seen from", "verdict");
    for (unsigned m = 0; m < RUN_METRICS; m++) {
        struct change_cells cells;
        if (c->metrics[m].verdict == VERDICT_ABSENT)
            continue;
        change_cells_make(&cells, c, (enum run_metric)m);
        fprintf(out, "%-26s %10s %10s %8s  %-18s %9s  %s%s\n",
                diff_metric_text(c, (enum run_metric)m), cells.sides[1], cells.sides[0],
                cells.shift, cells.interval, cells.smallest, cells.verdict,
                c->metrics[m].gates ? "" : " (does not gate)");
    }
    for (unsigned m = 0; m < RUN_METRICS; m++)
        if (diff_change_of(c, (enum run_metric)m) && c->metrics[m].verdict != VERDICT_ABSENT)
            fprintf(out, "change of %s is a share %s\n", diff_metric_text(c, (enum run_metric)m),
                    diff_change_of(c, (enum run_metric)m));
}

/* If the sides cannot be compared, says so before anything else. */
int diff_print_text(const struct comparison *c, const struct kernel_match *kernels, FILE *out)
{
    char headline[HEADLINE_BYTES];
    if (!diff_compares(c)) {
        fprintf(out, "%s\n", diff_headline(c, headline));
        for (uint32_t i = 1; i < c->reasons.count; i++) /* the headline has reason 0 */
            fprintf(out, "and: %s\n", c->reasons.texts[i]);
        fputc('\n', out);
        put_sides(c, out);
        if (!c->sides[0]->runs[0].steps == !c->sides[1]->runs[0].steps) /* both per step, or both
                                                                         * per run */
            put_amounts(c, out);
        return 0;
    }
    put_sides(c, out);
    put_changes(c, out);
    text_kernels(c, kernels, out);
    for (uint32_t i = 0; c->insists && i < c->reasons.count; i++)
        fprintf(out, "%sdiffers: %s\n", i ? "" : "\n", c->reasons.texts[i]);
    fprintf(out, "\n%s\n", diff_headline(c, headline));
    return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *const result_words[] = {[RESULT_SAME] = "same",
                                           [RESULT_WORSE] = "worse",
                                           [RESULT_UNSURE] = "inconclusive",
                                           [RESULT_NOT_COMPARABLE] = "not comparable"};

static const char *const unit_words[] = {[RUN_UNIT_NS] = "ns",
                                         [RUN_UNIT_BYTES] = "bytes",
                                         [RUN_UNIT_MJ] = "mj",
                                         [RUN_UNIT_COUNT] = "count"};

static void put_metric(const struct comparison *c, enum run_metric m, FILE *out)
{
    const struct metric_change *change = &c->metrics[m];
    const struct run_metric_info *info = &run_metric_infos[m];
    fprintf(out, "{\"metric\": \"%s\", \"text\": \"%s\", \"unit\": \"%s\"", info->key,
            diff_metric_text(c, m), unit_words[info->unit]);
    fprintf(out, ", \"gates\": %s, \"verdict\": \"%s\"", change->gates ? "true" : "false",
            verdict_words[change->verdict]);
    json_put(", \"why\": ", change->why, out);
    fprintf(out, ", \"exact\": %s", change->is_exact ? "true" : "false");
    run_put_number(", \"before\": ", change->medians[1], out);
    run_put_number(", \"now\": ", change->medians[0], out);
    run_put_number(", \"change\": ", change->shift, out);
    json_put(", \"change_is\": ", diff_change_of(c, m), out);
    run_put_number(", \"low\": ", change->low, out);
    run_put_number(", \"high\": ", change->high, out);
    run_put_number(", \"coverage\": ", change->coverage, out);
    run_put_number(", \"p\": ", change->p, out);
    run_put_number(", \"seen_from\": ", change->smallest, out);
    fputc('}', out);
}

/* Prints a side of a row, per step. */
static void put_kernel_side(const struct kernel_match *m, const struct match_row *row,
                            enum match_which which, FILE *out)
{
    json_put("{\"name\": ", row->side[which].name, out);
    fprintf(out, ", \"names\": %u", row->side[which].names);
    run_put_number(", \"count\": ", match_per_step(m, which, row->side[which].count), out);
    run_put_number(", \"ns\": ", match_per_step(m, which, row->side[which].ns), out);
    fputc('}', out);
}

static void json_kernels(const struct kernel_match *m, FILE *out)
{
    fputs(",\n\"kernels\": [", out);
    for (uint32_t i = 0; i < m->count && i < KERNELS_JSON; i++) {
        const struct match_row *row = &m->rows[i];
        fprintf(out, "%s{\"kind\": \"%s\"", i ? ",\n" : "\n", match_kind_text(row->kind));
        json_put(", \"by\": ", row->by, out);
        json_put(", \"place\": ", row->place, out);
        run_put_number(", \"added_ns\": ", match_added(m, row), out);
        fputs(", \"before\": ", out);
        put_kernel_side(m, row, MATCH_BASE, out);
        fputs(", \"now\": ", out);
        put_kernel_side(m, row, MATCH_OTHER, out);
        fputc('}', out);
    }
    fprintf(out, "],\n\"kernel_rows\": %u", m->count);
}

int diff_print_json(const struct comparison *c, const struct kernel_match *kernels, FILE *out)
{
    static const char *const keys[2] = {"runs", "against"};
    char headline[HEADLINE_BYTES];
    fprintf(out, "{\"gpuprof_diff\": %d, \"result\": \"%s\"", DIFF_JSON_VERSION,
            result_words[c->result]);
    json_put(", \"says\": ", diff_headline(c, headline), out);
    fprintf(out, ", \"gate\": %.15g, \"threshold\": %.15g, \"alpha\": %g,\n\"differs\": [", c->gate,
            c->threshold, COMPARISON_ALPHA);
    for (uint32_t i = 0; i < c->reasons.count; i++)
        json_put(i ? ", " : "", c->reasons.texts[i], out);
    fputs("], \"notes\": [", out);
    for (uint32_t i = 0; i < c->notes.count; i++)
        json_put(i ? ", " : "", c->notes.texts[i], out);
    fputs("],\n\"metrics\": [", out);
    for (unsigned m = 0; m < RUN_METRICS; m++) {
        fputs(m ? ",\n" : "\n", out);
        put_metric(c, (enum run_metric)m, out);
    }
    fputs("]", out);
    for (unsigned side = 0; side < 2; side++) {
        fprintf(out, ",\n\"%s\": [", keys[side]);
        for (uint32_t i = 0; i < c->sides[side]->count; i++) {
            fputs(i ? ",\n" : "\n", out);
            run_put_json(&c->sides[side]->runs[i], c->sides[side]->names[i], true, out);
        }
        fputs("]", out);
    }
    json_kernels(kernels, out);
    fputs("}\n", out);
    return 0;
}

/* ---- JUnit ----------------------------------------------------------------------------------- */

/* Writes a text of less than HEADLINE_BYTES, as all here are. */
static void put_xml(const char *text, FILE *out)
{
    char escaped[XML_ESCAPE_BYTES_MAX * HEADLINE_BYTES];
    fwrite(escaped, 1, (size_t)(xml_escape(escaped, text, strlen(text)) - escaped), out);
}

static bool diff_print_is_unsure(const struct comparison *c, enum run_metric m)
{
    return c->result == RESULT_NOT_COMPARABLE || c->metrics[m].verdict == VERDICT_UNSURE;
}

/* Agrees with the exit code. --inconclusive=fail is for CI that counts a skipped test as passed. */
static bool is_failure(const struct comparison *c, enum run_metric m)
{
    const struct metric_change *change = &c->metrics[m];
    return diff_print_is_unsure(c, m) ? c->fails_unsure
                                      : change->verdict == VERDICT_WORSE && change->gates;
}

static void put_unsure(const struct comparison *c, const char *verdict, FILE *out)
{
    fputs(c->fails_unsure ? "    <failure type=\"inconclusive\" message=\""
                          : "    <skipped message=\"",
          out);
    put_xml(c->result == RESULT_NOT_COMPARABLE ? c->reasons.texts[0] : verdict, out);
    fputs("\"/>\n", out);
}

static void put_case(const struct comparison *c, enum run_metric m, FILE *out)
{
    struct change_cells cells;
    const struct metric_change *change = &c->metrics[m];
    change_cells_make(&cells, c, m);
    fprintf(out, "  <testcase classname=\"gpuprof\" name=\"%s\"", diff_metric_text(c, m));
    if (run_metric_infos[m].unit == RUN_UNIT_NS && !isnan(change->medians[0]))
        fprintf(out, " time=\"%.9f\"", change->medians[0] / 1e9);
    fputs(">\n", out);
    if (diff_print_is_unsure(c, m)) {
        put_unsure(c, cells.verdict, out);
    } else if (is_failure(c, m)) {
        fprintf(out,
                "    <failure type=\"regression\" message=\"%s %s\">%s: %s before, %s now, "
                "%s (%s)</failure>\n",
                diff_metric_text(c, m), cells.shift, diff_metric_text(c, m), cells.sides[1],
                cells.sides[0], cells.shift, cells.interval);
    }
    fprintf(out, "    <system-out>before %s, now %s", cells.sides[1], cells.sides[0]);
    if (diff_compares(c) && *cells.shift)
        fprintf(out, ", change %s", cells.shift);
    if (diff_compares(c) && *cells.interval)
        fprintf(out, " (%s)", cells.interval);
    if (diff_compares(c) && !isinf(change->smallest))
        fprintf(out, ", seen from %s", cells.smallest);
    fputs("</system-out>\n", out);
    fputs("  </testcase>\n", out);
}

int diff_print_junit(const struct comparison *c, const struct kernel_match *kernels, FILE *out)
{
    (void)kernels;
    char headline[HEADLINE_BYTES];
    unsigned count = 0, failures = 0, skipped = 0;
    for (unsigned m = 0; m < RUN_METRICS; m++) {
        enum verdict verdict = c->metrics[m].verdict;
        bool is_case = run_metric_infos[m].gates && verdict != VERDICT_ABSENT;
        count += is_case;
        failures += is_case && is_failure(c, (enum run_metric)m);
        skipped += is_case && diff_print_is_unsure(c, (enum run_metric)m) && !c->fails_unsure;
    }
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n<testsuite name=\"gpuprof diff\" tests=\"%u\" failures=\"%u\" "
            "errors=\"0\" skipped=\"%u\">\n  <properties>\n    <property name=\"result\" value=\"",
            count, failures, skipped);
    put_xml(diff_headline(c, headline), out);
    fputs("\"/>\n  </properties>\n", out);
    for (unsigned m = 0; m < RUN_METRICS; m++)
        if (run_metric_infos[m].gates && c->metrics[m].verdict != VERDICT_ABSENT)
            put_case(c, (enum run_metric)m, out);
    fputs("</testsuite>\n</testsuites>\n", out);
    return 0;
}
