/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/stack_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "error.h"
#include "resolve/missing_reason.h"
#include "symbol/shown_frame.h"

#define LIBRARIES_ROW 1 /* row of no line, which cannot be borrowed */

/* The costs of a frame, or of a borrowed one. */
struct line_cost {
    uint32_t stamp; /* the last node counted for it */
    bool borrowed;
    struct stack_cost own, all;
};

static bool stack_report_is_wanted(const struct report *r)
{
    return r->request.by == BY_STACK || r->request.by == BY_PYTHON_LINE ||
           r->request.by == BY_SOURCE;
}

static void stack_report_analysis_begin(struct report *r)
{
    r->stacks->by = r->request.by;
    r->stacks->is_mine = r->request.lines.is_mine;
    stack_costs_init(&r->stacks->costs, &r->walk);
    r->stacks->costs.has_samples = r->request.by != BY_STACK; /* rows of stacks are calls */
    report_hear(r, stack_costs_consumer(&r->stacks->costs));
}

static void stack_report_analysis_release(struct report *r)
{
    stack_costs_release(&r->stacks->costs);
    free(r->stacks->rows);
    free(r->stacks->lines);
}

/* Orders by cost, highest first: on the host, from calls and samples, else on the device. */
static int compare_costs(const struct stack_cost *a, const struct stack_cost *b)
{
    return ORDER(b->host_ns + b->cpu_ns, a->host_ns + a->cpu_ns)
               ?: ORDER(b->gpu_ns, a->gpu_ns)
               ?: ORDER(b->calls, a->calls);
}

static int compare_rows(const void *left, const void *right)
{
    const struct cost_line *a = left, *b = right;
    int order = compare_costs(a->own, b->own);
    if (!order && a->all)
        order = compare_costs(a->all, b->all);
    return order ?: ORDER(a->at, b->at) ?: a->borrowed - b->borrowed;
}

static bool has_cost(const struct stack_cost *cost)
{
    return cost->calls || cost->works || cost->samples;
}

/* Counts the cost of a call's node for the lines that led to it. */
static void count_lines(struct stack_report *r, uint32_t node, const struct stack_cost *cost)
{
    const struct call_tree *tree = &r->costs.tree;
    uint32_t range = 0;
    bool borrowed = false, owned = false, has_python = false;
    for (uint32_t at = node; at; at = call_tree_node(tree, at)->parent) {
        uint32_t frame = call_tree_node(tree, at)->frame;
        unsigned kind = call_tree_frame(tree, at)->kind;
        borrowed |= kind == SHOWN_BORROWED;
        range = kind == SHOWN_RANGE ? frame : range;
        if (kind != SHOWN_PYTHON)
            continue;
        has_python = true;
        if (r->is_mine && !own_frame(call_tree_frame(tree, at)))
            continue;
        struct line_cost *row = &r->lines[2 * frame + (borrowed && !r->is_mine)];
        row->borrowed |= borrowed;
        if (!owned)
            stack_cost_add(&row->own, cost);
        if (row->stamp != node)
            stack_cost_add(&row->all, cost);
        row->stamp = node;
        owned = true;
    }
    if (!owned) {
        struct line_cost *row = has_python ? &r->lines[LIBRARIES_ROW] : &r->lines[2 * range];
        stack_cost_add(&row->own, cost);
        stack_cost_add(&row->all, cost);
    }
}

/* Makes rows of lines that have costs. */
static void list_lines(struct stack_report *r)
{
    for (uint32_t i = 0; i < 2 * (r->costs.tree.frames.count + 1); i++) {
        const struct line_cost *line = &r->lines[i];
        const struct cost_line row = {i / 2, line->borrowed || i % 2, &line->own, &line->all};
        if (has_cost(&line->all))
            ARRAY_PUSH(r->rows, r->count, &row);
    }
}

/* Makes rows of calls, or counts calls for lines. */
static void list_calls(struct stack_report *r)
{
    for (uint32_t n = 1; n <= r->costs.tree.count; n++) {
        uint32_t number = call_tree_node(&r->costs.tree, n)->cost;
        const struct cost_line row = {.at = n, .own = number ? &r->costs.costs[number - 1] : NULL};
        if (!row.own || !has_cost(row.own))
            continue;
        stack_cost_add(&r->total, row.own);
        if (r->lines)
            count_lines(r, n, row.own);
        else
            ARRAY_PUSH(r->rows, r->count, &row);
    }
}

static void stack_report_analysis_end(struct report *report)
{
    struct stack_report *r = report->stacks;
    stack_costs_finish(&r->costs, report->request.symbols);
    call_tree_say(&r->costs.tree);
    r->without = r->total = stack_costs_without(&r->costs);
    if (r->by == BY_PYTHON_LINE)
        r->lines = memory_new(2 * (r->costs.tree.frames.count + 1), sizeof *r->lines);
    list_calls(r);
    if (r->lines)
        list_lines(r);
    ARRAY_SORT(r->rows, r->count, compare_rows);
}

const struct analysis stacks_analysis = {
    ANALYSIS_STATE(stacks), .is_wanted = stack_report_is_wanted,
    .begin = stack_report_analysis_begin, .end = stack_report_analysis_end,
    .release = stack_report_analysis_release};

