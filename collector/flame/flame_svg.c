/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as one self-contained SVG file: callers below, callees above, as wide as their
 * share. Without its script it is complete and WIDTH wide; with it, the graph fills the window, a
 * click zooms, and names can be searched. Colours depend only on the names.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/key_map.h"
#include "base/text.h"
#include "flame/flame.h"

#define WIDTH        1200
#define MARGIN       10
#define ROW          17
#define HEAD         64 /* px at the top */
#define LEGEND       26 /* px below it, of a comparison */
#define FOOT         12
#define CHARACTER    7   /* px, for 12 px monospaced text */
#define NARROWEST    0.1 /* px; narrower frames are left out */
#define GREY         0xb4b4b4
#define ROOT         0xd0d0d0
#define ESCAPED_MAX  (XML_ESCAPE_BYTES_MAX * SHOWN_LABEL_BYTES)
#define ELEMENT_ROOM (4 * ESCAPED_MAX)
_Static_assert(ELEMENT_ROOM < OUTPUT_BUFFER_BYTES, "an element fits into the buffer");

/* The script redraws the graph whenever its width changes. A frame is <g class="f" data-x data-w
 * data-d><title/><rect/><text/></g>: begin and width as fractions, and depth. A link may end in
 * #zoom=N (frame N, from 0) or #search=TEXT. The assembler embeds the file, as in view.c. */
__asm__(".pushsection .rodata\nflame_script:\n.incbin \"collector/flame/flame_svg.js\"\n.byte 0\n"
        ".popsection\n");
extern const char flame_script[];

struct drawing {
    const struct flame *flame;
    struct output *out;
    uint32_t rows;
    unsigned head;   /* px above the graph */
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

/* ---- colours --------------------------------------------------------------------------------- */

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
static unsigned colour_of_change(double change)
{
    static const double more[] = {238, 82, 72}, less[] = {88, 134, 240}, same[] = {246, 246, 242};
    unsigned colour = 0;
    for (unsigned i = 0; i < 3; i++) {
        double end = change > 0 ? more[i] : less[i];
        colour = colour << 8 | (unsigned)lround(same[i] + (end - same[i]) * fabs(change));
    }
    return colour;
}

/* Draws the scale of colours, from half to twice. */
static void put_legend(struct output *out)
{
    static const struct {
        double change;
        const char *text;
    } fields[] = {{-1, "half or gone"}, {-.5, "-20 %"}, {-.22, "-5 %"},     {0, "the same"},
                  {.22, "+5 %"},        {.5, "+25 %"},  {1, "twice or new"}};
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        unsigned x = 10 + i * 110;
        output_print(out,
                     "<rect x=\"%u\" y=\"%u\" width=\"110\" height=\"16\" fill=\"#%06x\" "
                     "stroke=\"#bbb\"/><text x=\"%u\" y=\"%u\" text-anchor=\"middle\">%s</text>\n",
                     x, HEAD, colour_of_change(fields[i].change), x + 55, HEAD + 12,
                     fields[i].text);
    }
}

/* ---- frames ---------------------------------------------------------------------------------- */

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

/* "12.000 us, 3.40 %", and of a comparison ", 10.000 us before, +20.0 %". */
static void put_description(struct drawing *d, const uint64_t totals[FLAME_SIDES])
{
    const struct flame *f = d->flame;
    char now[UNIT_TEXT_BYTES], before[UNIT_TEXT_BYTES], change[FLAME_CHANGE_BYTES];
    uint64_t all = f->nodes[0].total[FLAME_NOW];
    output_print(d->out, "%s, %.2f %%", flame_value_text(f->weight, now, totals[FLAME_NOW]),
                 all ? 100 * (double)totals[FLAME_NOW] / (double)all : 0);
    if (f->compares)
        output_print(d->out, ", %s before, %s",
                     flame_value_text(f->weight, before, totals[FLAME_BEFORE]),
                     flame_change_text(change, totals));
}

static double width_of(const struct drawing *d, uint32_t n)
{
    const struct flame_node *nodes = d->flame->nodes;
    return (n ? (double)nodes[n].width / (double)nodes[0].width : 1) * (WIDTH - 2 * MARGIN);
}

