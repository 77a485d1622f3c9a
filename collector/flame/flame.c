/* SPDX-License-Identifier: Apache-2.0 */
#include "flame/flame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/message.h"
#include "base/next_words.h"
#include "base/text.h"
#include "error.h"
#include "read/process.h"
#include "read/recording.h"
#include "resolve/missing_reason.h"

#define RECORD_CALLS "gpuprof run --backtrace=launch,alloc,copy,sync,graph_launch PROGRAM"

const struct weight_info flame_weights[] = {
    [WEIGHT_HOST] = {"time of calls on the host", "nanoseconds", RECORD_CALLS},
    [WEIGHT_GPU] = {"time of launched work on the GPU", "nanoseconds",
                    "gpuprof run --backtrace=launch,copy,graph_launch PROGRAM"},
    [WEIGHT_CALLS] = {"calls", "none", RECORD_CALLS},
    [WEIGHT_BYTES] = {"bytes allocated", "bytes", "gpuprof run --backtrace=alloc PROGRAM"},
    [WEIGHT_CPU] = {"CPU time of samples", "nanoseconds", "gpuprof run --sample PROGRAM"},
    [WEIGHT_OFF_CPU] = {"time off the CPU", "nanoseconds",
                        "gpuprof run --os --os-backtrace=0 PROGRAM"},
    [WEIGHT_WALL] = {"time on and off the CPU", "nanoseconds",
                     "gpuprof run --sample --os --os-backtrace=0 PROGRAM"},
};

const char *flame_value_text(enum flame_weight weight, char *text, uint64_t value)
{
    return weight == WEIGHT_CALLS   ? count_text(text, value)
           : weight == WEIGHT_BYTES ? bytes_text(text, value)
                                    : time_text(text, value);
}

char *flame_change_text(char *text, const uint64_t totals[FLAME_SIDES])
{
    double now = (double)totals[FLAME_NOW], before = (double)totals[FLAME_BEFORE];
    if (!totals[FLAME_BEFORE])
        snprintf(text, FLAME_CHANGE_BYTES, "new");
    else if (!totals[FLAME_NOW])
        snprintf(text, FLAME_CHANGE_BYTES, "gone");
    else if (now >= 10 * before)
        snprintf(text, FLAME_CHANGE_BYTES, "x %.1f", now / before);
    else
        snprintf(text, FLAME_CHANGE_BYTES, "%+.1f %%", 100 * (now - before) / before);
    return text;
}

/* Returns the value that the graph shows. */
static uint64_t flame_value(enum flame_weight weight, const struct stack_cost *cost)
{
    switch (weight) {
    case WEIGHT_GPU: return cost->gpu_ns;
    case WEIGHT_CALLS: return cost->calls;
    case WEIGHT_BYTES: return cost->bytes;
    case WEIGHT_CPU: return cost->cpu_ns;
    case WEIGHT_OFF_CPU: return cost->waited_ns;
    case WEIGHT_WALL: return cost->cpu_ns + cost->waited_ns;
    default: return cost->host_ns;
    }
}

/* ---- the graph ------------------------------------------------------------------------------- */

struct sorted_node {
    uint32_t parent;
    uint32_t node;
};

static int compare_nodes(const void *left, const void *right, void *tree)
{
    const struct sorted_node *a = left;
    const struct sorted_node *b = right;
    return ORDER(a->parent, b->parent)
               ?: strcmp(call_tree_frame(tree, a->node)->label,
                         call_tree_frame(tree, b->node)->label)
               ?: ORDER(a->node, b->node);
}

int flame_arrange(struct flame *f)
{
    const struct call_tree *tree = f->tree;
    struct flame_node *nodes = f->nodes;
    struct sorted_node *sorted = calloc(tree->count + 1u, sizeof *sorted);
    uint32_t count = 0;
    if (!sorted)
        return GPUPROF_NO_MEMORY;
    for (uint32_t n = tree->count; n > 0; n--) { /* parents have smaller numbers */
        struct flame_node *node = &nodes[n], *parent = &nodes[call_tree_node(tree, n)->parent];
        for (unsigned side = 0; side < FLAME_SIDES; side++) {
            node->total[side] += node->own[side];
            parent->total[side] += node->total[side];
        }
        node->width += node->own[node->own[FLAME_NOW] > node->own[FLAME_BEFORE]];
        parent->width += node->width;
        if (node->width)
            sorted[count++] = (struct sorted_node){call_tree_node(tree, n)->parent, n};
    }
    if (count)
        qsort_r(sorted, count, sizeof *sorted, compare_nodes, (void *)tree);
    for (uint32_t i = 0; i < count; i++) { /* parents come first */
        const struct sorted_node *s = &sorted[i];
        bool is_first = !i || s[-1].parent != s->parent;
        nodes[s->node].left =
            is_first ? nodes[s->parent].left : nodes[s[-1].node].left + nodes[s[-1].node].width;
    }
    for (uint32_t i = count; i > 0; i--) {
        const struct sorted_node *s = &sorted[i - 1];
        nodes[s->node].sibling = nodes[s->parent].first_child;
        nodes[s->parent].first_child = s->node;
    }
    free(sorted);
    return 0;
}

