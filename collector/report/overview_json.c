/* SPDX-License-Identifier: Apache-2.0 */
/* The first screen as JSON. Its keys never change. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analyse/device_report.h"
#include "analyse/findings.h"
#include "analyse/idle.h"
#include "base/json_text.h"
#include "memory/memory_report.h"
#include "report/report.h"
#include "resolve/selection.h"

static uint64_t since(const struct report *r, uint64_t ns)
{
    uint64_t origin_ns = r->walk.survey.origin_ns;
    return ns > origin_ns ? ns - origin_ns : 0;
}

/* Prints the missing ranks of each job as spans: first and last rank. */
static void print_missing(const struct report *r, FILE *out)
{
    const char *before = "";
    fputs("\"missing_ranks\": [", out);
    for (uint32_t i = 0; i < r->rec->missing_count; i++) {
        const struct missing_ranks *m = &r->rec->missing[i];
        if (!overview_has_missing(r, m))
            continue;
        fputs(before, out);
        json_printf(out, "{\"job\": %u, \"count\": %" PRIu64 ", \"world_size\": %.0f, \"ranks\": [",
                    m->job, m->count, m->size ? (double)m->size : NAN);
        for (uint32_t k = 0; k < m->span_count && k < MISSING_SPANS_MAX; k++)
            fprintf(out, "%s[%" PRIu64 ", %" PRIu64 "]", k ? ", " : "", m->spans[k][0],
                    m->spans[k][1]);
        fputs("]}", out);
        before = ", ";
    }
    fputs("],\n", out);
}

/* Prints the selection; null: there is none. Times count from the first event. */
static void print_piece(const struct report *r, FILE *out)
{
    const struct selection *s = r->time.selection;
    uint64_t from_ns, to_ns;
    const char *before = "";
    fputs("\"piece\": ", out);
    if (!s) {
        fputs("null,\n", out);
        return;
    }
    json_printf(out, "{\"events\": %" PRIu64, r->time.piece_events);
    if (selection_time(s, &from_ns, &to_ns))
        json_printf(out, ", \"from_ns\": %" PRIu64 ", \"to_ns\": %" PRIu64, from_ns, to_ns);
    if (s->found.begun_ns)
        json_printf(out,
                    ", \"begun_ns\": %" PRIu64 ", \"begun_devices\": %u, \"begun_threads\": %u",
                    since(r, s->found.begun_ns), s->found.begun_devices, s->found.begun_threads);
    fputs(", \"options\": {", out);
    for (unsigned i = 0; i < SELECT_OPTIONS; i++)
        if (s->request->said[i]) {
            fputs(before, out);
            json_printf(out, "%s: %s", select_option_name(i), s->request->said[i]);
            before = ", ";
        }
    fputs("}},\n", out);
}

/* Prints the windows, null if the whole run was recorded, and the steps. */
static void print_windows_and_steps(const struct overview *o, FILE *out)
{
    const struct step *slowest = o->slowest;
    if (o->schedule || o->windows)
        json_printf(out, "\"windows\": {\"count\": %" PRIu64 ", \"schedule\": %s},\n", o->windows,
                    o->schedule);
    else
        fputs("\"windows\": null,\n", out);
    if (o->steps)
        json_printf(out,
                    "\"steps\": {\"count\": %u, \"by\": %s, \"median_ns\": %" PRIu64
                    ", \"slowest_ns\": %" PRIu64 ", \"slowest_number\": %" PRIu64
                    ", \"slowest_pid\": %u, \"slowest_rank\": %s, \"slowest_host\": %s},\n",
                    o->steps, step_kinds[o->marks->kind].word, o->step_median_ns,
                    slowest->end_ns - slowest->begin_ns, slowest->number,
                    slowest->process->header.pid, process_rank(slowest->process),
                    slowest->process->header.host);
    else
        fputs("\"steps\": null,\n", out);
}

static void print_time(const struct idle *d, FILE *out)
{
    if (!d || !d->device_count) {
        fputs("\"gpu_time\": null,\n\"idle\": null,\n", out);
        return;
    }
    json_printf(
        out,
        "\"gpu_time\": {\"window_ns\": %" PRIu64 ", \"compute_ns\": %" PRIu64
        ", \"communication_ns\": %" PRIu64 ", \"copies_ns\": %" PRIu64 ", \"idle_ns\": %" PRIu64
        ", \"stopped_ns\": %" PRIu64 ", \"other_ns\": %" PRIu64 "},\n\"idle\": {",
        d->window_ns, d->all.parts[IDLE_COMPUTE], d->all.parts[IDLE_COMMUNICATING],
        d->all.parts[IDLE_COPYING], d->all.idle_ns, d->all.stopped_ns, d->all.parts[IDLE_OTHER]);
    for (unsigned i = 0; i < IDLE_CAUSES; i++)
        fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", idle_cause_words[i], d->all.causes[i]);
    fputs("},\n", out);
}

static void print_findings(const struct findings *f, FILE *out)
{
    fputs("\"findings\": [", out);
    for (uint32_t i = 0; f && i < f->count; i++)
        fprintf(out, "%s{\"id\": \"%s\", \"ns\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
                i ? ", " : "", f->list[i].kind->id, f->list[i].ns, f->list[i].bytes);
    fputc(']', out);
}

