/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of places, owners and kinds of `gpuprof memory`, the rows of owners, and their
 * growth. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "memory/memory_report.h"
#include "read/process.h"

/* ---- growth from step to step beyond chance: a linear fit through their ends ----------------- */

#define GROWTH_ERRORS   5 /* a slope above this multiple of its error is no chance */
#define PERSISTENCE_MAX 0.99

void memory_book_pass(struct memory_book *b, const struct memory_place *p)
{
    struct memory_growth *g = &b->growth;
    uint32_t steps = p->marks.done, middle = p->marks.count / 2;
    uint64_t bytes = b->live.bytes;
    if (g->steps >= steps)
        return;
    double count = steps - g->steps, y = (double)bytes;
    g->y += count * y;
    g->xy += count * ((double)g->steps + steps - 1) / 2 * y;
    g->yy += count * y * y;
    g->neighbours += (count - 1) * y * y + (g->steps ? (double)g->last * y : 0);
    if (g->steps == 0)
        g->first = bytes;
    if (g->steps <= middle && middle < steps)
        g->middle = bytes;
    g->last = bytes;
    g->steps = steps;
}

/* The correlation of neighbouring residuals, from 0 to 1, for a line with that rise and begin:
 * blocks that live for several steps look like growth for a while. */
static double persistence(const struct memory_growth *g, double rise, double from, double rest)
{
    double m = g->steps - 1.0, first = (double)g->first, last = (double)g->last;
    double earlier = g->y - last, earlier_x = g->xy - m * last;
    double later = g->y - first, later_x = g->xy - later;
    double both = g->neighbours - (from + rise) * earlier - rise * earlier_x - from * later -
                  rise * later_x + m * from * from + from * rise * m * m +
                  rise * rise * (m - 1) * m * (m + 1) / 3;
    return both <= 0 || rest <= 0          ? 0
           : both < PERSISTENCE_MAX * rest ? both / rest
                                           : PERSISTENCE_MAX;
}

bool memory_slope(const struct memory_growth *g, struct memory_slope *slope)
{
    double n = g->steps;
    *slope = (struct memory_slope){0};
    if (g->steps < MEMORY_STEPS_MIN)
        return false;
    double spread = n * (n * n - 1) / 12;
    double xy = g->xy - (n - 1) / 2 * g->y, yy = g->yy - g->y * g->y / n;
    slope->bytes = xy / spread;
    double rest = yy - slope->bytes * xy;
    double kept = persistence(g, slope->bytes, g->y / n - slope->bytes * (n - 1) / 2, rest);
    slope->error = rest > 0 ? sqrt(rest / (n - 2) / spread * (1 + kept) / (1 - kept)) : 0;
    return true;
}

/* A cache that only fills up at the beginning is no leak. */
bool memory_leaks(const struct memory_growth *g)
{
    struct memory_slope slope;
    return memory_slope(g, &slope) && g->last > g->middle && g->middle > g->first &&
           (g->last - g->middle) >= (g->last - g->first) / 4 &&
           slope.bytes > GROWTH_ERRORS * slope.error;
}

/* ---- places ---------------------------------------------------------------------------------- */

#define ROW struct memory_place

enum {
    P_NAME,
    P_WHERE,
    P_DEVICE = 5,
    P_PEAK,
    P_PEAK_AT,
    P_SHARE,
    P_RESERVED = 10,
    P_RESERVED_THEN
};
enum { P_END = 12, P_GROWTH = 14, P_ERROR, P_STEPS, P_BY_STEP, P_BLOCKS, P_LARGEST_OWNER = 23 };

