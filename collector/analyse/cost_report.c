/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/cost_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/text.h"
#include "error.h"

#define STEPS_SHOWN_MAX 32   /* rows of the text, for all processes together */
#define TIMED_FEW       100  /* fewer timed calls than this ... */
#define TIMED_OF        1000 /* ... for this many times as many calls make an estimate rough */
#define STEPS_NEWS      1.5 /* if it lived no longer than this times its steps, its share says it */

static double worst_share(const struct process *p)
{
    return cost_share(p->costs.sum[COST_SUM_WORST_COST_NS], p->costs.sum[COST_SUM_WORST_WALL_NS]);
}

static void add_process(struct cost_report *c, const struct process *p)
{
    const uint64_t *sum = p->costs.sum;
    for (unsigned k = 0; k < COST_COUNT; k++) {
        c->rows[k].count += p->costs.rows[k].count;
        c->rows[k].timed += p->costs.rows[k].timed;
        c->rows[k].timed_ns += p->costs.rows[k].timed_ns;
        c->rows[k].total_ns += p->costs.rows[k].total_ns;
        c->rows[k].unmeasured += p->costs.rows[k].unmeasured;
    }
    c->threads += sum[COST_SUM_THREADS];
    c->wall_ns += sum[COST_SUM_WALL_NS];
    c->cost_ns += sum[COST_SUM_COST_NS];
    c->own_ns += sum[COST_SUM_OWN_NS];
    c->span_ns += sum[COST_SUM_SPAN_NS];
    if (sum[COST_SUM_WORST_WALL_NS] && (!c->worst || worst_share(p) > worst_share(c->worst)))
        c->worst = p;
}

int cost_report_init(struct cost_report *c, const struct recording *rec)
{
    int error = 0;
    *c = (struct cost_report){.process_count = rec->count};
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        add_process(c, p);
        for (uint32_t k = 0; error == 0 && k < p->costs.step_count; k++)
            error = ARRAY_PUSH(c->steps, c->step_count,
                               (&(const struct step_taken){p, &p->costs.steps[k]}));
    }
    for (unsigned k = 0; k < COST_COUNT; k++)
        c->is_blind |= c->rows[k].unmeasured && !c->cost_ns;
    return error;
}

static uint64_t measured(const struct cost_row *row)
{
    return row->count - row->unmeasured;
}

static uint64_t each_ns(const struct cost_row *row)
{
    return measured(row) ? row->total_ns / measured(row) : 0;
}

static bool cost_report_is_own(unsigned class)
{
    return cost_infos[class].place == COST_PLACE_OWN;
}

/* Start-up is not in a thread's counted time; in a program that ends at once it is most of it. */
static double row_share(const struct cost_report *t, unsigned class)
{
    uint64_t part_ns = t->rows[class].total_ns;
    uint64_t whole_ns = cost_report_is_own(class) ? t->span_ns : t->wall_ns;
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
    return rough_ns > c->cost_ns / 2;
}

double cost_of_steps(const struct recording *rec, const struct steps *steps)
{
    double worst = 0;
    for (uint32_t i = 0; steps && steps->firsts && i < rec->count; i++) {
        const uint64_t *sum = rec->processes[i]->costs.sum;
        uint64_t steps_ns = 0;
        for (uint32_t k = steps->firsts[i]; k < steps->firsts[i + 1]; k++)
            steps_ns += steps->list[k].end_ns - steps->list[k].begin_ns;
        double share = cost_share(sum[COST_SUM_WORST_COST_NS], steps_ns);
        bool is_news = (double)sum[COST_SUM_WORST_WALL_NS] > STEPS_NEWS * (double)steps_ns;
        worst = is_news && share <= 1 && share > worst ? share : worst;
    }
    return worst;
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
        cells[EACH] = cell_number(each_ns(row));
    cells[TOTAL].estimated = cells[EACH].estimated = is_text && is_estimate(row, index);
}

