/* SPDX-License-Identifier: Apache-2.0 */
#include "flame/flame.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/next_words.h"
#include "base/text.h"
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

static uint32_t parent_of(const struct call_tree *tree, uint32_t node)
{
    return call_tree_node(tree, node)->parent;
}

static int compare_siblings(const void *left, const void *right, void *tree)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return ORDER(parent_of(tree, a), parent_of(tree, b))
               ?: strcmp(call_tree_frame(tree, a)->label, call_tree_frame(tree, b)->label)
               ?: ORDER(a, b);
}

static int compare_left(const void *left, const void *right, void *nodes)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct flame_node *list = nodes;
    return ORDER(list[a].left, list[b].left) ?: ORDER(a, b);
}

void flame_arrange(struct flame *f)
{
    const struct call_tree *tree = f->tree;
    struct flame_node *nodes = f->nodes;
    f->order = memory_new(tree->count + 1u, sizeof *f->order);
    for (uint32_t n = tree->count; n > 0; n--) { /* parents have smaller numbers */
        struct flame_node *node = &nodes[n], *parent = &nodes[parent_of(tree, n)];
        for (unsigned side = 0; side < FLAME_SIDES; side++) {
            node->total[side] += node->own[side];
            parent->total[side] += node->total[side];
        }
        node->width += node->own[node->own[FLAME_NOW] > node->own[FLAME_BEFORE]];
        parent->width += node->width;
        if (node->width)
            f->order[f->count++] = n;
    }
    qsort_r(f->order, f->count, sizeof *f->order, compare_siblings, (void *)tree);
    for (uint32_t i = 0; i < f->count; i++) { /* parents come first */
        uint32_t parent = parent_of(tree, f->order[i]);
        const struct flame_node *before = i ? &nodes[f->order[i - 1]] : NULL;
        bool is_first = !i || parent_of(tree, f->order[i - 1]) != parent;
        nodes[f->order[i]].left = is_first ? nodes[parent].left : before->left + before->width;
    }
    qsort_r(f->order, f->count, sizeof *f->order, compare_left, nodes);
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
                 "[no stack]: %s of the %s (%.1f%%): " NO_STACK_REASON "; to record stacks: %s",
                 flame_value_text(f->weight, value, f->stackless), info->text,
                 100 * (double)f->stackless / (double)f->nodes[0].total[FLAME_NOW], info->command);
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

void flame_make(struct flame *f, struct stack_costs *costs, enum flame_weight weight,
                const char *symbol_folder)
{
    stack_costs_finish(costs, symbol_folder);
    stack_costs_show_stackless(costs);
    const struct stack_cost without = stack_costs_without(costs);
    *f = (struct flame){.costs = costs, .tree = &costs->tree, .weight = weight};
    f->nodes = memory_new(costs->tree.count + 1u, sizeof *f->nodes);
    for (uint32_t n = costs->tree.count; n > 0; n--) {
        struct stack_cost cost = stack_cost_of(costs, n);
        f->nodes[n].own[FLAME_NOW] = flame_value(weight, &cost);
    }
    flame_arrange(f);
    make_title(f, costs->rec);
    make_note(f, &without);
}

/* ---- what is missing ------------------------------------------------------------------------- */

