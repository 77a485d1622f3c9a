/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/cost_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/text.h"

#define STEPS_SHOWN_MAX 32   /* rows of the text, for all processes together */
#define TIMED_FEW       100  /* fewer timed calls than this ... */
#define TIMED_OF        1000 /* ... for this many times as many calls make an estimate rough */

static double worst_share(const struct process *p)
{
    return cost_share(p->costs.sum[COST_SUM_WORST_COST_NS], p->costs.sum[COST_SUM_WORST_WALL_NS]);
}

void cost_report_init(struct cost_report *c, const struct recording *rec)
{
    *c = (struct cost_report){.process_count = rec->count};
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        const struct cost_table *costs = &p->costs;
        for (unsigned k = 0; k < sizeof c->rows / (sizeof(uint64_t)); k++)
            ((uint64_t *)c->rows)[k] += ((const uint64_t *)costs->rows)[k];
        for (unsigned k = 0; k < COST_SUM_ARG_COUNT; k++)
            c->sum[k] += costs->sum[k];
        if (costs->sum[COST_SUM_WORST_WALL_NS] &&
            (!c->worst || worst_share(p) > worst_share(c->worst)))
            c->worst = p;
        for (uint32_t k = 0; k < costs->step_count; k++)
            ARRAY_PUSH(c->steps, c->step_count, (&(const struct step_taken){p, &costs->steps[k]}));
    }
    for (unsigned k = 0; k < COST_COUNT; k++)
        c->is_blind |= c->rows[k].unmeasured && !c->sum[COST_SUM_COST_NS];
}

double cost_of_threads(const struct cost_report *c)
{
    return cost_share(c->sum[COST_SUM_COST_NS], c->sum[COST_SUM_WALL_NS]);
}

double cost_of_processor(const struct cost_report *c)
{
    return cost_share(c->sum[COST_SUM_OWN_NS], c->sum[COST_SUM_SPAN_NS]);
}

static uint64_t measured(const struct cost_row *row)
{
    return row->count - row->unmeasured;
}

static bool cost_report_is_own(unsigned class)
{
    return cost_infos[class].place == COST_PLACE_OWN;
}

/* Start-up is not in a thread's counted time; in a program that ends at once it is most of it. */
static double row_share(const struct cost_report *t, unsigned class)
{
    uint64_t part_ns = t->rows[class].total_ns;
    uint64_t whole_ns = t->sum[cost_report_is_own(class) ? COST_SUM_SPAN_NS : COST_SUM_WALL_NS];
    return cost_share(part_ns, whole_ns + (class == COST_START && whole_ns ? part_ns : 0));
}

/* Is the cost extrapolated from few timed calls, the first of each thread, or from none? */
static bool is_estimate(const struct cost_row *row, unsigned class)
{
    return !cost_report_is_own(class) && row->total_ns &&
           (!row->timed || (row->timed < TIMED_FEW && row->count / TIMED_OF > row->timed));
}

bool cost_is_rough(const struct cost_report *c)
{
    uint64_t rough_ns = 0;
    for (unsigned i = 0; i < COST_COUNT; i++)
        rough_ns += is_estimate(&c->rows[i], i) ? c->rows[i].total_ns : 0;
    return rough_ns > c->sum[COST_SUM_COST_NS] / 2;
}

/* ---- the classes ---- */

enum { NAME, COUNT, TIMED, UNMEASURED, TOTAL, EACH, SHARE, COLUMNS };

static const struct column class_columns[COLUMNS] = {
    [NAME] = {"name", "for", .doc = "what gpuprof did: calls by class, or its own threads"},
    [COUNT] = {"count", "count", COLUMN_COUNT, 12, .spare = 1, .doc = "the number of calls"},
    [TIMED] = {"timed", NULL, COLUMN_COUNT,
               .doc = "how many calls were timed; 0: assumed to cost as much as the others"},
    [UNMEASURED] = {"unmeasured", NULL, COLUMN_COUNT, .doc = "calls that nothing is known about"},
    [TOTAL] = {"total_ns", "total", COLUMN_NS, 12, .doc = "gpuprof's time in all threads"},
    [EACH] = {"mean_ns", "each", COLUMN_NS, 12, .spare = 1, .doc = "mean time of a call"},
    [SHARE] = {"share", "share", COLUMN_FINE_SHARE, 7,
               .doc = "total as a share of the threads' time, or of one CPU"},
};

static void classes_begin(struct table *t)
{
    const struct cost_report *c = t->source;
    t->count = COST_COUNT;
    t->is_there = c->worst || c->step_count || t->format == FORMAT_JSON;
}

static bool has_class(const struct table *t, uint32_t index)
{
    const struct cost_row *row = &((const struct cost_report *)t->source)->rows[index];
    return row->count || row->total_ns;
}

static void fill_class(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct cost_report *c = t->source;
    const struct cost_row *row = &c->rows[index];
    bool is_text = t->format == FORMAT_TEXT;
    cells[NAME] = cell_text(is_text ? cost_infos[index].meaning : cost_infos[index].name);
    if (row->count || !is_text)
        cells[COUNT] = cell_number(row->count);
    cells[TIMED] = cell_number(row->timed);
    cells[UNMEASURED] = cell_number(row->unmeasured);
    cells[TOTAL] = cell_text(is_text ? "not measured" : NULL);
    cells[EACH] = cells[SHARE] = cell_text(NULL);
    if (!row->total_ns && !measured(row))
        return;
    cells[TOTAL] = cell_number(row->total_ns);
    cells[SHARE] = cell_real(row_share(c, index));
    if (measured(row) || !is_text)
        cells[EACH] = cell_number(measured(row) ? row->total_ns / measured(row) : 0);
    cells[TOTAL].estimated = cells[EACH].estimated = is_text && is_estimate(row, index);
}

