/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of stacks and of lines of Python on paper. */
#include <stdlib.h>
#include <string.h>

#include "absence.h"
#include "csv_kind.h"
#include "json_text.h"
#include "stack_report.h"
#include "unit_text.h"

#define NO_STACK  "(no stack: below the threshold, not asked for, or lost)"
#define NO_PYTHON "(no Python frames)"
#define BORROWED  " [borrowed]"

static double share_of(const struct stack_report *r, const struct stack_cost *cost)
{
    return r->total.host_ns ? (double)cost->host_ns / (double)r->total.host_ns : 0;
}

/* ---- names ---- */

/* "train (/home/me/train.py:12)", in new memory. */
static char *line_name(const struct stack_report *r, const struct line_row *row)
{
    char *text = NULL;
    char *clean = NULL;
    const char *mark = row->borrowed ? BORROWED : "";
    if (!row->frame)
        return strdup(NO_PYTHON);
    const struct shown_frame *f = shown_frame_of(&r->costs.tree.frames, row->frame);
    int length = -1;
    if (!f->name && !f->file)
        length = asprintf(&text, "%s%s", f->label, mark);
    else if (f->kind == SHOWN_RANGE)
        length = asprintf(&text, "range %s", f->name ? f->name->shown : "?");
    else if (f->line)
        length = asprintf(&text, "%s (%s:%llu)%s", f->name ? f->name->shown : "?",
                          f->file ? f->file->raw : "?", (unsigned long long)f->line, mark);
    else
        length = asprintf(&text, "%s (%s)%s", f->name ? f->name->shown : "?",
                          f->file ? f->file->raw : "?", mark);
    if (length >= 0)
        clean = json_clean(text, (size_t)length);
    for (char *p = clean; length >= 0 && p && *p; p++)
        if (*p == '\n' || *p == '\t')
            *p = ' ';
    if (length >= 0)
        free(text);
    return clean;
}

static bool is_borrowed(const struct stack_report *r, uint32_t node)
{
    for (; node; node = call_tree_node(&r->costs.tree, node)->parent)
        if (call_tree_frame(&r->costs.tree, node)->kind == SHOWN_BORROWED)
            return true;
    return false;
}

/* ---- text ---- */

static void print_costs(const struct stack_report *r, const struct stack_cost *cost, FILE *out)
{
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES], c[UNIT_TEXT_BYTES], d[UNIT_TEXT_BYTES];
    char e[UNIT_TEXT_BYTES];
    fprintf(out, "%6.1f%% %12s %12s %12s %12s %11s", 100 * share_of(r, cost),
            time_text(a, cost->host_ns), count_text(b, cost->calls),
            cost->works ? time_text(c, cost->gpu_ns) : "",
            cost->works ? count_text(d, cost->works) : "",
            cost->bytes ? bytes_text(e, cost->bytes) : "");
}

static void print_heading(const char *heading, const char *more, const char *what, FILE *out)
{
    fprintf(out, "\n%s\n%7s %12s %12s %12s %12s %11s%s  %s\n", heading, "share", "host", "calls",
            "GPU", "GPU work", "bytes", more, what);
}

static void print_stack(const struct stack_report *r, uint32_t node, FILE *out)
{
    struct stack_cost cost = stack_cost_of(&r->costs, node);
    unsigned frames = 0;
    print_costs(r, &cost, out);
    fprintf(out, "  %s\n", call_tree_frame(&r->costs.tree, node)->label);
    while ((node = call_tree_node(&r->costs.tree, node)->parent)) {
        if (++frames > STACK_FRAMES_SHOWN_MAX) {
            fprintf(out, "%75s...\n", "");
            return;
        }
        fprintf(out, "%75s%s\n", "", call_tree_frame(&r->costs.tree, node)->label);
    }
}

static void print_line(const struct stack_report *r, const struct line_row *row, FILE *out)
{
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES];
    char *name = line_name(r, row);
    print_costs(r, &row->own, out);
    fprintf(out, " %12s %12s  %s\n", time_text(a, row->all.host_ns),
            row->all.works ? time_text(b, row->all.gpu_ns) : "", name ? name : "?");
    free(name);
}

