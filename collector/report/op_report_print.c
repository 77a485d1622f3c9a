/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of operators, of GPU time under none, and of labels (op_report.h). */
#include <stdlib.h>
#include <string.h>

#include "analyse/op_report.h"
#include "analyse/range_rows.h"
#include "base/json_text.h"
#include "base/unit_text.h"

#define STACK_SHOWN_MAX 64 /* of what is around a row, the innermost */

enum {
    NAME,
    DIMS,
    RANGE,
    STACK,
    CALLS,
    SELF_CPU,
    CPU,
    CPU_SHARE,
    SELF_GPU,
    GPU,
    SHARE,
    GRAPH,
    BACKWARD,
    BACKWARD_GPU,
    FLOPS,
    FLOPS_CALLS,
    COUNTER,
    COUNTER_CALLS,
    TFLOPS,
    PEAK,
    COLUMNS
};

static const struct column columns[COLUMNS] = {
    [NAME] = {"name", "name"},
    [DIMS] = {"input_dims", .type = COLUMN_JSON},
    [RANGE] = {"range"},
    [STACK] = {"stack", .type = COLUMN_LIST},
    [CALLS] = {"calls", "calls", COLUMN_COUNT, 12},
    [SELF_CPU] = {"self_cpu_ns", "self CPU", COLUMN_NS, 12},
    [CPU] = {"cpu_ns", "CPU", COLUMN_NS, 12, .spare = 2},
    [CPU_SHARE] = {"cpu_share", "of CPU", COLUMN_SHARE, 7, .spare = 1},
    [SELF_GPU] = {"self_gpu_ns", "self GPU", COLUMN_NS, 12},
    [GPU] = {"gpu_ns", "GPU", COLUMN_NS, 12, .spare = 2},
    [SHARE] = {"gpu_share", "of GPU", COLUMN_SHARE, 7},
    [GRAPH] = {"graph_gpu_ns"},
    [BACKWARD] = {"backward_cpu_ns", "backward CPU", COLUMN_NS, 12, .spare = 1, .is_filled = true},
    [BACKWARD_GPU] = {"backward_gpu_ns", "backward GPU", COLUMN_NS, 12, .spare = 1,
                      .is_filled = true},
    [FLOPS] = {"flops", "FLOPs", COLUMN_AMOUNT, 11, .spare = 1, .is_filled = true},
    [FLOPS_CALLS] = {"flops_calls", .type = COLUMN_COUNT},
    [COUNTER] = {"counter_flops", "FLOPs (fc)", COLUMN_AMOUNT, 11, .spare = 1, .is_filled = true},
    [COUNTER_CALLS] = {"counter_flops_calls", .type = COLUMN_COUNT},
    [TFLOPS] = {"tflops", "TFLOP/s", COLUMN_RATE, 9, .spare = 1, .is_filled = true},
    [PEAK] = {"peak_share", "of peak", COLUMN_SHARE, 7, .spare = 1, .is_filled = true},
};

static bool is_of(const struct table *t, const struct op_row *row)
{
    return row->kind < OP_ROW_MODULE &&
           (row->kind == OP_ROW_LABEL) == (t->info == &op_tables[OP_TABLES - 1]);
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

static void put_name(const struct op_row *row, FILE *out)
{
    if (row->kind == OP_ROW_NONE || row->is_others)
        fputs(row->kind == OP_ROW_NONE ? "(under no operator)" : "(others)", out);
    else if (row->text)
        fputs(row->text->shown, out);
    else
        fprintf(out, "operator %llu", (unsigned long long)row->name);
}

/* The text has one name of what the JSON has in several members. */
static struct cell name_of(const struct op_report *o, const struct op_row *row,
                           enum report_format format)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return cell_owned(NULL);
    put_name(row, out);
    if (row->dims && format != FORMAT_JSON)
        fprintf(out, " %s", row->dims->shown);
    if (row->range && format != FORMAT_JSON)
        fprintf(out, " in %s", row->range->shown);
    uint32_t parent = format != FORMAT_JSON ? row->parent : 0;
    for (unsigned i = 0; parent && i < STACK_SHOWN_MAX; i++) {
        const struct op_row *around = op_report_row(o, parent);
        fputs(" < ", out);
        put_name(around, out);
        parent = around->parent;
    }
    return cell_owned(fclose(out) == 0 ? text : NULL);
}

