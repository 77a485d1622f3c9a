/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `gpuprof memory` as they are described. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/unit_text.h"
#include "memory/memory_times.h"
#include "memory/memory_trouble.h"
#include "read/process_title.h"

/* ---- cells ----------------------------------------------------------------------------------- */

static struct cell device_number(uint32_t device, enum memory_where where)
{
    return where == MEMORY_OF_HOST || device == LEDGER_NO_DEVICE ? (struct cell){.kind = CELL_NULL}
                                                                 : cell_number(device);
}

/* ---- places ---------------------------------------------------------------------------------- */

enum {
    P_NAME,
    P_WHERE,
    P_HOST,
    P_PID,
    P_RANK,
    P_DEVICE,
    P_PEAK,
    P_PEAK_AT,
    P_SHARE,
    P_TOTAL,
    P_RESERVED,
    P_RESERVED_THEN,
    P_END,
    P_ASKED,
    P_GROWTH,
    P_ERROR,
    P_STEPS,
    P_BY_STEP,
    P_BLOCKS,
    P_BYTES,
    P_TEMPORARY,
    P_TEMPORARY_BYTES,
    P_LARGEST,
    P_LARGEST_OWNER,
    P_COLUMNS
};

static const struct column place_columns[P_COLUMNS] = {
    [P_NAME] = {NULL, "device and process"},
    [P_WHERE] = {"where"},
    [P_HOST] = {"host"},
    [P_PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true},
    [P_RANK] = {"rank"},
    [P_DEVICE] = {"device", NULL, COLUMN_NUMBER, .ascending = true},
    [P_PEAK] = {"peak_bytes", "peak", COLUMN_BYTES, 10},
    [P_PEAK_AT] = {"peak_ns", "at", COLUMN_NS, 10, true},
    [P_SHARE] = {"share", "share", COLUMN_SHARE, 6, .is_filled = true, .spare = 1},
    [P_TOTAL] = {"device_bytes", NULL, COLUMN_BYTES},
    [P_RESERVED] = {"reserved_bytes", "reserved", COLUMN_BYTES, 10, .is_filled = true, .spare = 1},
    [P_RESERVED_THEN] = {"reserved_at_peak_bytes", NULL, COLUMN_BYTES},
    [P_END] = {"end_bytes", "at end", COLUMN_BYTES, 10},
    [P_ASKED] = {"asked_bytes", NULL, COLUMN_BYTES},
    [P_GROWTH] = {"growth_bytes", "per step", COLUMN_BYTES, 11, .is_filled = true},
    [P_ERROR] = {"growth_error_bytes", NULL, COLUMN_BYTES},
    [P_STEPS] = {"steps", NULL, COLUMN_COUNT},
    [P_BY_STEP] = {"growth_by_step", NULL, COLUMN_BOOL},
    [P_BLOCKS] = {"blocks", "got", COLUMN_COUNT, 9, .spare = 2},
    [P_BYTES] = {"bytes", NULL, COLUMN_BYTES},
    [P_TEMPORARY] = {"temporary_blocks", NULL, COLUMN_COUNT},
    [P_TEMPORARY_BYTES] = {"temporary_bytes", NULL, COLUMN_BYTES},
    [P_LARGEST] = {"largest_block_bytes", NULL, COLUMN_BYTES},
    [P_LARGEST_OWNER] = {"largest_block_owner"},
};

static void places_begin(struct table *t, enum report_format format)
{
    t->count = memory_of_table(t)->place_count;
    t->is_there = t->count || format != FORMAT_TEXT;
}

/* Of one process the text need not say which. */
static struct cell place_name(const struct table *t, const struct memory_place *p,
                              enum report_format format)
{
    struct cell name = memory_place_cell(p->process, p->device, p->where);
    if (format == FORMAT_TEXT && memory_of_table(t)->rec->count == 1 && name.memory)
        name.memory[strcspn(name.memory, ",")] = '\0';
    return name;
}

