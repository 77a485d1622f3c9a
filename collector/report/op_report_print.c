/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of operators and of labels (op_report.h). */
#include <stdlib.h>
#include <string.h>

#include "base/unit_text.h"
#include "report/op_report.h"
#include "report/range_rows.h"

enum { NAME, DIMS, CALLS, SELF_CPU, CPU, CPU_SHARE, SELF_GPU, GPU, SHARE, COLUMNS };

static const struct column columns[COLUMNS] = {
    [NAME] = {"name", "name"},
    [DIMS] = {"input_dims", .type = COLUMN_JSON},
    [CALLS] = {"calls", "calls", COLUMN_COUNT, 12},
    [SELF_CPU] = {"self_cpu_ns", "self CPU", COLUMN_NS, 12},
    [CPU] = {"cpu_ns", "CPU", COLUMN_NS, 12, .spare = 2},
    [CPU_SHARE] = {"cpu_share", "of CPU", COLUMN_SHARE, 7, .spare = 1},
    [SELF_GPU] = {"self_gpu_ns", "self GPU", COLUMN_NS, 12},
    [GPU] = {"gpu_ns", "GPU", COLUMN_NS, 12, .spare = 2},
    [SHARE] = {"gpu_share", "of GPU", COLUMN_SHARE, 7},
};

static bool is_of(const struct table *t, const struct op_row *row)
{
    return (row->kind == OP_ROW_LABEL) == (t->info == &op_tables[1]);
}

static void table_begins(struct table *t, enum report_format format)
{
    const struct op_report *o = t->source;
    (void)format;
    for (uint32_t i = 0; o && i < o->count; i++) {
        if (!is_of(t, &o->rows[i]))
            continue;
        t->first = t->count ? t->first : i;
        t->count++;
    }
    t->is_there = t->count > 0;
}

/* Text and csv have one name, the JSON a member of the sizes. */
static struct cell name_of(const struct op_row *row, enum report_format format)
{
    char unnamed[48], *text = NULL;
    snprintf(unnamed, sizeof unnamed, "operator %llu", (unsigned long long)row->name);
    const char *name = row->kind == OP_ROW_NONE ? "(under no operator)"
                       : row->is_others         ? "(others)"
                       : row->text              ? row->text->shown
                                                : unnamed;
    if (!row->dims || format == FORMAT_JSON)
        return cell_owned(strdup(name));
    return cell_owned(asprintf(&text, "%s %s", name, row->dims->shown) < 0 ? NULL : text);
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct op_report *o = t->source;
    const struct op_row *row = &o->rows[t->first + index];
    cells[NAME] = name_of(row, format);
    if (row->dims)
        cells[DIMS] = cell_text(row->dims->shown);
    else if (o->by_shape && row->kind == OP_ROW_OPERATOR)
        cells[DIMS] = (struct cell){.kind = CELL_NULL};
    if (row->kind != OP_ROW_NONE) {
        cells[CALLS] = cell_number(row->calls);
        cells[SELF_CPU] = cell_number(row->self_ns);
        cells[CPU] = cell_number(row->total_ns);
    }
    cells[SELF_GPU] = cell_number(row->gpu_self_ns);
    cells[GPU] = cell_number(row->gpu_ns);
    if (row->kind == OP_ROW_LABEL) /* they add up to nothing: operators are inside of them */
        return;
    cells[SHARE] = cell_share(row->gpu_self_ns, o->gpu_ns);
    if (row->kind == OP_ROW_OPERATOR)
        cells[CPU_SHARE] = cell_share(row->self_ns, o->self_ns);
}

static void say_none(const struct table *t, FILE *out)
{
    const struct op_report *o = t->source;
    char none[UNIT_TEXT_BYTES], all[UNIT_TEXT_BYTES];
    if (o->gpu_ns)
        fprintf(out, "GPU time under no operator: %.1f%% (%s of %s)\n",
                cell_share(o->gpu_none_ns, o->gpu_ns).percent, time_text(none, o->gpu_none_ns),
                time_text(all, o->gpu_ns));
}

static void say_groups(const struct table *t, FILE *out)
{
    const struct op_report *o = t->source;
    if (o->has_groups)
        range_rows_say(out);
}

static void say_none_json(const struct table *t, FILE *out)
{
    const struct op_report *o = t->source;
    if (o)
        fprintf(out,
                "\"ops_gpu_ns\": %llu,\n\"ops_under_none_ns\": %llu,\n"
                "\"ops_under_none_share\": %.4f,\n",
                (unsigned long long)o->gpu_ns, (unsigned long long)o->gpu_none_ns,
                cell_share(o->gpu_none_ns, o->gpu_ns).real);
}

const struct table_info op_tables[2] = {
    {.name = "ops",
     .key = "ops",
     .title = "PyTorch's operators",
     .columns = columns,
     .column_count = COLUMNS,
     .text = {SHARE, SELF_GPU, GPU, CPU_SHARE, SELF_CPU, CPU, CALLS},
     .csv = {{CSV_OP, "host", 0, CALLS, {CALLS, CPU}},
             {CSV_OP_SELF, "host", 0, CALLS, {CALLS, SELF_CPU}},
             {CSV_OP_GPU, "gpu", 0, GPU, {CALLS, GPU}},
             {CSV_OP_GPU_SELF, "gpu", 0, SELF_GPU, {CALLS, SELF_GPU}}},
     .csv_count = 4,
     .text_limit = 100,
     .more = "... and %s more rows; --limit=N shows more of them",
     .begin = table_begins,
     .row = fill_row,
     .text_before = say_none,
     .json_before = say_none_json},
    {.name = "labels",
     .key = "labels",
     .title = "PyTorch's labels (operators inside of them are in the table above, too)",
     .columns = columns,
     .column_count = COLUMNS,
     .text = {SELF_GPU, GPU, SELF_CPU, CPU, CALLS},
     .csv = {{CSV_LABEL, "host", 0, CALLS, {CALLS, CPU}},
             {CSV_LABEL_GPU, "gpu", 0, GPU, {CALLS, GPU}}},
     .csv_count = 2,
     .text_limit = 100,
     .more = "... and %s more rows; --limit=N shows more of them",
     .begin = table_begins,
     .row = fill_row,
     .text_behind = say_groups},
};