static const struct column place_columns[] = {
    [P_NAME] = {NULL, "device and process", .doc = "the device or the host, and the process"},
    [P_WHERE] = {"where", .doc = "tensor, device or host"},
    COLUMN_HOST(ROW, process),
    COLUMN_PID(ROW, process),
    COLUMN_RANK(ROW, process),
    [P_DEVICE] = {"device", NULL, COLUMN_NUMBER, .ascending = true, MEMBER(ROW, device),
                  .doc = "CUDA's number of the device"},
    [P_PEAK] = {"peak_bytes", "peak", COLUMN_BYTES, 10, MEMBER(ROW, peak.bytes),
                .doc = "the most memory that was held at any time"},
    [P_PEAK_AT] = {"peak_ns", "at", COLUMN_NS, 10, true,
                   .doc = "when the peak was, since the first event"},
    [P_SHARE] = {"share", "share", COLUMN_SHARE, 6, .is_filled = true, .spare = 1,
                 .doc = "the peak as a share of the device's memory"},
    {"device_bytes", NULL, COLUMN_BYTES, .lacks = LACKS_ZERO, MEMBER(ROW, total),
     .doc = "memory of the device"},
    [P_RESERVED] = {"reserved_bytes", "reserved", COLUMN_BYTES, 10, .is_filled = true, .spare = 1,
                    .doc = "the most memory that PyTorch's allocator reserved"},
    [P_RESERVED_THEN] = {"reserved_at_peak_bytes", NULL, COLUMN_BYTES,
                         .doc = "the memory that it had reserved at the peak"},
    [P_END] = {"end_bytes", "at end", COLUMN_BYTES, 10, MEMBER(ROW, all.live.bytes),
               .doc = "memory held at the end"},
    {"asked_bytes", NULL, COLUMN_BYTES, MEMBER(ROW, all.asked.bytes),
     .doc = "the part of that which was requested from PyTorch's allocator"},
    [P_GROWTH] = {"growth_bytes", "per step", COLUMN_BYTES, 11, .is_filled = true,
                  .doc = "growth in a step, or in a second if there are no steps"},
    [P_ERROR] = {"growth_error_bytes", NULL, COLUMN_BYTES, .doc = "uncertainty of the growth"},
    [P_STEPS] = {"steps", NULL, COLUMN_COUNT, .doc = "steps that it was measured over"},
    [P_BY_STEP] = {"growth_by_step", NULL, COLUMN_BOOL,
                   .doc = "1: the growth is for a step, 0: for a second"},
    [P_BLOCKS] = {"blocks", "got", COLUMN_COUNT, 9, .spare = 2, MEMBER(ROW, all.got.blocks),
                  .doc = "blocks that were allocated"},
    {"bytes", NULL, COLUMN_BYTES, MEMBER(ROW, all.got.bytes),
     .doc = "bytes of all allocated blocks"},
    {"temporary_blocks", NULL, COLUMN_COUNT, MEMBER(ROW, all.temporary.blocks),
     .doc = "blocks that were allocated and freed within a step"},
    {"temporary_bytes", NULL, COLUMN_BYTES, MEMBER(ROW, all.temporary.bytes),
     .doc = "bytes of blocks that were allocated and freed within a step"},
    {"largest_block_bytes", NULL, COLUMN_BYTES, MEMBER(ROW, largest.bytes),
     .doc = "the largest block"},
    [P_LARGEST_OWNER] = {"largest_block_owner", .doc = "the owners of the memory"},
};
#undef ROW

/* With one process, the text leaves its name out. */
static struct cell place_name(const struct table *t, const struct memory_place *p,
                              enum report_format format)
{
    const struct memory_report *m = t->source;
    return format == FORMAT_TEXT && m->rec->count == 1
               ? cell_owned(memory_place_text(p->device, p->where, ""))
               : memory_place_cell(p->process, p->device, p->where);
}

/* Growth a step, or a second if there are no steps. */
static void fill_growth(const struct memory_report *m, const struct memory_place *p,
                        enum report_format format, struct cell *cells)
{
    struct memory_slope slope;
    if (!memory_slope(&p->all.growth, &slope))
        return;
    bool by_step = memory_has_steps(m, p->process);
    double unit = by_step ? 1 : 1e9 / (double)memory_slice_ns(m, p->process);
    if (by_step || format != FORMAT_TEXT)
        cells[P_GROWTH] = memory_change_cell(unit * slope.bytes, format);
    cells[P_ERROR] = cell_real(unit * slope.error);
    cells[P_STEPS] = cell_number(p->all.growth.steps);
    cells[P_BY_STEP] = cell_number(by_step);
}

