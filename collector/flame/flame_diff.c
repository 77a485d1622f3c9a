/* SPDX-License-Identifier: Apache-2.0 */
#include "flame/flame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/unit_text.h"
#include "error.h"

#define LEGEND 26 /* px */

void flame_diff_init(struct flame_diff *d, enum flame_weight weight, bool is_shares)
{
    *d = (struct flame_diff){.weight = weight, .is_shares = is_shares};
    d->tree.nodes_max = TREE_NODES_MAX;
    d->names.plain = true;
}

void flame_diff_release(struct flame_diff *d)
{
    call_tree_release(&d->tree);
    kernel_names_release(&d->names);
    free(d->own);
}

/* ---- runs ------------------------------------------------------------------------------------ */

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
    const struct call_tree *tree = &f->costs.tree;
    uint32_t *known = calloc(tree->count + 1u, sizeof *known); /* the frame's node in the combined
                                                                * tree */
    int error = known ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t n = 1; error == 0 && n <= tree->count; n++) /* parents have smaller numbers */
        if (f->nodes[n].total)
            error = child(d, known[call_tree_node(tree, n)->parent], call_tree_frame(tree, n),
                          &known[n]);
    if (error == 0 && d->tree.count) {
        void *own = array_reach(d->own, &d->own_count, d->tree.count - 1, sizeof *d->own);
        error = own ? 0 : GPUPROF_NO_MEMORY;
        d->own = own ? own : d->own;
    }
    for (uint32_t n = 1; error == 0 && n <= tree->count; n++)
        if (known[n])
            d->own[known[n] - 1][side] += f->nodes[n].own;
    d->runs[side]++;
    free(known);
    return error;
}

/* ---- both sides ------------------------------------------------------------------------------ */

/* A graph of both sides, indexed by node, [0] is the root. A node is as wide as its cost on the
 * side where it is higher, so that what is gone has a place, too. */
struct both {
    struct flame_diff *d;
    struct flame_node *nodes; /* owned, as is the next */
    uint64_t (*totals)[FLAME_SIDES];
};

static void both_release(struct both *b)
{
    free(b->nodes);
    free(b->totals);
}

static double scale_of(const struct flame_diff *d, const uint64_t sums[FLAME_SIDES],
                       enum flame_side side)
{
    double runs = d->runs[side] ? d->runs[side] : 1;
    if (!d->is_shares || side == FLAME_NOW || !sums[FLAME_BEFORE] || !d->runs[FLAME_NOW])
        return 1 / runs;
    return (double)sums[FLAME_NOW] / (double)sums[FLAME_BEFORE] / d->runs[FLAME_NOW];
}

/* Averages each node's own number over the runs, and computes totals. */
static int flame_diff_add_up(struct both *b)
{
    struct flame_diff *d = b->d;
    uint64_t sums[FLAME_SIDES] = {0};
    uint32_t count = d->tree.count;
    b->totals = calloc(count + 1u, sizeof *b->totals);
    if (!b->totals)
        return GPUPROF_NO_MEMORY;
    for (unsigned side = 0; side < FLAME_SIDES; side++) {
        for (uint32_t n = 0; n < count; n++)
            sums[side] += d->own[n][side];
    }
    for (unsigned side = 0; side < FLAME_SIDES; side++) {
        double scale = scale_of(d, sums, (enum flame_side)side);
        for (uint32_t n = count; n > 0; n--) {
            d->own[n - 1][side] = (uint64_t)llround((double)d->own[n - 1][side] * scale);
            b->totals[n][side] += d->own[n - 1][side];
            b->totals[call_tree_node(&d->tree, n)->parent][side] += b->totals[n][side];
        }
    }
    return 0;
}

static int arrange(struct both *b)
{
    struct flame_diff *d = b->d;
    b->nodes = calloc(d->tree.count + 1u, sizeof *b->nodes);
    if (!b->nodes)
        return GPUPROF_NO_MEMORY;
    for (uint32_t n = 1; n <= d->tree.count; n++) {
        const uint64_t *own = d->own[n - 1];
        b->nodes[n].own = own[FLAME_NOW] > own[FLAME_BEFORE] ? own[FLAME_NOW] : own[FLAME_BEFORE];
    }
    return flame_arrange(&d->tree, b->nodes);
}

/* ---- folded stacks --------------------------------------------------------------------------- */

int flame_diff_write_folded(struct flame_diff *d, struct output *out)
{
    struct both b = {.d = d};
    uint32_t *path = calloc(d->tree.count + 1u, sizeof *path);
    int error = path ? flame_diff_add_up(&b) : GPUPROF_NO_MEMORY;
    for (uint32_t n = 1; error == 0 && n <= d->tree.count && !out->error; n++)
        if (d->own[n - 1][FLAME_BEFORE] || d->own[n - 1][FLAME_NOW])
            flame_put_stack(&d->tree, n, path, d->own[n - 1], FLAME_SIDES, out);
    both_release(&b);
    free(path);
    return error;
}