/* A list of what is around a row, the innermost first. */
static struct cell stack_of(const struct op_report *o, const struct op_row *row)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    uint32_t parent = row->parent;
    if (!out)
        return cell_owned(strdup("[]"));
    fputc('[', out);
    for (unsigned i = 0; parent && i < STACK_SHOWN_MAX; i++) {
        const struct op_row *around = op_report_row(o, parent);
        struct cell name = name_of(o, around, FORMAT_JSON);
        json_put(i ? ", " : "", name.text, out);
        free(name.memory);
        parent = around->parent;
    }
    fputc(']', out);
    return cell_owned(fclose(out) == 0 ? text : NULL);
}

/* Nothing of what has no FLOPs, and null of what has some that are not known. */
static void fill_sum(const struct op_sum *sum, struct cell *flops, struct cell *calls)
{
    if (!sum->calls)
        return;
    *flops = sum->known ? cell_number(sum->flops) : (struct cell){.kind = CELL_NULL};
    flops->at_least = sum->known < sum->calls;
    *calls = cell_number(sum->known);
}

static void fill_more(const struct op_report *o, const struct op_row *row, struct cell *cells)
{
    if (o->graph_ns)
        cells[GRAPH] = cell_number(row->graph_ns);
    if (row->backward_ns) {
        cells[BACKWARD] = cell_number(row->backward_ns);
        cells[BACKWARD_GPU] = cell_number(row->backward_gpu_ns);
    }
    fill_sum(&row->profiler, &cells[FLOPS], &cells[FLOPS_CALLS]);
    fill_sum(&row->counter, &cells[COUNTER], &cells[COUNTER_CALLS]);
    if (row->is_rated && row->rate_ns)
        cells[TFLOPS] = cell_real((double)row->rate_flops / (double)row->rate_ns / 1e3);
    if (row->is_rated && !row->has_no_peak && row->peak_flops > 0)
        cells[PEAK] = cell_real((double)row->rate_flops / (double)row->peak_flops);
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct op_report *o = t->source;
    const struct op_row *row = &o->rows[t->first + index];
    cells[NAME] = name_of(o, row, format);
    if (row->dims)
        cells[DIMS] = cell_text(row->dims->shown);
    else if (o->by == BY_SHAPE && row->kind == OP_ROW_OPERATOR)
        cells[DIMS] = (struct cell){.kind = CELL_NULL};
    if (o->by == BY_RANGE && row->kind == OP_ROW_OPERATOR)
        cells[RANGE] = cell_text(row->range ? row->range->shown : NULL);
    if (o->by == BY_STACK && row->kind != OP_ROW_NONE && format == FORMAT_JSON)
        cells[STACK] = stack_of(o, row);
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
    if (row->kind == OP_ROW_NONE)
        return;
    cells[CPU_SHARE] = cell_share(row->self_ns, o->self_ns);
    fill_more(o, row, cells);
}

static void say_none(const struct table *t, FILE *out)
{
    static const char *const causes[NONE_CAUSES] = {[NONE_COMPILED] = "compiled code",
                                                    [NONE_GRAPH] = "replays of graphs",
                                                    [NONE_THREAD] = "threads without operators",
                                                    [NONE_CALL] = "calls not known",
                                                    [NONE_BETWEEN] = "between operators"};
    const struct op_report *o = t->source;
    char none[UNIT_TEXT_BYTES], all[UNIT_TEXT_BYTES];
    if (!o->gpu_ns)
        return;
    fprintf(out, "GPU time under no operator: %.1f%% (%s of %s)",
            cell_share(o->gpu_none_ns, o->gpu_ns).percent, time_text(none, o->gpu_none_ns),
            time_text(all, o->gpu_ns));
    for (unsigned i = 0, said = 0; i < NONE_CAUSES; i++)
        if (o->none.cause_ns[i])
            fprintf(out, "%s %s %.1f%%", said++ ? "," : ":", causes[i],
                    cell_share(o->none.cause_ns[i], o->gpu_ns).percent);
    fputc('\n', out);
    if (o->graph_ns)
        fprintf(out, "replays of graphs by the operators that captured them: %.1f%% of GPU time\n",
                cell_share(o->graph_ns, o->gpu_ns).percent);
    if (o->has_flops)
        fprintf(out, "FLOPs known for %.1f%% of the GPU time\n",
                cell_share(o->flops_ns, o->gpu_ns).percent);
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
                "\"ops_under_none_share\": %.4f,\n\"ops_graph_ns\": %llu,\n"
                "\"ops_flops_known_ns\": %llu,\n\"ops_flops_known_share\": %.4f,\n",
                (unsigned long long)o->gpu_ns, (unsigned long long)o->gpu_none_ns,
                cell_share(o->gpu_none_ns, o->gpu_ns).real, (unsigned long long)o->graph_ns,
                (unsigned long long)o->flops_ns, cell_share(o->flops_ns, o->gpu_ns).real);
}

