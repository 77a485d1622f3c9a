/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture of the memory: how much each place had over time, and below it a flame graph of who
 * held it at the moment that was asked for. Curves are drawn in boxes that become as wide as the
 * window, whatever their unit; what is written in them is not stretched.
 */
#include "memory/memory_svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit_text.h"
#include "error.h"
#include "flame/flame.h"
#include "memory/memory_trouble.h"
#include "read/process_title.h"
#include "table/text_width.h"

#define BANDS_MAX     8   /* places that have a curve: those with the highest peaks */
#define BAND          104 /* px that one takes */
#define PLOT_TOP      18  /* in it, below its title */
#define PLOT          76
#define BANDS_FOOT    20 /* the axis of time */
#define STEPS_SHOWN   200
#define TITLE_BYTES   1200
#define TITLE_COLUMNS 80 /* the rest of the line says how much it had */

static const char style[] =
    ".mem{fill:#9dbbe6;stroke:#3465a4;stroke-width:1;vector-effect:"
    "non-scaling-stroke}.mem.t{fill:#b9dcae;stroke:#4e9a06}"
    ".mem.h{fill:#e6cfa0;stroke:#a87a1c}"
    ".plot{fill:#f6f6f4}.step{stroke:#c9c9c4;stroke-width:1}"
    ".peak{stroke:#c4221a;stroke-width:1}.soft{fill:#666}.end{"
    "text-anchor:end}.red{fill:#c4221a;paint-order:stroke;stroke:#fff;stroke-width:3px}";

struct bands {
    const struct memory_rows *rows;
    const struct memory_place *list[BANDS_MAX];
    unsigned count;
};

/* ---- curves ---------------------------------------------------------------------------------- */

static struct bands choose_bands(const struct memory_rows *r)
{
    const struct memory_report *m = r->report;
    struct bands b = {.rows = r};
    for (uint32_t i = 0; i < m->place_count; i++) {
        const struct memory_place *p = &m->places[i];
        unsigned at = b.count;
        if (!p->peak.bytes)
            continue;
        if (b.count < BANDS_MAX)
            b.count++;
        else if (b.list[--at]->peak.bytes >= p->peak.bytes)
            continue;
        for (; at && b.list[at - 1]->peak.bytes < p->peak.bytes; at--)
            b.list[at] = b.list[at - 1];
        b.list[at] = p;
    }
    return b;
}

/* Where that moment is, in percent of the window's width. */
static double place_of_time(const struct memory_report *m, uint64_t ns)
{
    double whole = (double)(m->end_ns - m->begin_ns) + 1;
    double at = ns > m->begin_ns ? (double)(ns - m->begin_ns) / whole : 0;
    return 100 * (at < 1 ? at : 1);
}

