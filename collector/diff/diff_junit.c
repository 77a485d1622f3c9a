/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/json_text.h"
#include "diff/diff_print.h"

/* Of a text below HEADLINE_BYTES, as all here are. */
static void put_xml(const char *text, FILE *out)
{
    char escaped[XML_ESCAPE_BYTES_MAX * HEADLINE_BYTES];
    fwrite(escaped, 1, (size_t)(xml_escape(escaped, text, strlen(text)) - escaped), out);
}

static bool is_unsure(const struct comparison *c, enum run_metric m)
{
    return c->result == RESULT_NOT_COMPARABLE || c->metrics[m].verdict == VERDICT_UNSURE;
}

/* As the exit code has it: --inconclusive=fail is for who takes a skipped test for a passed one. */
static bool is_failure(const struct comparison *c, enum run_metric m)
{
    const struct metric_change *change = &c->metrics[m];
    return is_unsure(c, m) ? c->fails_unsure : change->verdict == VERDICT_WORSE && change->gates;
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
    if (is_unsure(c, m)) {
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
        skipped += is_case && is_unsure(c, (enum run_metric)m) && !c->fails_unsure;
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
