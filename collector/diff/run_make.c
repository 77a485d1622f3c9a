/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_make.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/memory_peaks.h"
#include "analyse/place_lines.h"
#include "base/array.h"
#include "base/key_map.h"
#include "base/message.h"
#include "error.h"
#include "record/gpu_record.h"
#include "resolve/range_text.h"

#define GRAPH_NAME "CUDA graph"

/* ---- the kernels of kept steps, by name and place of launch ---------------------------------- */

/* A row; its key comes first. The texts are views into the walk. */
struct run_work_row {
    const struct kernel_name *name; /* NULL: not known, or work of a graph */
    const struct kernel_name *op;
    const struct kernel_name *range;
    uint32_t kind;    /* of library_calls.h; 0: none */
    uint32_t process; /* process index of the stack */
    uint32_t stack;   /* number of the stack in that process; 0: none */
    uint32_t is_graph;
    uint64_t count;
    uint64_t ns;
};

struct run_work {
    struct run_steps *steps;
    struct run_work_row *list; /* owned */
    uint32_t count;
    struct number_set numbers;
};

/* ---- the walk -------------------------------------------------------------------------------- */

/* Fills in the place of a call. Returns 0 or an error. */
static int run_make_place_of(struct walk *walk, const struct correlated_call *call,
                             struct run_work_row *row)
{
    struct survey *survey = &walk->survey;
    uint32_t number = call->span;
    const struct span_node *node;
    const struct kernel_name *label = NULL;
    int error = 0;
    row->process = call->process;
    row->stack = call->stack;
    while ((node = survey_span(survey, call, ~0u, &number, false, &error))) {
        if (node->type == SPAN_LIBRARY)
            row->kind = row->kind ? row->kind : node->kind;
        else if (node->type == SPAN_RANGE)
            row->range = row->range ? row->range : node->text;
        else if (op_scope_works(node->scope))
            row->op = row->op ? row->op : node->text;
        else if (!label && !row->op)
            label = node->text;
    }
    if (!row->range)
        row->range = label;
    return error;
}

/* Adds work to its row. If there is no room for another row, it loses its place, or is left out. */
static int run_make_add(struct run_work *w, struct run_work_row *row, uint64_t ns)
{
    static const struct number_kind kind = NUMBER_KEY(struct run_work_row, is_graph);
    int64_t number = NUMBER_ADD(&w->numbers, &kind, w->list, w->count, RUN_KERNELS_MAX, row);
    if (number == 0) {
        *row = (struct run_work_row){.name = row->name, .is_graph = row->is_graph};
        number = NUMBER_ADD(&w->numbers, &kind, w->list, w->count, RUN_KERNELS_MAX, row);
    }
    if (number <= 0)
        return (int)number;
    w->list[number - 1].count++;
    w->list[number - 1].ns += ns;
    return 0;
}