static void print_absences(const struct stack_report *r, const char *key, const char *what,
                           FILE *out)
{
    struct absence found[ABSENCES_MAX];
    unsigned count = absences_find(r->costs.rec, key, found);
    for (unsigned i = 0; i < count; i++) {
        char *text = absence_text(&found[i], r->costs.rec, what);
        char *clean = text ? json_line(text) : NULL;
        fprintf(out, "%s\n", clean ? clean : "?");
        free(clean);
        free(text);
    }
}

void stack_report_print_text(const struct stack_report *r, FILE *out)
{
    bool lines = r->by == BY_PYTHON_LINE;
    char more[32] = "", left[UNIT_TEXT_BYTES], reason[NO_STACK_BYTES];
    if (lines)
        snprintf(more, sizeof more, " %12s %12s", "host, all", "GPU, all");
    print_heading(lines ? "calls by line of Python" : "calls by stack", more,
                  lines ? "line" : "stack, the innermost frame first", out);
    uint32_t count = lines ? r->line_count : r->stack_count;
    for (uint32_t i = 0; i < count && i < STACK_ROWS_SHOWN_MAX; i++) {
        if (lines)
            print_line(r, &r->lines[i], out);
        else
            print_stack(r, r->stacks[i], out);
    }
    if (count > STACK_ROWS_SHOWN_MAX)
        fprintf(out, "%75s... and %s more rows; --format=csv and json have them\n", "",
                count_text(left, count - STACK_ROWS_SHOWN_MAX));
    if (r->without.calls || r->without.works) {
        print_costs(r, &r->without, out);
        fprintf(out, "%*s  (no stack: %s)\n", lines ? 26 : 0, "",
                stack_costs_reason(&r->without, reason));
    }
    fprintf(out, "\nshare is of the time of all calls on the host; GPU is the work that the calls "
                 "launched\n");
    if (r->without.works)
        fprintf(out,
                "gpuprof run --backtrace=launch,copy,graph_launch records a stack for all of it\n");
    if (lines)
        fprintf(out, "a call counts for its innermost line of Python, and under \"all\" for each "
                     "line that led to it\n");
    print_absences(r, "stacks", "stacks", out);
    if (lines)
        print_absences(r, "python", "Python frames", out);
}

/* ---- JSON ---- */

static void print_json_costs(const struct stack_cost *cost, const char *suffix, FILE *out)
{
    fprintf(out,
            "\"calls%s\": %llu, \"host_ns%s\": %llu, \"gpu_work%s\": %llu, \"gpu_ns%s\": %llu, "
            "\"bytes%s\": %llu",
            suffix, (unsigned long long)cost->calls, suffix, (unsigned long long)cost->host_ns,
            suffix, (unsigned long long)cost->works, suffix, (unsigned long long)cost->gpu_ns,
            suffix, (unsigned long long)cost->bytes);
}

static void print_json_name(const char *key, const struct kernel_name *name, FILE *out)
{
    fprintf(out, "\"%s\": %s, ", key, name ? name->json : "null");
}

static void print_json_line(const struct stack_report *r, const struct line_row *row, FILE *out)
{
    struct shown_frame none = {.kind = SHOWN_PYTHON};
    const struct shown_frame *f =
        row->frame ? shown_frame_of(&r->costs.tree.frames, row->frame) : &none;
    bool range = f->kind == SHOWN_RANGE;
    fprintf(out, "{");
    print_json_name("file", f->file, out);
    print_json_name("function", range ? NULL : f->name, out);
    fprintf(out, "\"line\": %llu, ", (unsigned long long)f->line);
    print_json_name("range", range ? f->name : NULL, out);
    fprintf(out, "\"borrowed\": %s, \"share\": %.4f, ", row->borrowed ? "true" : "false",
            share_of(r, &row->own));
    print_json_costs(&row->own, "", out);
    fprintf(out, ", ");
    print_json_costs(&row->all, "_all", out);
    fprintf(out, "}");
}

