/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the tables of stacks and of Python lines. */
#include <stdlib.h>
#include <string.h>

#include "analyse/stack_cost_cells.h"
#include "analyse/stack_report.h"
#include "base/json_text.h"
#include "base/text.h"
#include "resolve/missing_reason.h"

#define NO_PYTHON "(no Python frames)"
#define LIBRARIES "(lines of libraries alone)"
#define BORROWED  " [borrowed]"

static struct cell share_of(const struct stack_report *r, const struct stack_cost *cost)
{
    return cell_share(cost->host_ns, r->total.host_ns);
}

/* ---- names ---- */

/* Returns "train (train.py:12)" in new memory. */
static char *line_name(const struct stack_report *r, const struct line_row *row)
{
    const char *mark = row->borrowed && !r->is_mine ? BORROWED : "";
    if (!row->frame)
        return strdup(row->borrowed ? LIBRARIES : NO_PYTHON);
    const struct shown_frame *f = shown_frame_of(&r->costs.tree.frames, row->frame);
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

/* Returns "cudaMalloc", "alloc (a.c:12)", "main (a.c:20)", one per line, in new memory. */
static char *stack_name(const struct stack_report *r, uint32_t node)
{
    const struct call_tree *tree = &r->costs.tree;
    unsigned frames = 0;
    struct new_text text;
    FILE *memory = new_text_begin(&text);
    if (!memory)
        return NULL;
    for (; node; node = call_tree_node(tree, node)->parent, frames++) {
        fputs(frames ? "\n" : "", memory);
        if (frames > STACK_FRAMES_SHOWN_MAX) {
            fputs("...", memory);
            break;
        }
        fputs(call_tree_frame(tree, node)->label, memory);
    }
    return new_text_end(&text, memory);
}

/* Returns the callers of the call as a JSON list, in new memory. */
static char *stack_json(const struct stack_report *r, uint32_t node)
{
    const char *separator = "";
    struct new_text text;
    FILE *memory = new_text_begin(&text);
    if (!memory)
        return NULL;
    fputc('[', memory);
    while ((node = call_tree_node(&r->costs.tree, node)->parent)) {
        fprintf(memory, "%s%s", separator, call_tree_frame(&r->costs.tree, node)->json);
        separator = ", ";
    }
    fputc(']', memory);
    return new_text_end(&text, memory);
}

/* ---- columns and rows ---- */

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

#define STACK_COLUMNS(name_label)                                                                  \
    {                                                                                              \
        [NAME] = {NULL, name_label, COLUMN_LINES, .doc = "the stack, or the line"},                \
        [PLACE_FILE] = {"file", NULL, COLUMN_JSON, .doc = "the file of the line"},                 \
        [FUNCTION] = {"function", NULL, COLUMN_JSON, .doc = "its function"},                       \
        [LINE] = {"line", NULL, COLUMN_NUMBER, .ascending = true, .doc = "its number"},            \
        [RANGE] = {"range", NULL, COLUMN_JSON,                                                     \
                   .doc = "the range around calls without Python frames"},                         \
        [CALL] = {"call", NULL, COLUMN_JSON, .doc = "the call"},                                   \
        [FRAMES] = {"frames", NULL, COLUMN_LIST, .doc = "the frames, the innermost first"},        \
        [HAS_BORROWED] = {"borrowed", NULL, COLUMN_BOOL,                                           \
                          .doc =                                                                   \
                              "1: some frames are those of the thread that waited for this one"},  \
        [IS_LIBRARIES] = {"only_libraries", NULL, COLUMN_BOOL,                                     \
                          .doc = "1: calls with no line of your own in their stack (--mine)"},     \
        [SHARE] = {"share", "share", COLUMN_SHARE, 7,                                              \
                   .doc = "host_ns as a share of the time of all calls"},                          \
        COST_COLUMNS,                                                                              \
    }
static const struct column stack_columns[COLUMNS] =
    STACK_COLUMNS("stack, the innermost frame first");
static const struct column line_columns[COLUMNS] = STACK_COLUMNS("line");
#undef STACK_COLUMNS

_Static_assert(COLUMNS <= TABLE_COLUMNS_MAX, "a row has room for so many cells");

static bool is_of_lines(const struct table *t)
{
    return t->info->by == BY_PYTHON_LINE;
}

static void fill_stack(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells)
{
    const struct stack_report *r = t->source;
    uint32_t node = r->stacks[index];
    struct stack_cost cost = stack_cost_of(&r->costs, node);
    cells[SHARE] = share_of(r, &cost);
    stack_cost_fill(&cost, NULL, false, cells + CALLS);
    if (format == FORMAT_JSON)
        cells[FRAMES] = cell_owned(stack_json(r, node));
    else
        cells[NAME] = cell_owned(stack_name(r, node));
    cells[CALL] = cell_text(call_tree_frame(&r->costs.tree, node)->json);
    cells[HAS_BORROWED] = cell_number(is_borrowed(r, node));
}

static struct cell json_name(const struct kernel_name *name)
{
    return cell_text(name ? name->json : NULL);
}

static void fill_line(const struct table *t, uint32_t index, enum report_format format,
                      struct cell *cells)
{
    const struct stack_report *r = t->source;
    const struct line_row *row = &r->lines[index];
    struct shown_frame none = {.kind = SHOWN_PYTHON};
    const struct shown_frame *f =
        row->frame ? shown_frame_of(&r->costs.tree.frames, row->frame) : &none;
    bool range = f->kind == SHOWN_RANGE;
    cells[SHARE] = share_of(r, &row->own);
    stack_cost_fill(&row->own, &row->all, r->total.samples, cells + CALLS);
    if (format != FORMAT_JSON)
        cells[NAME] = cell_owned(line_name(r, row));
    cells[PLACE_FILE] = json_name(f->file);
    cells[FUNCTION] = json_name(range ? NULL : f->name);
    cells[LINE] = cell_number(f->line);
    cells[RANGE] = json_name(range ? f->name : NULL);
    cells[HAS_BORROWED] = cell_number(row->borrowed && row->frame);
    if (r->is_mine)
        cells[IS_LIBRARIES] = cell_number(row->borrowed && !row->frame);
}

static void stack_report_print_table_begins(struct table *t, enum report_format format)
{
    const struct stack_report *r = t->source;
    (void)format;
    if (!r || r->by != t->info->by)
        return;
    t->is_there = true;
    t->without = r->total.samples ? 0 : SAMPLE_COLUMNS_BITS;
    t->count = is_of_lines(t) ? r->line_count : r->stack_count;
}

/* Fills the row of calls without a stack. */
static bool stack_report_print_fill_foot(const struct table *t, struct cell *cells)
{
    const struct stack_report *r = t->source;
    char reason[NO_STACK_BYTES];
    if (!r || !(r->without.calls || r->without.works || r->without.samples))
        return false;
    cells[SHARE] = share_of(r, &r->without);
    stack_cost_fill(&r->without, NULL, true, cells + CALLS);
    cells[NAME] = cell_printf("(no stack: %s)", stack_costs_reason(&r->without, reason));
    return true;
}

/* ---- notes around the tables ---- */

static void print_missing_reasons(const struct stack_report *r, const char *key, const char *what,
                                  FILE *out)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    unsigned count = missing_reasons_find(r->costs.rec, key, found);
    for (unsigned i = 0; i < count; i++) {
        char *text = missing_reason_text(&found[i], r->costs.rec, what);
        char *clean = text ? json_line(text) : NULL;
        fprintf(out, "%s\n", clean ? clean : "?");
        free(clean);
        free(text);
    }
}