/* ---- the tables ------------------------------------------------------------------------------ */

#define NO_PYTHON "(no Python frames)"
#define LIBRARIES "(lines of libraries alone)"
#define BORROWED  " [borrowed]"

static struct cell share_of(const struct stack_report *r, const struct stack_cost *cost)
{
    return cell_share(cost->host_ns, r->total.host_ns);
}

/* Returns "train (train.py:12)" in new memory. */
static char *line_name(const struct stack_report *r, const struct cost_line *row)
{
    const char *mark = row->borrowed && !r->is_mine ? BORROWED : "";
    if (!row->at)
        return memory_text(row->borrowed ? LIBRARIES : NO_PYTHON);
    const struct shown_frame *f = shown_frame_of(&r->costs.tree.frames, row->at);
    const char *name = f->name ? f->name->shown : "?", *file = f->file ? f->file->raw : "?";
    if (!f->name && !f->file)
        return line_printf("%s%s", f->label, mark);
    if (f->kind == SHOWN_RANGE)
        return line_printf("range %s", name);
    if (f->line)
        return line_printf("%s (%s:%llu)%s", name, file, (unsigned long long)f->line, mark);
    return line_printf("%s (%s)%s", name, file, mark);
}

static bool is_borrowed(const struct stack_report *r, uint32_t node)
{
    for (; node; node = call_tree_node(&r->costs.tree, node)->parent)
        if (call_tree_frame(&r->costs.tree, node)->kind == SHOWN_BORROWED)
            return true;
    return false;
}

enum {
    NAME,
    PLACE_FILE,
    FUNCTION,
    LINE,
    RANGE,
    CALL,
    FRAMES,
    HAS_BORROWED,
    IS_LIBRARIES,
    SHARE,
    STACK_COST_COLUMNS
};

static const struct column columns[COLUMNS] = {
    [NAME] = {NULL, "stack or line, the innermost frame first", COLUMN_LINES,
              .doc = "the stack, or the line"},
    [PLACE_FILE] = {"file", NULL, COLUMN_JSON, .doc = "the file of the line"},
    [FUNCTION] = {"function", NULL, COLUMN_JSON, .doc = "its function"},
    [LINE] = {"line", NULL, COLUMN_NUMBER, .ascending = true, .doc = "its number"},
    [RANGE] = {"range", NULL, COLUMN_JSON, .doc = "the range around calls without Python frames"},
    [CALL] = {"call", NULL, COLUMN_JSON, .doc = "the call"},
    [FRAMES] = {"frames", NULL, COLUMN_LIST, .doc = "the frames, the innermost first"},
    [HAS_BORROWED] = {"borrowed", NULL, COLUMN_BOOL,
                      .doc = "1: some frames belong to the thread that waited for this one"},
    [IS_LIBRARIES] = {"only_libraries", NULL, COLUMN_BOOL,
                      .doc = "1: calls with no line of your own in their stack (--mine)"},
    [SHARE] = {"share", "share", COLUMN_SHARE, 7,
               .doc = "host_ns as a share of the time of all calls"},
    COST_COLUMNS(struct cost_line),
};

_Static_assert(COLUMNS <= TABLE_COLUMNS_MAX, "a row has room for so many cells");

static bool is_of_lines(const struct table *t)
{
    return t->info->by == BY_PYTHON_LINE;
}

static void fill_stack(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct stack_report *r = t->source;
    const struct call_tree *tree = &r->costs.tree;
    uint32_t node = r->rows[index].at;
    cells[SHARE] = share_of(r, r->rows[index].own);
    if (t->format == FORMAT_JSON)
        cells[FRAMES] = cell_owned(stack_text(tree, call_tree_node(tree, node)->parent, true));
    else
        cells[NAME] = cell_owned(stack_text(tree, node, false));
    cells[CALL] = cell_text(call_tree_frame(tree, node)->json);
    cells[HAS_BORROWED] = cell_number(is_borrowed(r, node));
}

static struct cell json_name(const struct kernel_name *name)
{
    return cell_text(name ? name->json : NULL);
}

static void fill_line(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct stack_report *r = t->source;
    const struct cost_line *row = &r->rows[index];
    struct shown_frame none = {.kind = SHOWN_PYTHON};
    const struct shown_frame *f = row->at ? shown_frame_of(&r->costs.tree.frames, row->at) : &none;
    bool range = f->kind == SHOWN_RANGE;
    cells[SHARE] = share_of(r, row->own);
    if (t->format != FORMAT_JSON)
        cells[NAME] = cell_owned(line_name(r, row));
    cells[PLACE_FILE] = json_name(f->file);
    cells[FUNCTION] = json_name(range ? NULL : f->name);
    cells[LINE] = cell_number(f->line);
    cells[RANGE] = json_name(range ? f->name : NULL);
    cells[HAS_BORROWED] = cell_number(row->borrowed && row->at);
    if (r->is_mine)
        cells[IS_LIBRARIES] = cell_number(row->borrowed && !row->at);
}