static void memory_tables_fill_place(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct memory_report *m = t->source;
    const struct memory_place *p = table_item(t, index);
    cells[P_NAME] = place_name(t, p, t->format);
    cells[P_WHERE] = cell_text(memory_where_text(p->where));
    if (p->where == MEMORY_OF_HOST || p->device == LEDGER_NO_DEVICE)
        cells[P_DEVICE] = cell_text(NULL);
    cells[P_PEAK_AT] = cell_number(memory_moment(m, p->peak_at.ns));
    if (p->total)
        cells[P_SHARE] = cell_share(p->peak.bytes, p->total);
    if (p->where == MEMORY_OF_TENSORS) {
        cells[P_RESERVED] = cell_number(p->reserved);
        cells[P_RESERVED_THEN] = cell_number(p->peak_at.reserved);
    }
    fill_growth(m, p, t->format, cells);
    cells[P_LARGEST_OWNER] = memory_owner_cell(t->source, p->largest.origin);
}

static const struct table_info places_table = {
    .name = "places",
    .key = "places",
    .title = "memory of each device",
    .place = PLACE_MEMORY,
    TABLE_COLUMNS(place_columns),
    .text = {P_PEAK, P_SHARE, P_PEAK_AT, P_RESERVED, P_END, P_GROWTH, P_BLOCKS},
    .text_limit = 8,
    .rows = {ROWS_IN(struct memory_report, places.list, places.count)},
    .row = memory_tables_fill_place,
};

/* ---- owners, and those that grow ------------------------------------------------------------- */

static void add_owner(struct memory_report *m, struct memory_row *row, const struct memory_place *p,
                      const struct memory_owner *o)
{
    struct memory_amount at_peak = memory_at_peak(p, &o->book);
    struct memory_amount shown = m->at == MEMORY_AT_PEAK  ? at_peak
                                 : m->at == MEMORY_AT_END ? o->book.live
                                                          : o->book.asked;
    struct memory_slope slope;
    row->places++;
    row->processes += p->process != row->process;
    row->process = p->process;
    m->rows.shown[p->where] += shown.bytes;
    memory_add(&row->shown, shown);
    memory_add(&row->at_peak, at_peak);
    memory_add(&row->end, o->book.live);
    memory_add(&row->got, o->book.got);
    memory_add(&row->temporary, o->book.temporary);
    if (!memory_slope(&o->book.growth, &slope))
        return;
    row->slope += slope.bytes;
    row->error = sqrt(row->error * row->error + slope.error * slope.error);
    row->leaks |= memory_leaks(&o->book.growth);
    row->grown +=
        o->book.growth.last > o->book.growth.first ? o->book.growth.last - o->book.growth.first : 0;
}

static int memory_rows_compare(const void *left, const void *right)
{
    const struct memory_row *a = left, *b = right;
    return ORDER(a->where, b->where)
               ?: ORDER(b->shown.bytes, a->shown.bytes)
               ?: ORDER(b->got.bytes, a->got.bytes) ?: ORDER(a->origin, b->origin);
}

void memory_rows_make(struct memory_report *m)
{
    static const struct number_kind kind = NUMBER_KEY(struct memory_row, where);
    struct number_set numbers = {0};
    for (uint32_t i = 0; i < m->owners.count; i++) {
        const struct memory_owner *o = &m->owners.list[i];
        struct memory_row row = {.origin = o->origin, .where = m->places.list[o->place].where};
        uint32_t number =
            NUMBER_ADD(&numbers, &kind, m->rows.list, m->rows.count, UINT32_MAX, &row);
        add_owner(m, &m->rows.list[number - 1], &m->places.list[o->place], o);
    }
    number_set_release(&numbers);
    ARRAY_SORT(m->rows.list, m->rows.count, memory_rows_compare);
}

#define ROW struct memory_row

enum { O_NAME, O_WHERE, O_PROCESS, O_BYTES, O_SHARE, O_BLOCKS };
enum { O_END = 8, O_GROWTH = 10, O_ERROR, O_GROWN };