void stack_report_print_missing_reasons(const struct stack_report *r, bool with_python, FILE *out)
{
    print_missing_reasons(r, "stacks", "stacks", out);
    if (with_python)
        print_missing_reasons(r, "python", "Python frames", out);
}

static void stack_report_print_notes(const struct table *t, FILE *out)
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
                "a call counts for its innermost line of Python%s, and under \"all\" for each %s"
                "line that led to it\n",
                r->is_mine ? " outside of installed packages and Python's own library" : "",
                r->is_mine ? "such " : "");
    if (r->total.samples)
        fprintf(out, STACK_SAMPLES_NOTE);
    stack_report_print_missing_reasons(r, is_of_lines(t), out);
}

/* Explains an empty table of Python lines. */
static void say_no_python(const struct table *t, FILE *out)
{
    const struct stack_report *r = t->source;
    for (uint32_t i = 0; i < r->line_count; i++)
        if (r->lines[i].frame || r->lines[i].borrowed) /* or the row of libraries */
            return;
    fprintf(out, "no line of Python is known; for a C or C++ program, 'gpuprof report --by=stack' "
                 "shows\nfunctions, and '--source=DIR' lines\n");
}

static void print_json_missing_reasons(const struct stack_report *r, const char *key, FILE *out)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    unsigned count = missing_reasons_find(r->costs.rec, key, found);
    fprintf(out, "\"%s_absent\": ", key);
    missing_reasons_print_json(found, count, "reason", out);
    fprintf(out, ",\n");
}

static void print_json_without(const struct table *t, FILE *out)
{
    const struct stack_report *r = t->source;
    stack_cost_print_json("without_stack", &r->without, out);
    print_json_missing_reasons(r, "stacks", out);
    print_json_missing_reasons(r, "python", out);
}

/* ---- the tables ---- */

const struct table_info stack_tables[2] = {
    {.name = "calls_by_stack",
     .key = "calls_by_stack",
     .title = "calls by stack",
     .columns = stack_columns,
     .column_count = COLUMNS,
     .text = {SHARE, HOST, CALLS, GPU, WORKS, BYTES},
     .by = BY_STACK,
     .text_limit = STACK_ROWS_SHOWN_MAX,
     .begin = stack_report_print_table_begins,
     .row = fill_stack,
     .foot = stack_report_print_fill_foot,
     .text_behind = stack_report_print_notes,
     .json_before = print_json_without},
    {.name = "calls_by_python_line",
     .key = "calls_by_python_line",
     .title = "calls by Python line",
     .columns = line_columns,
     .column_count = COLUMNS,
     .text = {CPU, PYTHON, NATIVE, SYSTEM, HITS, SHARE, HOST, CALLS, GPU, WORKS, BYTES, CPU_ALL,
              HOST_ALL, GPU_ALL},
     .by = BY_PYTHON_LINE,
     .text_limit = STACK_ROWS_SHOWN_MAX,
     .begin = stack_report_print_table_begins,
     .row = fill_line,
     .foot = stack_report_print_fill_foot,
     .text_before = say_no_python,
     .text_behind = stack_report_print_notes,
     .json_before = print_json_without},
};