static void print_json_stack(const struct stack_report *r, uint32_t node, FILE *out)
{
    struct stack_cost cost = stack_cost_of(&r->costs, node);
    const char *separator = "";
    fprintf(out, "{\"call\": %s, \"frames\": [", call_tree_frame(&r->costs.tree, node)->json);
    for (uint32_t at = node; (at = call_tree_node(&r->costs.tree, at)->parent);) {
        fprintf(out, "%s%s", separator, call_tree_frame(&r->costs.tree, at)->json);
        separator = ", ";
    }
    fprintf(out, "], \"borrowed\": %s, \"share\": %.4f, ", is_borrowed(r, node) ? "true" : "false",
            share_of(r, &cost));
    print_json_costs(&cost, "", out);
    fprintf(out, "}");
}

static void print_json_absences(const struct stack_report *r, const char *key, FILE *out)
{
    struct absence found[ABSENCES_MAX];
    unsigned count = absences_find(r->costs.rec, key, found);
    fprintf(out, ",\n\"%s_absent\": ", key);
    absences_print_json(found, count, "reason", out);
}

void stack_report_print_json(const struct stack_report *r, FILE *out)
{
    bool lines = r->by == BY_PYTHON_LINE;
    uint32_t count = lines ? r->line_count : r->stack_count;
    fprintf(out, ",\n\"without_stack\": {");
    print_json_costs(&r->without, "", out);
    fprintf(out, "}");
    print_json_absences(r, "stacks", out);
    print_json_absences(r, "python", out);
    fprintf(out, ",\n\"%s\": [", lines ? "calls_by_python_line" : "calls_by_stack");
    for (uint32_t i = 0; i < count && !ferror(out); i++) {
        fprintf(out, i ? ",\n" : "\n");
        if (lines)
            print_json_line(r, &r->lines[i], out);
        else
            print_json_stack(r, r->stacks[i], out);
    }
    fprintf(out, "\n]");
}

/* ---- CSV ---- */

/* A row for the host and, if there is GPU work, one for that. */
static void print_csv_rows(enum csv_kind kind, const char *name, const struct stack_cost *cost,
                           FILE *out)
{
    report_csv_begin(kind, name, out);
    fprintf(out, ",host,%llu,%llu,%llu,0,0,%llu,%llu,0,0\n", (unsigned long long)cost->calls,
            (unsigned long long)cost->host_ns,
            (unsigned long long)(cost->calls ? cost->host_ns / cost->calls : 0),
            (unsigned long long)cost->max_ns, (unsigned long long)cost->bytes);
    if (!cost->works)
        return;
    report_csv_begin(kind, name, out);
    fprintf(out, ",gpu,%llu,%llu,%llu,0,0,0,0,0,0\n", (unsigned long long)cost->works,
            (unsigned long long)cost->gpu_ns, (unsigned long long)(cost->gpu_ns / cost->works));
}

/* "cudaMalloc | alloc (a.c:12) | main (a.c:20)", in new memory. */
static char *stack_name(const struct stack_report *r, uint32_t node)
{
    const struct call_tree *tree = &r->costs.tree;
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory)
        return NULL;
    for (const char *separator = ""; node; node = call_tree_node(tree, node)->parent) {
        fprintf(memory, "%s%s", separator, call_tree_frame(tree, node)->label);
        separator = " | ";
    }
    if (fclose(memory) == 0)
        return text;
    free(text);
    return NULL;
}

void stack_report_print_csv(const struct stack_report *r, FILE *out)
{
    bool lines = r->by == BY_PYTHON_LINE;
    enum csv_kind kind = lines ? CSV_PYTHON_LINE : CSV_STACK;
    for (uint32_t i = 0; i < (lines ? r->line_count : r->stack_count) && !ferror(out); i++) {
        char *name = lines ? line_name(r, &r->lines[i]) : stack_name(r, r->stacks[i]);
        struct stack_cost cost = lines ? r->lines[i].own : stack_cost_of(&r->costs, r->stacks[i]);
        if (cost.calls || cost.works)
            print_csv_rows(kind, name ? name : "?", &cost, out);
        if (lines)
            print_csv_rows(CSV_PYTHON_LINE_ALL, name ? name : "?", &r->lines[i].all, out);
        free(name);
    }
    if (r->without.calls || r->without.works)
        print_csv_rows(kind, NO_STACK, &r->without, out);
}