static const struct column owner_columns[] = {
    [O_NAME] = {"name", "owner", .doc = "the operator, line, range or call that allocated it"},
    [O_WHERE] = {"where", "of", COLUMN_TEXT, 6, .doc = "tensor, device or host"},
    [O_PROCESS] = {"process", "process", COLUMN_TEXT, 12, .is_filled = true,
                   .doc = "the process, if there are several"},
    [O_BYTES] = {"bytes", "bytes", COLUMN_BYTES, 10, MEMBER(ROW, shown.bytes),
                 .doc = "memory held at that moment (--at)"},
    [O_SHARE] = {"share", "share", COLUMN_SHARE, 6, .doc = "bytes as a share of all memory then"},
    [O_BLOCKS] = {"blocks", "blocks", COLUMN_COUNT, 8, MEMBER(ROW, shown.blocks),
                  .doc = "blocks at that moment"},
    {"peak_bytes", NULL, COLUMN_BYTES, MEMBER(ROW, at_peak.bytes),
     .doc = "memory held at the peak"},
    {"peak_blocks", NULL, COLUMN_COUNT, MEMBER(ROW, at_peak.blocks), .doc = "blocks at the peak"},
    [O_END] = {"end_bytes", "at end", COLUMN_BYTES, 10, .spare = 2, MEMBER(ROW, end.bytes),
               .doc = "memory held at the end"},
    {"end_blocks", NULL, COLUMN_COUNT, MEMBER(ROW, end.blocks), .doc = "blocks at the end"},
    [O_GROWTH] = {"growth_bytes", "per step", COLUMN_BYTES, 11, .is_filled = true,
                  .doc = "growth in a step"},
    [O_ERROR] = {"growth_error_bytes", NULL, COLUMN_BYTES, .doc = "uncertainty of the growth"},
    [O_GROWN] = {"grown_bytes", "grown", COLUMN_BYTES, 10, MEMBER(ROW, grown),
                 .doc = "growth since the end of the first step"},
    {"got_blocks", "got", COLUMN_COUNT, 9, .spare = 1, MEMBER(ROW, got.blocks),
     .doc = "blocks that it allocated"},
    {"got_bytes", NULL, COLUMN_BYTES, MEMBER(ROW, got.bytes),
     .doc = "bytes of all these allocations"},
    {"temporary_blocks", NULL, COLUMN_COUNT, MEMBER(ROW, temporary.blocks),
     .doc = "blocks that were allocated and freed within a step"},
    {"temporary_bytes", NULL, COLUMN_BYTES, MEMBER(ROW, temporary.bytes),
     .doc = "bytes of blocks that were allocated and freed within a step"},
    {"places", NULL, COLUMN_COUNT, MEMBER(ROW, places), .doc = "devices and processes in the row"},
};
#undef ROW

static void fill_owner(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct memory_report *m = t->source;
    const struct memory_row *row = table_item(t, index);
    const struct memory_origin *o = &m->origins.list[row->origin];
    char who[RANK_TITLE_BYTES];
    cells[O_NAME] = memory_owner_cell(m, row->origin);
    cells[O_WHERE] = cell_text(memory_where_text(row->where));
    cells[O_SHARE] = cell_share(row->shown.bytes, m->rows.shown[row->where]);
    bool has_process = row->origin && o->by == MEMORY_BY_STACK && m->rec->count > 1;
    cells[O_PROCESS] =
        has_process /* the same stack in two processes is two owners */
            ? cell_owned(memory_text(process_who(m->rec->processes[o->process], who)))
            : cell_text(NULL);
    if (row->leaks || t->format != FORMAT_TEXT) {
        cells[O_GROWTH] = memory_change_cell(row->slope, t->format);
        cells[O_ERROR] = cell_real(row->error);
    }
}

static bool has_owner(const struct table *t, uint32_t index)
{
    return t->format != FORMAT_TEXT ||
           ((const struct memory_row *)table_item(t, index))->shown.bytes;
}

static bool has_leak(const struct table *t, uint32_t index)
{
    return ((const struct memory_row *)table_item(t, index))->leaks;
}

static void owners_before(const struct table *t, FILE *out)
{
    static const char *const at[] = {[MEMORY_AT_PEAK] = "at the peak of each device",
                                     [MEMORY_AT_END] = "at the end",
                                     [MEMORY_AT_TIME] = "at the moment of --at"};
    fprintf(out, "%s\n", at[((const struct memory_report *)t->source)->at]);
}

