/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of PyTorch's operators, of GPU time under none, of labels, modules, and Lightning's
 * hooks (op_report.h). */
#include <stdlib.h>
#include <string.h>

#include "analyse/analyses.h"
#include "analyse/op_report.h"
#include "analyse/range_rows.h"
#include "base/json_text.h"
#include "base/text.h"

#define STACK_SHOWN_MAX 64 /* innermost rows around a row */
#define ROWS            SUMS_TABLE, .text_limit = 100

enum { TEXT, AROUND, PARENT }; /* keys; for a module the first two are path and class */

/* ---- operators and labels -------------------------------------------------------------------- */

enum { NAME, DIMS, RANGE, STACK, CALLS, SELF_CPU, CPU, CPU_SHARE };
enum { SHARE = 10, GRAPH, TFLOPS = 18, PEAK };

static const struct column columns[] = {
    [NAME] = {"name", "name", .doc = "the operator or label, with its surroundings (--by)"},
    [DIMS] = {"input_dims", .type = COLUMN_JSON, .doc = "the sizes of its inputs (--by=shape)"},
    [RANGE] = {"range", .doc = "the innermost range or label around it (--by=range)"},
    [STACK] = {"stack", .type = COLUMN_LIST,
               .doc = "the operators around it, the innermost first (--by=stack)"},
    [CALLS] = {"calls", "calls", COLUMN_COUNT, 12, SHOW(VALUE, OP_CALLS),
               .doc = "the number of calls"},
    [SELF_CPU] = {"self_cpu_ns", "self CPU", COLUMN_NS, 12, SHOW(VALUE, OP_SELF),
                  .doc = "time on the host, without nested operators"},
    [CPU] = {"cpu_ns", "CPU", COLUMN_NS, 12, .spare = 2, SHOW(VALUE, OP_TOTAL),
             .doc = "time on the host, including nested operators"},
    [CPU_SHARE] = {"cpu_share", "of CPU", COLUMN_SHARE, 7, .spare = 1, SHOW(SHARE, OP_SELF),
                   .doc = "self CPU as a share of all operators"},
    {"self_gpu_ns", "self GPU", COLUMN_NS, 12, SHOW(VALUE, OP_GPU_SELF),
     .doc = "GPU time of work that it launched, without nested operators"},
    {"gpu_ns", "GPU", COLUMN_NS, 12, .spare = 2, SHOW(VALUE, OP_GPU),
     .doc = "GPU time of work that it launched, including nested operators"},
    [SHARE] = {"gpu_share", "of GPU", COLUMN_SHARE, 7, SHOW(PART, OP_GPU_SELF),
               .doc = "self GPU as a share of all GPU time"},
    [GRAPH] = {"graph_gpu_ns", .type = COLUMN_NS, SHOW(VALUE, OP_GRAPH),
               .doc = "GPU time of replays of graphs that it captured"},
    {"backward_cpu_ns", "backward CPU", COLUMN_NS, 12, .spare = 1, .is_filled = true,
     SHOW(VALUE, OP_BACKWARD), .only = OP_BACKWARD,
     .doc = "time of its backward operators on the host"},
    {"backward_gpu_ns", "backward GPU", COLUMN_NS, 12, .spare = 1, .is_filled = true,
     SHOW(VALUE, OP_BACKWARD_GPU), .only = OP_BACKWARD,
     .doc = "GPU time of its backward operators"},
    {"flops", "FLOPs", COLUMN_AMOUNT, 11, .spare = 1, .is_filled = true, SHOW(FLOPS, OP_PROFILER),
     .doc = "floating-point operations as PyTorch's profiler counts them"},
    {"flops_calls", .type = COLUMN_COUNT, SHOW(VALUE, OP_PROFILER) + 1, .only = OP_PROFILER + 2,
     .doc = "calls with a known number of FLOPs"},
    {"counter_flops", "FLOPs (fc)", COLUMN_AMOUNT, 11, .spare = 1, .is_filled = true,
     SHOW(FLOPS, OP_COUNTER),
     .doc = "floating-point operations as PyTorch's FlopCounterMode counts them"},
    {"counter_flops_calls", .type = COLUMN_COUNT, SHOW(VALUE, OP_COUNTER) + 1,
     .only = OP_COUNTER + 2,
     .doc = "calls with a known number of FLOPs, as FlopCounterMode counts them"},
    [TFLOPS] = {"tflops", "TFLOP/s", COLUMN_RATE, 9, .spare = 1, .is_filled = true,
                .doc = "floating-point operations for each second of its GPU time"},
    [PEAK] = {"peak_share", "of peak", COLUMN_SHARE, 7, .spare = 1, .is_filled = true,
              .doc = "that rate as a share of the device's peak"},
};

