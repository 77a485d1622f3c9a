/* SPDX-License-Identifier: Apache-2.0 */
/* Prints annotated source. */
#include <stdlib.h>
#include <string.h>

#include "analyse/source_report.h"
#include "analyse/stack_cost_cells.h"
#include "base/json_text.h"
#include "base/text.h"

#define TAB   8
#define OTHER "(all other calls: no line below the folder, or no stack)"

enum { NAME, PLACE_FILE, RECORDED, LINE, FUNCTION, TEXT, IS_NEWER, STACK_COST_COLUMNS };

static const struct column columns[COLUMNS] = {
    [NAME] = {NULL, "source", COLUMN_LINES, .doc = "the file, or the line"},
    [PLACE_FILE] = {"file", NULL, COLUMN_JSON, .doc = "the file, below the folder"},
    [RECORDED] = {"recorded_as", NULL, COLUMN_JSON, .doc = "the path of the file in the recording"},
    [LINE] = {"line", NULL, COLUMN_NUMBER, .ascending = true, .doc = "the line"},
    [FUNCTION] = {"function", NULL, COLUMN_JSON, .doc = "the function of the line"},
    [TEXT] = {"text", NULL, COLUMN_JSON, .doc = "the text of the line"},
    [IS_NEWER] = {"file_is_newer", NULL, COLUMN_BOOL,
                  .doc = "1: the file changed after the recording started"},
    COST_COLUMNS,
};

_Static_assert(COLUMNS <= TABLE_COLUMNS_MAX, "a row has room for so many cells");

char *source_line_text(const struct source_file *file, uint32_t line)
{
    size_t length, at = 0;
    if (line > file->text.line_count)
        return strdup("?");
    const char *from = source_line(&file->text, line, &length);
    char *wide = malloc(TAB * length + 1);
    for (size_t i = 0; wide && i < length; i++) {
        if (from[i] == '\t')
            do
                wide[at++] = ' ';
            while (at % TAB);
        else
            wide[at++] = from[i];
    }
    char *clean = wide ? json_clean(wide, at) : NULL;
    free(wide);
    return clean;
}

/* Returns "train.py (recorded as /x/train.py; newer than the recording: lines may have moved)". */
char *source_head_text(const struct source_report *r, const struct source_file *file)
{
    const char *path = source_tree_path(&r->tree, file->index);
    size_t length = strlen(path), bytes = file->recorded->raw_bytes;
    bool is_alike = bytes >= length && strcmp(file->recorded->raw + bytes - length, path) == 0;
    return line_printf("%s%s%s%s%s", path, is_alike ? "" : " (recorded as ",
                       is_alike ? "" : file->recorded->raw, is_alike ? "" : ")",
                       file->is_newer ? " (newer than the recording: lines may have moved)" : "");
}

static char *row_name(const struct source_report *r, const struct source_row *row)
{
    const struct source_file *file = &r->files[row->file];
    const char *path = source_tree_path(&r->tree, file->index);
    if (row->kind == SOURCE_HEAD)
        return source_head_text(r, file);
    if (row->kind == SOURCE_GAP)
        return strdup("       ...");
    char *text = source_line_text(file, row->line);
    const char *shown = text ? text : "?";
    char *clean = r->is_list ? line_printf("%s:%u%s%s", path, row->line, *shown ? "  " : "", shown)
                             : line_printf("%7u%s%s", row->line, *shown ? "  " : "", shown);
    free(text);
    return clean;
}

static struct cell json_of(char *text)
{
    char *json = text ? json_string(text, strlen(text)) : NULL;
    free(text);
    return cell_owned(json);
}