/* Growth is said of steps, and of a second where there are none. */
static void fill_growth(const struct memory_report *m, const struct memory_place *p,
                        enum report_format format, struct cell *cells)
{
    struct memory_slope slope;
    if (!memory_slope(&p->growth, &slope))
        return;
    bool by_step = memory_has_steps(m, p->process);
    double unit = by_step ? 1 : 1e9 / (double)memory_slice_ns(m, p->process);
    if (by_step || format != FORMAT_TEXT)
        cells[P_GROWTH] = memory_change_cell(unit * slope.bytes, format);
    cells[P_ERROR] = cell_real(unit * slope.error);
    cells[P_STEPS] = cell_number(p->growth.steps);
    cells[P_BY_STEP] = cell_number(by_step);
}

static void fill_place(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells)
{
    const struct memory_report *m = memory_of_table(t);
    const struct memory_place *p = &m->places[index];
    cells[P_NAME] = place_name(t, p, format);
    cells[P_WHERE] = cell_text(memory_where_text(p->where));
    cells[P_HOST] = cell_text(p->process->header.host);
    cells[P_PID] = cell_number(p->process->header.pid);
    cells[P_RANK] = cell_text(process_rank(p->process));
    cells[P_DEVICE] = device_number(p->device, p->where);
    cells[P_PEAK] = cell_number(p->peak.bytes);
    cells[P_PEAK_AT] = memory_moment_cell(m, p->peak_ns);
    if (p->total) {
        cells[P_SHARE] = cell_share(p->peak.bytes, p->total);
        cells[P_TOTAL] = cell_number(p->total);
    }
    if (p->where == MEMORY_OF_TENSORS) {
        cells[P_RESERVED] = cell_number(p->reserved);
        cells[P_RESERVED_THEN] = cell_number(p->reserved_at_peak);
    }
    cells[P_END] = cell_number(p->live.bytes);
    cells[P_ASKED] = cell_number(p->asked.bytes);
    fill_growth(m, p, format, cells);
    cells[P_BLOCKS] = cell_number(p->got.blocks);
    cells[P_BYTES] = cell_number(p->got.bytes);
    cells[P_TEMPORARY] = cell_number(p->temporary.blocks);
    cells[P_TEMPORARY_BYTES] = cell_number(p->temporary.bytes);
    cells[P_LARGEST] = cell_number(p->largest);
    cells[P_LARGEST_OWNER] = memory_owner_cell(t, p->largest_origin);
}

/* ---- owners, and those that grow ------------------------------------------------------------- */

enum {
    O_NAME,
    O_WHERE,
    O_PROCESS,
    O_BYTES,
    O_SHARE,
    O_BLOCKS,
    O_PEAK,
    O_PEAK_BLOCKS,
    O_END,
    O_END_BLOCKS,
    O_GROWTH,
    O_ERROR,
    O_GROWN,
    O_GOT,
    O_GOT_BYTES,
    O_TEMPORARY,
    O_TEMPORARY_BYTES,
    O_PLACES,
    O_COLUMNS
};

static const struct column owner_columns[O_COLUMNS] = {
    [O_NAME] = {"name", "owner"},
    [O_WHERE] = {"where", "of", COLUMN_TEXT, 6},
    [O_PROCESS] = {"process", "process", COLUMN_TEXT, 12, .is_filled = true},
    [O_BYTES] = {"bytes", "bytes", COLUMN_BYTES, 10},
    [O_SHARE] = {"share", "share", COLUMN_SHARE, 6},
    [O_BLOCKS] = {"blocks", "blocks", COLUMN_COUNT, 8},
    [O_PEAK] = {"peak_bytes", NULL, COLUMN_BYTES},
    [O_PEAK_BLOCKS] = {"peak_blocks", NULL, COLUMN_COUNT},
    [O_END] = {"end_bytes", "at end", COLUMN_BYTES, 10, .spare = 2},
    [O_END_BLOCKS] = {"end_blocks", NULL, COLUMN_COUNT},
    [O_GROWTH] = {"growth_bytes", "per step", COLUMN_BYTES, 11, .is_filled = true},
    [O_ERROR] = {"growth_error_bytes", NULL, COLUMN_BYTES},
    [O_GROWN] = {"grown_bytes", "grown", COLUMN_BYTES, 10},
    [O_GOT] = {"got_blocks", "got", COLUMN_COUNT, 9, .spare = 1},
    [O_GOT_BYTES] = {"got_bytes", NULL, COLUMN_BYTES},
    [O_TEMPORARY] = {"temporary_blocks", NULL, COLUMN_COUNT},
    [O_TEMPORARY_BYTES] = {"temporary_bytes", NULL, COLUMN_BYTES},
    [O_PLACES] = {"places", NULL, COLUMN_COUNT},
};

