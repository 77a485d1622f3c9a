/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "analyse/report_make.h"
#include "base/array.h"
#include "base/text.h"
#include "read/process.h"
#include "resolve/op_names.h"

#define GAPS_MAX 0.1 /* most time between steps, as a share: then the mean is one of the steps */

static void energy_report_analysis_release(struct report *r)
{
    free(r->energy->windows);
    free(r->energy->rows);
}

/* Stores nothing for a recording without readings. */
static int energy_report_take(void *context, const struct slice *s)
{
    struct energy_report *e = context;
    const struct host_span *span = s->span;
    bool is_label = slice_change(s, SPAN_OP) == SPAN_CLOSED && op_is_label(span) && !span->is_moved;
    if (!s->walk->sources.count || s->is_filtered ||
        (slice_change(s, SPAN_RANGE) != SPAN_CLOSED && !is_label) || !span->text ||
        span->end_ns - span->begin_ns < ENERGY_WINDOW_NS)
        return 0;
    struct energy_window window = {span->begin_ns, span->end_ns, span->process, span->text};
    if (e->window_count == ENERGY_WINDOWS_MAX)
        e->beyond++;
    else
        ARRAY_PUSH(e->windows, e->window_count, &window);
    return 0;
}

static void energy_report_analysis_begin(struct report *r)
{
    r->energy->devices = r->devices;
    report_hear(r, (struct consumer){.context = r->energy,
                                     .needs = WALK_SPANS,
                                     .skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK,
                                     .take = energy_report_take});
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Adds the row of a run: all devices of the process, each for as long as it was read. */
static void add_run(struct energy_report *e, const struct process *p)
{
    const struct device_report *r = e->devices;
    struct energy_row row = {.kind = ENERGY_OF_RUN, .process = p};
    for (uint32_t i = 0; i < r->count; i++) {
        uint64_t ns = 0;
        if (r->rows[i].process != p)
            continue;
        struct curve_growth energy = device_row_energy(&r->rows[i], &ns);
        row.count += ns != 0;
        row.at_least |= r->rows[i].energy.jump_count;
        row.ns = max_of(row.ns, ns);
        row.energy.value += energy.value;
        row.energy.error += energy.error;
    }
    row.energy.known = CURVE_KNOWN;
    row.energy = curve_reported(row.energy);
    if (row.count)
        ARRAY_PUSH(e->rows, e->count, &row);
}

/* Adds the row of steps: from the first to the last whole step between readings. Time between steps
 * is included, so there must be little of it. */
static void add_steps(struct energy_report *e, const struct process *p, const struct steps *steps)
{
    const struct device_report *r = e->devices;
    struct energy_row row = {.kind = ENERGY_OF_STEPS, .process = p};
    uint32_t first = steps->firsts[p->index], end = steps->firsts[p->index + 1];
    const struct step *list = steps->list;
    uint64_t begin_ns, end_ns, whole = 0, in_steps_ns = 0;
    if (!device_report_read_for(r, p, &begin_ns, &end_ns))
        return;
    for (uint32_t i = first; i < end; i++)
        whole += !list[i].is_partial;
    /* Skip steps before and after the readings. */
    while (first < end && (list[first].is_partial || list[first].begin_ns < begin_ns))
        first++;
    while (end > first && (list[end - 1].is_partial || list[end - 1].end_ns > end_ns))
        end--;
    if (first == end ||
        (!device_report_energy(r, p, list[first].begin_ns, list[end - 1].end_ns, &row.energy) &&
         row.energy.known != CURVE_SHORT))
        return;
    for (uint32_t i = first; i < end; i++)
        in_steps_ns += list[i].end_ns - list[i].begin_ns;
    row.count = end - first;
    row.left_out = whole > row.count ? whole - row.count : 0;
    row.ns = list[end - 1].end_ns - list[first].begin_ns;
    bool has_gaps = (double)(row.ns - in_steps_ns) > GAPS_MAX * (double)row.ns;
    if (!has_gaps)
        ARRAY_PUSH(e->rows, e->count, &row);
}

static int compare_windows(const void *left, const void *right)
{
    const struct energy_window *a = left, *b = right;
    return strcmp(a->text->shown, b->text->shown) ?: ORDER(a->text, b->text) ?:
           ORDER(a->begin_ns, b->begin_ns);
}

/* Adds a range to its row. Without any figure, the row has the last reason; "too short" wins. */
static void add_window(const struct energy_report *e, struct energy_row *row,
                       const struct energy_window *w)
{
    struct curve_growth energy;
    if (!device_report_energy(e->devices, w->process, w->begin_ns, w->end_ns, &energy)) {
        row->left_out++;
        row->left_out_ns += w->end_ns - w->begin_ns;
        if (!row->count && row->energy.known != CURVE_SHORT)
            row->energy.known = energy.known;
        return;
    }
    row->energy.known = CURVE_KNOWN;
    row->count++;
    row->ns += w->end_ns - w->begin_ns;
    row->energy.value += energy.value;
    row->energy.error += energy.error;
}

/* Adds a row for each name. */
static void add_ranges(struct energy_report *e)
{
    if (e->window_count)
        qsort(e->windows, e->window_count, sizeof *e->windows, compare_windows);
    for (uint32_t i = 0; i < e->window_count;) {
        struct energy_row row = {.kind = ENERGY_OF_RANGE, .text = e->windows[i].text};
        for (; i < e->window_count && e->windows[i].text == row.text; i++)
            add_window(e, &row, &e->windows[i]);
        row.ns = row.count ? row.ns : row.left_out_ns;
        ARRAY_PUSH(e->rows, e->count, &row);
    }
}

static int energy_report_compare_rows(const void *left, const void *right)
{
    const struct energy_row *a = left, *b = right;
    if (a->kind != b->kind || a->kind != ENERGY_OF_RANGE)
        return ORDER(a->kind, b->kind) ?: ORDER(a->process->index, b->process->index);
    return ORDER(b->energy.value, a->energy.value) ?: strcmp(a->text->shown, b->text->shown);
}

/* Runs after all readings and steps are known. */
static void energy_report_analysis_end(struct report *r)
{
    struct energy_report *e = r->energy;
    const struct recording *rec = r->rec;
    const struct steps *steps = r->program_steps;
    for (uint32_t i = 0; r->devices->count && i < rec->count; i++) {
        add_run(e, rec->processes[i]);
        if (steps && steps->count)
            add_steps(e, rec->processes[i], steps);
    }
    add_ranges(e);
    if (e->count)
        qsort(e->rows, e->count, sizeof *e->rows, energy_report_compare_rows);
}

const struct analysis energy_analysis = {
    ANALYSIS_STATE(energy), .uses = USE_PARTS, .begin = energy_report_analysis_begin,
    .end = energy_report_analysis_end, .release = energy_report_analysis_release};

/* ---- the table ------------------------------------------------------------------------------- */

enum { NAME, KIND, LEFT_OUT = 5, ENERGY = 7, ERROR, MEAN, MEAN_ERROR, POWER, ESTIMATED };
enum { WHY_NOT = ESTIMATED + 1, REASON, AT_LEAST };

static const struct column columns[] = {
    [NAME] = {"name", "of what", .doc = "the whole run, its steps, or a range that is long enough"},
    [KIND] = {"kind", NULL, .doc = "run, step or range"},
    COLUMN_RANK(struct energy_row, process),
    COLUMN_PID(struct energy_row, process),
    {"count", "count", COLUMN_COUNT, 7, MEMBER(struct energy_row, count),
     .doc = "the number of steps or ranges in the figure"},
    [LEFT_OUT] = {"left_out", "left out", COLUMN_COUNT, 9, .spare = 1, .is_filled = true,
                  MEMBER(struct energy_row, left_out),
                  .doc = "those left out: too short, or not between two readings"},
    {"total_ns", "time", COLUMN_NS, 11, MEMBER(struct energy_row, ns), .doc = "how long they took"},
    [ENERGY] = {"energy_mj", "energy", COLUMN_ENERGY, 11,
                .doc = "energy that all devices of the process used, in millijoules"},
    [ERROR] = {"energy_error_mj", "+-", COLUMN_ENERGY, 10,
               .doc = "uncertainty of the energy, from the time between readings"},
    [MEAN] = {"mean_mj", "each", COLUMN_ENERGY, 11, .is_filled = true,
              .doc = "mean energy for one step or range"},
    [MEAN_ERROR] = {"mean_error_mj", "+-", COLUMN_ENERGY, 10, .is_filled = true,
                    .doc = "uncertainty of that mean"},
    [POWER] = {"power_mw", "power", COLUMN_POWER, 9,
               .doc = "mean power: energy over time, in milliwatts"},
    [ESTIMATED] = {"estimated", NULL, COLUMN_BOOL,
                   .doc = "1: the figure has bounds, as every known figure does"},
    [WHY_NOT] = {"why_not", NULL, .doc = "why there is no figure, as one word"},
    [REASON] = {"reason", NULL, .doc = "why there is no figure, as a sentence"},
    [AT_LEAST] = {"at_least", NULL, COLUMN_BOOL,
                  .doc = "1: a counter restarted meanwhile, so earlier energy is lost"},
};

static void energy_report_begin(struct table *t)
{
    const struct energy_report *e = t->source;
    t->count = e ? e->count : 0;
    t->is_there = t->count || t->format == FORMAT_JSON ||
                  (e && (e->devices->count || e->devices->missing_reason_count));
}

/* Why there is no figure: as a word, and as a sentence. */
static const struct {
    const char *word;
    const char *reason;
} why_not[CURVE_KNOWNS] = {
    [CURVE_UNREAD] = {"not read", "no energy counter was read"},
    [CURVE_EARLY] = {"not read", "it began before the first reading"},
    [CURVE_LATE] = {"not read", "it ended after the last reading, or too close before it for the "
                                "counter to follow"},
    [CURVE_SHORT] = {"too short", "the uncertainty is as large as the energy"},
    [CURVE_STARTED] = {"began anew", "a counter restarted or jumped, in it or close to it"},
};

static void energy_report_fill(const struct table *t, uint32_t index, struct cell *cells)
{
    static const char *const kinds[] = {"run", "step", "range"};
    const struct energy_row *row = table_item(t, index);
    const struct curve_growth *energy = &row->energy;
    bool is_known = energy->known == CURVE_KNOWN;
    double count = row->count ? (double)row->count : 1;
    cells[ENERGY] = cell_known(is_known, curve_whole(energy->value));
    if (!is_known && t->format == FORMAT_TEXT)
        cells[ENERGY] = cell_text(why_not[energy->known].word);
    cells[ERROR] = cell_known(is_known, curve_whole(ceil(energy->error)));
    if (row->kind != ENERGY_OF_RUN) {
        cells[MEAN] = cell_known(is_known, curve_whole(energy->value / count));
        cells[MEAN_ERROR] = cell_known(is_known, curve_whole(ceil(energy->error / count)));
    }
    if (row->ns)
        cells[POWER] = cell_known(is_known, curve_whole(energy->value * 1e9 / (double)row->ns));
    cells[ENERGY].at_least = cells[POWER].at_least = is_known && row->at_least;
    cells[NAME] = row->kind == ENERGY_OF_RANGE
                      ? cell_text(row->text->shown)
                      : cell_printf("%s, %s", row->kind == ENERGY_OF_RUN ? "the run" : "a step",
                                    process_who(row->process, (char[RANK_TITLE_BYTES]){0}));
    cells[KIND] = cell_text(kinds[row->kind]);
    if (!row->left_out && t->format == FORMAT_TEXT)
        cells[LEFT_OUT] = (struct cell){0};
    cells[ESTIMATED] = cell_number(1);
    cells[WHY_NOT] = cell_text(why_not[energy->known].word);
    cells[REASON] = cell_text(why_not[energy->known].reason);
    cells[AT_LEAST] = cell_known(is_known, row->at_least);
}

/* Is the energy counter missing, or everything? */
static bool is_of_energy(const struct device_missing *a)
{
    return !a->group || (a->group == RECORD_DEVICE_POWER &&
                         (!a->counters || a->counters >> DEVICE_POWER_ENERGY & 1));
}

static void energy_behind(const struct table *t, FILE *out)
{
    const struct energy_report *e = t->source;
    bool any[CURVE_KNOWNS] = {false}, any_at_least = false;
    for (uint32_t i = 0; e && i < e->count; i++) {
        any[e->rows[i].energy.known] = true;
        any_at_least |= e->rows[i].energy.known == CURVE_KNOWN && e->rows[i].at_least;
    }
    if (any_at_least)
        fprintf(out, DEVICE_AT_LEAST_LINE);
    for (unsigned known = CURVE_KNOWN + 1; known < CURVE_KNOWNS; known++)
        if (any[known])
            fprintf(out, "  '%s': %s\n", why_not[known].word, why_not[known].reason);
    if (e && (!e->count || any[CURVE_UNREAD] || any[CURVE_LATE]))
        device_report_say_missing(e->devices, is_of_energy, out);
    if (e && e->beyond)
        fprintf(out, "  left out: %" PRIu64 " more range%s\n", e->beyond, plural_end(e->beyond));
}

const struct table_info energy_table = {.name = "energy",
                                        .key = "energy",
                                        .needs = PART_COUNTERS,
                                        .title = "energy of the devices",
                                        TABLE_COLUMNS(columns),
                                        .rows = {ROWS_IN(struct energy_report, rows, count)},
                                        .text_none =
                                            ": 'gpuprof run --device' records it (needs NVML)",
                                        .begin = energy_report_begin,
                                        .row = energy_report_fill,
                                        .text_behind = energy_behind};
