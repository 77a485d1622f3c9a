/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as one self-contained SVG file: callers below, callees above, as wide as their
 * share. Without its script it is complete and WIDTH wide; with it, the graph fills the window, a
 * click zooms, and names can be searched (flame_script.c). Colours depend only on the names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/key_map.h"
#include "base/unit_text.h"
#include "error.h"
#include "flame/flame.h"

#define WIDTH        1200
#define MARGIN       10
#define ROW          17
#define HEAD         64 /* px at the top */
#define FOOT         12
#define CHARACTER    7   /* px, for 12 px monospaced text */
#define NARROWEST    0.1 /* px; narrower frames are left out */
#define GREY         0xb4b4b4
#define ROOT         0xd0d0d0
#define ESCAPED_MAX  (XML_ESCAPE_BYTES_MAX * SHOWN_LABEL_BYTES)
#define ELEMENT_ROOM (4 * ESCAPED_MAX)
_Static_assert(ELEMENT_ROOM < OUTPUT_BUFFER_BYTES, "an element fits into the buffer");

struct drawing {
    const struct flame_picture *picture;
    const struct call_tree *tree; /* from the picture, like the next */
    const struct flame_node *nodes;
    struct output *out;
    double *left;    /* owned, by node: its begin, 0 to 1 */
    double *filled;  /* owned, by node: begin of its next child */
    uint32_t *depth; /* owned, by node */
    uint32_t rows;
    unsigned head; /* px above the graph */
    uint64_t total;
    uint32_t narrow; /* nodes too narrow to draw */
};

static void put_escaped(struct output *out, const char *text, size_t length)
{
    output_advance(out, xml_escape(output_room(out, ELEMENT_ROOM), text, length));
}

static void put_text_element(struct output *out, unsigned x, unsigned y, const char *id,
                             const char *text)
{
    output_print(out, "<text x=\"%u\" y=\"%u\" id=\"%s\">", x, y, id);
    put_escaped(out, text, strnlen(text, SHOWN_LABEL_BYTES));
    output_print(out, "</text>\n");
}

/* Each kind of frame has a range of colours; the name selects one. */
static unsigned colour_of(const struct shown_frame *frame)
{
    static const uint8_t families[][3] = {
        [SHOWN_NATIVE] = {215, 120, 50},    [SHOWN_INLINED] = {220, 150, 90},
        [SHOWN_PYTHON] = {215, 190, 50},    [SHOWN_ADDRESS] = {190, 140, 110},
        [SHOWN_BORROWED] = {170, 150, 190}, [SHOWN_CUT] = {170, 170, 170},
        [SHOWN_RANGE] = {170, 130, 190},    [SHOWN_CALL] = {100, 160, 215},
        [SHOWN_WORK] = {110, 185, 110},     [SHOWN_PROCESS] = {190, 190, 190},
        [SHOWN_THREAD] = {180, 185, 195},
    };
    if (frame->kind == SHOWN_STACKLESS)
        return GREY; /* unknown frames only */
    const char *name = frame->name ? frame->name->shown : frame->label;
    uint32_t hash = text_hash(name, strlen(name));
    const uint8_t *family = families[frame->kind];
    unsigned red = family[0] + (hash & 31);
    unsigned green = family[1] + (hash >> 5 & 31);
    unsigned blue = family[2] + (hash >> 10 & 31);
    return red << 16 | green << 8 | blue;
}

/* Returns the bytes of the leading characters of a UTF-8 text that fit. */
static size_t fitting(const char *text, double width)
{
    size_t room = width > 6 ? (size_t)((width - 6) / CHARACTER) : 0;
    size_t bytes = 0;
    for (; room && text[bytes]; room--)
        do
            bytes++;
        while (((uint8_t)text[bytes] & 0xc0) == 0x80);
    return bytes;
}

/* "12.000 us, 3.40 %". */
static void flame_svg_describe(const struct drawing *d, uint64_t total, char *text)
{
    char value[UNIT_TEXT_BYTES];
    double share = d->total ? (double)total / (double)d->total : 0;
    snprintf(text, FLAME_DESCRIBE_BYTES, "%s, %.2f %%",
             flame_value_text(d->picture->weight, value, total), 100 * share);
}

static void put_frame(struct drawing *d, double left, double width, uint32_t depth,
                      const char *label, unsigned colour, const char *description)
{
    double x = MARGIN + left * (WIDTH - 2 * MARGIN);
    unsigned y = d->head + (d->rows - 1 - depth) * ROW;
    output_print(d->out, "<g class=\"f\" data-x=\"%.7f\" data-w=\"%.7f\" data-d=\"%u\"><title>",
                 left, width / (WIDTH - 2 * MARGIN), depth);
    size_t length = strlen(label);
    put_escaped(d->out, label, length);
    output_print(d->out, ": %s</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" ",
                 description, x, y, width, ROW - 1);
    output_print(d->out, "fill=\"#%06x\"/><text x=\"%.2f\" y=\"%u\">", colour, x + 3, y + 12);
    size_t shown = fitting(label, width);
    if (shown < length)
        shown = fitting(label, width - 2 * CHARACTER);
    put_escaped(d->out, label, shown);
    output_print(d->out, "%s</text></g>\n", shown && shown < length ? ".." : "");
}

static double width_of(const struct drawing *d, uint64_t total)
{
    return (double)total / (double)d->total * (WIDTH - 2 * MARGIN);
}