/* The same stack of two processes is two owners. */
static struct cell owner_process(const struct memory_report *m, uint32_t origin)
{
    const struct memory_origin *o = &m->origins[origin];
    char who[RANK_TITLE_BYTES];
    if (!origin || o->by != MEMORY_BY_STACK || m->rec->count == 1)
        return cell_text(NULL);
    return cell_owned(strdup(process_who(m->rec->processes[o->process], who)));
}

static void fill_row(const struct table *t, const struct memory_row *row, enum report_format format,
                     struct cell *cells)
{
    const struct memory_rows *r = t->source;
    struct memory_amount at = r->at == MEMORY_AT_PEAK  ? row->at_peak
                              : r->at == MEMORY_AT_END ? row->end
                                                       : row->asked;
    cells[O_NAME] = memory_owner_cell(t, row->origin);
    cells[O_WHERE] = cell_text(memory_where_text(row->where));
    cells[O_BYTES] = cell_number(at.bytes);
    cells[O_SHARE] = cell_share(at.bytes, r->at_all[row->where]);
    cells[O_BLOCKS] = cell_number(at.blocks);
    cells[O_PEAK] = cell_number(row->at_peak.bytes);
    cells[O_PEAK_BLOCKS] = cell_number(row->at_peak.blocks);
    cells[O_END] = cell_number(row->end.bytes);
    cells[O_END_BLOCKS] = cell_number(row->end.blocks);
    cells[O_GOT] = cell_number(row->got.blocks);
    cells[O_GOT_BYTES] = cell_number(row->got.bytes);
    cells[O_TEMPORARY] = cell_number(row->temporary.blocks);
    cells[O_TEMPORARY_BYTES] = cell_number(row->temporary.bytes);
    cells[O_GROWN] = cell_number(row->grown);
    cells[O_PLACES] = cell_number(row->places);
    cells[O_PROCESS] = owner_process(r->report, row->origin);
    if (row->leaks || format != FORMAT_TEXT) {
        cells[O_GROWTH] = memory_change_cell(row->slope, format);
        cells[O_ERROR] = cell_real(row->error);
    }
}

static void owners_begin(struct table *t, enum report_format format)
{
    const struct memory_rows *r = t->source;
    t->count = r->count;
    t->is_there = t->count || format != FORMAT_TEXT;
}

static bool has_owner(const struct table *t, uint32_t index, enum report_format format)
{
    const struct memory_rows *r = t->source;
    const struct memory_row *row = &r->list[index];
    uint64_t bytes = r->at == MEMORY_AT_PEAK  ? row->at_peak.bytes
                     : r->at == MEMORY_AT_END ? row->end.bytes
                                              : row->asked.bytes;
    return format != FORMAT_TEXT || bytes;
}

static void fill_owner(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells)
{
    const struct memory_rows *r = t->source;
    fill_row(t, &r->list[index], format, cells);
}

static void owners_before(const struct table *t, FILE *out)
{
    const struct memory_rows *r = t->source;
    fprintf(out, "%s\n",
            r->at == MEMORY_AT_PEAK  ? "each device at its own peak"
            : r->at == MEMORY_AT_END ? "at the end"
                                     : "at the moment of --at");
}