/* Prints the memory state at the last failed allocation. */
static void print_shortage(const struct report *r, FILE *out)
{
    const struct memory_report *m = r->memory;
    const struct memory_oom *oom = m && m->ooms.count ? &m->ooms.list[m->ooms.count - 1] : NULL;
    fputs(",\n\"out_of_memory\": ", out);
    if (!oom) {
        fprintf(out, r->peaks.ooms ? "{\"count\": %" PRIu64 "}" : "null", r->peaks.ooms);
        return;
    }
    struct memory_advice advice = memory_advise(r->memory, oom);
    char *owner = memory_owner_text(r->memory, oom->origin);
    json_printf(
        out,
        "{\"count\": %" PRIu64 ", \"where\": {\"pid\": %u, \"device\": %lld, \"at_ns\": %" PRIu64
        "}, \"wanted_bytes\": %" PRIu64 ", \"held_bytes\": %" PRIu64
        ", \"device_bytes\": %.0f, \"owner\": %s, \"owners\": [",
        m->ooms.count + m->ooms.beyond, oom->process->header.pid,
        oom->device == LEDGER_NO_DEVICE ? -1ll : (long long)oom->device, since(r, oom->at_ns),
        oom->wanted, oom->live, oom->total ? (double)oom->total : NAN, owner);
    free(owner);
    for (uint32_t i = 0; i < oom->owner_count; i++) {
        owner = memory_owner_text(r->memory, oom->owners[i].origin);
        fputs(i ? ", " : "", out);
        json_printf(out, "{\"name\": %s, \"bytes\": %" PRIu64 "}", owner,
                    oom->owners[i].live.bytes);
        free(owner);
    }
    json_printf(out, "], \"advice\": {\"id\": %s, \"text\": %s}}", advice.id, advice.text);
    free(advice.text);
}

/* Prints processes that had stopped making calls, those with the longest silence first. */
static void print_quiet(const struct report *r, FILE *out)
{
    const struct quiet *q = &r->hang.quiet;
    fputs(",\n\"quiet\": [", out);
    for (uint32_t i = 0; i < q->count; i++) {
        const struct quiet_row *row = &q->rows[i];
        const struct process *p = row->process;
        fputs(i ? ", " : "", out);
        json_printf(
            out,
            "{\"host\": %s, \"rank\": %s, \"job\": %.0f, \"pid\": %u, \"since_ns\": %" PRIu64
            ", \"for_ns\": %" PRIu64 ", \"until\": %s, \"function\": %s, \"line\": %s}",
            p->header.host, process_rank(p), p->is_of_several ? (double)p->job : NAN, p->header.pid,
            since(r, row->place->end_ns), row->for_ns, quiet_until(row), row->place->function->name,
            row->reported.line);
    }
    fputc(']', out);
}

/* Prints the most throttled device, however short that was. */
static void print_throttled(const struct report *r, FILE *out)
{
    enum throttle why = THROTTLE_POWER;
    double share;
    const struct device_row *row = device_report_worst(r->devices, &why, &share);
    if (row)
        json_printf(
            out, ",\n\"throttled\": {\"by\": %s, \"share\": %.4f, \"pid\": %u, \"device\": %lld}",
            throttle_words[why], share, row->process->header.pid,
            row->device == UINT64_MAX ? -1ll : (long long)row->device);
    else
        fputs(",\n\"throttled\": null", out);
}

void overview_print_json(const struct overview *o, FILE *out)
{
    const struct report *r = o->report;
    bool knows_cost = !r->cost.is_blind && r->cost.sum[COST_SUM_WALL_NS];
    double of_steps = r->cost.is_blind ? 0 : overview_cost_of_steps(r);
    json_printf(out,
                "\"overview\": {\n\"program\": %s,\n\"wall_ns\": %" PRIu64
                ", \"start_up_ns\": %" PRIu64
                ", \"processes\": %u, \"ranks\": %u, \"devices\": %u,\n\"device\": %s"
                ", \"calls\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"open_calls\": %" PRIu64 ",\n",
                o->program, r->time.wall_end_ns - r->time.wall_begin_ns, overview_start_up_ns(r),
                r->rec->count, o->ranks, o->devices, o->device, r->total.calls, r->total.errors,
                r->hang.open.total);
    print_missing(r, out);
    fprintf(out, "\"left_out\": %u,\n", r->rec->left_out);
    print_piece(r, out);
    print_windows_and_steps(o, out);
    print_time(r->idle, out);
    print_findings(r->findings, out);
    print_shortage(r, out);
    print_quiet(r, out);
    print_throttled(r, out);
    json_printf(out,
                ",\n\"own_cost_share\": %.6f, \"own_threads_share\": %.6f"
                ", \"own_cost_steps_share\": %.6f}",
                knows_cost ? cost_of_threads(&r->cost) : NAN,
                knows_cost ? cost_of_processor(&r->cost) : NAN, of_steps > 0 ? of_steps : NAN);
}
