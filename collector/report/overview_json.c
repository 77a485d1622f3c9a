/* SPDX-License-Identifier: Apache-2.0 */
/* The first screen as JSON. Its keys never change. */
#include <inttypes.h>
#include <stdlib.h>

#include "analyse/device_report.h"
#include "analyse/findings.h"
#include "analyse/idle.h"
#include "base/json_text.h"
#include "memory/memory_report.h"
#include "report/overview.h"
#include "resolve/selection.h"

static void print_time(const struct idle *d, FILE *out)
{
    fprintf(out, "\"gpu_time\": ");
    if (!d || !d->device_count) {
        fprintf(out, "null,\n\"idle\": null");
        return;
    }
    fprintf(out,
            "{\"window_ns\": %" PRIu64 ", \"compute_ns\": %" PRIu64
            ", \"communication_ns\": %" PRIu64 ", \"copies_ns\": %" PRIu64 ", \"idle_ns\": %" PRIu64
            ", \"stopped_ns\": %" PRIu64 ", \"other_ns\": %" PRIu64 "},\n\"idle\": {",
            d->window_ns, d->all.parts[IDLE_COMPUTE], d->all.parts[IDLE_COMMUNICATING],
            d->all.parts[IDLE_COPYING], d->all.idle_ns, d->all.stopped_ns,
            d->all.parts[IDLE_OTHER]);
    for (unsigned i = 0; i < IDLE_CAUSES; i++)
        fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", idle_cause_words[i], d->all.causes[i]);
    fputc('}', out);
}

static void print_steps(const struct overview *o, FILE *out)
{
    fprintf(out, "\"steps\": ");
    if (!o->steps) {
        fprintf(out, "null,\n");
        return;
    }
    fprintf(out,
            "{\"count\": %u, \"by\": \"%s\", \"median_ns\": %" PRIu64 ", \"slowest_ns\": %" PRIu64
            ", \"slowest_number\": %" PRIu64 ", \"slowest_pid\": %u, \"slowest_rank\": ",
            o->steps, step_kind_word(o->marks->kind), o->step_median_ns,
            o->slowest->end_ns - o->slowest->begin_ns, o->slowest->number,
            o->slowest->process->header.pid);
    json_put("", process_rank(o->slowest->process), out);
    json_put(", \"slowest_host\": ", o->slowest->process->header.host, out);
    fputs("},\n", out);
}

/* Prints the missing ranks of each job as spans: first and last rank. */
static void print_missing(const struct report *r, FILE *out)
{
    const char *before = "";
    fprintf(out, "\"missing_ranks\": [");
    for (uint32_t i = 0; i < r->rec->missing_count; i++) {
        const struct missing_ranks *m = &r->rec->missing[i];
        if (!overview_has_missing(r, m))
            continue;
        fprintf(out, "%s{\"job\": %u, \"count\": %" PRIu64 ", \"world_size\": ", before, m->job,
                m->count);
        fprintf(out, m->size ? "%" PRIu64 : "null", m->size);
        fprintf(out, ", \"ranks\": [");
        for (uint32_t k = 0; k < m->span_count && k < MISSING_SPANS_MAX; k++)
            fprintf(out, "%s[%" PRIu64 ", %" PRIu64 "]", k ? ", " : "", m->spans[k][0],
                    m->spans[k][1]);
        fprintf(out, "]}");
        before = ", ";
    }
    fprintf(out, "],\n");
}

/* Prints how many processes are left out, and the selection; null: there is none. Times count from
 * the first event. */
static void print_piece(const struct report *r, FILE *out)
{
    uint64_t from_ns, to_ns;
    const char *before = "";
    fprintf(out, "\"left_out\": %u,\n\"piece\": ", r->rec->left_out);
    if (!r->selection) {
        fprintf(out, "null,\n");
        return;
    }
    fprintf(out, "{\"events\": %" PRIu64, r->piece_events);
    if (selection_time(r->selection, &from_ns, &to_ns))
        fprintf(out, ", \"from_ns\": %" PRIu64 ", \"to_ns\": %" PRIu64, from_ns, to_ns);
    if (r->selection->found.begun_ns)
        fprintf(out, ", \"begun_ns\": %" PRIu64 ", \"begun_devices\": %u, \"begun_threads\": %u",
                r->selection->found.begun_ns - r->walk.survey.origin_ns,
                r->selection->found.begun_devices, r->selection->found.begun_threads);
    fprintf(out, ", \"options\": {");
    for (unsigned i = 0; i < SELECT_OPTIONS; i++)
        if (r->selection->request->said[i]) {
            fprintf(out, "%s\"%s\": ", before, select_option_name(i));
            json_put("", r->selection->request->said[i], out);
            before = ", ";
        }
    fprintf(out, "}},\n");
}

/* Prints the windows; null if the whole run was recorded. */
static void print_windows(const struct overview *o, FILE *out)
{
    fprintf(out, "\"windows\": ");
    if (!o->schedule && !o->windows) {
        fprintf(out, "null,\n");
        return;
    }
    fprintf(out, "{\"count\": %" PRIu64 ", \"schedule\": ", o->windows);
    json_put("", o->schedule, out);
    fprintf(out, "},\n");
}

static void print_findings(const struct findings *f, FILE *out)
{
    fprintf(out, "\"findings\": [");
    for (uint32_t i = 0; f && i < f->count; i++)
        fprintf(out, "%s{\"id\": \"%s\", \"ns\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
                i ? ", " : "", f->list[i].kind->id, f->list[i].ns, f->list[i].bytes);
    fputc(']', out);
}

