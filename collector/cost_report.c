/* SPDX-License-Identifier: Apache-2.0 */
#include "cost_report.h"

#include <stdlib.h>

#include "csv_kind.h"
#include "json_text.h"
#include "unit_text.h"

#define STEPS_SHOWN_MAX 32 /* in the text, of all processes together */

/* Of all processes. */
struct cost_totals {
    struct cost_row rows[COST_COUNT];
    uint64_t threads;
    uint64_t wall_ns; /* of these threads */
    uint64_t cost_ns;
    uint64_t own_ns;
    uint64_t span_ns; /* of the recordings, added up */
    uint32_t step_count;
    bool is_blind; /* nothing was measured in the program's threads, though something was done */
    const struct process *worst; /* that has the thread which paid most; NULL: none was measured */
};

static double worst_share(const struct process *p)
{
    return cost_share(p->costs.sum[COST_SUM_WORST_COST_NS], p->costs.sum[COST_SUM_WORST_WALL_NS]);
}

static struct cost_totals add_up(const struct recording *rec)
{
    struct cost_totals t = {0};
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        const uint64_t *sum = p->costs.sum;
        for (unsigned k = 0; k < COST_COUNT; k++) {
            t.rows[k].count += p->costs.rows[k].count;
            t.rows[k].timed += p->costs.rows[k].timed;
            t.rows[k].timed_ns += p->costs.rows[k].timed_ns;
            t.rows[k].total_ns += p->costs.rows[k].total_ns;
            t.rows[k].unmeasured += p->costs.rows[k].unmeasured;
        }
        t.threads += sum[COST_SUM_THREADS];
        t.wall_ns += sum[COST_SUM_WALL_NS];
        t.cost_ns += sum[COST_SUM_COST_NS];
        t.own_ns += sum[COST_SUM_OWN_NS];
        t.span_ns += sum[COST_SUM_SPAN_NS];
        t.step_count += p->costs.step_count;
        if (sum[COST_SUM_WORST_WALL_NS] && (!t.worst || worst_share(p) > worst_share(t.worst)))
            t.worst = p;
    }
    for (unsigned k = 0; k < COST_COUNT; k++)
        t.is_blind |= t.rows[k].unmeasured && !t.cost_ns;
    return t;
}

static uint64_t measured(const struct cost_row *row)
{
    return row->count - row->unmeasured;
}

static uint64_t each_ns(const struct cost_row *row)
{
    return measured(row) ? row->total_ns / measured(row) : 0;
}

static bool is_empty(const struct cost_row *row)
{
    return !row->count && !row->total_ns;
}

static bool is_own(unsigned class)
{
    return cost_infos[class].place == COST_PLACE_OWN;
}

/* A start is no part of a thread's time as it is counted; of a program that is over at once it is
 * the larger part. */
static double row_share(const struct cost_totals *t, unsigned class)
{
    uint64_t part_ns = t->rows[class].total_ns;
    uint64_t whole_ns = is_own(class) ? t->span_ns : t->wall_ns;
    return cost_share(part_ns, whole_ns + (class == COST_START && whole_ns ? part_ns : 0));
}

/* What a step gave up, clean; or of a later version's step what its record says. */
static char *step_text(const struct step_down *s)
{
    return json_line(s->text[0] ? s->text : "something unknown");
}

static void print_steps(const struct recording *rec, FILE *out)
{
    uint32_t shown = 0, count = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        for (uint32_t k = 0; k < p->costs.step_count; k++, count++) {
            const struct step_down *s = &p->costs.steps[k];
            char process[64] = "", time[UNIT_TEXT_BYTES];
            if (shown == STEPS_SHOWN_MAX)
                continue;
            shown++;
            if (rec->count > 1)
                snprintf(process, sizeof process, "pid %u, ", p->header.pid);
            char *text = step_text(s);
            fprintf(out,
                    "  --overhead-max: %safter %s: %s (%.3f%% of a thread's time, budget "
                    "%.3f%%)\n",
                    process, time_text(time, s->begin_ns), text ? text : "?",
                    100 * (double)s->share / COST_PER_MILLION,
                    100 * (double)s->budget / COST_PER_MILLION);
            free(text);
        }
    }
    if (count > shown)
        fprintf(out, "  --overhead-max: ... and %u more steps\n", count - shown);
}