/* ---- a picture ------------------------------------------------------------------------------- */

/* Returns 0 if equal, 1 if doubled or new, -1 if halved. The square root makes small changes
 * visible. */
static double change_of(const uint64_t totals[FLAME_SIDES])
{
    double now = (double)totals[FLAME_NOW], before = (double)totals[FLAME_BEFORE];
    double share = fabs(now - before) / (now < before ? now + 1e-9 : before + 1e-9);
    double size = sqrt(share < 1 ? share : 1);
    return now < before ? -size : size;
}

/* Returns red for more, blue for less, nearly white for equal. */
static unsigned colour_of(double change)
{
    static const double more[] = {238, 82, 72}, less[] = {88, 134, 240}, same[] = {246, 246, 242};
    unsigned colour = 0;
    for (unsigned i = 0; i < 3; i++) {
        double end = change > 0 ? more[i] : less[i];
        colour = colour << 8 | (unsigned)lround(same[i] + (end - same[i]) * fabs(change));
    }
    return colour;
}

static unsigned node_colour(const void *context, uint32_t n)
{
    const struct both *b = context;
    return colour_of(change_of(b->totals[n]));
}

static char *change_text(char *text, size_t bytes, const uint64_t totals[FLAME_SIDES])
{
    double now = (double)totals[FLAME_NOW], before = (double)totals[FLAME_BEFORE];
    if (!totals[FLAME_BEFORE])
        snprintf(text, bytes, "new");
    else if (!totals[FLAME_NOW])
        snprintf(text, bytes, "gone");
    else if (now >= 10 * before)
        snprintf(text, bytes, "x %.1f", now / before);
    else
        snprintf(text, bytes, "%+.1f %%", 100 * (now - before) / before);
    return text;
}

static void flame_diff_describe(const void *context, uint32_t n, char *text)
{
    const struct both *b = context;
    char now[UNIT_TEXT_BYTES], before[UNIT_TEXT_BYTES], change[32];
    flame_value_text(b->d->weight, now, b->totals[n][FLAME_NOW]);
    flame_value_text(b->d->weight, before, b->totals[n][FLAME_BEFORE]);
    double all = (double)b->totals[0][FLAME_NOW];
    snprintf(text, FLAME_DESCRIBE_BYTES, "%s, %.2f %%, %s before, %s", now,
             all > 0 ? 100 * (double)b->totals[n][FLAME_NOW] / all : 0, before,
             change_text(change, sizeof change, b->totals[n]));
}

/* Draws the scale of colours, from half to twice. */
static void put_legend(const void *context, unsigned y, struct output *out)
{
    static const struct {
        double change;
        const char *text;
    } fields[] = {{-1, "half or gone"}, {-.5, "-20 %"}, {-.22, "-5 %"},     {0, "the same"},
                  {.22, "+5 %"},        {.5, "+25 %"},  {1, "twice or new"}};
    (void)context;
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        unsigned x = 10 + i * 110;
        output_print(out,
                     "<rect x=\"%u\" y=\"%u\" width=\"110\" height=\"16\" fill=\"#%06x\" "
                     "stroke=\"#bbb\"/><text x=\"%u\" y=\"%u\" text-anchor=\"middle\">%s</text>\n",
                     x, y, colour_of(fields[i].change), x + 55, y + 12, fields[i].text);
    }
}

int flame_diff_write_svg(struct flame_diff *d, const char *names, struct output *out)
{
    struct both b = {.d = d};
    char title[FLAME_TITLE_BYTES], now[UNIT_TEXT_BYTES], before[UNIT_TEXT_BYTES], change[32];
    int error = flame_diff_add_up(&b);
    if (error == 0)
        error = arrange(&b);
    if (error == 0) {
        snprintf(title, sizeof title, "%s%s: %s, %s before, %s", flame_weight_text(d->weight),
                 d->is_shares ? ", as shares of all" : " of the average run",
                 flame_value_text(d->weight, now, b.totals[0][FLAME_NOW]),
                 flame_value_text(d->weight, before, b.totals[0][FLAME_BEFORE]),
                 change_text(change, sizeof change, b.totals[0]));
        const struct flame_picture picture = {.tree = &d->tree,
                                              .nodes = b.nodes,
                                              .weight = d->weight,
                                              .title = title,
                                              .note = names,
                                              .style = ".f rect{stroke:#bbb}",
                                              .above = LEGEND,
                                              .put_above = put_legend,
                                              .colour = node_colour,
                                              .describe = flame_diff_describe,
                                              .context = &b};
        error = flame_draw(&picture, out);
    }
    both_release(&b);
    return error;
}