uint32_t flame_next(const struct flame *f, uint32_t from)
{
    if (f->nodes[from].first_child)
        return f->nodes[from].first_child;
    while (from && !f->nodes[from].sibling)
        from = call_tree_node(f->tree, from)->parent;
    return from ? f->nodes[from].sibling : 0;
}

static void make_note(struct flame *f, const struct stack_cost *without)
{
    const struct weight_info *info = &flame_weights[f->weight];
    char value[UNIT_TEXT_BYTES];
    f->stackless = flame_value(f->weight, without);
    if (!f->stackless)
        snprintf(f->note, FLAME_TEXT_BYTES, "everything has a stack");
    else
        snprintf(f->note, FLAME_TEXT_BYTES,
                 "[no stack]: %s of the %s: " NO_STACK_REASON "; to record stacks: %s",
                 flame_value_text(f->weight, value, f->stackless), info->text, info->command);
}

static void make_title(struct flame *f, const struct recording *rec)
{
    char program[256] = "nothing", count[UNIT_TEXT_BYTES], value[UNIT_TEXT_BYTES];
    char processes[64] = "";
    if (rec->count)
        process_program(rec->processes[0], program, sizeof program);
    if (rec->count > 1)
        snprintf(processes, sizeof processes, " (%s processes)", count_text(count, rec->count));
    snprintf(f->title, sizeof f->title, "%s%s: %s: %s", program, processes,
             flame_weights[f->weight].text,
             flame_value_text(f->weight, value, f->nodes[0].total[FLAME_NOW]));
}

int flame_make(struct flame *f, struct stack_costs *costs, enum flame_weight weight,
               const char *symbol_folder)
{
    int error = stack_costs_finish(costs, symbol_folder);
    if (error == 0)
        error = stack_costs_show_stackless(costs);
    if (error < 0)
        return error;
    const struct stack_cost without = stack_costs_without(costs);
    *f = (struct flame){.costs = costs, .tree = &costs->tree, .weight = weight};
    f->nodes = calloc(costs->tree.count + 1u, sizeof *f->nodes);
    for (uint32_t n = costs->tree.count; f->nodes && n > 0; n--) {
        struct stack_cost cost = stack_cost_of(costs, n);
        f->nodes[n].own[FLAME_NOW] = flame_value(weight, &cost);
    }
    error = f->nodes ? flame_arrange(f) : GPUPROF_NO_MEMORY;
    if (error == 0) {
        make_title(f, costs->rec);
        make_note(f, &without);
    }
    return error;
}

/* ---- what is missing ------------------------------------------------------------------------- */

static void say_missing_reasons(const struct recording *rec, const char *key, const char *what)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    unsigned count = missing_reasons_find(rec, key, found);
    for (unsigned i = 0; i < count; i++) {
        char *text = missing_reason_text(&found[i], rec, what);
        message("flame: %s", text ? text : "?");
        free(text);
    }
}

void flame_say(const struct flame *f, const char *command)
{
    const struct recording *rec = f->costs->rec;
    const struct weight_info *info = &flame_weights[f->weight];
    uint64_t total = f->nodes[0].total[FLAME_NOW];
    call_tree_say(f->tree);
    if (f->stackless)
        message("flame: %s", f->note);
    say_missing_reasons(rec, "stacks", "stacks");
    say_missing_reasons(rec, "python", "Python frames");
    if (total > f->stackless)
        return;
    const char *what = total ? "the whole graph is [no stack]" : "nothing to show";
    if (!total && f->weight < WEIGHT_CPU) { /* other commands would not help */
        message("flame: %s: no event has %s", what, info->text);
        return;
    }
    struct next_words words;
    next_words_init(&words, command, NULL, 0);
    recorded_program(rec, &words);
    char *next = next_line(&words, info->command);
    message("flame: %s: no event has a stack with %s; to record it: %s", what, info->text,
            next ? next : info->command);
    free(next);
    next_words_release(&words);
}

/* ---- folded stacks --------------------------------------------------------------------------- */

/* Writes a label; a semicolon in it becomes a colon, since semicolons separate labels. */
static void put_label(struct output *out, const char *label)
{
    char *to = output_room(out, SHOWN_LABEL_BYTES);
    for (; *label; label++)
        *to++ = *label == ';' ? ':' : *label;
    output_advance(out, to);
}

/* The input of flame graph tools: "outermost;...;innermost NUMBER" per line; of a comparison,
 * numbers before and now. */
int flame_write_folded(const struct flame *f, struct output *out)
{
    uint32_t *path = calloc(f->tree->count + 1u, sizeof *path);
    if (!path)
        return GPUPROF_NO_MEMORY;
    for (uint32_t n = flame_next(f, 0); n && !out->error; n = flame_next(f, n)) {
        const uint64_t *own = f->nodes[n].own;
        uint32_t count = 0;
        if (!own[FLAME_BEFORE] && !own[FLAME_NOW])
            continue;
        for (uint32_t at = n; at; at = call_tree_node(f->tree, at)->parent)
            path[count++] = at;
        for (; count; count--) {
            put_label(out, call_tree_frame(f->tree, path[count - 1])->label);
            output_write(out, ";", count > 1);
        }
        if (f->compares)
            output_print(out, " %llu", (unsigned long long)own[FLAME_BEFORE]);
        output_print(out, " %llu\n", (unsigned long long)own[FLAME_NOW]);
    }
    free(path);
    return 0;
}
