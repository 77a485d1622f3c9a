/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data on source lines and their costs, like the text of report --source. All text comes from files
 * found below the folder (source_tree.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/source_report.h"
#include "base/json_text.h"
#include "base/text.h"
#include "page/page.h"

#define BYTES_MAX (2u << 20) /* approximate: the last line is written whole */

struct listing {
    const struct source_report *source;
    struct page_data *d;
    uint64_t before; /* bytes of the page before it */
};

static void put_cost(const struct stack_cost *cost, FILE *out)
{
    fprintf(out, "[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", cost->calls, cost->host_ns,
            cost->gpu_ns, cost->bytes);
}

/* Writes [number, text], and for a line with costs: own cost, cost of all, function. */
static void put_line(struct listing *l, const struct source_row *row)
{
    const struct source_report *r = l->source;
    FILE *out = l->d->stream;
    fprintf(out, "[%u,", row->line);
    page_put_owned(l->d, "", source_line_text(&r->files[row->file], row->line));
    if (row->cost) {
        fputc(',', out);
        put_cost(row->own, out);
        fputc(',', out);
        put_cost(row->all, out);
        fprintf(out, ",%s", row->cost->function ? row->cost->function->json : "null");
    }
    fputc(']', out);
}

/* Writes the rows of one file from `at` on, with 0 for a gap, and the number of lines left out.
 * Returns the row of the next file. */
static uint32_t put_lines(struct listing *l, uint32_t at)
{
    const struct source_row *rows = l->source->rows;
    uint32_t file = rows[at].file, left_out = 0;
    const char *separator = "\n";
    for (; at < l->source->row_count && rows[at].file == file; at++) {
        if (rows[at].kind == SOURCE_HEAD)
            continue;
        if (page_data_written(l->d) - l->before > BYTES_MAX) {
            left_out += rows[at].kind == SOURCE_LINE;
            continue;
        }
        fputs(separator, l->d->stream);
        if (rows[at].kind == SOURCE_LINE)
            put_line(l, &rows[at]);
        else
            fputc('0', l->d->stream);
        separator = ",\n";
    }
    fprintf(l->d->stream, "], %u]", left_out);
    return at;
}

/* Writes the files, the most expensive first: [path, heading, cost, lines ...]. */
static void put_files(struct listing *l)
{
    const struct source_report *r = l->source;
    fputs("\"files\": [", l->d->stream);
    for (uint32_t i = 0, row = 0; i < r->file_count; i++) {
        page_put_owned(l->d, i ? ",\n[" : "\n[",
                       json_line(source_tree_path(&r->tree, r->files[i].index)));
        page_put_owned(l->d, ", ", source_head_text(r, &r->files[i]));
        fputs(", ", l->d->stream);
        put_cost(&r->files[i].own, l->d->stream);
        fputs(", [", l->d->stream);
        row = put_lines(l, row);
    }
    fputc(']', l->d->stream);
}

void page_put_source(const struct page *p, struct page_data *d)
{
    const struct source_report *r = p->report->source;
    struct listing l = {.source = r, .d = d, .before = page_data_written(d)};
    if (!r) {
        fputs("{\"files\": null}", d->stream);
        return;
    }
    struct new_text text;
    FILE *note = new_text_begin(&text);
    struct stack_cost other = r->elsewhere;
    stack_cost_add(&other, &r->stacks->without);
    fputs("{\"total\": ", d->stream);
    put_cost(&r->stacks->total, d->stream);
    fputs(", \"other\": ", d->stream);
    put_cost(&other, d->stream);
    stack_report_print_missing_reasons(r->stacks, true, note);
    page_put_owned(d, ", \"absent\": ", new_text_end(&text, note));
    fputs(",\n", d->stream);
    put_files(&l);
    fputc('}', d->stream);
}
