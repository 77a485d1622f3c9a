/* SPDX-License-Identifier: Apache-2.0 */
#include "flame/flame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "error.h"

void flame_diff_init(struct flame_diff *d, enum flame_weight weight, bool is_shares)
{
    *d = (struct flame_diff){.graph = {.weight = weight, .compares = true}, .is_shares = is_shares};
    d->graph.tree = &d->tree;
    d->tree.nodes_max = TREE_NODES_MAX;
    d->names.plain = true;
}

void flame_diff_release(struct flame_diff *d)
{
    call_tree_release(&d->tree);
    kernel_names_release(&d->names);
    free(d->graph.nodes);
}

/* Returns the bytes of a frame's label that stay the same in another run, and sets what follows
 * them. Line numbers change with every edit, and module offsets with every build, so they do not
 * count. */
static int common_part(const struct shown_frame *frame, const char **behind)
{
    const char *label = frame->label, *end = label + strlen(label);
    bool is_place =
        frame->kind == SHOWN_NATIVE || frame->kind == SHOWN_INLINED || frame->kind == SHOWN_PYTHON;
    const char *line = is_place && frame->file && frame->line ? strrchr(label, ':') : NULL;
    const char *offset = is_place && !frame->file && !frame->name ? strrchr(label, '+') : NULL;
    *behind = "";
    if (line && line[1 + strspn(line + 1, "0123456789")] == ')' && end[-1] == ')')
        *behind = ")";
    else
        line = NULL;
    return (int)((line ? line : offset ? offset : end) - label);
}

static int child(struct flame_diff *d, uint32_t parent, const struct shown_frame *frame,
                 uint32_t *node)
{
    struct shown_frame named = {.kind = SHOWN_CALL};
    char text[SHOWN_LABEL_BYTES];
    const char *behind;
    int common = common_part(frame, &behind);
    if (frame->kind == SHOWN_ADDRESS)
        snprintf(text, sizeof text, "[unknown address]");
    else
        snprintf(text, sizeof text, "%.*s%s", common, frame->label, behind);
    int error = kernel_name_intern(&d->names, (const uint8_t *)text, strlen(text), &named.name);
    return error < 0 ? error : call_tree_child(&d->tree, parent, &named, node);
}

int flame_diff_add(struct flame_diff *d, enum flame_side side, const struct flame *f)
{
    const struct call_tree *tree = f->tree;
    uint32_t *known = calloc(tree->count + 1u, sizeof *known); /* the frame's node in the combined
                                                                * tree */
    int error = known ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t n = 1; error == 0 && n <= tree->count; n++) /* parents have smaller numbers */
        if (f->nodes[n].width)
            error = child(d, known[call_tree_node(tree, n)->parent], call_tree_frame(tree, n),
                          &known[n]);
    struct flame_node *nodes =
        array_reach(d->graph.nodes, &d->node_count, d->tree.count, sizeof *nodes);
    if (error == 0 && !nodes)
        error = GPUPROF_NO_MEMORY;
    d->graph.nodes = nodes ? nodes : d->graph.nodes;
    for (uint32_t n = 1; error == 0 && n <= tree->count; n++)
        if (known[n])
            nodes[known[n]].own[side] += f->nodes[n].own[FLAME_NOW];
    d->runs[side]++;
    free(known);
    return error;
}

/* Averages each node's own number over the runs of its side. */
static void scale(struct flame_diff *d, enum flame_side side, double factor)
{
    for (uint32_t n = 1; n <= d->tree.count; n++) {
        uint64_t *own = &d->graph.nodes[n].own[side];
        *own = (uint64_t)llround((double)*own * factor);
    }
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

int flame_diff_finish(struct flame_diff *d)
{
    struct flame *f = &d->graph;
    char now[UNIT_TEXT_BYTES], before[UNIT_TEXT_BYTES], change[FLAME_CHANGE_BYTES];
    double runs = d->runs[FLAME_NOW], earlier = d->runs[FLAME_BEFORE];
    uint64_t sums[FLAME_SIDES] = {0};
    for (uint32_t n = 1; n <= d->tree.count; n++)
        for (unsigned side = 0; side < FLAME_SIDES; side++)
            sums[side] += f->nodes[n].own[side];
    scale(d, FLAME_NOW, 1 / runs);
    scale(d, FLAME_BEFORE,
          d->is_shares && sums[FLAME_BEFORE]
              ? (double)sums[FLAME_NOW] / (double)sums[FLAME_BEFORE] / runs
              : 1 / earlier);
    int error = flame_arrange(f);
    snprintf(f->title, sizeof f->title, "%s%s: %s, %s before, %s", flame_weights[f->weight].text,
             d->is_shares ? ", as shares of all" : " of the average run",
             flame_value_text(f->weight, now, f->nodes[0].total[FLAME_NOW]),
             flame_value_text(f->weight, before, f->nodes[0].total[FLAME_BEFORE]),
             flame_change_text(change, f->nodes[0].total));
    return error;
}