/* The rows around a row, innermost first: a JSON list, or " < outer" for each. */
static char *stack_of(const struct op_report *o, uint64_t parent, bool is_json)
{
    struct new_text text;
    FILE *out = new_text_begin(&text);
    fputs(is_json ? "[" : "", out);
    for (unsigned i = 0; parent && i < STACK_SHOWN_MAX; i++) {
        const struct kernel_name *name = o->entries[parent - 1].is.text;
        if (is_json)
            json_printf(out, i ? ", %s" : "%s", name ? name->shown : "?");
        else
            fprintf(out, " < %s", name ? name->shown : "?");
        parent = o->entries[parent - 1].is.parent;
    }
    fputs(is_json ? "]" : "", out);
    return new_text_end(&text, out);
}

static void op_tables_fill_row(const struct table *t, const struct sums_row *row,
                               struct cell *cells)
{
    const struct sums *s = t->source;
    const uint64_t *v = row->values;
    bool is_label = s->info == &labels_sums, is_none = !is_label && v[OP_MARK];
    const char *around = sums_shown(row->keys[AROUND]), *name = sums_shown(row->keys[TEXT]) ?: "?";
    cells[NAME] = cell_text(name);
    if (t->format != FORMAT_JSON) { /* it joins what JSON has in several members */
        char *stack = s->owner ? stack_of(s->owner, row->keys[PARENT], false) : NULL; /* no parts */
        cells[NAME] = cell_printf("%s%s%s%s", name,
                                  !around             ? ""
                                  : s->by == BY_RANGE ? " in "
                                                      : " ",
                                  around ? around : "", stack ? stack : "");
        free(stack);
    }
    if (s->by == BY_SHAPE && !is_label && !is_none)
        cells[DIMS] = cell_text(around);
    if (s->by == BY_RANGE && !is_label && !is_none)
        cells[RANGE] = cell_text(around);
    if (s->by == BY_STACK && !is_none && t->format == FORMAT_JSON)
        cells[STACK] = cell_owned(stack_of(s->owner, row->keys[PARENT], true));
    if (v[OP_RATE_NS])
        cells[TFLOPS] = cell_real((double)v[OP_RATE_FLOPS] / (double)v[OP_RATE_NS] / 1e3);
    if (v[OP_RATE_NS] && !v[OP_NO_PEAK] && v[OP_PEAK])
        cells[PEAK] = cell_real((double)v[OP_RATE_FLOPS] / 1e3 / (double)v[OP_PEAK]);
    if (is_none)
        cells[CALLS] = cells[SELF_CPU] = cells[CPU] = (struct cell){0};
    if (is_none || is_label) /* labels have no shares: they contain operators */
        cells[CPU_SHARE] = cells[GRAPH] = (struct cell){0};
    if (is_label)
        cells[SHARE] = (struct cell){0};
    if (!s->whole[OP_GRAPH])
        cells[GRAPH] = (struct cell){0};
}

static void op_tables_join(uint64_t *values, const uint64_t *from)
{
    for (unsigned i = OP_PROFILER; i <= OP_BACKWARD_FLOPS; i += 3)
        op_report_add_flops(&values[i], &from[i]);
}

/* Shows the row without an operator only if there is an operator, a label or a module. */
static void complete_operators(struct sums *s)
{
    for (unsigned i = 0; i < OP_TABLES; i++)
        s[i].all = &s->whole[OP_GPU_SELF];
    for (uint32_t i = 0; i < s->count; i++) {
        uint64_t *v = s->rows[i].values;
        v[OP_SEEN] = v[OP_MARK] ? v[OP_CALLS] && v[OP_GPU_SELF] : v[OP_SEEN];
    }
}

static void say_none(const struct table *t, FILE *out)
{
    const struct sums *s = t->source;
    uint64_t all_ns = *s->all, none_ns = s[OP_UNDER_NONE].whole[NONE_NS];
    char text[UNIT_TEXT_BYTES], all[UNIT_TEXT_BYTES];
    if (!all_ns)
        return;
    fprintf(out, "GPU time under no operator: %.1f%% (%s of %s)\n",
            100 * cell_share(none_ns, all_ns).real, time_text(text, none_ns),
            time_text(all, all_ns));
    if (s->whole[OP_GRAPH])
        fprintf(out,
                "graph replays, by the operators that captured the graph: %.1f%% of GPU time\n",
                100 * cell_share(s->whole[OP_GRAPH], all_ns).real);
    if (s->whole[OP_PROFILER + 1] || s->whole[OP_COUNTER + 1])
        fprintf(out, "FLOPs known for %.1f%% of the GPU time\n",
                100 * cell_share(s->whole[OP_FLOPS_NS], all_ns).real);
}