/* The first of its marks that ends no sooner than that. */
static uint32_t mark_at(const struct memory_report *m, const struct memory_place *p, uint64_t ns)
{
    uint32_t low = 0, high = p->mark;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (memory_mark_end(m, p->process, middle) < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The ends of whole steps, unless there are too many to see. */
static void put_steps(const struct memory_report *m, const struct memory_place *p, unsigned y,
                      struct output *out)
{
    uint32_t first = mark_at(m, p, m->begin_ns), end = mark_at(m, p, m->end_ns + 1);
    if (!memory_has_steps(m, p->process) || end - first > STEPS_SHOWN)
        return;
    for (uint32_t i = first; i < end; i++) {
        double x = place_of_time(m, memory_mark_end(m, p->process, i));
        flame_put(out, "<line class=\"step\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%u\" y2=\"%u\"/>\n",
                  x, x, y, y + PLOT);
    }
}

/* In each piece of the time the most, so that no peak is missing. */
static void put_curve(const struct memory_place *p, unsigned y, struct output *out)
{
    static const char *const kinds[] = {
        [MEMORY_OF_TENSORS] = "mem t", [MEMORY_OF_DEVICE] = "mem", [MEMORY_OF_HOST] = "mem h"};
    flame_put(out,
              "<svg x=\"0\" y=\"%u\" width=\"100%%\" height=\"%d\" viewBox=\"0 0 %d 1000\" "
              "preserveAspectRatio=\"none\"><path class=\"%s\" d=\"M0 1000",
              y, PLOT, MEMORY_CURVE, kinds[p->where]);
    for (unsigned i = 0; i < MEMORY_CURVE; i++) {
        double share = (double)p->curve_max[i] / (double)p->peak.bytes;
        flame_put(out, "V%.0fH%u", 1000 - 1000 * share, i + 1);
    }
    flame_put(out, "V1000Z\"/></svg>\n");
}

static void put_band(const struct memory_rows *r, const struct memory_place *p, unsigned y,
                     struct output *out)
{
    const struct memory_report *m = r->report;
    char peak[UNIT_TEXT_BYTES], at[UNIT_TEXT_BYTES], end[UNIT_TEXT_BYTES], share[24] = "";
    struct cell whole = memory_place_cell(p->process, p->device, p->where);
    const char *text = whole.text ? whole.text : "?";
    char *title = text_cut(text, strlen(text), TITLE_COLUMNS);
    double x = place_of_time(m, p->peak_ns);
    unsigned top = y + PLOT_TOP;
    if (p->total)
        snprintf(share, sizeof share, ", %.0f %% of the device",
                 100.0 * (double)p->peak.bytes / (double)p->total);
    flame_put(out, "<g class=\"place\"><text x=\"10\" y=\"%u\">", y + 12);
    flame_put_escaped(out, title ? title : "?");
    flame_put(out,
              "</text>\n<text class=\"end\" x=\"99.5%%\" y=\"%u\">peak %s%s, after %s; "
              "%s at the end</text>\n",
              y + 12, bytes_text(peak, p->peak.bytes), share,
              time_text(at, (uint64_t)memory_moment_cell(m, p->peak_ns).number),
              bytes_text(end, p->live.bytes));
    flame_put(out, "<rect class=\"plot\" x=\"0\" y=\"%u\" width=\"100%%\" height=\"%d\"/>\n", top,
              PLOT);
    put_curve(p, top, out);
    put_steps(m, p, top, out);
    flame_put(out,
              "<line class=\"peak\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%u\" y2=\"%u\"/>"
              "<text class=\"red%s\" x=\"%.2f%%\" dx=\"%d\" y=\"%u\">peak</text></g>\n",
              x, x, top, top + PLOT, x > 50 ? " end" : "", x, x > 50 ? -4 : 4, top + 12);
    free(whole.memory);
    free(title);
}

static void put_above(const void *context, unsigned y, struct output *out)
{
    const struct bands *b = context;
    const struct memory_report *m = b->rows->report;
    char time[UNIT_TEXT_BYTES];
    for (unsigned i = 0; i < b->count; i++)
        put_band(b->rows, b->list[i], y + i * BAND, out);
    y += b->count * BAND + 8;
    uint64_t begin_ns = (uint64_t)memory_moment_cell(m, m->begin_ns).number;
    for (unsigned i = 0; i <= 4; i++) {
        uint64_t ns = begin_ns + (m->end_ns - m->begin_ns) / 4 * i;
        flame_put(out,
                  "<text class=\"soft\" x=\"%u%%\" dx=\"%d\" y=\"%u\" text-anchor=\"%s\">%s"
                  "</text>\n",
                  25 * i,
                  i == 0   ? 2
                  : i == 4 ? -2
                           : 0,
                  y,
                  i == 0   ? "start"
                  : i == 4 ? "end"
                           : "middle",
                  time_text(time, ns));
    }
}

/* ---- who held it ----------------------------------------------------------------------------- */

/* Names that are made here, and the nodes that have bytes. */
struct held {
    const struct memory_rows *rows;
    struct call_tree tree;
    struct kernel_names names;
    struct flame_node *nodes; /* owned; as many as `capacity` */
    uint32_t capacity;
};

static int child(struct held *h, uint32_t parent, enum shown_kind kind, const char *name,
                 uint32_t *node)
{
    struct shown_frame frame = {.kind = kind};
    int error = kernel_name_intern(&h->names, (const uint8_t *)name, strlen(name), &frame.name);
    return error < 0 ? error : call_tree_child(&h->tree, parent, &frame, node);
}

/* Where the owners of a place stand: what it is, and of many processes which. */
static int root_of(struct held *h, const struct memory_place *p, uint32_t *node)
{
    static const char *const texts[] = {[MEMORY_OF_TENSORS] = "tensors (in memory of devices)",
                                        [MEMORY_OF_DEVICE] = "memory of devices",
                                        [MEMORY_OF_HOST] = "pinned memory of the host"};
    char title[TITLE_BYTES];
    *node = 0;
    int error = child(h, 0, SHOWN_THREAD, texts[p->where], node);
    if (error < 0 || h->rows->report->rec->count < 2)
        return error;
    process_title(p->process, true, title, sizeof title);
    return child(h, *node, SHOWN_PROCESS, title, node);
}

static int node_of(struct held *h, const struct memory_place *p, uint32_t origin, uint32_t *node)
{
    const struct memory_report *m = h->rows->report;
    const struct memory_origin *o = &m->origins[origin];
    enum shown_kind kind = o->by == MEMORY_BY_LINE       ? SHOWN_PYTHON
                           : o->by == MEMORY_BY_OPERATOR ? SHOWN_RANGE
                                                         : SHOWN_CALL;
    int error = root_of(h, p, node);
    uint32_t root = *node;
    if (error == 0 && origin && o->by == MEMORY_BY_STACK) {
        error = call_tree_stack(&h->tree, root, o->process, o->stack, NULL, node);
        const char *name = o->function ? o->function->name : ledger_kind_name(LEDGER_TENSOR);
        *node = *node ? *node : root;
        return error < 0 ? error : child(h, *node, SHOWN_CALL, name, node);
    }
    char *text = error < 0 ? NULL : memory_origin_text(m, origin, NULL);
    if (error == 0)
        error = text ? child(h, root, kind, text, node) : GPUPROF_NO_MEMORY;
    free(text);
    return error;
}

/* A number for each node of the tree. */
static int make_room(struct held *h)
{
    uint32_t capacity = 2 * h->tree.count + 1024;
    struct flame_node *nodes = realloc(h->nodes, capacity * sizeof *nodes);
    if (!nodes)
        return GPUPROF_NO_MEMORY;
    memset(nodes + h->capacity, 0, (capacity - h->capacity) * sizeof *nodes);
    h->nodes = nodes;
    h->capacity = capacity;
    return 0;
}

static int add_owner(struct held *h, const struct memory_owner *o)
{
    const struct memory_report *m = h->rows->report;
    const struct memory_place *p = &m->places[o->place];
    uint64_t bytes = memory_shown(h->rows, p, o).bytes;
    uint32_t node = 0;
    int error = bytes ? node_of(h, p, o->origin, &node) : 0;
    if (error == 0 && h->tree.count >= h->capacity)
        error = make_room(h);
    if (error == 0 && node)
        h->nodes[node].own += bytes;
    return error;
}

static int gather(struct held *h, const char *symbols)
{
    const struct memory_report *m = h->rows->report;
    int error = call_tree_init(&h->tree, (struct survey *)&m->walk.survey, symbols);
    if (error == 0)
        error = make_room(h);
    for (uint32_t i = 0; error == 0 && i < m->owner_count; i++)
        error = add_owner(h, &m->owners[i]);
    if (error == 0)
        error = flame_arrange(&h->tree, h->nodes);
    return error;
}

static char *title_of(const struct memory_rows *r, bool is_piece, char *text)
{
    const struct memory_report *m = r->report;
    const struct recording *rec = m->rec;
    char program[256] = "nothing", others[64] = "", piece[64 + 2 * UNIT_TEXT_BYTES] = "";
    char begin[UNIT_TEXT_BYTES], end[UNIT_TEXT_BYTES];
    if (rec->count)
        process_program(rec->processes[0], program, sizeof program);
    if (rec->count > 1)
        snprintf(others, sizeof others, " and %u more process%s", rec->count - 1,
                 rec->count == 2 ? "" : "es");
    if (is_piece)
        snprintf(piece, sizeof piece, " from %s to %s",
                 time_text(begin, (uint64_t)memory_moment_cell(m, m->begin_ns).number),
                 time_text(end, (uint64_t)memory_moment_cell(m, m->end_ns).number));
    snprintf(text, FLAME_TITLE_BYTES, "%s%s: memory over time%s, and below it who held it %s%s",
             program, others, piece,
             r->at == MEMORY_AT_PEAK  ? "at the peak"
             : r->at == MEMORY_AT_END ? "at the end"
                                      : "at the moment of --at",
             is_piece ? " of that time" : "");
    return text;
}

int memory_svg_write(const struct memory_rows *r, bool is_piece, const char *symbols,
                     struct output *out)
{
    char title[FLAME_TITLE_BYTES], note[FLAME_NOTE_BYTES];
    struct bands bands = choose_bands(r);
    struct held held = {.rows = r};
    uint32_t more = 0;
    for (uint32_t i = 0; i < r->report->place_count; i++)
        more += r->report->places[i].peak.bytes != 0;
    more -= bands.count;
    int length = snprintf(note, sizeof note, "%s%s",
                          r->at == MEMORY_AT_PEAK ? "each place at its own peak" : "",
                          r->at_all[MEMORY_OF_TENSORS]
                              ? "; tensors lie in memory of devices, which has their bytes, too"
                              : "");
    if (more)
        snprintf(note + length, sizeof note - (size_t)length,
                 "; the %u places with the highest peaks have a curve, %u others none", bands.count,
                 more);
    int error = gather(&held, symbols);
    const struct flame_picture picture = {.tree = &held.tree,
                                          .nodes = held.nodes,
                                          .weight = WEIGHT_BYTES,
                                          .title = title_of(r, is_piece, title),
                                          .note = note[0] == ';' ? note + 2 : note,
                                          .style = style,
                                          .above =
                                              bands.count ? bands.count * BAND + BANDS_FOOT : 0,
                                          .put_above = bands.count ? put_above : NULL,
                                          .context = &bands};
    if (error == 0)
        error = flame_draw(&picture, out);
    call_tree_release(&held.tree);
    kernel_names_release(&held.names);
    free(held.nodes);
    return error;
}