static unsigned depth_of(const struct flame *f, uint32_t n)
{
    unsigned depth = 0;
    for (; n; n = call_tree_node(f->tree, n)->parent)
        depth++;
    return depth;
}

static void draw_node(struct drawing *d, uint32_t n)
{
    const struct flame *f = d->flame;
    const struct shown_frame *frame = n ? call_tree_frame(f->tree, n) : NULL;
    const char *label = frame ? frame->label : "all";
    unsigned depth = depth_of(f, n), y = d->head + (d->rows - 1 - depth) * ROW;
    unsigned colour = f->compares ? colour_of_change(change_of(f->nodes[n].total))
                      : frame     ? colour_of(frame)
                                  : ROOT;
    double left = n ? (double)f->nodes[n].left / (double)f->nodes[0].width : 0;
    double x = MARGIN + left * (WIDTH - 2 * MARGIN), width = width_of(d, n);
    output_print(d->out, "<g class=\"f\" data-x=\"%.7f\" data-w=\"%.7f\" data-d=\"%u\"><title>",
                 left, width / (WIDTH - 2 * MARGIN), depth);
    size_t length = strlen(label);
    put_escaped(d->out, label, length);
    output_print(d->out, ": ");
    put_description(d, f->nodes[n].total);
    output_print(d->out,
                 "</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" "
                 "fill=\"#%06x\"/><text x=\"%.2f\" y=\"%u\">",
                 x, y, width, ROW - 1, colour, x + 3, y + 12);
    size_t shown = fitting(label, width);
    if (shown < length)
        shown = fitting(label, width - 2 * CHARACTER);
    put_escaped(d->out, label, shown);
    output_print(d->out, "%s</text></g>\n", shown && shown < length ? ".." : "");
}

/* ---- the file -------------------------------------------------------------------------------- */

static void flame_svg_put_head(struct drawing *d)
{
    char line[FLAME_TEXT_BYTES] = "", narrow[UNIT_TEXT_BYTES];
    unsigned height = d->head + d->rows * ROW + FOOT;
    output_print(
        d->out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "width=\"100%%\" height=\"%u\" viewBox=\"0 0 %d %u\" "
        "preserveAspectRatio=\"xMinYMin\">\n<title>",
        height, WIDTH, height);
    put_escaped(d->out, d->flame->title, strlen(d->flame->title));
    output_print(d->out, "</title>\n");
    output_print(d->out,
                 "<style>text{font:12px monospace;fill:#111}#title{font-weight:bold}"
                 ".f rect{stroke:#fff;stroke-width:.5}.f:hover rect{stroke:#000}.f{cursor:pointer}"
                 ".f text{pointer-events:none}.around rect{opacity:.5}.away{display:none}"
                 ".found rect{fill:#e040d0}#search,#reset{cursor:pointer;text-decoration:underline}"
                 "#reset.off{display:none}@media print{#search,#reset{display:none}}%s</style>\n"
                 "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                 d->flame->compares ? ".f rect{stroke:#bbb}" : "");
    put_text_element(d->out, MARGIN, 16, "title", d->flame->title);
    put_text_element(d->out, MARGIN, 32, "note", d->flame->note);
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
    if (d->flame->compares)
        put_legend(d->out);
}

void flame_write_svg(const struct flame *f, struct output *out)
{
    struct drawing d = {
        .flame = f, .out = out, .rows = 1, .head = HEAD + (f->compares ? LEGEND : 0)};
    for (uint32_t i = 0; i < f->count; i++)
        if (width_of(&d, f->order[i]) < NARROWEST)
            d.narrow++;
        else
            d.rows = (uint32_t)max_of(d.rows, depth_of(f, f->order[i]) + 1);
    flame_svg_put_head(&d);
    draw_node(&d, 0);
    for (uint32_t i = 0; i < f->count; i++)
        if (width_of(&d, f->order[i]) >= NARROWEST)
            draw_node(&d, f->order[i]);
    output_print(out, "<script><![CDATA[\n");
    output_write(out, flame_script, strlen(flame_script));
    output_print(out, "]]></script>\n</svg>\n");
}