static void say_none_json(const struct table *t, FILE *out)
{
    const struct sums *s = t->source;
    const uint64_t *whole = s->whole, none_ns = s[OP_UNDER_NONE].whole[NONE_NS];
    if (s->info)
        fprintf(out,
                "\"ops_gpu_ns\": %llu,\n\"ops_under_none_ns\": %llu,\n"
                "\"ops_under_none_share\": %.4f,\n\"ops_graph_ns\": %llu,\n"
                "\"ops_flops_known_ns\": %llu,\n\"ops_flops_known_share\": %.4f,\n",
                (unsigned long long)*s->all, (unsigned long long)none_ns,
                cell_share(none_ns, *s->all).real, (unsigned long long)whole[OP_GRAPH],
                (unsigned long long)whole[OP_FLOPS_NS],
                cell_share(whole[OP_FLOPS_NS], *s->all).real);
}

#define OP_SUMS                                                                                    \
    .values = {[OP_SEEN] = JOIN_MOST,                                                              \
               [OP_CALLS... OP_GPU_BOTH] = JOIN_ADD,                                               \
               [OP_PROFILER... OP_RATE_FLOPS - 1] = JOIN_OWN,                                      \
               [OP_RATE_FLOPS... OP_PEAK] = JOIN_ADD,                                              \
               [OP_NO_PEAK] = JOIN_MOST,                                                           \
               [OP_FLOPS_NS] = JOIN_ADD,                                                           \
               [OP_MARK] = JOIN_MOST},                                                             \
    .join = op_tables_join, .parts = REPORT_OPS, .keeps_filtered = true, .is_left_out = true

const struct sums_info ops_sums = {
    OP_SUMS,
    .keys = {KEY_TEXT, KEY_TEXT, KEY_NUMBER},
    .order = OP_GPU_SELF,
    .then = {OP_SELF, OP_TOTAL},
    .complete = complete_operators,
    .fill = op_tables_fill_row,
    .table = {ROWS, .name = "ops", .key = "ops", .title = "PyTorch's operators",
              TABLE_COLUMNS(columns),
              /* own GPU and GPU; backward's GPU and CPU; FLOPs */
              .text = {SHARE, 8, 9, CPU_SHARE, SELF_CPU, CPU, CALLS, 13, 12, 14, 16, TFLOPS, PEAK},
              .place = PLACE_OPERATORS,
              .text_none = ": no operators were recorded; 'gpuprof run --pytorch=shapes' "
                           "records them",
              .text_before = say_none, .json_before = say_none_json},
};

const struct sums_info labels_sums = {
    OP_SUMS,
    .keys = {KEY_TEXT, KEY_TEXT, KEY_NUMBER},
    .order = OP_GPU_SELF,
    .then = {OP_SELF, OP_TOTAL},
    .complete = range_rows_complete, /* of parts, where labels are not grouped */
    .marks = OP_MARK,
    .fill = op_tables_fill_row,
    .table = {ROWS, .name = "labels", .key = "labels", .about = "PyTorch's labels",
              .title = "PyTorch's labels (the table above includes their operators)",
              TABLE_COLUMNS(columns), .text = {8, 9, SELF_CPU, CPU, CALLS},
              .text_none = ": no labels were recorded; 'gpuprof run --pytorch=names' records them",
              .text_behind = range_rows_say},
};

/* ---- GPU time under no operator -------------------------------------------------------------- */

/* Without operators the table is left out. */
static void none_begins(struct table *t)
{
    const struct sums *s = t->source;
    sums_begin(t);
    t->count = t->is_there && (s - OP_UNDER_NONE)->shown ? t->count : 0;
    t->is_there = t->count > 0;
}

static const struct column none_columns[] = {
    {"name", "what it is", SHOW(KEY, 0), .doc = "the kind of work, or its kernel"},
    {"cause", SHOW(KEY, 1), .doc = "why no operator is known, as one word"},
    {"count", "count", COLUMN_COUNT, 12, SHOW(VALUE, NONE_COUNT),
     .doc = "kernels, copies and sets"},
    {"gpu_ns", "GPU", COLUMN_NS, 12, SHOW(VALUE, NONE_NS), .doc = "its GPU time"},
    {"gpu_share", "of GPU", COLUMN_SHARE, 7, SHOW(PART, NONE_NS),
     .doc = "GPU time as a share of all GPU time"},
};

const struct sums_info ops_under_none_sums = {
    .keys = {KEY_TEXT, KEY_TEXT},
    .values = {JOIN_ADD, JOIN_ADD},
    .rows_max = NONE_ROWS_MAX,
    .order = NONE_NS,
    .parts = REPORT_OPS,
    .is_left_out = true,
    .table = {.begin = none_begins,
              .row = sums_show,
              .name = "ops",
              .key = "ops_under_none",
              .is_further = true,
              .title = "GPU time under no operator",
              TABLE_COLUMNS(none_columns),
              .text = {4, 3, 2},
              .text_limit = 30},
};

