/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time: the tables of steps, time slices, ranges, and the host's memory. */
#include <inttypes.h>

#include "base/json_text.h"
#include "base/text.h"
#include "memory/memory_report.h"
#include "read/process.h"

/* ---- steps, and the curve -------------------------------------------------------------------- */

enum { NAME, PLACE, STEP, END_AT, PEAK, END };

static const struct column step_columns[] = {
    [NAME] = {NULL, "step and device", .doc = "the step or the interval, and the device"},
    [PLACE] = {"place", .doc = "the device and the process"},
    [STEP] = {"step", NULL, COLUMN_NUMBER, .ascending = true, .doc = "the number of the step"},
    [END_AT] = {"until_ns", "until", COLUMN_NS, 12, true,
                .doc = "when the step or interval ended, since the first event"},
    [PEAK] = {"peak_bytes", "peak", COLUMN_BYTES, 10, .doc = "the most memory that was held in it"},
    [END] = {"end_bytes", "at its end", COLUMN_BYTES, 10, .doc = "memory held when it ended"},
};

/* The place of row *index, with rows of places with steps in sequence; makes *index the step in
 * it. */
static const struct memory_place *place_of_step(const struct memory_report *m, uint32_t *index)
{
    for (uint32_t i = 0; i < m->places.count; i++) {
        const struct memory_place *p = &m->places.list[i];
        uint32_t count = memory_has_steps(m, p->process) ? p->marks.done : 0;
        if (*index < count)
            return p;
        *index -= count;
    }
    return NULL;
}

static void steps_begin(struct table *t, enum report_format format)
{
    const struct memory_report *m = t->source;
    (void)format;
    for (uint32_t i = 0; i < m->places.count; i++)
        t->count +=
            memory_has_steps(m, m->places.list[i].process) ? m->places.list[i].marks.done : 0;
    t->is_there = t->count > 0;
}

static void memory_times_fill_step(const struct table *t, uint32_t index, enum report_format format,
                                   struct cell *cells)
{
    const struct memory_report *m = t->source;
    const struct memory_place *p = place_of_step(m, &index);
    const struct step *step = &m->processes[p->process->index].steps[index];
    struct cell place = memory_place_cell(p->process, p->device, p->where);
    (void)format;
    cells[NAME] = cell_printf("step %" PRIu64 ", %s", step->number, place.text);
    cells[PLACE] = place;
    cells[STEP] = cell_number(step->number);
    cells[END_AT] = memory_moment_cell(m, step->end_ns);
    cells[PEAK] = cell_number(p->marks.list[index].peak);
    cells[END] = cell_number(p->marks.list[index].end);
}

static void curve_begin(struct table *t, enum report_format format)
{
    const struct memory_report *m = t->source;
    (void)format;
    t->is_there = m->places.count > 0;
    t->count = m->places.count * MEMORY_CURVE;
}

static void fill_curve(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells)
{
    const struct memory_report *m = t->source;
    const struct memory_place *p = &m->places.list[index / MEMORY_CURVE];
    uint32_t selected = index % MEMORY_CURVE;
    double length = (double)(m->times.end_ns - m->times.begin_ns) / MEMORY_CURVE;
    (void)format;
    cells[NAME] = memory_place_cell(p->process, p->device, p->where);
    cells[PLACE] = memory_place_cell(p->process, p->device, p->where);
    cells[STEP] = cell_number(selected);
    cells[END_AT] = memory_moment_cell(m, m->times.begin_ns + (uint64_t)((selected + 1) * length));
    cells[PEAK] = cell_number(p->curve.max[selected]);
    cells[END] = cell_number(p->curve.end[selected]);
}

const struct table_info memory_steps_table = {
    .name = "steps",
    .key = "steps",
    .title = "memory in each step",
    TABLE_COLUMNS(step_columns),
    .text = {PEAK, END, END_AT},
    .text_limit = 100,
    .begin = steps_begin,
    .row = memory_times_fill_step,
};

const struct table_info memory_curve_table = {
    .name = "curve",
    .key = "curve",
    .title = "memory over time",
    TABLE_COLUMNS(step_columns),
    .text = {PEAK, END, END_AT},
    .begin = curve_begin,
    .row = fill_curve,
};

