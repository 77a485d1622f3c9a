/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "diff/diff_print.h"

#define KERNELS_SHOWN 4 /* that became slower, and faster */

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
    if (!steps[0] && !steps[1])
        fputs(", which have no steps: metrics are of a run as a whole", out);
    else if (!steps[0] || !steps[1])
        fputs("; one side has no steps: its metrics are of a run as a whole", out);
    fprintf(out,
            "\ngate %g %%: worse is a change of more than %g %% whose whole interval is above 0\n",
            100 * c->gate, 100 * c->threshold);
    for (uint32_t i = 0; i < c->notes.count; i++)
        fprintf(out, "%s\n", c->notes.texts[i]);
}

static void put_kernels(const struct comparison *c, const struct diff_kernels *kernels, FILE *out)
{
    char title[80];
    const char *before = title;
    snprintf(title, sizeof title,
             "\nkernels that changed most, in %s (they explain, and do not gate)\n",
             diff_per_what(c));
    for (unsigned slower = 2; slower-- > 0;) {
        const struct match_row *row;
        uint32_t at = 0;
        for (unsigned i = 0; i < KERNELS_SHOWN && (row = diff_kernels_next(kernels, slower, &at));
             i++) {
            char added[CHANGE_CELL_BYTES], *text = diff_kernels_text(row, kernels->name_width);
            change_put_ns(added, match_added(&kernels->match, row));
            fprintf(out, "%s%12s  %s\n", before, added, text ? text : "?");
            free(text);
            before = "";
        }
    }
}

/* Nothing that compares them: the amounts may say why. */
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
    char text[HEADLINE_BYTES];
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
    fputs(diff_change_text(c, text), out);
}

/* That they cannot be compared is said before anything else is looked at. */
int diff_print_text(const struct comparison *c, const struct diff_kernels *kernels, FILE *out)
{
    char headline[HEADLINE_BYTES];
    if (!diff_compares(c)) {
        fprintf(out, "%s\n", diff_headline(c, headline));
        for (uint32_t i = 1; i < c->reasons.count; i++) /* the headline has the first */
            fprintf(out, "and: %s\n", c->reasons.texts[i]);
        fputc('\n', out);
        put_sides(c, out);
        if (diff_is_of_one_thing(c))
            put_amounts(c, out);
        return 0;
    }
    put_sides(c, out);
    put_changes(c, out);
    if (kernels)
        put_kernels(c, kernels, out);
    for (uint32_t i = 0; c->insists && i < c->reasons.count; i++)
        fprintf(out, "%sdiffers: %s\n", i ? "" : "\n", c->reasons.texts[i]);
    fprintf(out, "\n%s\n", diff_headline(c, headline));
    return 0;
}
