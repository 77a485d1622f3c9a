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
#include "base/new_text.h"
#include "error.h"
#include "page/page.h"

#define FILES_MAX      300
#define FILE_LINES_MAX 2000 /* longer files show only lines with costs */
#define LINES_MAX      10000
#define TEXT_BYTES_MAX (2u << 20) /* approximate: the last line is written whole */

/* What is being written, and how much. */
struct listing {
    const struct source_report *source;
    struct page_data *d;
    uint64_t before; /* bytes of the page before it */
    uint32_t lines;
};

static void put_cost(const struct stack_cost *cost, FILE *out)
{
    fprintf(out, "[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", cost->calls, cost->host_ns,
            cost->gpu_ns, cost->bytes);
}

static int put_owned(char *text, struct page_data *d)
{
    if (!text)
        return GPUPROF_NO_MEMORY;
    page_put_text(d, text);
    free(text);
    return 0;
}

/* Writes [number, text], and for a line with costs: own cost, cost of all, function. */
static int put_line(struct listing *l, const struct source_row *row)
{
    const struct source_report *r = l->source;
    FILE *out = l->d->stream;
    fprintf(out, "[%u,", row->line);
    int error = put_owned(source_line_text(&r->files[row->file], row->line), l->d);
    if (row->cost) {
        const struct source_line_cost *line = &r->lines[row->cost - 1];
        fputc(',', out);
        put_cost(&line->own, out);
        fputc(',', out);
        put_cost(&line->all, out);
        fprintf(out, ",%s", line->function ? line->function->json : "null");
    }
    fputc(']', out);
    l->lines++;
    return error;
}

/* Writes the rows of one file from `at` on, with 0 for a gap; then the number of lines left out
 * with costs, and without. Returns the row of the next file. */
static uint32_t put_lines(struct listing *l, uint32_t at, int *error)
{
    const struct source_row *rows = l->source->rows;
    uint32_t file = rows[at].file, end = at, lines = 0, first = l->lines, left_out[2] = {0, 0};
    const char *separator = "\n";
    bool is_gap = false;
    for (; end < l->source->row_count && rows[end].file == file; end++)
        lines += rows[end].kind == SOURCE_LINE;
    for (; at < end && *error == 0; at++) {
        const struct source_row *row = &rows[at];
        is_gap |= row->kind == SOURCE_GAP;
        if (row->kind != SOURCE_LINE)
            continue;
        if ((!row->cost && lines > FILE_LINES_MAX) || l->lines - first == FILE_LINES_MAX ||
            l->lines == LINES_MAX || page_data_written(l->d) - l->before > TEXT_BYTES_MAX) {
            is_gap = true;
            left_out[!row->cost]++;
            continue;
        }
        fprintf(l->d->stream, "%s%s", separator, is_gap ? "0," : "");
        *error = put_line(l, row);
        separator = ",\n";
        is_gap = false;
    }
    fprintf(l->d->stream, "%s], %u, %u]",
            !is_gap            ? ""
            : l->lines > first ? ",0"
                               : "0",
            left_out[0], left_out[1]);
    return end;
}

/* Writes the files, the most expensive first: [path, heading, cost, lines ...]. */
static int put_files(struct listing *l)
{
    const struct source_report *r = l->source;
    uint32_t count = r->file_count < FILES_MAX ? r->file_count : FILES_MAX;
    int error = 0;
    fputs("\"files\": [", l->d->stream);
    for (uint32_t i = 0, row = 0; error == 0 && i < count; i++) {
        fputs(i ? ",\n[" : "\n[", l->d->stream);
        error = put_owned(json_line(source_tree_path(&r->tree, r->files[i].index)), l->d);
        fputs(", ", l->d->stream);
        if (error == 0)
            error = put_owned(source_head_text(r, &r->files[i]), l->d);
        fputs(", ", l->d->stream);
        put_cost(&r->files[i].own, l->d->stream);
        fputs(", [", l->d->stream);
        if (error == 0)
            row = put_lines(l, row, &error);
    }
    fprintf(l->d->stream, "],\n\"files_left_out\": %u", r->file_count - count);
    return error;
}

static int put_missing_reasons(const struct source_report *r, struct page_data *d)
{
    struct new_text text;
    FILE *note = new_text_begin(&text);
    if (!note)
        return GPUPROF_NO_MEMORY;
    stack_report_print_missing_reasons(r->stacks, true, note);
    return put_owned(new_text_end(&text, note), d);
}

int page_put_source(const struct page *p, struct page_data *d)
{
    const struct source_report *r = p->report->source;
    struct listing l = {.source = r, .d = d, .before = page_data_written(d)};
    if (!r) {
        fputs("{\"files\": null}", d->stream);
        return 0;
    }
    struct stack_cost other = r->elsewhere;
    stack_cost_add(&other, &r->stacks->without);
    fputs("{\"total\": ", d->stream);
    put_cost(&r->stacks->total, d->stream);
    fputs(", \"other\": ", d->stream);
    put_cost(&other, d->stream);
    fputs(", \"absent\": ", d->stream);
    int error = put_missing_reasons(r, d);
    fputs(",\n", d->stream);
    if (error == 0)
        error = put_files(&l);
    fputc('}', d->stream);
    return error;
}