/* ---- GPU time under no operator -------------------------------------------------------------- */

enum { NONE_NAME, NONE_CAUSE, NONE_COUNT, NONE_TIME, NONE_SHARE, NONE_COLUMNS };

static const struct column none_columns[NONE_COLUMNS] = {
    [NONE_NAME] = {"name", "what it is"},
    [NONE_CAUSE] = {"cause"},
    [NONE_COUNT] = {"count", "count", COLUMN_COUNT, 12},
    [NONE_TIME] = {"gpu_ns", "GPU", COLUMN_NS, 12},
    [NONE_SHARE] = {"gpu_share", "of GPU", COLUMN_SHARE, 7},
};

static void none_begins(struct table *t, enum report_format format)
{
    const struct op_report *o = t->source;
    (void)format;
    t->count = o && o->count ? o->none.count : 0; /* without operators, nobody asks */
    t->is_there = t->count > 0;
}

static void fill_none(const struct table *t, uint32_t index, enum report_format format,
                      struct cell *cells)
{
    const struct op_report *o = t->source;
    const struct op_none_row *row = &o->none.rows[index];
    char *text = NULL;
    (void)format;
    cells[NONE_NAME] = cell_text(op_none_text(row));
    if (row->name)
        cells[NONE_NAME] = cell_owned(
            asprintf(&text, "%s: %s", op_none_text(row), row->name->shown) < 0 ? NULL : text);
    cells[NONE_CAUSE] = cell_text(op_none_word(row->cause));
    cells[NONE_COUNT] = cell_number(row->count);
    cells[NONE_TIME] = cell_number(row->ns);
    cells[NONE_SHARE] = cell_share(row->ns, o->gpu_ns);
}

const struct table_info op_tables[OP_TABLES] = {
    {.name = "ops",
     .place = PLACE_OPERATORS,
     .key = "ops",
     .title = "PyTorch's operators",
     .columns = columns,
     .column_count = COLUMNS,
     .text = {SHARE, SELF_GPU, GPU, CPU_SHARE, SELF_CPU, CPU, CALLS, BACKWARD_GPU, BACKWARD, FLOPS,
              COUNTER, TFLOPS, PEAK},
     .text_limit = 100,
     .more = "... and %s more row%s; --limit=N shows more of them",
     .text_none = ": no operators were recorded; 'gpuprof run --pytorch=shapes' records them",
     .begin = table_begins,
     .row = fill_row,
     .text_before = say_none,
     .json_before = say_none_json},
    {.name = "ops",
     .key = "ops_under_none",
     .is_further = true,
     .title = "GPU time under no operator",
     .columns = none_columns,
     .column_count = NONE_COLUMNS,
     .text = {NONE_SHARE, NONE_TIME, NONE_COUNT},
     .text_limit = 30,
     .more = "... and %s more row%s; --limit=N shows more of them",
     .begin = none_begins,
     .row = fill_none},
    {.name = "labels",
     .key = "labels",
     .title = "PyTorch's labels (operators inside of them are in the table above, too)",
     .columns = columns,
     .column_count = COLUMNS,
     .text = {SELF_GPU, GPU, SELF_CPU, CPU, CALLS},
     .text_limit = 100,
     .more = "... and %s more row%s; --limit=N shows more of them",
     .text_none = ": no labels were recorded; 'gpuprof run --pytorch=names' records them",
     .begin = table_begins,
     .row = fill_row,
     .text_behind = say_groups},
};