/* Is a cost known at all, of no call of the class itself? */
static bool is_estimate(const struct cost_row *row, unsigned class)
{
    return !is_own(class) && !row->timed && row->total_ns;
}

static void print_row(const struct cost_totals *t, unsigned class, FILE *out)
{
    const struct cost_row *row = &t->rows[class];
    char total[UNIT_TEXT_BYTES + 1], count[UNIT_TEXT_BYTES], each[UNIT_TEXT_BYTES + 1];
    const char *sign = is_estimate(row, class) ? "~" : "";
    char a[UNIT_TEXT_BYTES];
    snprintf(total, sizeof total, "%s%s", sign, time_text(a, row->total_ns));
    snprintf(each, sizeof each, "%s%s", sign, time_text(a, each_ns(row)));
    fprintf(out, "%6.2f%% %12s %12s %12s  %s\n", 100 * row_share(t, class), total,
            measured(row) ? count_text(count, measured(row)) : "", measured(row) ? each : "",
            cost_infos[class].meaning);
}

/* What is known to have a cost and has no row, or not for all. True: there is some. */
static bool print_unmeasured(const struct cost_totals *t, FILE *out)
{
    bool is_any = false;
    for (unsigned i = 0; i < COST_COUNT; i++) {
        char count[UNIT_TEXT_BYTES];
        if (!t->rows[i].unmeasured)
            continue;
        is_any = true;
        fprintf(out, "%7s %12s %12s %12s  %s\n", "", "not measured",
                count_text(count, t->rows[i].unmeasured), "", cost_infos[i].meaning);
    }
    return is_any;
}

static void print_shares(const struct cost_totals *t, bool is_whole, FILE *out)
{
    fprintf(out, "  of the program's threads' time%s",
            t->rows[COST_START].count ? ", starts left out" : "");
    if (t->is_blind) {
        fprintf(out, ": not measured");
        return;
    }
    fprintf(out, "%s: %.2f%%", is_whole ? "" : ", as far as it was measured",
            100 * cost_share(t->cost_ns, t->wall_ns));
    if (t->worst)
        fprintf(out, ", at most %.2f%% of one thread's (thread %llu of process %u)",
                100 * worst_share(t->worst),
                (unsigned long long)t->worst->costs.sum[COST_SUM_WORST_THREAD],
                t->worst->header.pid);
}

void cost_report_print_text(const struct recording *rec, FILE *out)
{
    struct cost_totals t = add_up(rec);
    bool estimates = false;
    if (!t.worst && !t.step_count)
        return;
    fprintf(out, "\ngpuprof's own cost\n%7s %12s %12s %12s  %s\n", "share", "total", "count",
            "each", "for");
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &t.rows[i];
        estimates |= is_estimate(row, i);
        if (row->total_ns || measured(row))
            print_row(&t, i, out);
    }
    bool is_whole = !print_unmeasured(&t, out);
    if (estimates)
        fprintf(out, "  ~: none of these was timed; taken to cost what the others do\n");
    print_shares(&t, is_whole, out);
    fprintf(out, "\n  not in it: what the driver and CUPTI do more because they are watched\n");
    print_steps(rec, out);
}

