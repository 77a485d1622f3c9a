/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of PyTorch's modules, and of Lightning's hooks (op_report.h). */
#include <string.h>

#include "analyse/op_report.h"
#include "model/op_kind.h"

enum {
    NAME,
    CLASS,
    CALLS,
    SELF_CPU,
    CPU,
    SELF_GPU,
    GPU,
    BACKWARD,
    BACKWARD_GPU,
    SHARE,
    FLOPS,
    BACKWARD_FLOPS,
    COLUMNS
};

static const struct column columns[COLUMNS] = {
    [NAME] = {"name", "module"},
    [CLASS] = {"class", "class", .spare = 2},
    [CALLS] = {"calls", "calls", COLUMN_COUNT, 12},
    [SELF_CPU] = {"self_cpu_ns", "self CPU", COLUMN_NS, 12, .spare = 1},
    [CPU] = {"cpu_ns", "CPU", COLUMN_NS, 12},
    [SELF_GPU] = {"self_gpu_ns", "self GPU", COLUMN_NS, 12, .spare = 1},
    [GPU] = {"gpu_ns", "GPU", COLUMN_NS, 12},
    [BACKWARD] = {"backward_cpu_ns", "backward CPU", COLUMN_NS, 12, .spare = 2},
    [BACKWARD_GPU] = {"backward_gpu_ns", "backward GPU", COLUMN_NS, 12},
    [SHARE] = {"gpu_share", "of GPU", COLUMN_SHARE, 7},
    [FLOPS] = {"flops", "FLOPs", COLUMN_AMOUNT, 11, .spare = 2, .is_filled = true},
    [BACKWARD_FLOPS] = {"backward_flops", "backw. FLOPs", COLUMN_AMOUNT, 12, .spare = 2,
                        .is_filled = true},
};

static void table_begins(struct table *t, enum report_format format)
{
    const struct op_report *o = t->source;
    enum op_row_kind kind = t->info == &hooks_table ? OP_ROW_HOOK : OP_ROW_MODULE;
    (void)format;
    for (uint32_t i = 0; o && i < o->count; i++) {
        if (o->rows[i].kind != kind)
            continue;
        t->first = t->count ? t->first : i;
        t->count++;
    }
    t->is_there = t->count > 0;
}

/* "CLASS ROOT.path", as the recording has it. */
static void fill_name(const struct op_row *row, struct cell *cells)
{
    const char *text = row->is_others ? "(others)" : row->text ? row->text->shown : "(not named)";
    const char *path = row->is_others || !row->text ? NULL : strchr(text, ' ');
    cells[NAME] = cell_text(path ? path + 1 : text);
    if (path)
        cells[CLASS] = cell_owned(strndup(text, (size_t)(path - text)));
}

static struct cell flops_of(const struct op_sum *sum)
{
    struct cell c = sum->known ? cell_number(sum->flops) : (struct cell){.kind = CELL_NULL};
    c.at_least = sum->known < sum->calls;
    return c;
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct op_report *o = t->source;
    const struct op_row *row = &o->rows[t->first + index];
    (void)format;
    fill_name(row, cells);
    cells[CALLS] = cell_number(row->calls);
    cells[SELF_CPU] = cell_number(row->self_ns);
    cells[CPU] = cell_number(row->total_ns);
    cells[SELF_GPU] = cell_number(row->gpu_self_ns);
    cells[GPU] = cell_number(row->gpu_ns);
    cells[BACKWARD] = cell_number(row->backward_ns);
    cells[BACKWARD_GPU] = cell_number(row->backward_gpu_ns);
    cells[SHARE] = cell_share(row->gpu_ns + row->backward_gpu_ns, o->gpu_ns);
    if (row->counter.calls)
        cells[FLOPS] = flops_of(&row->counter);
    if (row->backward.calls)
        cells[BACKWARD_FLOPS] = flops_of(&row->backward);
}

const struct table_info modules_table = {
    .name = "modules",
    .key = "modules",
    .title = "PyTorch's modules: forward, and backward by the forward operators in them",
    .columns = columns,
    .column_count = COLUMNS,
    .text = {SHARE, GPU, BACKWARD_GPU, SELF_GPU, CPU, BACKWARD, CALLS, FLOPS, BACKWARD_FLOPS,
             CLASS},
    .text_limit = 100,
    .more = "... and %s more row%s; --limit=N shows more of them",
    .text_none = ": no modules were recorded; 'gpuprof run --pytorch=modules' records them",
    .begin = table_begins,
    .row = fill_row,
};

/* ---- hooks ----------------------------------------------------------------------------------- */

enum {
    HOOK_NAME,
    HOOK_CALLS,
    HOOK_MEAN,
    HOOK_SELF_CPU,
    HOOK_CPU,
    HOOK_SELF_GPU,
    HOOK_GPU,
    HOOK_SHARE,
    HOOK_COLUMNS
};

static const struct column hook_columns[HOOK_COLUMNS] = {
    [HOOK_NAME] = {"name", "hook"},
    [HOOK_CALLS] = {"calls", "calls", COLUMN_COUNT, 12},
    [HOOK_MEAN] = {"mean_cpu_ns", "CPU a call", COLUMN_NS, 12, .spare = 2},
    [HOOK_SELF_CPU] = {"self_cpu_ns", "self CPU", COLUMN_NS, 12, .spare = 1},
    [HOOK_CPU] = {"cpu_ns", "CPU", COLUMN_NS, 12},
    [HOOK_SELF_GPU] = {"self_gpu_ns", "self GPU", COLUMN_NS, 12, .spare = 1},
    [HOOK_GPU] = {"gpu_ns", "GPU", COLUMN_NS, 12},
    [HOOK_SHARE] = {"gpu_share", "of GPU", COLUMN_SHARE, 7},
};

static void fill_hook(const struct table *t, uint32_t index, enum report_format format,
                      struct cell *cells)
{
    const struct op_report *o = t->source;
    const struct op_row *row = &o->rows[t->first + index];
    (void)format;
    cells[HOOK_NAME] = cell_text(row->is_others ? "(others)" : op_hook_name(row->text));
    cells[HOOK_CALLS] = cell_number(row->calls);
    cells[HOOK_MEAN] = cell_number(row->calls ? row->total_ns / row->calls : 0);
    cells[HOOK_SELF_CPU] = cell_number(row->self_ns);
    cells[HOOK_CPU] = cell_number(row->total_ns);
    cells[HOOK_SELF_GPU] = cell_number(row->gpu_self_ns);
    cells[HOOK_GPU] = cell_number(row->gpu_ns);
    cells[HOOK_SHARE] = cell_share(row->gpu_ns, o->gpu_ns);
}

const struct table_info hooks_table = {
    .name = "hooks",
    .key = "hooks",
    .title = "Lightning's hooks (those inside of one are in its time, but not in its own)",
    .columns = hook_columns,
    .column_count = HOOK_COLUMNS,
    .text = {HOOK_CPU, HOOK_MEAN, HOOK_SELF_CPU, HOOK_SHARE, HOOK_GPU, HOOK_SELF_GPU, HOOK_CALLS},
    .text_limit = 100,
    .more = "... and %s more row%s; --limit=N shows more of them",
    .text_none = ": none was recorded; 'gpuprof run --pytorch=modules' records those of Lightning",
    .begin = table_begins,
    .row = fill_hook,
};
