/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/diff_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "table/text_width.h"

#define CHANGE_MIN 0.001 /* of the kernels' time: what changes by less explains nothing */

int diff_kernels_make(struct diff_kernels *k, const struct run_set *runs,
                      const struct run_set *against)
{
    const struct run_summary *now = &runs->together, *before = &against->together;
    const struct match_side sides[] = {{before->kernels, before->kernel_count, before->steps},
                                       {now->kernels, now->kernel_count, now->steps}};
    *k = (struct diff_kernels){.is_made = true};
    return kernel_match_make(&k->match, &sides[0], &sides[1]);
}

void diff_kernels_release(struct diff_kernels *k)
{
    if (k->is_made)
        kernel_match_release(&k->match);
}

/* Time of all kernels in a step, of the side that has more. */
static double all_ns(const struct kernel_match *m)
{
    double most = 0;
    for (unsigned side = 0; side < MATCH_SIDES; side++) {
        double sum = 0;
        for (uint32_t i = 0; i < m->sides[side].count; i++)
            sum += match_per_step(m, (enum match_which)side, m->sides[side].kernels[i].ns);
        most = sum > most ? sum : most;
    }
    return most;
}

const struct match_row *diff_kernels_next(const struct diff_kernels *k, bool slower, uint32_t *at)
{
    const struct kernel_match *m = &k->match;
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

char *diff_kernels_text(const struct match_row *row, size_t width)
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
