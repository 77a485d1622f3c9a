/* SPDX-License-Identifier: Apache-2.0 */
#include "cost_report.h"

#include <stdlib.h>

#include "json_text.h"
#include "report.h"
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
    return t;
}

static uint64_t each_ns(const struct cost_row *row)
{
    return row->count ? row->total_ns / row->count : 0;
}

static bool is_empty(const struct cost_row *row)
{
    return !row->count && !row->total_ns;
}

static bool is_own(unsigned class)
{
    return cost_infos[class].place == COST_PLACE_OWN;
}

static double row_share(const struct cost_totals *t, unsigned class)
{
    return cost_share(t->rows[class].total_ns, is_own(class) ? t->span_ns : t->wall_ns);
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

void cost_report_print_text(const struct recording *rec, FILE *out)
{
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES], c[UNIT_TEXT_BYTES];
    struct cost_totals t = add_up(rec);
    if (!t.worst && !t.step_count)
        return;
    fprintf(out, "\ngpuprof's own cost\n%7s %12s %12s %12s  %s\n", "share", "total", "count",
            "each", "for");
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &t.rows[i];
        if (is_empty(row))
            continue;
        fprintf(out, "%6.2f%% %12s %12s %12s  %s\n", 100 * row_share(&t, i),
                time_text(a, row->total_ns), row->count ? count_text(b, row->count) : "",
                row->count ? time_text(c, each_ns(row)) : "", cost_infos[i].meaning);
    }
    fprintf(out, "  of the program's threads' time%s: %.2f%%",
            t.rows[COST_START].count ? ", starts left out" : "",
            100 * cost_share(t.cost_ns, t.wall_ns));
    if (t.worst)
        fprintf(out, ", at most %.2f%% of one thread's (thread %llu of process %u)",
                100 * worst_share(t.worst),
                (unsigned long long)t.worst->costs.sum[COST_SUM_WORST_THREAD], t.worst->header.pid);
    fprintf(out, "\n  not in it: what the driver and CUPTI do more because they are watched\n");
    print_steps(rec, out);
}

void cost_report_print_csv(const struct recording *rec, FILE *out)
{
    struct cost_totals t = add_up(rec);
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &t.rows[i];
        if (!is_empty(row))
            fprintf(out, "cost,\"%s\",host,%llu,%llu,%llu,0,0,0,0,0,0\n", cost_infos[i].name,
                    (unsigned long long)row->count, (unsigned long long)row->total_ns,
                    (unsigned long long)each_ns(row));
    }
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct cost_table *costs = &rec->processes[i]->costs;
        for (uint32_t k = 0; k < costs->step_count; k++) {
            fprintf(out, "step_down,");
            report_csv_text(costs->steps[k].text, out);
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
    fprintf(out, ",\n\"own_cost\": {\"threads\": %llu, \"wall_ns\": %llu, \"cost_ns\": %llu, ",
            (unsigned long long)t.threads, (unsigned long long)t.wall_ns,
            (unsigned long long)t.cost_ns);
    fprintf(out, "\"share\": %.6f, \"worst_share\": %.6f, \"own_ns\": %llu, \"span_ns\": %llu,",
            cost_share(t.cost_ns, t.wall_ns), t.worst ? worst_share(t.worst) : 0.0,
            (unsigned long long)t.own_ns, (unsigned long long)t.span_ns);
    fprintf(out, "\n\"classes\": [");
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct cost_row *row = &t.rows[i];
        if (is_empty(row))
            continue;
        fprintf(out,
                "%s\n{\"name\": \"%s\", \"count\": %llu, \"timed\": %llu, \"total_ns\": %llu, "
                "\"mean_ns\": %llu, \"share\": %.6f}",
                separator, cost_infos[i].name, (unsigned long long)row->count,
                (unsigned long long)row->timed, (unsigned long long)row->total_ns,
                (unsigned long long)each_ns(row), row_share(&t, i));
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
