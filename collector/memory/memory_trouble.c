/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, and what is in no book: two tables of `gpuprof memory`; and cells of all. */
#include "base/new_text.h"
#include "memory/memory_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/unit_text.h"
#include "memory/memory_advice.h"
#include "read/process_title.h"

#define TITLE_BYTES    1100
#define OOM_LINES_TEXT 3 /* owners of one in the text; the others have ten */

/* ---- cells ----------------------------------------------------------------------------------- */

const void *memory_of_table(const struct table *t)
{
    return ((const struct memory_rows *)t->source)->report;
}

struct cell memory_owner_cell(const struct table *t, uint32_t origin)
{
    char *text = memory_owner_text(t->source, origin);
    char *clean = text ? json_line(text) : NULL;
    free(text);
    return cell_owned(clean);
}

struct cell memory_place_cell(const struct process *p, uint32_t device, enum memory_where where)
{
    char title[TITLE_BYTES];
    process_title(p, true, title, sizeof title);
    if (where == MEMORY_OF_HOST)
        return cell_owned(text_printf("host memory, %s", title));
    if (device == LEDGER_NO_DEVICE)
        return cell_owned(text_printf("device not known, %s", title));
    return cell_owned(text_printf("%sdevice %u, %s",
                                  where == MEMORY_OF_TENSORS ? "tensors on " : "", device, title));
}

struct cell memory_moment_cell(const struct memory_report *m, uint64_t ns)
{
    uint64_t origin_ns = m->walk.survey.origin_ns;
    return cell_number(ns > origin_ns ? ns - origin_ns : 0);
}

struct cell memory_change_cell(double bytes, enum report_format format)
{
    char unit[UNIT_TEXT_BYTES];
    double size = bytes < 0 ? -bytes : bytes;
    if (format != FORMAT_TEXT)
        return cell_real(bytes);
    if (size < 0.5)
        return cell_text("0 B");
    bytes_text(unit, size < 1e18 ? (uint64_t)(size + 0.5) : UINT64_MAX);
    return cell_owned(text_printf("%c%s", bytes < 0 ? '-' : '+', unit));
}

const char *memory_where_text(enum memory_where where)
{
    static const char *const texts[] = {"tensor", "device", "host"};
    return texts[where];
}

/* ---- not enough ------------------------------------------------------------------------------ */

#define ROW struct memory_oom

enum { NAME, PLACE, AT, RESERVED = 5, HOLE = 8, ON_DEVICE = 10, OWNERS, ADVICE_ID, ADVICE };

static const struct column oom_columns[] = {
    [NAME] = {"name", "who wanted it; and who held most then", COLUMN_LINES,
              .doc = "who wanted it"},
    [PLACE] = {"place", .doc = "the device and the process"},
    [AT] = {"at_ns", "at", COLUMN_NS, 10, true, .doc = "when it failed, since the first event"},
    {"wanted_bytes", "wanted", COLUMN_BYTES, 10, MEMBER(ROW, wanted), .doc = "what was wanted"},
    {"held_bytes", "held", COLUMN_BYTES, 10, MEMBER(ROW, live),
     .doc = "what the process held there then"},
    [RESERVED] = {"reserved_bytes", "reserved", COLUMN_BYTES, 10, .is_filled = true,
                  .doc = "what PyTorch's allocator had reserved"},
    {"free_bytes", "free", COLUMN_BYTES, 10, .is_filled = true, .lacks = LACKS_MAX,
     MEMBER(ROW, free), .doc = "what was free on the device when the program last asked"},
    {"in_holes_bytes", NULL, COLUMN_BYTES, .lacks = LACKS_MAX, MEMBER(ROW, in_holes),
     .doc = "of reserved_bytes, what lay free between blocks"},
    [HOLE] = {"largest_hole_bytes", "hole", COLUMN_BYTES, 10, .is_filled = true, .spare = 1,
              .doc = "the largest piece of that"},
    {"device_bytes", NULL, COLUMN_BYTES, .lacks = LACKS_ZERO, MEMBER(ROW, total),
     .doc = "memory of the device"},
    [ON_DEVICE] = {"on_device_bytes", NULL, COLUMN_BYTES,
                   .doc = "what the process held on the device in all"},
    [OWNERS] = {"owners", NULL, COLUMN_LIST, .doc = "who held it: up to ten"},
    [ADVICE_ID] = {"advice_id", .doc = "a word for what to do (GUIDE has all)"},
    [ADVICE] = {"advice", .doc = "what to do"},
};
#undef ROW