static int run_make_take_work(void *context, const struct slice *s)
{
    struct run_work *w = context;
    const struct event *e = &s->event;
    struct walk *walk = w->steps->walk;
    struct run_work_row row = {.is_graph = e->record->type == RECORD_GRAPH};
    if ((!row.is_graph && e->record->type != RECORD_KERNEL) ||
        !run_step_at(w->steps, e->process, s->is_called ? s->call.begin_ns : e->begin_ns))
        return 0;
    if (!row.is_graph)
        row.name = walk_kernel(walk, e->process, record_arg(e->record, KERNEL_NAME_INDEX));
    int error = s->is_called ? run_make_place_of(walk, &s->call, &row) : 0;
    return error == 0 ? run_make_add(w, &row, e->end_ns - e->begin_ns) : error;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns the range with '*' for its numbers, in new memory; NULL: no memory. */
static char *pattern_of(const struct kernel_name *range)
{
    char *text = strdup(range->shown);
    uint32_t length =
        text ? range_text_pattern(range->shown, (uint32_t)strlen(range->shown), NUMBERS_ALL, text)
             : 0;
    if (length)
        text[length] = '\0';
    return text;
}

static int run_make_name_row(struct run_work *w, struct place_lines *lines,
                             const struct run_work_row *row, struct run_summary *r)
{
    const char *line = NULL;
    int error = place_line(lines, row->process, row->stack, &line);
    const struct kernel_name *library =
        error == 0 && row->kind ? library_kind_text(&w->steps->walk->kinds, row->kind, &error)
                                : NULL;
    char *range = row->range ? pattern_of(row->range) : NULL;
    if (error < 0 || (row->range && !range)) {
        free(range);
        return error < 0 ? error : GPUPROF_NO_MEMORY;
    }
    /* run_kernel_add does not write to them */
    struct run_kernel kernel = {
        .name = (char *)(uintptr_t)(row->is_graph ? GRAPH_NAME : row->name->raw),
        .place = {[RUN_OPERATOR] = (char *)(uintptr_t)(row->op ? row->op->shown : NULL),
                  [RUN_LIBRARY] = (char *)(uintptr_t)(library ? library->shown : NULL),
                  [RUN_RANGE] = range,
                  [RUN_LINE] = (char *)(uintptr_t)line},
        .count = row->count,
        .ns = row->ns};
    error = run_kernel_add(r, &kernel);
    free(range);
    return error;
}

/* Adds the rows to the run's kernels after the walk, with lines from `symbols` (symbols.h). Returns
 * 0 or an error. */
static int run_work_name(struct run_work *w, const char *symbols, struct run_summary *r)
{
    struct walk *walk = w->steps->walk;
    struct place_lines lines = {.stacks = &walk->survey.stacks};
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < w->count; i++)
        error = place_lines_add(&lines, w->list[i].process, w->list[i].stack, false);
    if (error == 0)
        error = place_lines_find(&lines, walk->rec, symbols);
    for (uint32_t i = 0; error == 0 && i < w->count; i++)
        if (w->list[i].name || w->list[i].is_graph)
            error = run_make_name_row(w, &lines, &w->list[i], r);
    place_lines_release(&lines);
    return error;
}

/* ---- energy ---------------------------------------------------------------------------------- */

/* Returns whether all devices that the process reads are counted in other processes. */
static bool run_make_is_counted(const struct device_report *devices, const struct process *p)
{
    bool is_read = false, has_own = false;
    for (uint32_t i = 0; i < devices->count; i++) {
        is_read |= devices->rows[i].process == p;
        has_own |= devices->rows[i].process == p && !devices->rows[i].is_double;
    }
    return is_read && !has_own;
}

struct kept {
    uint32_t first, end;
};

/* Returns the kept steps of a process that lie within that time. */
static struct kept kept_between(const struct run_steps *r, const struct process *p,
                                uint64_t from_ns, uint64_t to_ns)
{
    const struct step *list = r->steps.list;
    struct kept k = {r->steps.firsts[p->index], r->steps.firsts[p->index + 1]};
    while (k.first < k.end && (!r->list[k.first].is_kept || list[k.first].begin_ns < from_ns))
        k.first++;
    while (k.end > k.first && (!r->list[k.end - 1].is_kept || list[k.end - 1].end_ns > to_ns))
        k.end--;
    return k;
}

/* Returns the energy of a step of the process, NAN if not known, and the number of steps. */
static double of_process(const struct run_steps *r, const struct device_report *devices,
                         const struct process *p, uint64_t *count)
{
    const struct step *list = r->steps.list;
    uint64_t from_ns, to_ns;
    struct curve_growth energy;
    *count = 0;
    if (!device_report_read_for(devices, p, &from_ns, &to_ns))
        return NAN;
    struct kept k = kept_between(r, p, from_ns, to_ns);
    if (k.first == k.end ||
        !device_report_energy(devices, p, list[k.first].begin_ns, list[k.end - 1].end_ns, &energy))
        return NAN;
    *count = k.end - k.first;
    return energy.value / (double)*count;
}

/*
 * Sets the metric of energy, after the walk: for each process, the energy of its devices from the
 * first to the last kept step that the readings cover, divided by the number of steps. A device
 * that several processes read counts once, which changes `devices`. The metric stays NAN if a
 * process with steps has no reading. Returns 0 or GPUPROF_NO_MEMORY.
 */
