/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time: the tables of steps, time slices, ranges, and the host's memory. */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
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

static const struct memory_series *series_of(const struct table *t, const struct memory_place *p)
{
    static const struct memory_series none = {.count = 0};
    return t->info == &memory_curve_table            ? &p->curve
           : memory_has_steps(t->source, p->process) ? &p->marks
                                                     : &none;
}

static void parts_begin(struct table *t)
{
    const struct memory_report *m = t->source;
    for (uint32_t i = 0; i < m->places.count; i++)
        t->count += series_of(t, &m->places.list[i])->done;
    t->is_there = t->count > 0;
}

/* The rows are the parts of the first place, then those of the second ... */
static void fill_part(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct memory_report *m = t->source;
    const struct memory_place *p = m->places.list;
    double slice_ns = (double)(m->times.end_ns - m->times.begin_ns) / MEMORY_CURVE;
    for (; index >= series_of(t, p)->done; p++)
        index -= series_of(t, p)->done;
    const struct memory_part *part = &series_of(t, p)->list[index];
    cells[PLACE] = memory_place_cell(p->process, p->device, p->where);
    if (t->info == &memory_curve_table) {
        cells[NAME] = memory_place_cell(p->process, p->device, p->where);
        cells[STEP] = cell_number(index);
        cells[END_AT] =
            cell_number(memory_moment(m, m->times.begin_ns + (uint64_t)((index + 1) * slice_ns)));
    } else {
        const struct step *step = &m->processes[p->process->index].steps[index];
        cells[NAME] = cell_printf("step %" PRIu64 ", %s", step->number, cells[PLACE].text);
        cells[STEP] = cell_number(step->number);
        cells[END_AT] = cell_number(memory_moment(m, step->end_ns));
    }
    cells[PEAK] = cell_number(part->peak);
    cells[END] = cell_number(part->end);
}

const struct table_info memory_steps_table = {
    .name = "steps",
    .key = "steps",
    .title = "memory in each step",
    TABLE_COLUMNS(step_columns),
    .text = {PEAK, END, END_AT},
    .text_limit = 100,
    .begin = parts_begin,
    .row = fill_part,
};

const struct table_info memory_curve_table = {
    .name = "curve",
    .key = "curve",
    .title = "memory over time",
    TABLE_COLUMNS(step_columns),
    .text = {PEAK, END, END_AT},
    .begin = parts_begin,
    .row = fill_part,
};

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Begins a range; `row` becomes its slot + 1, or 0 if there is no room. */
static void memory_ranges_begin(struct memory_report *m, struct host_span *span)
{
    struct memory_process *own = &m->processes[span->process->index];
    span->row = (uint32_t)__builtin_ffsll((long long)~own->ranges.open);
    m->ranges.beyond += !span->row;
    if (!span->row)
        return;
    unsigned slot = span->row - 1;
    own->ranges.open |= 1ull << slot;
    own->ranges.names[slot] = span->text;
    for (uint32_t i = own->ranges.first_place; i; i = m->places.list[i - 1].in_ranges.next) {
        struct memory_place *place = &m->places.list[i - 1];
        place->in_ranges.begin[slot] = place->in_ranges.peak[slot] = place->all.live.bytes;
    }
}

static void memory_ranges_end(struct memory_report *m, const struct host_span *span)
{
    static const struct number_kind kind = NUMBER_KEY(struct memory_range_row, place);
    struct memory_process *own = &m->processes[span->process->index];
    unsigned slot = span->row - 1;
    if (slot >= MEMORY_RANGES_OPEN || !(own->ranges.open >> slot & 1))
        return;
    own->ranges.open &= ~(1ull << slot);
    for (uint32_t i = own->ranges.first_place; i; i = m->places.list[i - 1].in_ranges.next) {
        struct memory_place *place = &m->places.list[i - 1];
        uint64_t from = place->in_ranges.begin[slot], peak = place->in_ranges.peak[slot];
        const struct memory_range_row wanted = {.name = own->ranges.names[slot], .place = i - 1};
        uint32_t found = NUMBER_ADD(&m->ranges.numbers, &kind, m->ranges.rows, m->ranges.count,
                                    MEMORY_RANGE_ROWS_MAX, &wanted);
        place->in_ranges.begin[slot] = place->in_ranges.peak[slot] = 0;
        m->ranges.beyond += found == 0;
        if (!found)
            continue;
        struct memory_range_row *row = &m->ranges.rows[found - 1];
        row->count++;
        row->peak = max_of(row->peak, peak);
        row->rise = max_of(row->rise, peak - from);
        row->kept += (double)place->all.live.bytes - (double)from;
    }
}

void memory_ranges_take(struct memory_report *m, const struct slice *s)
{
    struct host_span *span = s->span;
    if (!s->change || s->change == SPAN_MARKED || span->type == SPAN_LIBRARY ||
        (span->type == SPAN_OP && !op_is_label(span)))
        return;
    if (s->change == SPAN_OPENED)
        memory_ranges_begin(m, span);
    else
        memory_ranges_end(m, span);
}

static int memory_ranges_compare(const void *left, const void *right)
{
    const struct memory_range_row *a = left, *b = right;
    return ORDER(b->peak, a->peak)
               ?: strcmp(a->name ? a->name->raw : "", b->name ? b->name->raw : "")
               ?: ORDER(a->place, b->place);
}

void memory_ranges_sort(struct memory_report *m)
{
    ARRAY_SORT(m->ranges.rows, m->ranges.count, memory_ranges_compare);
}

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

static void fill_range(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct memory_report *m = t->source;
    const struct memory_range_row *row = table_item(t, index);
    const struct memory_place *p = &m->places.list[row->place];
    char *name = json_line(row->name ? row->name->raw : "(no name)");
    cells[PLACE] = memory_place_cell(p->process, p->device, p->where);
    cells[NAME] = cell_printf(t->format == FORMAT_TEXT ? "%s, %s" : "%s", name, cells[PLACE].text);
    free(name);
    cells[WHERE] = cell_text(memory_where_text(p->where));
    cells[KEPT] = memory_change_cell(row->kept, t->format);
}

const struct table_info memory_ranges_table = {
    .name = "ranges",
    .key = "ranges",
    .title = "memory in ranges and labels",
    TABLE_COLUMNS(range_columns),
    .text = {RANGE_PEAK, RISE, KEPT, COUNT},
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

static bool has_resident(const struct table *t, uint32_t index)
{
    return ((const struct memory_process *)table_item(t, index))->resident.samples;
}

static void fill_resident(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct memory_process *own = table_item(t, index);
    char title[1100];
    cells[NAME] = cell_owned(json_line(process_title(own->process, true, title, sizeof title)));
    cells[MOST_AT] = cell_number(memory_moment(t->source, own->resident.peak_ns));
}

const struct table_info memory_resident_table = {
    .name = "resident",
    .key = "resident",
    .title = "host memory of the process",
    TABLE_COLUMNS(resident_columns),
    .rows = {ROWS_IN(struct memory_report, processes, process_count)},
    .has = has_resident,
    .row = fill_resident,
};
