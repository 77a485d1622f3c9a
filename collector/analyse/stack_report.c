/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/stack_report.h"

#include <stdlib.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "error.h"
#include "symbol/shown_frame.h"

#define LIBRARIES_ROW 1 /* row of no line, which cannot be borrowed */

static bool stack_report_is_wanted(const struct report *r)
{
    return r->request.by == BY_STACK || r->request.by == BY_PYTHON_LINE ||
           r->request.by == BY_SOURCE;
}

static int stack_report_analysis_begin(struct report *r)
{
    r->stacks->by = r->request.by;
    r->stacks->is_mine = r->request.is_mine;
    int error = stack_costs_init(&r->stacks->costs, &r->walk);
    r->stacks->costs.has_samples = r->request.by != BY_STACK; /* rows of stacks are calls */
    return error;
}

ANALYSIS_HEARS(stack_report_consumers, stack_costs_consumer(&r->stacks->costs))

static void stack_report_analysis_release(struct report *r)
{
    stack_costs_release(&r->stacks->costs);
    free(r->stacks->stacks);
    free(r->stacks->lines);
}

/* Orders by cost, highest first: on the host, from calls and samples, else on the device. */
static int compare_costs(const struct stack_cost *a, const struct stack_cost *b)
{
    int order = ORDER(b->host_ns + b->cpu_ns, a->host_ns + a->cpu_ns);
    order = order ? order : ORDER(b->gpu_ns, a->gpu_ns);
    return order ? order : ORDER(b->calls, a->calls);
}

/* Compares nodes of calls. */
static int compare_stacks(const void *left, const void *right, void *costs)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    struct stack_cost cost_a = stack_cost_of(costs, a), cost_b = stack_cost_of(costs, b);
    int order = compare_costs(&cost_a, &cost_b);
    return order ? order : ORDER(a, b);
}

static int compare_lines(const void *left, const void *right)
{
    const struct line_row *a = left, *b = right;
    int order = compare_costs(&a->own, &b->own);
    order = order ? order : compare_costs(&a->all, &b->all);
    order = order ? order : ORDER(a->frame, b->frame);
    return order ? order : a->borrowed - b->borrowed;
}

static bool has_cost(const struct stack_cost *cost)
{
    return cost->calls || cost->works || cost->samples;
}

static int sort_stacks(struct stack_report *r)
{
    r->stacks = calloc(r->costs.cost_count + 1u, sizeof *r->stacks);
    if (!r->stacks)
        return GPUPROF_NO_MEMORY;
    for (uint32_t n = 1; n <= r->costs.tree.count; n++) {
        struct stack_cost cost = stack_cost_of(&r->costs, n);
        if (has_cost(&cost))
            r->stacks[r->stack_count++] = n;
    }
    if (r->stack_count)
        qsort_r(r->stacks, r->stack_count, sizeof *r->stacks, compare_stacks, &r->costs);
    return 0;
}

/* Counts the cost of a call's node for the lines that led to it. */
static void count_lines(struct stack_report *r, struct line_row *rows, uint32_t node)
{
    const struct call_tree *tree = &r->costs.tree;
    struct stack_cost cost = stack_cost_of(&r->costs, node);
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
        struct line_row *row = &rows[2 * frame + (borrowed && !r->is_mine)];
        row->borrowed |= borrowed;
        if (!owned)
            stack_cost_add(&row->own, &cost);
        if (row->stamp != node)
            stack_cost_add(&row->all, &cost);
        row->stamp = node;
        owned = true;
    }
    if (!owned) {
        struct line_row *row = has_python ? &rows[LIBRARIES_ROW] : &rows[2 * range];
        stack_cost_add(&row->own, &cost);
        stack_cost_add(&row->all, &cost);
    }
}

static int sort_lines(struct stack_report *r)
{
    uint32_t count = 2 * (r->costs.tree.frames.count + 1);
    r->lines = calloc(count, sizeof *r->lines);
    if (!r->lines)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < r->stack_count; i++)
        count_lines(r, r->lines, r->stacks[i]);
    for (uint32_t i = 0; i < count; i++) {
        struct line_row row = r->lines[i];
        row.frame = i / 2;
        row.borrowed |= i % 2;
        if (has_cost(&row.all))
            r->lines[r->line_count++] = row;
    }
    if (r->line_count)
        qsort(r->lines, r->line_count, sizeof *r->lines, compare_lines);
    return 0;
}

static int stack_report_analysis_end(struct report *report)
{
    struct stack_report *r = report->stacks;
    int error = stack_costs_finish(&r->costs, report->request.symbols);
    if (error == 0)
        error = sort_stacks(r);
    call_tree_say(&r->costs.tree);
    r->without = stack_costs_without(&r->costs);
    r->total = r->without;
    for (uint32_t i = 0; error == 0 && i < r->stack_count; i++) {
        struct stack_cost cost = stack_cost_of(&r->costs, r->stacks[i]);
        stack_cost_add(&r->total, &cost);
    }
    return error == 0 && r->by == BY_PYTHON_LINE ? sort_lines(r) : error;
}

const struct analysis stacks_analysis = {ANALYSIS_STATE(stacks),
                                         .is_wanted = stack_report_is_wanted,
                                         .begin = stack_report_analysis_begin,
                                         .consumers = stack_report_consumers,
                                         .end = stack_report_analysis_end,
                                         .release = stack_report_analysis_release};