static void print_shares(const struct cost_report *c, bool is_whole, FILE *out)
{
    const struct process *p = c->worst;
    fprintf(out, "  overhead in the program's threads%s",
            c->rows[COST_START].count ? ", without start-up" : "");
    if (c->is_blind) {
        fprintf(out, ": not measured");
        return;
    }
    fprintf(out, "%s: %.2f%%", is_whole ? "" : ", of the measured part", 100 * cost_of_threads(c));
    if (!p)
        return;
    uint32_t tid = p->costs.worst_tid;
    char *name = json_line(p->costs.worst_name);
    fprintf(out, "; in the busiest thread %.2f%% (", 100 * worst_share(p));
    if (!tid || tid == p->header.pid)
        fputs(tid ? "the main thread" : "a thread", out);
    else
        fprintf(out, name && *name ? "thread %u (%s)" : "thread %u", tid, name);
    fprintf(out, " of process %u)", p->header.pid);
    free(name);
}

static void cost_report_print_notes(const struct table *table, FILE *out)
{
    const struct cost_report *c = table->source;
    bool estimates = false, is_whole = true;
    for (unsigned i = 0; i < COST_COUNT; i++) {
        estimates |= is_estimate(&c->rows[i], i);
        is_whole &= !c->rows[i].unmeasured;
    }
    if (estimates)
        fprintf(out, "  ~: few or none of these calls were timed; may be far less\n");
    print_shares(c, is_whole, out);
    fprintf(out, "\n  not included: extra work of the driver and CUPTI during recording\n");
}

static void print_json_totals(const struct table *t, FILE *out)
{
    const struct cost_report *c = t->source;
    const uint64_t *sum = c->sum;
    json_printf(out,
                "\"own_cost\": {\"threads\": %" PRIu64 ", \"wall_ns\": %" PRIu64
                ", \"cost_ns\": %.0f, \"share\": %.6f, \"worst_share\": %.6f, \"own_ns\": %" PRIu64
                ", \"span_ns\": %" PRIu64 ",\n",
                sum[COST_SUM_THREADS], sum[COST_SUM_WALL_NS],
                c->is_blind ? NAN : (double)sum[COST_SUM_COST_NS],
                c->is_blind ? NAN : cost_of_threads(c),
                c->is_blind ? NAN
                : c->worst  ? worst_share(c->worst)
                            : 0,
                sum[COST_SUM_OWN_NS], sum[COST_SUM_SPAN_NS]);
}

/* ---- what was given up ---- */

enum { STEP_NAME, STEP_SHARE = 4, BUDGET };

static const struct column step_columns[] = {
    [STEP_NAME] = {NULL, .doc = "what gpuprof gave up to keep --overhead-max, when and where"},
    COLUMN_PID(struct step_taken, process),
    {"begin_ns", NULL, COLUMN_NS, .ascending = true, MEMBER_OF(struct step_taken, step, begin_ns),
     .doc = "when, since the recording of the process started"},
    {"step", MEMBER_OF(struct step_taken, step, text), .doc = "what gpuprof gave up"},
    [STEP_SHARE] = {"share", NULL, COLUMN_FINE_SHARE,
                    .doc = "overhead in the busiest thread at that time"},
    [BUDGET] = {"budget", NULL, COLUMN_FINE_SHARE, .doc = "the limit on that overhead"},
};

/* As text: "--overhead-max: pid 7, after 1.0 s: stacks (2.000% of a thread's time, budget 1.000%)".
 */
static void cost_report_fill_step(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct cost_report *c = t->source;
    const struct step_down *s = c->steps[index].step;
    double share = (double)s->share / COST_PER_MILLION,
           budget = (double)s->budget / COST_PER_MILLION;
    char process[64] = "", time[UNIT_TEXT_BYTES];
    if (c->process_count > 1)
        snprintf(process, sizeof process, "pid %u, ", c->steps[index].process->header.pid);
    cells[STEP_NAME] = cell_text(s->text);
    if (t->format == FORMAT_TEXT)
        cells[STEP_NAME] =
            cell_printf("--overhead-max: %safter %s: %s (%.3f%% of a thread's time, budget %.3f%%)",
                        process, time_text(time, s->begin_ns), s->text, 100 * share, 100 * budget);
    cells[STEP_SHARE] = cell_real(share);
    cells[BUDGET] = cell_real(budget);
}

static void print_json_end(const struct table *t, FILE *out)
{
    (void)t;
    fputc('}', out);
}

/* ---- the tables ---- */

const struct table_info cost_tables[2] = {
    {.name = "cost",
     .old_name = "own_cost",
     .key = "classes",
     .csv_name = "cost_classes",
     .title = "gpuprof's own cost",
     .columns = class_columns,
     .column_count = COLUMNS,
     .text = {SHARE, TOTAL, COUNT, EACH},
     .begin = classes_begin,
     .has = has_class,
     .row = fill_class,
     .text_behind = cost_report_print_notes,
     .json_before = print_json_totals},
    {.name = "cost",
     .old_name = "own_cost",
     .key = "steps",
     .csv_name = "cost_steps",
     TABLE_COLUMNS(step_columns),
     .rows = {ROWS_IN(struct cost_report, steps, step_count)},
     .is_bare = true,
     .is_further = true,
     .text_limit = STEPS_SHOWN_MAX,
     .row = cost_report_fill_step,
     .json_behind = print_json_end},
};
