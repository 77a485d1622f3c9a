/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff_print.h"

/* GitHub takes a comment of 65,536 characters. So much of a text, of which there are twice
 * COMPARISON_LINES, and 2 * RUN_FACTS that may be shorter, and so much of all rows of kernels
 * leaves room for all else. Names of kernels are never cut: it is rows that are left out. */
#define TEXT_BYTES_MAX 600
#define FACT_BYTES_MAX 300
#define ROWS_BYTES_MAX 20000
#define KERNELS_SHOWN  10 /* that became slower, and faster */
_Static_assert(2 * COMPARISON_LINES * TEXT_BYTES_MAX + 2 * RUN_FACTS * FACT_BYTES_MAX +
                       ROWS_BYTES_MAX <
                   62000,
               "a comment has room for all of it");

static const char *const marks[] = {[RESULT_SAME] = "\xE2\x9C\x85",
                                    [RESULT_WORSE] = "\xE2\x9D\x8C",
                                    [RESULT_UNSURE] = "\xE2\x9A\xA0\xEF\xB8\x8F",
                                    [RESULT_NOT_COMPARABLE] = "\xE2\x9A\xA0\xEF\xB8\x8F"};

/* As text of a cell or a line: nothing in it is markup. Of a longer text than `room` its beginning.
 */
static void put_within(const char *text, int room, FILE *out)
{
    char letter[2] = {0};
    for (; *text && (room > 0 || (*text & 0xC0) == 0x80); text++) {
        const char *written = letter;
        letter[0] = *text;
        if (*text == '<')
            written = "&lt;";
        else if (*text == '&')
            written = "&amp;";
        else if (strchr("\\`*_{}[]()#+!|~>@", *text))
            room -= fputc('\\', out) != EOF;
        fputs(written, out);
        room -= (int)strlen(written);
    }
    fputs(*text ? " ..." : "", out);
}

static void put_plain(const char *text, FILE *out)
{
    put_within(text, TEXT_BYTES_MAX, out);
}

static void put_row(const struct comparison *c, enum run_metric m, FILE *out)
{
    struct change_cells cells;
    bool is_worse = c->metrics[m].verdict == VERDICT_WORSE && c->metrics[m].gates;
    change_cells_make(&cells, c, m);
    const char *texts[] = {cells.sides[1], cells.sides[0], cells.shift,
                           cells.interval, cells.smallest, cells.verdict};
    unsigned count = diff_compares(c) ? sizeof texts / sizeof texts[0] : 2;
    fputs("| ", out);
    put_plain(diff_metric_text(c, m), out);
    for (unsigned i = 0; i < count; i++) {
        bool is_bold = is_worse && (texts[i] == cells.shift || texts[i] == cells.verdict);
        fputs(is_bold ? " | **" : " | ", out);
        put_plain(texts[i], out);
        fputs(is_bold ? "**" : "", out);
    }
    fputs(c->metrics[m].gates || !diff_compares(c) ? " |\n" : " (does not gate) |\n", out);
}

static void put_metrics(const struct comparison *c, FILE *out)
{
    char text[HEADLINE_BYTES];
    fprintf(out,
            diff_compares(c)
                ? "\n\n| %s | before | now | change | 95 %% interval | seen from | verdict |\n"
                  "|---|---:|---:|---:|---|---:|---|\n"
                : "\n\n| %s | before | now |\n|---|---:|---:|\n",
            diff_per_what(c));
    for (unsigned m = 0; m < RUN_METRICS; m++)
        if (c->metrics[m].verdict != VERDICT_ABSENT)
            put_row(c, (enum run_metric)m, out);
    if (diff_compares(c) && *diff_change_text(c, text))
        fprintf(out, "\n%s", text);
}

