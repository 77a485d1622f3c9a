/* SPDX-License-Identifier: Apache-2.0 */
#include "flame/flame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/message.h"
#include "base/next_words.h"
#include "base/unit_text.h"
#include "error.h"
#include "read/process_title.h"
#include "read/recording.h"
#include "resolve/missing_reason.h"

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

bool flame_lacks(enum flame_weight weight, const struct stack_cost *without)
{
    return weight == WEIGHT_GPU   ? without->works
           : weight >= WEIGHT_CPU ? flame_value(weight, without)
                                  : without->calls;
}

void flame_wants(struct flame *f, enum flame_weight weight)
{
    f->weight = weight;
    f->costs.split_work = weight == WEIGHT_GPU;
    f->costs.has_samples = weight == WEIGHT_CPU || weight == WEIGHT_WALL;
    f->costs.has_waits = weight == WEIGHT_OFF_CPU || weight == WEIGHT_WALL;
}

const char *flame_value_text(enum flame_weight weight, char *text, uint64_t value)
{
    return weight == WEIGHT_CALLS   ? count_text(text, value)
           : weight == WEIGHT_BYTES ? bytes_text(text, value)
                                    : time_text(text, value);
}

const char *flame_weight_text(enum flame_weight weight)
{
    static const char *const texts[] = {
        [WEIGHT_HOST] = "time of calls on the host",
        [WEIGHT_GPU] = "time of launched work on the GPU",
        [WEIGHT_CALLS] = "calls",
        [WEIGHT_BYTES] = "bytes allocated",
        [WEIGHT_CPU] = "CPU time of samples",
        [WEIGHT_OFF_CPU] = "time off the CPU",
        [WEIGHT_WALL] = "time on and off the CPU",
    };
    return texts[weight];
}

char *flame_note(const struct flame *f, const struct stack_cost *without, char *text)
{
    char count[UNIT_TEXT_BYTES], host[UNIT_TEXT_BYTES], value[UNIT_TEXT_BYTES];
    char reason[NO_STACK_BYTES];
    bool bytes = f->weight == WEIGHT_BYTES;
    if (!flame_lacks(f->weight, without))
        snprintf(text, FLAME_NOTE_BYTES, "every %s has a stack",
                 f->weight < WEIGHT_CPU ? "call" : "sample and wait");
    else if (f->weight >= WEIGHT_CPU)
        snprintf(text, FLAME_NOTE_BYTES, "[no stack]: %s of the %s%s",
                 time_text(value, flame_value(f->weight, without)), flame_weight_text(f->weight),
                 f->weight == WEIGHT_CPU ? ""
                                         : "; gpuprof run --os-backtrace=0 records a stack for "
                                           "each wait");
    else if (f->weight == WEIGHT_GPU)
        snprintf(
            text, FLAME_NOTE_BYTES,
            "[no stack]: %s of work on the GPU (%s kernel%s, copies included) whose calls have no "
            "stack; gpuprof run --backtrace=launch,copy,graph_launch records them",
            flame_value_text(f->weight, value, without->gpu_ns), count_text(count, without->works),
            without->works == 1 ? "" : "s");
    else
        snprintf(text, FLAME_NOTE_BYTES, "[no stack]: %s call%s without a stack (%s%s%s): %s%s",
                 count_text(count, without->calls), without->calls == 1 ? "" : "s",
                 time_text(host, without->host_ns), bytes ? ", " : "",
                 bytes ? bytes_text(value, without->bytes) : "",
                 stack_costs_reason(without, reason),
                 bytes ? "; gpuprof run --backtrace=alloc records one for each allocation" : "");
    return text;
}

char *flame_title(const struct flame *f, char *text)
{
    const struct recording *rec = f->costs.rec;
    char program[256] = "nothing", count[UNIT_TEXT_BYTES], value[UNIT_TEXT_BYTES];
    char processes[64] = "";
    if (rec->count)
        process_program(rec->processes[0], program, sizeof program);
    if (rec->count > 1)
        snprintf(processes, sizeof processes, " (%s processes)", count_text(count, rec->count));
    snprintf(text, FLAME_TITLE_BYTES, "%s%s: %s: %s", program, processes,
             flame_weight_text(f->weight), flame_value_text(f->weight, value, f->nodes[0].total));
    return text;
}

uint32_t flame_next(const struct call_tree *tree, const struct flame_node *nodes, uint32_t from)
{
    if (nodes[from].first_child)
        return nodes[from].first_child;
    while (from && !nodes[from].sibling)
        from = call_tree_node(tree, from)->parent;
    return from ? nodes[from].sibling : 0;
}

int flame_arrange(const struct call_tree *tree, struct flame_node *nodes)
{
    struct sorted_node *sorted = calloc(tree->count + 1u, sizeof *sorted);
    uint32_t count = 0;
    if (!sorted)
        return GPUPROF_NO_MEMORY;
    for (uint32_t n = tree->count; n > 0; n--) { /* parents have smaller numbers */
        uint32_t parent = call_tree_node(tree, n)->parent;
        nodes[n].total += nodes[n].own;
        nodes[parent].total += nodes[n].total;
        if (nodes[n].total)
            sorted[count++] = (struct sorted_node){.parent = parent, .node = n};
    }
    if (count)
        qsort_r(sorted, count, sizeof *sorted, compare_nodes, (void *)tree);
    for (uint32_t i = count; i > 0; i--) {
        const struct sorted_node *s = &sorted[i - 1];
        nodes[s->node].sibling = nodes[s->parent].first_child;
        nodes[s->parent].first_child = s->node;
    }
    free(sorted);
    return 0;
}