/* ---- modules and hooks ----------------------------------------------------------------------- */

static const struct column module_columns[] = {
    {"name", "module", SHOW(KEY, 0), .doc = "the module's path"},
    {"class", "class", .spare = 2, SHOW(KEY, 1), .doc = "the class of the module"},
    {"calls", "calls", COLUMN_COUNT, 12, SHOW(VALUE, OP_CALLS),
     .doc = "the number of calls of its forward"},
    {"self_cpu_ns", "self CPU", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, OP_SELF),
     .doc = "time of its forward on the host, without nested modules"},
    {"cpu_ns", "CPU", COLUMN_NS, 12, SHOW(VALUE, OP_TOTAL),
     .doc = "time of its forward on the host, including nested modules"},
    {"self_gpu_ns", "self GPU", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, OP_GPU_SELF),
     .doc = "GPU time of work that its forward launched, without nested modules"},
    {"gpu_ns", "GPU", COLUMN_NS, 12, SHOW(VALUE, OP_GPU),
     .doc = "GPU time of work that its forward launched, including nested modules"},
    {"backward_cpu_ns", "backward CPU", COLUMN_NS, 12, .spare = 2, SHOW(VALUE, OP_BACKWARD),
     .doc = "time on the host of the backward of its operators"},
    {"backward_gpu_ns", "backward GPU", COLUMN_NS, 12, SHOW(VALUE, OP_BACKWARD_GPU),
     .doc = "GPU time of the backward of its operators"},
    {"gpu_share", "of GPU", COLUMN_SHARE, 7, SHOW(PART, OP_GPU_BOTH),
     .doc = "GPU time of forward and backward as a share of all GPU time"},
    {"flops", "FLOPs", COLUMN_AMOUNT, 11, .spare = 2, .is_filled = true, SHOW(FLOPS, OP_COUNTER),
     .doc = "floating-point operations of its operators"},
    {"backward_flops", "backw. FLOPs", COLUMN_AMOUNT, 12, .spare = 2, .is_filled = true,
     SHOW(FLOPS, OP_BACKWARD_FLOPS), .doc = "floating-point operations in backward"},
};

const struct sums_info modules_sums = {
    OP_SUMS,
    .keys = {KEY_TEXT, KEY_TEXT},
    .order = OP_GPU_BOTH,
    .then = {OP_GPU_SELF, OP_SELF, OP_TOTAL},
    .table = {ROWS, .name = "modules", .key = "modules",
              .title = "PyTorch's modules: forward, and the backward of their forward's operators",
              TABLE_COLUMNS(module_columns), .text = {9, 6, 8, 5, 4, 7, 2, 10, 11, 1},
              .text_none = ": no modules were recorded; 'gpuprof run --pytorch=modules' records "
                           "them"},
};

static const struct column hook_columns[] = {
    {"name", "hook", SHOW(KEY, 0), .doc = "the hook, as Lightning calls it"},
    {"calls", "calls", COLUMN_COUNT, 12, SHOW(VALUE, OP_CALLS), .doc = "the number of calls"},
    {"mean_cpu_ns", "CPU a call", COLUMN_NS, 12, .spare = 2, SHOW(MEAN, OP_TOTAL), .by = OP_CALLS,
     .doc = "mean time of a call"},
    {"self_cpu_ns", "self CPU", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, OP_SELF),
     .doc = "time of its calls, without nested hooks"},
    {"cpu_ns", "CPU", COLUMN_NS, 12, SHOW(VALUE, OP_TOTAL),
     .doc = "time of its calls, including nested hooks"},
    {"self_gpu_ns", "self GPU", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, OP_GPU_SELF),
     .doc = "GPU time of work that it launched, without nested hooks"},
    {"gpu_ns", "GPU", COLUMN_NS, 12, SHOW(VALUE, OP_GPU),
     .doc = "GPU time of work that it launched, including nested hooks"},
    {"gpu_share", "of GPU", COLUMN_SHARE, 7, SHOW(PART, OP_GPU),
     .doc = "GPU time as a share of all GPU time"},
};

const struct sums_info hooks_sums = {
    OP_SUMS,
    .keys = {KEY_TEXT},
    .order = OP_TOTAL,
    .then = {OP_GPU_SELF, OP_SELF},
    .table = {ROWS, .name = "hooks", .key = "hooks",
              .title = "Lightning's hooks (CPU includes nested hooks, self CPU does not)",
              TABLE_COLUMNS(hook_columns), .text = {4, 2, 3, 7, 6, 5, 1},
              .text_none = ": no hooks were recorded; 'gpuprof run --pytorch=modules' records "
                           "Lightning's hooks"},
};