static void say_missing_reasons(const struct recording *rec, const char *key, const char *what)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    unsigned count = missing_reasons_find(rec, key, found);
    for (unsigned i = 0; i < count; i++) {
        char *text = missing_reason_text(&found[i], rec, what);
        message("%s", text);
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
        message("%s", f->note);
    say_missing_reasons(rec, "stacks", "stacks");
    say_missing_reasons(rec, "python", "Python frames");
    if (total > f->stackless)
        return;
    const char *what = total ? "the whole graph is [no stack]" : "nothing to show";
    if (!total && f->weight < WEIGHT_CPU) { /* other commands would not help */
        message("%s: no event has %s", what, info->text);
        return;
    }
    struct next_words words;
    next_words_init(&words, command, NULL, 0);
    recorded_program(rec, &words);
    char *next = next_line(&words, info->command);
    message("%s: no event has a stack with %s; to record it: %s", what, info->text, next);
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
void flame_write_folded(const struct flame *f, struct output *out)
{
    uint32_t *path = memory_new(f->tree->count + 1u, sizeof *path);
    for (uint32_t i = 0; i < f->count && !out->error; i++) {
        const uint64_t *own = f->nodes[f->order[i]].own;
        uint32_t count = 0;
        if (!own[FLAME_BEFORE] && !own[FLAME_NOW])
            continue;
        for (uint32_t at = f->order[i]; at; at = parent_of(f->tree, at))
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
}

/* ---- speedscope ------------------------------------------------------------------------------ */

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

static void put_frames(const struct flame *f, FILE *out)
{
    for (uint32_t i = 1; i <= f->tree->frames.count; i++) {
        const struct shown_frame *frame = shown_frame_of(&f->tree->frames, i);
        json_printf(out, i > 1 ? ",\n{\"name\":%s" : "\n{\"name\":%s", frame->label);
        if (frame->file)
            json_printf(out, ",\"file\":%s", frame->file->shown);
        if (frame->file && frame->name && frame->line)
            fprintf(out, ",\"line\":%" PRIu64, frame->line);
        fputs("}", out);
    }
}

static void put_stack(const struct flame *f, FILE *out, uint32_t root, uint32_t node, uint32_t *way)
{
    uint32_t count = 0;
    for (uint32_t at = node; at != root; at = parent_of(f->tree, at))
        way[count++] = call_tree_node(f->tree, at)->frame;
    for (; count; count--)
        fprintf(out, count > 1 ? "%u," : "%u", way[count - 1] - 1);
}

/* Writes the profile of a root and the nodes below it, some of which have a number of their own. */
static void put_profile(const struct flame *f, FILE *out, const uint32_t *nodes, uint32_t count,
                        uint32_t *way)
{
    const char *between = "\n[";
    json_printf(
        out,
        "{\"type\":\"sampled\",\"name\":%s,\"unit\":%s,\"startValue\":0,\"endValue\":%" PRIu64
        ",\"samples\":[",
        call_tree_frame(f->tree, *nodes)->label, flame_weights[f->weight].unit,
        f->nodes[*nodes].total[FLAME_NOW]);
    for (uint32_t i = 0; i < count; i++) {
        if (!f->nodes[nodes[i]].own[FLAME_NOW])
            continue;
        fputs(between, out);
        put_stack(f, out, *nodes, nodes[i], way);
        between = "],\n[";
    }
    fputs("]],\"weights\":", out);
    between = "[";
    for (uint32_t i = 0; i < count; i++) {
        if (!f->nodes[nodes[i]].own[FLAME_NOW])
            continue;
        fprintf(out, "%s%" PRIu64, between, f->nodes[nodes[i]].own[FLAME_NOW]);
        between = ",";
    }
    fputs("]}", out);
}

/* A sampled profile per process, with a sample per stack weighted by its number. */
void flame_write_speedscope(const struct flame *f, struct output *output)
{
    FILE *out = output->stream;
    char text[2 * FLAME_TEXT_BYTES];
    uint32_t *way = memory_new(f->tree->count + 1u, sizeof *way);
    snprintf(text, sizeof text, "%s (%s)", flame_weights[f->weight].text, f->note);
    json_printf(out,
                "{\"$schema\":\"" SCHEMA "\",\n\"exporter\":\"gpuprof@" GPUPROF_RELEASE
                "\",\n\"name\":%s,\n\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[",
                text);
    put_frames(f, out);
    fputs("]},\n\"profiles\":[", out);
    for (uint32_t i = 0, end; i < f->count; i = end) {
        for (end = i + 1; end < f->count && parent_of(f->tree, f->order[end]);)
            end++;
        fputs(i ? ",\n" : "\n", out);
        put_profile(f, out, f->order + i, end - i, way);
    }
    fputs("]}\n", out);
    free(way);
}