static int run_energy_find(struct run_summary *r, const struct run_steps *steps,
                           struct device_report *devices)
{
    const struct recording *rec = steps->walk->rec;
    double mj = 0;
    bool *has_kept = calloc(rec->count + 1u, sizeof *has_kept);
    if (!has_kept)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct kept k = kept_between(steps, rec->processes[i], 0, UINT64_MAX);
        has_kept[i] = k.first < k.end;
    }
    device_report_count_once(devices, has_kept);
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        struct kept k = kept_between(steps, p, 0, UINT64_MAX);
        uint64_t count = k.end - k.first;
        if (has_kept[i] && !run_make_is_counted(devices, p))
            mj += of_process(steps, devices, p, &count);
        r->energy_steps += count;
    }
    r->metrics[RUN_ENERGY] = mj > 0 ? mj : NAN;
    r->energy_steps = mj > 0 ? r->energy_steps : 0;
    free(has_kept);
    return 0;
}

/* ---- the walks ------------------------------------------------------------------------------- */

struct parts {
    struct walk walk;
    struct memory_peaks peaks;
    struct run_steps steps;
    struct run_work work;
    struct device_report devices;
};

/* Returns the most device memory that a process held on one device. */
static double peak_of(const struct memory_peaks *peaks)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < memory_peaks_count(peaks); i++)
        if (!peaks->ledger.totals.list[i].is_host)
            most = max_of(most, max_of(peaks->list[i].reserved, peaks->list[i].allocated));
    return most ? (double)most : NAN;
}

/* Returns EXIT_OK, or another exit code after one line on stderr. */
static enum exit_code walk_through(struct parts *p, const struct run_reading *how)
{
    memory_peaks_init(&p->peaks, &p->walk);
    enum exit_code code = walk_survey(&p->walk) == 0 ? EXIT_OK : EXIT_ENVIRONMENT;
    if (code == EXIT_OK)
        code = run_steps_find(&p->steps, &p->walk, how);
    if (code != EXIT_OK)
        return code;
    p->devices.walk = &p->walk;
    p->work.steps = &p->steps;
    const struct consumer consumers[] = {
        ledger_consumer(&p->peaks.ledger),
        run_steps_consumer(&p->steps),
        {.context = &p->work,
         .needs = WALK_WORK | WALK_SPANS | WALK_STACKS | WALK_LOSSES,
         .skips = WALK_SKIPS_CALLS | WALK_SKIPS_OTHERS,
         .take_work = run_make_take_work},
        device_report_consumer(&p->devices)};
    return walk_run(&p->walk, NULL, consumers, 4) < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

static int sum_up(struct run_summary *r, struct parts *p, const struct run_reading *how)
{
    int error = run_steps_metrics(&p->steps, r->metrics);
    memory_peaks_finish(&p->peaks);
    r->metrics[RUN_PEAK_MEMORY] = peak_of(&p->peaks);
    if (error == 0 && !p->steps.is_whole)
        error = run_energy_find(r, &p->steps, &p->devices);
    r->steps = p->steps.is_whole ? 0 : p->steps.kept;
    r->warm_up = p->steps.warm_up;
    if (error == 0)
        error = run_work_name(&p->work, how->options->symbols, r);
    run_kernels_order(r);
    return error == 0 ? run_provenance_find(r, &p->steps, &p->devices) : error;
}

enum exit_code run_summary_make(struct run_summary *r, struct recording *rec,
                                const struct run_reading *how)
{
    struct parts p = {.walk = {.rec = NULL}};
    *r = (struct run_summary){.steps = 0};
    for (unsigned i = 0; i < RUN_METRICS; i++)
        r->metrics[i] = NAN;
    enum exit_code code = say_error(how->verb, walk_init(&p.walk, rec));
    if (code == EXIT_OK)
        code = walk_through(&p, how);
    if (code == EXIT_OK)
        code = say_error(how->verb, sum_up(r, &p, how));
    free(p.work.list);
    number_set_release(&p.work.numbers);
    run_steps_release(&p.steps);
    device_report_release(&p.devices);
    memory_peaks_release(&p.peaks);
    walk_release(&p.walk);
    return code;
}
