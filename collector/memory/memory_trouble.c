/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, and what is in no book: two tables of `gpuprof memory`; and cells of all. */
#include "memory/memory_trouble.h"

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

const struct memory_report *memory_of_table(const struct table *t)
{
    const struct memory_rows *r = t->source;
    return r->report;
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
    char title[TITLE_BYTES], *text = NULL;
    int length;
    process_title(p, true, title, sizeof title);
    if (where == MEMORY_OF_HOST)
        length = asprintf(&text, "host memory, %s", title);
    else if (device == LEDGER_NO_DEVICE)
        length = asprintf(&text, "device not known, %s", title);
    else
        length = asprintf(&text, "%sdevice %u, %s", where == MEMORY_OF_TENSORS ? "tensors on " : "",
                          device, title);
    return cell_owned(length < 0 ? NULL : text);
}

struct cell memory_moment_cell(const struct memory_report *m, uint64_t ns)
{
    uint64_t origin_ns = m->walk.survey.origin_ns;
    return cell_number(ns > origin_ns ? ns - origin_ns : 0);
}

struct cell memory_change_cell(double bytes, enum report_format format)
{
    char unit[UNIT_TEXT_BYTES], text[UNIT_TEXT_BYTES + 2];
    double size = bytes < 0 ? -bytes : bytes;
    if (format != FORMAT_TEXT)
        return cell_real(bytes);
    if (size < 0.5)
        return cell_text("0 B");
    bytes_text(unit, size < 1e18 ? (uint64_t)(size + 0.5) : UINT64_MAX);
    snprintf(text, sizeof text, "%c%s", bytes < 0 ? '-' : '+', unit);
    return cell_owned(strdup(text));
}

const char *memory_where_text(enum memory_where where)
{
    static const char *const texts[] = {"tensor", "device", "host"};
    return texts[where];
}

/* ---- not enough ------------------------------------------------------------------------------ */

const struct column memory_oom_columns[E_COLUMNS] = {
    [E_NAME] = {"name", "who wanted it; and who held most then", COLUMN_LINES},
    [E_PLACE] = {"place"},
    [E_AT] = {"at_ns", "at", COLUMN_NS, 10, true},
    [E_WANTED] = {"wanted_bytes", "wanted", COLUMN_BYTES, 10},
    [E_LIVE] = {"held_bytes", "held", COLUMN_BYTES, 10},
    [E_RESERVED] = {"reserved_bytes", "reserved", COLUMN_BYTES, 10, .is_filled = true},
    [E_FREE] = {"free_bytes", "free", COLUMN_BYTES, 10, .is_filled = true},
    [E_IN_HOLES] = {"in_holes_bytes", NULL, COLUMN_BYTES},
    [E_HOLE] = {"largest_hole_bytes", "hole", COLUMN_BYTES, 10, .is_filled = true, .spare = 1},
    [E_TOTAL] = {"device_bytes", NULL, COLUMN_BYTES},
    [E_ON_DEVICE] = {"on_device_bytes", NULL, COLUMN_BYTES},
    [E_OWNERS] = {"owners", NULL, COLUMN_LIST},
    [E_ADVICE_ID] = {"advice_id"},
    [E_ADVICE] = {"advice"},
};

void memory_ooms_begin(struct table *t, enum report_format format)
{
    t->count = memory_of_table(t)->oom_count;
    t->is_there = t->count || format != FORMAT_TEXT;
}

/* The owners as lines, or as JSON. */
static char *oom_owners(const struct table *t, const struct memory_oom *oom, const char *first)
{
    char *text = NULL, unit[UNIT_TEXT_BYTES];
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
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
    if (fclose(memory) == 0)
        return text;
    free(text);
    return NULL;
}

void memory_fill_oom(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct memory_report *m = memory_of_table(t);
    const struct memory_oom *oom = &m->ooms[index];
    cells[E_NAME] = memory_owner_cell(t, oom->origin);
    if (format == FORMAT_TEXT) {
        char *lines = oom_owners(t, oom, cells[E_NAME].text);
        free(cells[E_NAME].memory);
        cells[E_NAME] = cell_owned(lines);
    }
    cells[E_PLACE] = memory_place_cell(oom->process, oom->device, oom->where);
    cells[E_AT] = memory_moment_cell(m, oom->at_ns);
    cells[E_WANTED] = cell_number(oom->wanted);
    cells[E_LIVE] = cell_number(oom->live);
    if (oom->where == MEMORY_OF_TENSORS)
        cells[E_RESERVED] = cell_number(oom->reserved);
    if (oom->free != UINT64_MAX)
        cells[E_FREE] = cell_number(oom->free);
    if (oom->in_holes != UINT64_MAX) {
        cells[E_IN_HOLES] = cell_number(oom->in_holes);
        cells[E_HOLE] = cell_number(oom->hole);
    }
    cells[E_OWNERS] = cell_owned(oom_owners(t, oom, NULL));
    if (oom->total)
        cells[E_TOTAL] = cell_number(oom->total);
    if (oom->where != MEMORY_OF_HOST)
        cells[E_ON_DEVICE] = cell_number(oom->on_device);
    struct memory_advice advice = memory_advise(t->source, oom);
    cells[E_ADVICE_ID] = cell_text(advice.id);
    cells[E_ADVICE] = cell_owned(advice.text);
}

/* ---- what is in no book ---------------------------------------------------------------------- */

const struct column memory_hidden_columns[H_COLUMNS] = {
    [H_NAME] = {"longest_call", "the longest call since the program asked before"},
    [H_PLACE] = {"place"},
    [H_AT] = {"at_ns", "at", COLUMN_NS, 10, true},
    [H_USED] = {"used_bytes", "used", COLUMN_BYTES, 10},
    [H_HIDDEN] = {"hidden_bytes", "not ours", COLUMN_BYTES, 10},
    [H_OTHERS] = {"others_bytes", "by others", COLUMN_BYTES, 10, .is_filled = true},
    [H_BEFORE] = {"before_bytes", "before", COLUMN_BYTES, 10},
    [H_BLAMED_NS] = {"longest_call_ns", "took", COLUMN_NS, 10},
    [H_BY] = {"said_by", NULL},
};

void memory_hidden_begin(struct table *t, enum report_format format)
{
    t->count = memory_of_table(t)->jump_count;
    t->is_there = t->count || format != FORMAT_TEXT;
}

void memory_fill_hidden(const struct table *t, uint32_t index, enum report_format format,
                        struct cell *cells)
{
    const struct memory_report *m = memory_of_table(t);
    const struct memory_jump *jump = &m->jumps[index];
    cells[H_NAME] = jump->blamed || format == FORMAT_TEXT
                        ? cell_text(jump->blamed ? jump->blamed->name : "(none)")
                        : (struct cell){.kind = CELL_NULL};
    cells[H_PLACE] = memory_place_cell(jump->process, jump->device, MEMORY_OF_DEVICE);
    cells[H_AT] = memory_moment_cell(m, jump->at_ns);
    cells[H_USED] = cell_number(jump->used);
    cells[H_HIDDEN] = cell_number(jump->hidden);
    if (jump->others != OTHERS_UNKNOWN)
        cells[H_OTHERS] = cell_number(jump->others);
    cells[H_BY] = cell_text(jump->is_drivers ? "driver" : "program");
    cells[H_BEFORE] = cell_number(jump->before);
    if (jump->blamed)
        cells[H_BLAMED_NS] = cell_number(jump->blamed_ns);
}
