/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "diff/diff_print.h"
#include "table/text_width.h"

#define CHANGE_MIN    0.001 /* of the kernels' time: what changes by less explains nothing */
#define KERNELS_SHOWN 4     /* that became slower, and faster */

/* ---- kernels --------------------------------------------------------------------------------- */

/* Time of all kernels in a step, of the side that has more. */
static double all_ns(const struct kernel_match *m)
{
    double most = 0;
    for (unsigned side = 0; side < MATCH_SIDES; side++) {
        double sum = 0;
        for (uint32_t i = 0; i < m->sides[side]->kernel_count; i++)
            sum += match_per_step(m, (enum match_which)side, m->sides[side]->kernels[i].ns);
        most = sum > most ? sum : most;
    }
    return most;
}

/* The next row after number *at - 1 that takes longer (`slower`) or shorter, by CHANGE_MIN of all
 * kernels' time at least; *at moves on. NULL: there is none. */
static const struct match_row *next_row(const struct kernel_match *m, bool slower, uint32_t *at)
{
    double least = CHANGE_MIN * all_ns(m);
    while (*at < m->count) {
        const struct match_row *row = &m->rows[(*at)++];
        double added = match_added(m, row);
        if (fabs(added) > 0 && fabs(added) >= least && (added > 0) == slower)
            return row;
    }
    return NULL;
}

/* A name on one line, cut unless `width` is 0; "?": no memory, or it has none. */
static char *short_name(const char *name, size_t width)
{
    char *line = name ? json_line(name) : NULL;
    if (line && !width)
        return line;
    char *cut = line ? text_cut(line, strlen(line), width) : NULL;
    free(line);
    return cut ? cut : strdup("?");
}

/* Of names that differ in template arguments alone, the one that takes the longest. */
static char *side_name(const struct match_row *row, enum match_which side, size_t width)
{
    char *name = short_name(row->side[side].name, width), *all = name;
    uint32_t others = row->kind == MATCH_SAME ? row->side[side].names - 1 : 0;
    if (name && others) {
        all = asprintf(&all, "%s and %u more", name, others) < 0 ? NULL : all;
        free(name);
    }
    return all;
}

/* What the row is, in new memory; NULL: no memory: its name; "new: NAME", "gone: NAME"; "renamed:
 * OLD -> NEW (same operator: aten::mm)". */
static char *row_text(const struct match_row *row, size_t width)
{
    static const char *const places[RUN_PLACES] = {[RUN_OPERATOR] = "operator",
                                                   [RUN_LIBRARY] = "call",
                                                   [RUN_RANGE] = "range",
                                                   [RUN_LINE] = "line"};
    char *before = side_name(row, MATCH_BASE, width);
    char *now = side_name(row, MATCH_OTHER, width);
    char *place = short_name(row->place, width), *text = NULL;
    const char *kind = match_kind_text(row->kind);
    int made = -1;
    if (!before || !now || !place)
        made = -1;
    else if (row->kind == MATCH_SAME && strcmp(before, now) == 0)
        made = asprintf(&text, "%s", now);
    else if (row->kind == MATCH_SAME)
        made = asprintf(&text, "%s -> %s", before, now);
    else if (row->kind >= MATCH_NEW)
        made = asprintf(&text, "%s: %s", kind, row->side[MATCH_OTHER].name ? now : before);
    else if (row->place)
        made = asprintf(&text, "%s: %s -> %s (same %s: %s)", kind, before, now, places[row->where],
                        place);
    else
        made = asprintf(&text, "%s: %s -> %s", kind, before, now);
    free(before);
    free(now);
    free(place);
    return made < 0 ? NULL : text;
}

static void put_kernels(const struct comparison *c, const struct kernel_match *m, FILE *out)
{
    char title[80];
    const char *before = title;
    snprintf(title, sizeof title,
             "\nkernels that changed most, in %s (they explain, and do not gate)\n",
             diff_per_what(c));
    for (unsigned slower = 2; slower-- > 0;) {
        const struct match_row *row;
        uint32_t at = 0;
        for (unsigned i = 0; i < KERNELS_SHOWN && (row = next_row(m, slower, &at)); i++) {
            char added[CHANGE_CELL_BYTES], *text = row_text(row, m->name_width);
            change_put_ns(added, match_added(m, row));
            fprintf(out, "%s%12s  %s\n", before, added, text ? text : "?");
            free(text);
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
int diff_print_text(const struct comparison *c, const struct kernel_match *kernels, FILE *out)
{
    char headline[HEADLINE_BYTES];
    if (!diff_compares(c)) {
        fprintf(out, "%s\n", diff_headline(c, headline));
        for (uint32_t i = 1; i < c->reasons.count; i++) /* the headline has the first */
            fprintf(out, "and: %s\n", c->reasons.texts[i]);
        fputc('\n', out);
        put_sides(c, out);
        if (!c->sides[0]->runs[0].steps == !c->sides[1]->runs[0].steps) /* of the same thing */
            put_amounts(c, out);
        return 0;
    }
    put_sides(c, out);
    put_changes(c, out);
    put_kernels(c, kernels, out);
    for (uint32_t i = 0; c->insists && i < c->reasons.count; i++)
        fprintf(out, "%sdiffers: %s\n", i ? "" : "\n", c->reasons.texts[i]);
    fprintf(out, "\n%s\n", diff_headline(c, headline));
    return 0;
}