void cost_report_print_csv(const struct recording *rec, FILE *out)
{
    struct cost_totals t = add_up(rec);
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &t.rows[i];
        if (row->total_ns || measured(row)) {
            report_csv_begin(CSV_COST, cost_infos[i].name, out);
            fprintf(out, ",host,%llu,%llu,%llu,0,0,0,0,0,0\n", (unsigned long long)measured(row),
                    (unsigned long long)row->total_ns, (unsigned long long)each_ns(row));
        }
        if (row->unmeasured) {
            report_csv_begin(CSV_COST_UNMEASURED, cost_infos[i].name, out);
            fprintf(out, ",host,0,0,0,0,0,0,0,0,%llu\n", (unsigned long long)row->unmeasured);
        }
    }
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct cost_table *costs = &rec->processes[i]->costs;
        for (uint32_t k = 0; k < costs->step_count; k++) {
            report_csv_begin(CSV_STEP_DOWN, costs->steps[k].text, out);
            fprintf(out, ",host,0,0,0,0,0,0,0,0,1\n");
        }
    }
}

static void print_json_steps(const struct process *p, const char **separator, FILE *out)
{
    for (uint32_t k = 0; k < p->costs.step_count; k++) {
        const struct step_down *s = &p->costs.steps[k];
        char *text = json_string(s->text, strnlen(s->text, sizeof s->text));
        fprintf(out,
                "%s\n{\"pid\": %u, \"begin_ns\": %llu, \"step\": %s, \"share\": %.6f, "
                "\"budget\": %.6f}",
                *separator, p->header.pid, (unsigned long long)s->begin_ns, text ? text : "null",
                (double)s->share / COST_PER_MILLION, (double)s->budget / COST_PER_MILLION);
        free(text);
        *separator = ",";
    }
}

void cost_report_print_json(const struct recording *rec, FILE *out)
{
    struct cost_totals t = add_up(rec);
    const char *separator = "";
    fprintf(out, ",\n\"own_cost\": {\"threads\": %llu, \"wall_ns\": %llu, ",
            (unsigned long long)t.threads, (unsigned long long)t.wall_ns);
    if (t.is_blind)
        fprintf(out, "\"cost_ns\": null, \"share\": null, \"worst_share\": null, ");
    else
        fprintf(out, "\"cost_ns\": %llu, \"share\": %.6f, \"worst_share\": %.6f, ",
                (unsigned long long)t.cost_ns, cost_share(t.cost_ns, t.wall_ns),
                t.worst ? worst_share(t.worst) : 0.0);
    fprintf(out, "\"own_ns\": %llu, \"span_ns\": %llu,", (unsigned long long)t.own_ns,
            (unsigned long long)t.span_ns);
    fprintf(out, "\n\"classes\": [");
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &t.rows[i];
        if (is_empty(row))
            continue;
        fprintf(out,
                "%s\n{\"name\": \"%s\", \"count\": %llu, \"timed\": %llu, \"unmeasured\": %llu, ",
                separator, cost_infos[i].name, (unsigned long long)row->count,
                (unsigned long long)row->timed, (unsigned long long)row->unmeasured);
        if (row->total_ns || measured(row))
            fprintf(out, "\"total_ns\": %llu, \"mean_ns\": %llu, \"share\": %.6f}",
                    (unsigned long long)row->total_ns, (unsigned long long)each_ns(row),
                    row_share(&t, i));
        else
            fprintf(out, "\"total_ns\": null, \"mean_ns\": null, \"share\": null}");
        separator = ",";
    }
    fprintf(out, "\n],\n\"steps\": [");
    separator = "";
    for (uint32_t i = 0; i < rec->count; i++)
        print_json_steps(rec->processes[i], &separator, out);
    fprintf(out, "\n]}");
}

void cost_report_print_summary(const struct recording *rec, FILE *out)
{
    uint32_t processes = 0;
    const struct step_down *last = NULL;
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct cost_table *costs = &rec->processes[i]->costs;
        processes += costs->step_count > 0;
        if (costs->step_count && (!last || costs->steps[costs->step_count - 1].step > last->step))
            last = &costs->steps[costs->step_count - 1];
    }
    if (!last)
        return;
    char *text = step_text(last);
    fprintf(out, "  given up   in %u process%s, because of --overhead-max; at last: %s\n",
            processes, processes == 1 ? "" : "es", text ? text : "?");
    free(text);
}