/* The owners as lines, or as JSON. */
static char *oom_owners(const struct table *t, const struct memory_oom *oom, const char *first)
{
    char unit[UNIT_TEXT_BYTES];
    struct new_text text;
    FILE *memory = new_text_begin(&text);
    if (!memory)
        return NULL;
    fputs(first ? first : "[", memory);
    for (uint32_t i = 0; i < oom->owner_count && !(first && i >= OOM_LINES_TEXT); i++) {
        struct cell name = memory_owner_cell(t, oom->owners[i].origin);
        const char *shown = name.text ? name.text : "?";
        char *json = json_string(shown, strlen(shown));
        if (first)
            fprintf(memory, "\n%s in %" PRIu64 ": %s", bytes_text(unit, oom->owners[i].live.bytes),
                    oom->owners[i].live.blocks, shown);
        else
            fprintf(memory, "%s{\"name\": %s, \"bytes\": %" PRIu64 ", \"blocks\": %" PRIu64 "}",
                    i ? ", " : "", json ? json : "null", oom->owners[i].live.bytes,
                    oom->owners[i].live.blocks);
        free(json);
        free(name.memory);
    }
    if (!first)
        fputs("]", memory);
    return new_text_end(&text, memory);
}

static void fill_oom(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct memory_oom *oom = table_item(t, index);
    cells[NAME] = memory_owner_cell(t, oom->origin);
    if (format == FORMAT_TEXT) {
        char *lines = oom_owners(t, oom, cells[NAME].text);
        free(cells[NAME].memory);
        cells[NAME] = cell_owned(lines);
    }
    cells[PLACE] = memory_place_cell(oom->process, oom->device, oom->where);
    cells[AT] = memory_moment_cell(memory_of_table(t), oom->at_ns);
    if (oom->where == MEMORY_OF_TENSORS)
        cells[RESERVED] = cell_number(oom->reserved);
    if (oom->in_holes != UINT64_MAX)
        cells[HOLE] = cell_number(oom->hole);
    cells[OWNERS] = cell_owned(oom_owners(t, oom, NULL));
    if (oom->where != MEMORY_OF_HOST)
        cells[ON_DEVICE] = cell_number(oom->on_device);
    struct memory_advice advice = memory_advise(t->source, oom);
    cells[ADVICE_ID] = cell_text(advice.id);
    cells[ADVICE] = cell_owned(advice.text);
}

const struct table_info memory_ooms_table = {
    .name = "out_of_memory",
    .key = "out_of_memory",
    .title = "there was not enough memory",
    .place = PLACE_URGENT,
    TABLE_COLUMNS(oom_columns),
    .rows = {ROWS_IN(struct memory_report, ooms, oom_count), .of = memory_of_table},
    .row = fill_oom,
};

/* ---- what is in no book ---------------------------------------------------------------------- */

#define ROW struct memory_jump

enum { SAID_BY = 8 };

static const struct column hidden_columns[] = {
    [NAME] = {"longest_call", "the longest call since the program asked before",
              MEMBER_OF(ROW, blamed, name),
              .doc = "the call that took longest since the program had asked before"},
    [PLACE] = {"place", .doc = "the device and the process"},
    [AT] = {"at_ns", "at", COLUMN_NS, 10, true,
            .doc = "when the program asked or the driver was read, since the first event"},
    {"used_bytes", "used", COLUMN_BYTES, 10, MEMBER(ROW, used),
     .doc = "what of the device was in use"},
    {"hidden_bytes", "not ours", COLUMN_BYTES, 10, MEMBER(ROW, hidden),
     .doc = "of that, what is beyond what the process got by calls"},
    {"others_bytes", "by others", COLUMN_BYTES, 10, .is_filled = true, .lacks = LACKS_MAX,
     MEMBER(ROW, others), .doc = "of that, what other processes used, where the driver says it"},
    {"before_bytes", "before", COLUMN_BYTES, 10, MEMBER(ROW, before),
     .doc = "what was hidden when the program had asked before"},
    {"longest_call_ns", "took", COLUMN_NS, 10, .lacks = LACKS_ZERO, MEMBER(ROW, blamed_ns),
     .doc = "how long that call took"},
    [SAID_BY] = {"said_by", .doc = "program or driver: who was asked"},
};

static void fill_hidden(const struct table *t, uint32_t index, enum report_format format,
                        struct cell *cells)
{
    const struct memory_jump *jump = table_item(t, index);
    if (!jump->blamed)
        cells[NAME] = cell_text(format == FORMAT_TEXT ? "(none)" : NULL);
    cells[PLACE] = memory_place_cell(jump->process, jump->device, MEMORY_OF_DEVICE);
    cells[AT] = memory_moment_cell(memory_of_table(t), jump->at_ns);
    cells[SAID_BY] = cell_text(jump->is_drivers ? "driver" : "program");
}

const struct table_info memory_hidden_table = {
    .name = "hidden",
    .key = "hidden",
    .title = "used beyond the ledger: contexts, modules, libraries, other processes",
    .place = PLACE_MEMORY,
    TABLE_COLUMNS(hidden_columns),
    .text_limit = 5,
    .more = "... and %s more; --limit=N shows more of them",
    .rows = {ROWS_IN(struct memory_report, jumps, jump_count), .of = memory_of_table},
    .row = fill_hidden,
};