static void source_report_print_fill_row(const struct table *t, uint32_t index,
                                         enum report_format format, struct cell *cells)
{
    const struct source_report *r = t->source;
    const struct source_row *row = &r->rows[index];
    const struct source_file *file = &r->files[row->file];
    if (format != FORMAT_JSON)
        cells[NAME] = cell_owned(row_name(r, row));
    bool has_samples = r->stacks->total.samples;
    if (row->kind == SOURCE_HEAD)
        stack_cost_fill(&file->own, NULL, has_samples, cells + CALLS);
    if (!row->cost)
        return;
    const struct source_line_cost *line = &r->lines[row->cost - 1];
    stack_cost_fill(&line->own, &line->all, has_samples, cells + CALLS);
    cells[LINE] = cell_number(row->line);
    if (format != FORMAT_JSON)
        return;
    cells[PLACE_FILE] = json_of(strdup(source_tree_path(&r->tree, file->index)));
    cells[RECORDED] = cell_text(file->recorded->json);
    cells[FUNCTION] = cell_text(line->function ? line->function->json : NULL);
    cells[TEXT] = row->line > file->text.line_count ? cell_text(NULL)
                                                    : json_of(source_line_text(file, row->line));
    cells[IS_NEWER] = cell_number(file->is_newer);
}

static void source_report_print_table_begins(struct table *t, enum report_format format)
{
    const struct source_report *r = t->source;
    (void)format;
    t->is_there = r != NULL;
    t->without = r && r->stacks->total.samples ? 0 : SAMPLE_COLUMNS_BITS;
    t->count = r ? r->row_count : 0;
}

/* Lines without cost are shown only in text, unless a list is sorted. */
static bool has_row(const struct table *t, uint32_t index, enum report_format format)
{
    const struct source_report *r = t->source;
    return r->rows[index].cost || (format == FORMAT_TEXT && !r->is_list);
}

static bool source_report_print_fill_foot(const struct table *t, struct cell *cells)
{
    const struct source_report *r = t->source;
    if (!r)
        return false;
    struct stack_cost other = r->elsewhere;
    stack_cost_add(&other, &r->stacks->without);
    stack_cost_fill(&other, NULL, true, cells + CALLS);
    cells[NAME] = cell_text(OTHER);
    return other.calls || other.works || other.samples;
}

static void print_total(const struct table *t, FILE *out)
{
    const struct source_report *r = t->source;
    const struct stack_cost *all = &r->stacks->total;
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES], c[UNIT_TEXT_BYTES];
    fprintf(out, "in all %s on the GPU, %s on the host in %s call%s\n", time_text(a, all->gpu_ns),
            time_text(b, all->host_ns), count_text(c, all->calls), all->calls == 1 ? "" : "s");
    if (all->samples)
        fprintf(out, "and %s of CPU time in %s sample%s\n", time_text(a, all->cpu_ns),
                count_text(c, all->samples), plural_end(all->samples));
}

static void source_report_print_notes(const struct table *t, FILE *out)
{
    const struct source_report *r = t->source;
    fprintf(out,
            "\na call counts for the innermost line here that led to it, and under \"all\" for "
            "each such line\n");
    if (!r->file_count)
        fprintf(out, "no line of a file below %s is in a recorded stack\n", r->tree.folder);
    if (r->stacks->total.samples)
        fprintf(out, STACK_SAMPLES_NOTE);
    stack_report_print_missing_reasons(r->stacks, true, out);
}

static void print_json_others(const struct table *t, FILE *out)
{
    const struct source_report *r = t->source;
    stack_cost_print_json("source_elsewhere", &r->elsewhere, out);
    stack_cost_print_json("without_stack", &r->stacks->without, out);
}

const struct table_info source_table = {.name = "source_lines",
                                        .key = "source_lines",
                                        .title = "source",
                                        .columns = columns,
                                        .column_count = COLUMNS,
                                        .text = {CPU, PYTHON, NATIVE, SYSTEM, HITS, GPU, HOST,
                                                 CALLS, BYTES, CPU_ALL, GPU_ALL, HOST_ALL},
                                        .by = BY_SOURCE,
                                        .begin = source_report_print_table_begins,
                                        .has = has_row,
                                        .row = source_report_print_fill_row,
                                        .foot = source_report_print_fill_foot,
                                        .text_before = print_total,
                                        .text_behind = source_report_print_notes,
                                        .json_before = print_json_others};