static void stacks_begin(struct table *t)
{
    const struct stack_report *r = t->source;
    if (!r || r->by != t->info->by)
        return;
    t->is_there = true;
    t->without = r->total.samples ? 0 : SAMPLE_COLUMNS_BITS;
    t->count = r->count;
}

/* Fills the row of calls without a stack. */
static bool fill_without(const struct table *t, struct cell *cells)
{
    const struct stack_report *r = t->source;
    if (!r || !(r->without.calls || r->without.works || r->without.samples))
        return false;
    members_show(t, &(struct cost_line){.own = &r->without}, cells);
    cells[SHARE] = share_of(r, &r->without);
    cells[NAME] = cell_text("(no stack: " NO_STACK_REASON ")");
    return true;
}

static const char *const missing_keys[] = {"stacks", "python"};

void stack_report_print_missing_reasons(const struct stack_report *r, bool with_python, FILE *out)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    for (unsigned k = 0; k <= with_python; k++) {
        unsigned count = missing_reasons_find(r->costs.rec, missing_keys[k], found);
        for (unsigned i = 0; i < count; i++) {
            char *text =
                missing_reason_text(&found[i], r->costs.rec, k ? "Python frames" : "stacks");
            char *clean = json_line(text);
            fprintf(out, "%s\n", clean);
            free(clean);
            free(text);
        }
    }
}

static void print_notes(const struct table *t, FILE *out)
{
    const struct stack_report *r = t->source;
    fprintf(out,
            "\nshare refers to the time of all calls on the host; GPU is the work that the calls "
            "launched\n");
    if (r->without.works)
        fprintf(out,
                "gpuprof run --backtrace=launch,copy,graph_launch records a stack for all of it\n");
    if (is_of_lines(t))
        fprintf(out,
                "a call counts for its innermost line%s, and under \"all\" for each line that "
                "led to it\n",
                r->is_mine ? " of your own code" : "");
    if (r->total.samples)
        fprintf(out, STACK_SAMPLES_NOTE);
    stack_report_print_missing_reasons(r, is_of_lines(t), out);
}

/* Explains an empty table of Python lines. */
static void say_no_python(const struct table *t, FILE *out)
{
    const struct stack_report *r = t->source;
    for (uint32_t i = 0; i < r->count; i++)
        if (r->rows[i].at || r->rows[i].borrowed) /* or the row of libraries */
            return;
    fprintf(out, "no line of Python is known; for a C or C++ program, 'gpuprof report --by=stack' "
                 "shows\nfunctions, and '--source=DIR' lines\n");
}

void stack_cost_print_json(const char *key, const struct stack_cost *cost, FILE *out)
{
    fprintf(out,
            "\"%s\": {\"calls\": %llu, \"host_ns\": %llu, \"gpu_work\": %llu, \"gpu_ns\": %llu, "
            "\"bytes\": %llu",
            key, (unsigned long long)cost->calls, (unsigned long long)cost->host_ns,
            (unsigned long long)cost->works, (unsigned long long)cost->gpu_ns,
            (unsigned long long)cost->bytes);
    if (cost->samples)
        fprintf(out, ", \"samples\": %llu, \"cpu_ns\": %llu", (unsigned long long)cost->samples,
                (unsigned long long)cost->cpu_ns);
    fputs("},\n", out);
}

static void print_json_without(const struct table *t, FILE *out)
{
    const struct stack_report *r = t->source;
    struct missing_reason found[MISSING_REASONS_MAX];
    stack_cost_print_json("without_stack", &r->without, out);
    for (unsigned k = 0; k < 2; k++) {
        unsigned count = missing_reasons_find(r->costs.rec, missing_keys[k], found);
        fprintf(out, "\"%s_absent\": ", missing_keys[k]);
        missing_reasons_print_json(found, count, "reason", out);
        fprintf(out, ",\n");
    }
}

const struct table_info stack_tables[2] = {
    {.name = "calls_by_stack",
     .key = "calls_by_stack",
     .title = "calls by stack",
     TABLE_COLUMNS(columns),
     .text = {SHARE, HOST, CALLS, GPU, WORKS, BYTES},
     .rows = {ROWS_IN(struct stack_report, rows, count)},
     .by = BY_STACK,
     .text_limit = STACK_ROWS_SHOWN_MAX,
     .begin = stacks_begin,
     .row = fill_stack,
     .foot = fill_without,
     .text_behind = print_notes,
     .json_before = print_json_without},
    {.name = "calls_by_python_line",
     .key = "calls_by_python_line",
     .title = "calls by Python line",
     TABLE_COLUMNS(columns),
     .text = {CPU, PYTHON, NATIVE, SYSTEM, HITS, SHARE, HOST, CALLS, GPU, WORKS, BYTES, CPU_ALL,
              HOST_ALL, GPU_ALL},
     .rows = {ROWS_IN(struct stack_report, rows, count)},
     .by = BY_PYTHON_LINE,
     .text_limit = STACK_ROWS_SHOWN_MAX,
     .begin = stacks_begin,
     .row = fill_line,
     .foot = fill_without,
     .text_before = say_no_python,
     .text_behind = print_notes,
     .json_before = print_json_without},
};