static const struct table_info owners_table = {
    .name = "owners",
    .key = "owners",
    .title = "owners of memory",
    .place = PLACE_MEMORY,
    TABLE_COLUMNS(owner_columns),
    .text = {O_BYTES, O_SHARE, O_BLOCKS, O_END, O_GROWTH, O_WHERE, O_PROCESS},
    .text_limit = 10,
    .rows = {ROWS_IN(struct memory_report, rows.list, rows.count)},
    .has = has_owner,
    .row = fill_owner,
    .text_before = owners_before,
};

static const struct table_info leaks_table = {
    .name = "leaks",
    .key = "leaks",
    .title = "memory growth from step to step",
    .place = PLACE_MEMORY,
    TABLE_COLUMNS(owner_columns),
    .text = {O_GROWTH, O_GROWN, O_END, O_WHERE, O_PROCESS},
    .text_limit = 10,
    .rows = {ROWS_IN(struct memory_report, rows.list, rows.count)},
    .order = O_GROWN,
    .has = has_leak,
    .row = fill_owner,
};

/* ---- kinds ----------------------------------------------------------------------------------- */

enum { K_NAME, K_WHERE, K_PLACE, K_PEAK, K_BLOCKS, K_END, K_GOT, K_GOT_BYTES };

static const struct column kind_columns[] = {
    [K_NAME] = {"name", "kind",
                .doc =
                    "linear, managed, pooled, physical, array, static, pinned, registered, tensor"},
    [K_WHERE] = {"where", .doc = "tensor, device or host"},
    [K_PLACE] = {"place", NULL, .doc = "the device and the process"},
    [K_PEAK] = {"peak_bytes", "at peak", COLUMN_BYTES, 10,
                .doc = "memory of that kind at the peak"},
    [K_BLOCKS] = {"peak_blocks", "blocks", COLUMN_COUNT, 9, .doc = "blocks at the peak"},
    [K_END] = {"end_bytes", "at end", COLUMN_BYTES, 10, .doc = "memory held at the end"},
    [K_GOT] = {"got_blocks", "got", COLUMN_COUNT, 10, .doc = "blocks that were allocated"},
    [K_GOT_BYTES] = {"got_bytes", "bytes got", COLUMN_BYTES, 10,
                     .doc = "bytes of all allocated blocks"},
};

static void kinds_begin(struct table *t)
{
    const struct memory_report *m = t->source;
    t->count = m->places.count * LEDGER_KINDS;
    t->is_there = t->count || t->format != FORMAT_TEXT;
}

static bool has_kind(const struct table *t, uint32_t index)
{
    const struct memory_report *m = t->source;
    return m->places.list[index / LEDGER_KINDS].kinds[index % LEDGER_KINDS].got.blocks;
}

static void fill_kind(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct memory_report *m = t->source;
    const struct memory_place *p = &m->places.list[index / LEDGER_KINDS];
    unsigned kind = index % LEDGER_KINDS;
    struct memory_amount peak = memory_at_peak(p, &p->kinds[kind]);
    struct cell place = place_name(t, p, t->format);
    cells[K_NAME] = t->format == FORMAT_TEXT
                        ? cell_printf("%s, %s", ledger_kind_name(kind), place.text)
                        : cell_text(ledger_kind_name(kind));
    cells[K_PLACE] = place;
    cells[K_WHERE] = cell_text(memory_where_text(p->where));
    cells[K_PEAK] = cell_number(peak.bytes);
    cells[K_BLOCKS] = cell_number(peak.blocks);
    cells[K_END] = cell_number(p->kinds[kind].live.bytes);
    cells[K_GOT] = cell_number(p->kinds[kind].got.blocks);
    cells[K_GOT_BYTES] = cell_number(p->kinds[kind].got.bytes);
}

static const struct table_info kinds_table = {
    .name = "kinds",
    .key = "kinds",
    .title = "kinds of memory",
    TABLE_COLUMNS(kind_columns),
    .begin = kinds_begin,
    .has = has_kind,
    .row = fill_kind,
};

const struct table_info *const memory_tables[MEMORY_TABLES] = {
    &memory_ooms_table,     &places_table,       &owners_table,       &leaks_table,
    &memory_hidden_table,   &kinds_table,        &memory_steps_table, &memory_ranges_table,
    &memory_resident_table, &memory_curve_table,
};