static void leaks_begin(struct table *t, enum report_format format)
{
    const struct memory_rows *r = t->source;
    t->is_there = r->leak_count || format != FORMAT_TEXT;
    t->count = r->leak_count;
}

static void fill_leak(const struct table *t, uint32_t index, enum report_format format,
                      struct cell *cells)
{
    const struct memory_rows *r = t->source;
    fill_row(t, &r->list[r->leaks[index]], format, cells);
}

/* Lines that grow may do so in a few of the stacks that lead to them. */
static void leaks_behind(const struct table *t, FILE *out)
{
    const struct memory_rows *r = t->source;
    uint32_t several = 0;
    for (uint32_t i = 0; i < t->shown; i++)
        several += memory_has_stacks(r->report, r->list[r->leaks[i]].origin);
    if (several)
        fprintf(out, "several stacks lead to %u of these: --by=stack tells them apart\n", several);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

enum { K_NAME, K_WHERE, K_PLACE, K_PEAK, K_BLOCKS, K_END, K_GOT, K_GOT_BYTES, K_COLUMNS };

static const struct column kind_columns[K_COLUMNS] = {
    [K_NAME] = {"name", "kind"},
    [K_WHERE] = {"where"},
    [K_PLACE] = {"place", NULL},
    [K_PEAK] = {"peak_bytes", "at peak", COLUMN_BYTES, 10},
    [K_BLOCKS] = {"peak_blocks", "blocks", COLUMN_COUNT, 9},
    [K_END] = {"end_bytes", "at end", COLUMN_BYTES, 10},
    [K_GOT] = {"got_blocks", "got", COLUMN_COUNT, 10},
    [K_GOT_BYTES] = {"got_bytes", "bytes got", COLUMN_BYTES, 10},
};

static void kinds_begin(struct table *t, enum report_format format)
{
    t->count = memory_of_table(t)->place_count * LEDGER_KINDS;
    t->is_there = t->count || format != FORMAT_TEXT;
}

static bool has_kind(const struct table *t, uint32_t index, enum report_format format)
{
    (void)format;
    return memory_of_table(t)->places[index / LEDGER_KINDS].kinds_got[index % LEDGER_KINDS].blocks;
}

static void fill_kind(const struct table *t, uint32_t index, enum report_format format,
                      struct cell *cells)
{
    const struct memory_place *p = &memory_of_table(t)->places[index / LEDGER_KINDS];
    unsigned kind = index % LEDGER_KINDS;
    struct memory_amount peak = memory_at_peak(p, &p->kinds[kind]);
    struct cell place = place_name(t, p, format);
    char *text = NULL;
    if (format == FORMAT_TEXT && asprintf(&text, "%s, %s", ledger_kind_name(kind), place.text) >= 0)
        cells[K_NAME] = cell_owned(text);
    else
        cells[K_NAME] = cell_text(ledger_kind_name(kind));
    cells[K_PLACE] = place;
    cells[K_WHERE] = cell_text(memory_where_text(p->where));
    cells[K_PEAK] = cell_number(peak.bytes);
    cells[K_BLOCKS] = cell_number(peak.blocks);
    cells[K_END] = cell_number(p->kinds[kind].live.bytes);
    cells[K_GOT] = cell_number(p->kinds_got[kind].blocks);
    cells[K_GOT_BYTES] = cell_number(p->kinds_got[kind].bytes);
}

/* ---- descriptions ---------------------------------------------------------------------------- */

const struct table_info memory_tables[MEMORY_TABLES] = {
    {.name = "out_of_memory",
     .key = "out_of_memory",
     .title = "there was not enough memory",
     .place = PLACE_URGENT,
     .columns = memory_oom_columns,
     .column_count = E_COLUMNS,
     .text = {E_AT, E_WANTED, E_LIVE, E_RESERVED, E_FREE, E_HOLE},
     .begin = memory_ooms_begin,
     .row = memory_fill_oom},
    {.name = "places",
     .key = "places",
     .title = "memory of each device",
     .place = PLACE_MEMORY,
     .columns = place_columns,
     .column_count = P_COLUMNS,
     .text = {P_PEAK, P_SHARE, P_PEAK_AT, P_RESERVED, P_END, P_GROWTH, P_BLOCKS},
     .text_limit = 8,
     .more = "... and %s more; --limit=N shows more of them",
     .begin = places_begin,
     .row = fill_place},
    {.name = "owners",
     .key = "owners",
     .title = "who held it",
     .place = PLACE_MEMORY,
     .columns = owner_columns,
     .column_count = O_COLUMNS,
     .text = {O_BYTES, O_SHARE, O_BLOCKS, O_END, O_GROWTH, O_WHERE, O_PROCESS},
     .text_limit = 10,
     .more = "... and %s more owner%s; --limit=N shows more of them",
     .begin = owners_begin,
     .has = has_owner,
     .row = fill_owner,
     .text_before = owners_before},
    {.name = "leaks",
     .key = "leaks",
     .title = "what grows from step to step",
     .place = PLACE_MEMORY,
     .columns = owner_columns,
     .column_count = O_COLUMNS,
     .text = {O_GROWTH, O_GROWN, O_END, O_WHERE, O_PROCESS},
     .text_limit = 10,
     .more = "... and %s more; --limit=N shows more of them",
     .begin = leaks_begin,
     .row = fill_leak,
     .text_behind = leaks_behind},
    {.name = "hidden",
     .key = "hidden",
     .title = "used beyond the ledger: contexts, modules, libraries, other processes",
     .place = PLACE_MEMORY,
     .columns = memory_hidden_columns,
     .column_count = H_COLUMNS,
     .text = {H_AT, H_USED, H_HIDDEN, H_OTHERS, H_BEFORE, H_BLAMED_NS},
     .text_limit = 5,
     .more = "... and %s more; --limit=N shows more of them",
     .begin = memory_hidden_begin,
     .row = memory_fill_hidden},
    {.name = "kinds",
     .key = "kinds",
     .title = "kinds of memory",
     .place = PLACE_ASKED,
     .columns = kind_columns,
     .column_count = K_COLUMNS,
     .text = {K_PEAK, K_BLOCKS, K_END, K_GOT, K_GOT_BYTES},
     .begin = kinds_begin,
     .has = has_kind,
     .row = fill_kind},
    {.name = "steps",
     .key = "steps",
     .title = "memory in each step",
     .place = PLACE_ASKED,
     .columns = memory_step_columns,
     .column_count = M_COLUMNS,
     .text = {M_PEAK, M_END, M_END_AT},
     .text_limit = 100,
     .more = "... and %s more step%s; --limit=N shows more of them",
     .begin = memory_steps_begin,
     .row = memory_fill_step},
    {.name = "ranges",
     .key = "ranges",
     .title = "memory while ranges and labels were open",
     .place = PLACE_ASKED,
     .columns = memory_range_columns,
     .column_count = R_COLUMNS,
     .text = {R_PEAK, R_RISE, R_KEPT, R_COUNT, R_WHERE},
     .text_limit = 100,
     .more = "... and %s more; --limit=N shows more of them",
     .begin = memory_ranges_begin,
     .row = memory_fill_range},
    {.name = "resident",
     .key = "resident",
     .title = "memory of the host, all of the process",
     .place = PLACE_ASKED,
     .columns = memory_resident_columns,
     .column_count = H_RESIDENT_COLUMNS,
     .text = {H_MOST, H_MOST_AT, H_LAST, H_SAMPLES},
     .begin = memory_resident_begin,
     .has = memory_has_resident,
     .row = memory_fill_resident},
    {.name = "curve",
     .key = "curve",
     .title = "memory over time",
     .place = PLACE_ASKED,
     .columns = memory_step_columns,
     .column_count = M_COLUMNS,
     .text = {M_PEAK, M_END, M_END_AT},
     .begin = memory_curve_begin,
     .row = memory_fill_curve},
};