/* ---- ranges ---------------------------------------------------------------------------------- */

#define ROW struct memory_range_row

enum { WHERE = 2, COUNT, RANGE_PEAK, RISE, KEPT };

static const struct column range_columns[] = {
    [NAME] = {"name", "range or label", .doc = "the range or label"},
    [PLACE] = {"place", .doc = "the device and the process"},
    [WHERE] = {"where", "of", COLUMN_TEXT, 6, .doc = "tensor, device or host"},
    [COUNT] = {"count", "times", COLUMN_COUNT, 9, MEMBER(ROW, count), .doc = "how often it ran"},
    [RANGE_PEAK] = {"peak_bytes", "peak", COLUMN_BYTES, 10, MEMBER(ROW, peak),
                    .doc = "the most memory that was held while it ran"},
    [RISE] = {"rise_bytes", "rise", COLUMN_BYTES, 10, MEMBER(ROW, rise),
              .doc = "the largest rise above the memory held when it began"},
    [KEPT] = {"kept_bytes", "kept", COLUMN_BYTES, 11,
              .doc = "total growth from its start to its end"},
};
#undef ROW

static void fill_range(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells)
{
    const struct memory_report *m = t->source;
    const struct memory_range_row *row = table_item(t, index);
    const struct memory_place *p = &m->places.list[row->place];
    cells[NAME] = cell_owned(json_line(row->name ? row->name->raw : "(no name)"));
    cells[PLACE] = memory_place_cell(p->process, p->device, p->where);
    cells[WHERE] = cell_text(memory_where_text(p->where));
    cells[KEPT] = memory_change_cell(row->kept, format);
}

const struct table_info memory_ranges_table = {
    .name = "ranges",
    .key = "ranges",
    .title = "memory in ranges and labels",
    TABLE_COLUMNS(range_columns),
    .text = {RANGE_PEAK, RISE, KEPT, COUNT, WHERE},
    .text_limit = 100,
    .rows = {ROWS_IN(struct memory_report, ranges.rows, ranges.count)},
    .row = fill_range,
};

/* ---- host memory ----------------------------------------------------------------------------- */

#define ROW struct memory_process

enum { MOST_AT = 5 };

static const struct column resident_columns[] = {
    [NAME] = {"name", "process", .doc = "the process"},
    COLUMN_PID(ROW, process),
    COLUMN_RANK(ROW, process),
    COLUMN_HOST(ROW, process),
    {"peak_bytes", "resident", COLUMN_BYTES, 10, MEMBER(ROW, resident.peak),
     .doc = "the most host memory that the process used (RSS)"},
    [MOST_AT] = {"peak_ns", "at", COLUMN_NS, 10, true,
                 .doc = "when the peak was, since the first event"},
    {"end_bytes", "at end", COLUMN_BYTES, 10, MEMBER(ROW, resident.last), .doc = "RSS at the end"},
    {"samples", "samples", COLUMN_COUNT, 9, MEMBER(ROW, resident.samples), .doc = "readings"},
};

/* One row for each process, which may be empty. */
static void resident_begin(struct table *t, enum report_format format)
{
    const struct memory_report *m = t->source;
    t->count = m->process_count;
    t->is_there = format != FORMAT_TEXT;
    for (uint32_t i = 0; i < t->count; i++)
        t->is_there |= m->processes[i].resident.samples > 0;
}

static bool has_resident(const struct table *t, uint32_t index, enum report_format format)
{
    (void)format;
    return ((const struct memory_process *)table_item(t, index))->resident.samples;
}

static void fill_resident(const struct table *t, uint32_t index, enum report_format format,
                          struct cell *cells)
{
    const struct memory_process *own = table_item(t, index);
    char title[1100];
    (void)format;
    cells[NAME] = cell_owned(json_line(process_title(own->process, true, title, sizeof title)));
    cells[MOST_AT] = memory_moment_cell(t->source, own->resident.peak_ns);
}

const struct table_info memory_resident_table = {
    .name = "resident",
    .key = "resident",
    .title = "host memory of the process",
    TABLE_COLUMNS(resident_columns),
    .rows = {ROWS_IN(struct memory_report, processes, process_count)},
    .begin = resident_begin,
    .has = has_resident,
    .row = fill_resident,
};