/* Computes the position of each node and the number of rows. */
static void flame_svg_place(struct drawing *d)
{
    d->rows = 1;
    for (uint32_t n = flame_next(d->tree, d->nodes, 0); n; n = flame_next(d->tree, d->nodes, n)) {
        uint32_t parent = call_tree_node(d->tree, n)->parent;
        d->depth[n] = d->depth[parent] + 1;
        bool narrow = width_of(d, d->nodes[n].total) < NARROWEST;
        d->narrow += narrow;
        if (!narrow && d->depth[n] >= d->rows)
            d->rows = d->depth[n] + 1;
        d->left[n] = d->filled[n] = d->filled[parent];
        d->filled[parent] += (double)d->nodes[n].total / (double)d->total;
    }
}

static void draw_node(struct drawing *d, uint32_t n, double width)
{
    const struct flame_picture *p = d->picture;
    const struct shown_frame *frame = n ? call_tree_frame(d->tree, n) : NULL;
    char text[FLAME_DESCRIBE_BYTES];
    uint64_t total = d->nodes[n].total;
    unsigned colour = p->colour ? p->colour(p->context, n) : frame ? colour_of(frame) : ROOT;
    if (p->describe)
        p->describe(p->context, n, text);
    else
        flame_svg_describe(d, total, text);
    put_frame(d, d->left[n], width, d->depth[n], frame ? frame->label : "all", colour, text);
}

static void flame_svg_put_head(struct drawing *d)
{
    char line[FLAME_TITLE_BYTES] = "", narrow[UNIT_TEXT_BYTES];
    unsigned height = d->head + d->rows * ROW + FOOT;
    output_print(
        d->out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "width=\"100%%\" height=\"%u\" viewBox=\"0 0 %d %u\" "
        "preserveAspectRatio=\"xMinYMin\">\n<title>",
        height, WIDTH, height);
    put_escaped(d->out, d->picture->title, strlen(d->picture->title));
    output_print(d->out, "</title>\n");
    output_print(d->out,
                 "<style>text{font:12px monospace;fill:#111}#title{font-weight:bold}"
                 ".f rect{stroke:#fff;stroke-width:.5}.f:hover rect{stroke:#000}.f{cursor:pointer}"
                 ".f text{pointer-events:none}.around rect{opacity:.5}.away{display:none}"
                 ".found rect{fill:#e040d0}#search,#reset{cursor:pointer;text-decoration:underline}"
                 "#reset.off{display:none}@media print{#search,#reset{display:none}}%s</style>\n"
                 "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                 d->picture->style ? d->picture->style : "");
    put_text_element(d->out, MARGIN, 16, "title", d->picture->title);
    put_text_element(d->out, MARGIN, 32, "note", d->picture->note);
    if (d->narrow)
        snprintf(line, sizeof line, "%s frames narrower than %.1f px are left out",
                 count_text(narrow, d->narrow), NARROWEST);
    put_text_element(d->out, MARGIN, 48, "details", line);
    output_print(
        d->out,
        "<text x=\"%d\" y=\"16\" id=\"search\" text-anchor=\"end\">search</text>\n"
        "<text x=\"%d\" y=\"32\" id=\"reset\" class=\"off\" text-anchor=\"end\">zoom out</text>\n"
        "<text x=\"%d\" y=\"48\" id=\"found\" text-anchor=\"end\"></text>\n",
        WIDTH - MARGIN, WIDTH - MARGIN, WIDTH - MARGIN);
    if (d->picture->put_above)
        d->picture->put_above(d->picture->context, HEAD, d->out);
}

int flame_draw(const struct flame_picture *p, struct output *out)
{
    struct drawing d = {.picture = p,
                        .tree = p->tree,
                        .nodes = p->nodes,
                        .out = out,
                        .head = HEAD + p->above,
                        .total = p->nodes[0].total};
    d.left = calloc(p->tree->count + 1u, sizeof *d.left);
    d.depth = calloc(p->tree->count + 1u, sizeof *d.depth);
    d.filled = calloc(p->tree->count + 1u, sizeof *d.filled);
    int error = d.left && d.filled && d.depth ? 0 : GPUPROF_NO_MEMORY;
    if (error == 0) {
        flame_svg_place(&d);
        flame_svg_put_head(&d);
        draw_node(&d, 0, WIDTH - 2 * MARGIN);
        for (uint32_t n = flame_next(d.tree, d.nodes, 0); n; n = flame_next(d.tree, d.nodes, n))
            if (width_of(&d, d.nodes[n].total) >= NARROWEST)
                draw_node(&d, n, width_of(&d, d.nodes[n].total));
        output_print(out, "<script><![CDATA[\n");
        output_write(out, flame_script, strlen(flame_script));
        output_print(out, "]]></script>\n</svg>\n");
    }
    free(d.left);
    free(d.filled);
    free(d.depth);
    return error;
}

int flame_write_svg(const struct flame *f, struct output *out)
{
    char title[FLAME_TITLE_BYTES], note[FLAME_NOTE_BYTES];
    struct stack_cost without = stack_costs_without(&f->costs);
    const struct flame_picture picture = {.tree = &f->costs.tree,
                                          .nodes = f->nodes,
                                          .weight = f->weight,
                                          .title = flame_title(f, title),
                                          .note = flame_note(f, &without, note)};
    return flame_draw(&picture, out);
}