static void put_provenance(const struct comparison *c, FILE *out)
{
    fputs("\n<details><summary>What was compared</summary>\n\n| | before | now |\n|---|---|---|\n",
          out);
    for (unsigned i = 0; i < RUN_FACTS; i++) {
        const char *texts[2] = {c->sides[1]->runs[0].facts[i], c->sides[0]->runs[0].facts[i]};
        if (!texts[0] && !texts[1])
            continue;
        fputs("| ", out);
        put_plain(run_fact_infos[i].text, out);
        for (unsigned side = 0; side < 2; side++) {
            fputs(" | ", out);
            put_within(texts[side] ? texts[side] : "", FACT_BYTES_MAX, out);
        }
        fputs(" |\n", out);
    }
    fprintf(out, "| runs | %u | %u |\n\n</details>\n", c->sides[1]->count, c->sides[0]->count);
}

static void put_kernel(const struct diff_kernels *kernels, const struct match_row *row, FILE *out)
{
    char cells[3][CHANGE_CELL_BYTES], *text = diff_kernels_text(row, 0);
    const struct kernel_match *m = &kernels->match;
    change_put_ns(cells[0], match_added(m, row));
    for (unsigned side = 0; side < MATCH_SIDES; side++) {
        change_put_ns(cells[side + 1],
                      match_per_step(m, (enum match_which)side, row->side[side].ns));
        *cells[side + 1] = ' ';
    }
    fputs("| ", out);
    put_within(text ? text : "?", INT_MAX, out);
    free(text);
    fprintf(out, " |%s |%s | %s | %.4g | %.4g |\n", cells[1], cells[2], cells[0],
            match_per_step(m, MATCH_BASE, row->side[MATCH_BASE].count),
            match_per_step(m, MATCH_OTHER, row->side[MATCH_OTHER].count));
}

/* Writes the row if there is room for it. */
static bool put_fitting(const struct diff_kernels *kernels, const struct match_row *row,
                        size_t *room, FILE *out)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (memory) {
        put_kernel(kernels, row, memory);
        fclose(memory);
    }
    bool fits = text && length <= *room;
    if (fits) {
        fwrite(text, 1, length, out);
        *room -= length;
    }
    free(text);
    return fits;
}

static void put_kernels(const struct diff_kernels *kernels, FILE *out)
{
    const char *before = "\n<details><summary>Kernels that changed most</summary>\n\n"
                         "| kernel | before | now | change | launches before | now |\n"
                         "|---|---:|---:|---:|---:|---:|\n";
    size_t room = ROWS_BYTES_MAX;
    unsigned count = 0, left_out = 0;
    for (unsigned slower = 2; slower-- > 0;) {
        const struct match_row *row;
        uint32_t at = 0;
        for (unsigned i = 0; i < KERNELS_SHOWN && (row = diff_kernels_next(kernels, slower, &at));
             i++) {
            fputs(count++ ? "" : before, out);
            left_out += !put_fitting(kernels, row, &room, out);
        }
    }
    if (left_out)
        fprintf(out,
                "\n%u more, whose names are too long for a comment: `-o diff.json` has them.\n",
                left_out);
    if (count)
        fputs("\n</details>\n", out);
}

int diff_print_markdown(const struct comparison *c, const struct diff_kernels *kernels, FILE *out)
{
    char headline[HEADLINE_BYTES];
    fprintf(out, "%s **gpuprof:** ", marks[c->result]);
    put_plain(diff_headline(c, headline), out);
    if (diff_is_of_one_thing(c))
        put_metrics(c, out);
    else
        fputs("\n", out);
    fprintf(out, "\nGate %g %%, %u run%s against %u.\n", 100 * c->gate, c->sides[0]->count,
            c->sides[0]->count == 1 ? "" : "s", c->sides[1]->count);
    for (uint32_t i = 0; i < c->notes.count; i++) {
        fputs(i ? "- " : "\n- ", out);
        put_plain(c->notes.texts[i], out);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < c->reasons.count; i++) {
        fprintf(out, "%s- %s", i ? "" : "\n", c->insists ? "differs: " : "not comparable: ");
        put_plain(c->reasons.texts[i], out);
        fputc('\n', out);
    }
    if (kernels && diff_compares(c))
        put_kernels(kernels, out);
    put_provenance(c, out);
    return 0;
}