int flame_weigh(struct flame *f, enum flame_weight weight)
{
    const struct call_tree *tree = &f->costs.tree;
    f->weight = weight;
    f->nodes = calloc(tree->count + 1u, sizeof *f->nodes);
    for (uint32_t n = tree->count; f->nodes && n > 0; n--) {
        struct stack_cost cost = stack_cost_of(&f->costs, n);
        f->nodes[n].own = flame_value(f->weight, &cost);
    }
    return f->nodes ? flame_arrange(tree, f->nodes) : GPUPROF_NO_MEMORY;
}

int flame_finish(struct flame *f, const char *symbol_folder)
{
    int error = stack_costs_finish(&f->costs, symbol_folder);
    if (error == 0)
        error = stack_costs_show_stackless(&f->costs);
    return error < 0 ? error : flame_weigh(f, f->weight);
}

int flame_gather(struct flame *f, const char *symbol_folder)
{
    struct consumer consumer = stack_costs_consumer(&f->costs);
    int error = walk_run(f->costs.walk, NULL, &consumer, 1);
    if (error < 0)
        return error;
    error = flame_finish(f, symbol_folder);
    say_error("flame", error);
    return error;
}

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

/* Prints `what`, and the command that would record what is missing. */
static void say_command(const struct flame *f, const struct recording *rec, const char *command,
                        const char *what)
{
    static const char calls[] =
        "gpuprof run --backtrace=launch,alloc,copy,sync,graph_launch PROGRAM";
    static const char *const wanted[] = {
        [WEIGHT_HOST] = calls,
        [WEIGHT_GPU] = "gpuprof run --backtrace=launch,copy,graph_launch PROGRAM",
        [WEIGHT_CALLS] = calls,
        [WEIGHT_BYTES] = "gpuprof run --backtrace=alloc PROGRAM",
        [WEIGHT_CPU] = "gpuprof run --sample PROGRAM",
        [WEIGHT_OFF_CPU] = "gpuprof run --os --os-backtrace=0 PROGRAM",
        [WEIGHT_WALL] = "gpuprof run --sample --os --os-backtrace=0 PROGRAM",
    };
    struct next_words words;
    next_words_init(&words, command, NULL, 0);
    recorded_program(rec, &words);
    char *next = next_line(&words, wanted[f->weight]);
    message("flame: %s %s; to record %s: %s", what, flame_weight_text(f->weight),
            f->weight < WEIGHT_CPU ? "them" : "it", next ? next : wanted[f->weight]);
    free(next);
    next_words_release(&words);
}

void flame_say(const struct flame *f, const struct recording *rec, const char *command)
{
    char note[FLAME_NOTE_BYTES];
    struct stack_cost without = stack_costs_without(&f->costs);
    call_tree_say(&f->costs.tree);
    if (flame_lacks(f->weight, &without))
        message("flame: %s", flame_note(f, &without, note));
    say_missing_reasons(rec, "stacks", "stacks");
    say_missing_reasons(rec, "python", "Python frames");
    uint64_t stackless = flame_value(f->weight, &without);
    if (f->nodes[0].total == stackless && stackless)
        say_command(f, rec, command,
                    f->weight < WEIGHT_CPU
                        ? "the whole graph is [no stack]: no call has a stack with"
                        : "the whole graph is [no stack]: no stack has");
    else if (!f->nodes[0].total && f->weight >= WEIGHT_CPU)
        say_command(f, rec, command, "nothing to show: no event has");
    else if (!f->nodes[0].total)
        message("flame: nothing to show: no event has %s", flame_weight_text(f->weight));
}

/* ---- folded stacks --------------------------------------------------------------------------- */

/* Folded stacks, the input of flame graph tools: "outermost;...;innermost NUMBER" per line. A
 * semicolon in a name becomes a colon, since it separates names. */
static void put_label(struct output *out, const char *label)
{
    char *to = output_room(out, SHOWN_LABEL_BYTES);
    for (; *label; label++)
        *to++ = *label == ';' ? ':' : *label;
    output_advance(out, to);
}

void flame_put_stack(const struct call_tree *tree, uint32_t node, uint32_t *path,
                     const uint64_t *numbers, unsigned number_count, struct output *out)
{
    uint32_t count = 0;
    for (uint32_t n = node; n; n = call_tree_node(tree, n)->parent)
        path[count++] = n;
    for (uint32_t i = count; i > 0; i--) {
        put_label(out, call_tree_frame(tree, path[i - 1])->label);
        if (i > 1)
            output_write(out, ";", 1);
    }
    for (unsigned i = 0; i < number_count; i++)
        output_print(out, " %llu", (unsigned long long)numbers[i]);
    output_write(out, "\n", 1);
}

int flame_write_folded(const struct flame *f, struct output *out)
{
    const struct call_tree *tree = &f->costs.tree;
    uint32_t *path = calloc(tree->count + 1u, sizeof *path);
    if (!path)
        return GPUPROF_NO_MEMORY;
    for (uint32_t n = flame_next(tree, f->nodes, 0); n && !out->error;
         n = flame_next(tree, f->nodes, n))
        if (f->nodes[n].own)
            flame_put_stack(tree, n, path, &f->nodes[n].own, 1, out);
    free(path);
    return 0;
}