static void print_owner(const struct report *r, const char *before, uint32_t origin, FILE *out)
{
    char *name = memory_owner_text(r->memory, origin);
    json_put(before, name, out);
    free(name);
}

/* Prints the memory state at the last failed allocation. */
static void print_shortage(const struct report *r, FILE *out)
{
    const struct memory_report *m = r->memory;
    const struct memory_oom *oom = m && m->ooms.count ? &m->ooms.list[m->ooms.count - 1] : NULL;
    fprintf(out, ",\n\"out_of_memory\": ");
    if (!oom) {
        fprintf(out, r->signs.ooms ? "{\"count\": %" PRIu64 "}" : "null", r->signs.ooms);
        return;
    }
    struct memory_advice advice = memory_advise(r->memory, oom);
    uint64_t origin_ns = r->walk.survey.origin_ns;
    fprintf(out,
            "{\"count\": %" PRIu64
            ", \"where\": {\"pid\": %u, \"device\": %lld, \"at_ns\": %" PRIu64
            "}, \"wanted_bytes\": %" PRIu64 ", \"held_bytes\": %" PRIu64 ", \"device_bytes\": ",
            m->ooms.count + m->ooms.beyond, oom->process->header.pid,
            oom->device == LEDGER_NO_DEVICE ? -1ll : (long long)oom->device,
            oom->at_ns > origin_ns ? oom->at_ns - origin_ns : 0, oom->wanted, oom->live);
    fprintf(out, oom->total ? "%" PRIu64 : "null", oom->total);
    print_owner(r, ", \"owner\": ", oom->origin, out);
    fprintf(out, ", \"owners\": [");
    for (uint32_t i = 0; i < oom->owner_count; i++) {
        print_owner(r, i ? ", {\"name\": " : "{\"name\": ", oom->owners[i].origin, out);
        fprintf(out, ", \"bytes\": %" PRIu64 "}", oom->owners[i].live.bytes);
    }
    fprintf(out, "], \"advice\": {\"id\": \"%s\", \"text\": ", advice.id);
    json_put("", advice.text, out);
    fprintf(out, "}}");
    free(advice.text);
}

/* Prints processes that had stopped making calls, those with the longest silence first. */
static void print_quiet(const struct report *r, FILE *out)
{
    const struct quiet *q = &r->hang.quiet;
    uint64_t origin_ns = r->walk.survey.origin_ns;
    fprintf(out, ",\n\"quiet\": [");
    for (uint32_t i = 0; i < q->count; i++) {
        const struct quiet_row *row = &q->rows[i];
        json_put(i ? ", {\"host\": " : "{\"host\": ", row->process->header.host, out);
        json_put(", \"rank\": ", process_rank(row->process), out);
        fprintf(out, row->process->is_of_several ? ", \"job\": %u" : ", \"job\": null",
                row->process->job);
        fprintf(out,
                ", \"pid\": %u, \"since_ns\": %" PRIu64 ", \"for_ns\": %" PRIu64
                ", \"until\": \"%s\", \"function\": ",
                row->process->header.pid,
                row->place->end_ns > origin_ns ? row->place->end_ns - origin_ns : 0, row->for_ns,
                quiet_until(row));
        json_put("", row->place->function->name, out);
        json_put(", \"line\": ", row->reported.line, out);
        fputc('}', out);
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
        fprintf(
            out,
            ",\n\"throttled\": {\"by\": \"%s\", \"share\": %.4f, \"pid\": %u, \"device\": %lld}",
            throttle_words[why], share, row->process->header.pid,
            row->device == UINT64_MAX ? -1ll : (long long)row->device);
    else
        fprintf(out, ",\n\"throttled\": null");
}

void overview_print_json(const struct overview *o, FILE *out)
{
    const struct report *r = o->report;
    json_put("\"overview\": {\n\"program\": ", o->program, out);
    fprintf(out,
            ",\n\"wall_ns\": %" PRIu64 ", \"start_up_ns\": %" PRIu64
            ", \"processes\": %u, \"ranks\": %u, \"devices\": %u,\n",
            r->wall_end_ns - r->wall_begin_ns, overview_start_up_ns(r), r->rec->count, o->ranks,
            o->devices);
    json_put("\"device\": ", o->device, out);
    fprintf(out,
            ", \"calls\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"open_calls\": %" PRIu64 ",\n",
            r->calls, r->errors, r->hang.open.total);
    print_missing(r, out);
    print_piece(r, out);
    print_windows(o, out);
    print_steps(o, out);
    print_time(r->idle, out);
    fprintf(out, ",\n");
    print_findings(r->findings, out);
    print_shortage(r, out);
    print_quiet(r, out);
    print_throttled(r, out);
    if (r->cost.is_blind || !r->cost.wall_ns)
        fprintf(out, ",\n\"own_cost_share\": null, \"own_threads_share\": null");
    else
        fprintf(out, ",\n\"own_cost_share\": %.6f, \"own_threads_share\": %.6f",
                cost_share(r->cost.cost_ns, r->cost.wall_ns),
                cost_share(r->cost.own_ns, r->cost.span_ns));
    double of_steps = r->cost.is_blind ? 0 : overview_cost_of_steps(r);
    if (of_steps > 0)
        fprintf(out, ", \"own_cost_steps_share\": %.6f}", of_steps);
    else
        fprintf(out, ", \"own_cost_steps_share\": null}");
}