/* "the main thread", "thread 13 (loader)" or, without a tid, "a thread". The caller frees it; NULL:
 * no memory. */
static char *worst_thread(const struct process *p)
{
    const struct cost_table *t = &p->costs;
    char text[THREAD_NAME_BYTES_MAX + 48];
    if (!t->worst_tid || t->worst_tid == p->header.pid)
        return strdup(t->worst_tid ? "the main thread" : "a thread");
    snprintf(text, sizeof text, "thread %u%s%s%s", t->worst_tid, t->worst_name[0] ? " (" : "",
             t->worst_name, t->worst_name[0] ? ")" : "");
    return json_line(text);
}

static void print_shares(const struct cost_report *t, bool is_whole, FILE *out)
{
    fprintf(out, "  overhead in the program's threads%s",
            t->rows[COST_START].count ? ", without start-up" : "");
    if (t->is_blind) {
        fprintf(out, ": not measured");
        return;
    }
    fprintf(out, "%s: %.2f%%", is_whole ? "" : ", of the measured part",
            100 * cost_share(t->cost_ns, t->wall_ns));
    if (!t->worst)
        return;
    char *who = worst_thread(t->worst);
    fprintf(out, "; in the busiest thread %.2f%% (%s of process %u)", 100 * worst_share(t->worst),
            who ? who : "?", t->worst->header.pid);
    free(who);
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
    fprintf(out, "\"own_cost\": {\"threads\": %llu, \"wall_ns\": %llu, ",
            (unsigned long long)c->threads, (unsigned long long)c->wall_ns);
    if (c->is_blind)
        fprintf(out, "\"cost_ns\": null, \"share\": null, \"worst_share\": null, ");
    else
        fprintf(out, "\"cost_ns\": %llu, \"share\": %.6f, \"worst_share\": %.6f, ",
                (unsigned long long)c->cost_ns, cost_share(c->cost_ns, c->wall_ns),
                c->worst ? worst_share(c->worst) : 0.0);
    fprintf(out, "\"own_ns\": %llu, \"span_ns\": %llu,\n", (unsigned long long)c->own_ns,
            (unsigned long long)c->span_ns);
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

/* "--overhead-max: pid 7, after 1.0 s: stacks (2.000% of a thread's time, budget 1.000%)". */
static char *step_line(const struct cost_report *c, const struct step_taken *taken)
{
    const struct step_down *s = taken->step;
    char process[64] = "", time[UNIT_TEXT_BYTES];
    if (c->process_count > 1)
        snprintf(process, sizeof process, "pid %u, ", taken->process->header.pid);
    return text_printf("--overhead-max: %safter %s: %s (%.3f%% of a thread's time, budget %.3f%%)",
                       process, time_text(time, s->begin_ns), s->text,
                       100 * (double)s->share / COST_PER_MILLION,
                       100 * (double)s->budget / COST_PER_MILLION);
}

static void cost_report_fill_step(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct cost_report *c = t->source;
    const struct step_down *s = c->steps[index].step;
    cells[STEP_NAME] =
        t->format == FORMAT_TEXT ? cell_owned(step_line(c, &c->steps[index])) : cell_text(s->text);
    cells[STEP_SHARE] = cell_real((double)s->share / COST_PER_MILLION);
    cells[BUDGET] = cell_real((double)s->budget / COST_PER_MILLION);
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

void cost_report_print_given_up(const struct cost_report *c, struct screen *s)
{
    const struct step_taken *steps = c->steps, *last = steps;
    uint32_t processes = 0;
    for (uint32_t i = 0; i < c->step_count; i++) {
        processes += i == 0 || steps[i].process != steps[i - 1].process;
        last = steps[i].step->step > last->step->step ? &steps[i] : last;
    }
    char *text = last ? json_line(last->step->text) : NULL;
    if (last)
        screen_line(s, "given up", NULL,
                    "in %u process%s, to keep --overhead-max; most recently: %s", processes,
                    processes == 1 ? "" : "es", text ? text : "?");
    free(text);
}
