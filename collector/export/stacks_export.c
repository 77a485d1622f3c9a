/* SPDX-License-Identifier: Apache-2.0 */
#include "export/stacks_export.h"

#include <stdlib.h>

#include "base/message.h"
#include "export/export_writer.h"

struct export_writer {
    struct output *out;
    const struct export_scope *scope;
    struct flame flame;
    struct consumer costs;
    struct stacks_span span;
    int (*write)(const struct export_writer *w);
};

static struct export_writer *create(struct output *out, struct walk *walk,
                                    const struct export_scope *scope,
                                    int (*write)(const struct export_writer *w))
{
    struct export_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct export_writer){.out = out,
                                .scope = scope,
                                .span = {.begin_ns = UINT64_MAX},
                                .flame = {.weight = scope->options->weight},
                                .write = write};
    if (stack_costs_init(&w->flame.costs, walk) < 0) {
        stack_costs_release(&w->flame.costs);
        free(w);
        return NULL;
    }
    w->flame.costs.split_processes = true;
    w->costs = stack_costs_consumer(&w->flame.costs);
    return w;
}

/* After a survey all calls are known: what else is told at the end is told at once. */
static int stacks_take(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    if (s->change != RANGE_LEFT) {
        w->span.begin_ns = e->begin_ns < w->span.begin_ns ? e->begin_ns : w->span.begin_ns;
        w->span.end_ns = e->end_ns > w->span.end_ns ? e->end_ns : w->span.end_ns;
    }
    int error = w->costs.take(w->costs.context, s);
    return error < 0 || s->change == RANGE_LEFT ? error : w->costs.tied(w->costs.context, s);
}

static int stacks_end(struct export_writer *w)
{
    int error = flame_finish(&w->flame, w->scope->options->symbols);
    if (error < 0)
        return error;
    char note[FLAME_NOTE_BYTES];
    struct stack_cost without = stack_costs_without(&w->flame.costs);
    call_tree_say(&w->flame.costs.tree);
    if (w->flame.weight == WEIGHT_GPU ? without.works : without.calls)
        message("export: %s", flame_note(&w->flame, &without, note));
    return w->write(w);
}

static void stacks_free(struct export_writer *w)
{
    stack_costs_release(&w->flame.costs);
    free(w->flame.nodes);
    free(w);
}

/* ---- the formats ----------------------------------------------------------------------------- */

static int write_pprof(const struct export_writer *w)
{
    return pprof_write(&w->flame.costs, &w->span, w->out);
}

static int write_folded(const struct export_writer *w)
{
    return flame_write_folded(&w->flame, w->out);
}

static int write_speedscope(const struct export_writer *w)
{
    return flame_write_speedscope(&w->flame, w->out);
}

static struct export_writer *create_pprof(struct output *out, struct walk *walk,
                                          const struct export_scope *scope)
{
    struct export_writer *w = create(out, walk, scope, write_pprof);
    if (w)
        w->flame.costs.split_threads = w->flame.costs.split_work = true;
    return w;
}

static struct export_writer *create_graph(struct output *out, struct walk *walk,
                                          const struct export_scope *scope,
                                          int (*write)(const struct export_writer *w))
{
    struct export_writer *w = create(out, walk, scope, write);
    if (w)
        w->flame.costs.split_work = scope->options->weight == WEIGHT_GPU;
    return w;
}

static struct export_writer *create_folded(struct output *out, struct walk *walk,
                                           const struct export_scope *scope)
{
    return create_graph(out, walk, scope, write_folded);
}

static struct export_writer *create_speedscope(struct output *out, struct walk *walk,
                                               const struct export_scope *scope)
{
    return create_graph(out, walk, scope, write_speedscope);
}

#define STACKS_FORMAT(format, its_ending, its_help)                                                \
    const struct export_format format##_export = {                                                 \
        .file = {#format, its_ending},                                                             \
        .help = its_help,                                                                          \
        .needs = WALK_RANGES | WALK_WORK | WALK_LOSSES,                                            \
        .create = create_##format,                                                                 \
        .take = stacks_take,                                                                       \
        .end = stacks_end,                                                                         \
        .free = stacks_free,                                                                       \
    }

STACKS_FORMAT(pprof, "pb", "calls, times and bytes by stack, for go tool pprof");
STACKS_FORMAT(folded, "folded", "stacks as lines, for tools of flame graphs");
STACKS_FORMAT(speedscope, "json", "stacks, for speedscope");
