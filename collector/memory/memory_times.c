/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_text.h"
#include "memory/memory_trouble.h"
#include "read/process_title.h"

/* ---- steps, and the curve -------------------------------------------------------------------- */

const struct column memory_step_columns[M_COLUMNS] = {
    [M_NAME] = {NULL, "step and device"},
    [M_PLACE] = {"place"},
    [M_STEP] = {"step", NULL, COLUMN_NUMBER, .ascending = true},
    [M_END_AT] = {"until_ns", "until", COLUMN_NS, 12, true},
    [M_PEAK] = {"peak_bytes", "peak", COLUMN_BYTES, 10},
    [M_END] = {"end_bytes", "at its end", COLUMN_BYTES, 10},
};

/* Rows of places that have steps, one after another. */
static const struct memory_place *place_of_step(const struct memory_report *m, uint32_t *index)
{
    for (uint32_t i = 0; i < m->place_count; i++) {
        const struct memory_place *p = &m->places[i];
        uint32_t count = memory_has_steps(m, p->process) ? p->mark : 0;
        if (*index < count)
            return p;
        *index -= count;
    }
    return NULL;
}

void memory_steps_begin(struct table *t, enum report_format format)
{
    const struct memory_report *m = memory_of_table(t);
    (void)format;
    for (uint32_t i = 0; i < m->place_count; i++)
        t->count += memory_has_steps(m, m->places[i].process) ? m->places[i].mark : 0;
    t->is_there = t->count > 0;
}

void memory_fill_step(const struct table *t, uint32_t index, enum report_format format,
                      struct cell *cells)
{
    const struct memory_report *m = memory_of_table(t);
    const struct memory_place *p = place_of_step(m, &index);
    const struct step *step = memory_step(m, p->process, index);
    struct cell place = memory_place_cell(p->process, p->device, p->where);
    char *text = NULL;
    (void)format;
    if (asprintf(&text, "step %" PRIu64 ", %s", step->number, place.text) < 0)
        text = NULL;
    cells[M_NAME] = cell_owned(text);
    cells[M_PLACE] = place;
    cells[M_STEP] = cell_number(step->number);
    cells[M_END_AT] = memory_moment_cell(m, step->end_ns);
    cells[M_PEAK] = cell_number(p->marks[index].peak);
    cells[M_END] = cell_number(p->marks[index].end);
}

void memory_curve_begin(struct table *t, enum report_format format)
{
    const struct memory_report *m = memory_of_table(t);
    (void)format;
    t->is_there = m->place_count > 0;
    t->count = m->place_count * MEMORY_CURVE;
}

void memory_fill_curve(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells)
{
    const struct memory_report *m = memory_of_table(t);
    const struct memory_place *p = &m->places[index / MEMORY_CURVE];
    uint32_t piece = index % MEMORY_CURVE;
    double length = (double)(m->end_ns - m->begin_ns) / MEMORY_CURVE;
    (void)format;
    cells[M_NAME] = memory_place_cell(p->process, p->device, p->where);
    cells[M_PLACE] = memory_place_cell(p->process, p->device, p->where);
    cells[M_STEP] = cell_number(piece);
    cells[M_END_AT] = memory_moment_cell(m, m->begin_ns + (uint64_t)((piece + 1) * length));
    cells[M_PEAK] = cell_number(p->curve_max[piece]);
    cells[M_END] = cell_number(p->curve_end[piece]);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

const struct column memory_range_columns[R_COLUMNS] = {
    [R_NAME] = {"name", "range or label"},
    [R_PLACE] = {"place"},
    [R_WHERE] = {"where", "of", COLUMN_TEXT, 6},
    [R_COUNT] = {"count", "times", COLUMN_COUNT, 9},
    [R_PEAK] = {"peak_bytes", "peak", COLUMN_BYTES, 10},
    [R_RISE] = {"rise_bytes", "rise", COLUMN_BYTES, 10},
    [R_KEPT] = {"kept_bytes", "kept", COLUMN_BYTES, 11},
};

void memory_ranges_begin(struct table *t, enum report_format format)
{
    t->count = memory_of_table(t)->ranges.count;
    t->is_there = t->count || format != FORMAT_TEXT;
}

void memory_fill_range(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells)
{
    const struct memory_report *m = memory_of_table(t);
    const struct memory_range_row *row = &m->ranges.rows[index];
    const struct memory_place *p = &m->places[row->place];
    cells[R_NAME] = cell_owned(json_line(row->name ? row->name->raw : "(no name)"));
    cells[R_PLACE] = memory_place_cell(p->process, p->device, p->where);
    cells[R_WHERE] = cell_text(memory_where_text(p->where));
    cells[R_COUNT] = cell_number(row->count);
    cells[R_PEAK] = cell_number(row->peak);
    cells[R_RISE] = cell_number(row->rise);
    cells[R_KEPT] = memory_change_cell(row->kept, format);
}

/* ---- the host's ------------------------------------------------------------------------------ */

const struct column memory_resident_columns[H_RESIDENT_COLUMNS] = {
    [H_PROCESS] = {"name", "process"},
    [H_PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true},
    [H_RANK] = {"rank"},
    [H_HOST] = {"host"},
    [H_MOST] = {"peak_bytes", "resident", COLUMN_BYTES, 10},
    [H_MOST_AT] = {"peak_ns", "at", COLUMN_NS, 10, true},
    [H_LAST] = {"end_bytes", "at end", COLUMN_BYTES, 10},
    [H_SAMPLES] = {"samples", "samples", COLUMN_COUNT, 9},
};

void memory_resident_begin(struct table *t, enum report_format format)
{
    const struct memory_report *m = memory_of_table(t);
    t->count = m->rec->count;
    t->is_there = format != FORMAT_TEXT;
    for (uint32_t i = 0; i < t->count; i++)
        t->is_there |= m->resident[i].samples > 0;
}

bool memory_has_resident(const struct table *t, uint32_t index, enum report_format format)
{
    (void)format;
    return memory_of_table(t)->resident[index].samples;
}

void memory_fill_resident(const struct table *t, uint32_t index, enum report_format format,
                          struct cell *cells)
{
    const struct memory_report *m = memory_of_table(t);
    const struct process *p = m->rec->processes[index];
    const struct memory_resident *r = &m->resident[index];
    char title[1100];
    (void)format;
    cells[H_PROCESS] = cell_owned(json_line(process_title(p, true, title, sizeof title)));
    cells[H_PID] = cell_number(p->header.pid);
    cells[H_RANK] = cell_text(process_rank(p));
    cells[H_HOST] = cell_text(p->header.host);
    cells[H_MOST] = cell_number(r->peak);
    cells[H_MOST_AT] = memory_moment_cell(m, r->peak_ns);
    cells[H_LAST] = cell_number(r->last);
    cells[H_SAMPLES] = cell_number(r->samples);
}
