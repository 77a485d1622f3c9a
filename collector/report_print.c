/* SPDX-License-Identifier: Apache-2.0 */
/* The report on paper: text, JSON, CSV, and the summary at the end of a run. */
#include <stdlib.h>
#include <string.h>

#include "absence.h"
#include "api.h"
#include "cost_report.h"
#include "csv_kind.h"
#include "gpu_report.h"
#include "json_text.h"
#include "process_title.h"
#include "report.h"
#include "stack_report.h"
#include "unit_text.h"

#define PROCESSES_SHOWN_MAX 16

static uint64_t mean_ns(const struct report_row *row)
{
    return row->count ? row->total_ns / row->count : 0;
}

/* A bucket's middle may lie above the largest value in it. */
static uint64_t quantile_ns(const struct report_row *row, double fraction)
{
    uint64_t ns = histogram_quantile(&row->durations, fraction);
    return ns < row->max_ns ? ns : row->max_ns;
}

/* "~": estimated from some of the calls. */
static const char *total_text(const struct report_row *row, char *text)
{
    text[0] = '~';
    return row->count > row->recorded ? (time_text(text + 1, row->total_ns), text)
                                      : time_text(text, row->total_ns);
}

static const char *calls_text(const struct report_row *row, char *text)
{
    text[0] = '~';
    return row->count > row->recorded ? (count_text(text + 1, row->count), text)
                                      : count_text(text, row->count);
}

/*
 * A nested call's time is in the share of the one around it, so that shares add up to the whole;
 * a row of such calls alone has none.
 */
static char *share_text(const struct report *r, const struct report_row *row, char text[static 16])
{
    double share = r->total_ns ? 100.0 * (double)row->outer_ns / (double)r->total_ns : 0;
    if (row->total_ns && !row->outer_ns)
        text[0] = '\0';
    else
        snprintf(text, 16, "%.1f%%", share);
    return text;
}

static void print_processes(const struct report *r, FILE *out)
{
    char title[1024];
    char number[UNIT_TEXT_BYTES];
    for (uint32_t i = 0; i < r->rec->count && i < PROCESSES_SHOWN_MAX; i++) {
        const struct process *p = r->rec->processes[i];
        process_title(p, true, title, sizeof title);
        char *clean = json_line(title);
        fprintf(out, "  %s: %s calls\n", clean ? clean : "?",
                count_text(number, r->process_calls[p->index]));
        free(clean);
    }
    if (r->rec->count > PROCESSES_SHOWN_MAX)
        fprintf(out, "  ... and %u more\n", r->rec->count - PROCESSES_SHOWN_MAX);
}

static void print_losses(const struct report *r, FILE *out)
{
    bool heading = false;
    char number[UNIT_TEXT_BYTES];
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        struct loss_info info = loss_info(i);
        uint64_t value = loss_value(&r->losses, i);
        if (!value)
            continue;
        if (!heading)
            fprintf(out, "\nlosses and what else to know\n");
        heading = true;
        fprintf(out, "  %12s  %s%s%s\n", count_text(number, value),
                info.is_count ? "" : "processes: ", info.text,
                info.weight == LOSS_NONE ? " (nothing is missing)" : "");
    }
    if (r->rec->unread_files)
        fprintf(out, "%s  %12u  files that could not be read at all\n",
                heading ? "" : "\nlosses and what else to know\n", r->rec->unread_files);
}

/* A rank without rows must not hide behind the others, which have some. */
static void print_gpu_rows(const struct recording *rec, FILE *out)
{
    struct absence found[ABSENCES_MAX];
    unsigned count = gpu_statuses_find(rec, found), left = rec->count;
    for (unsigned i = 0; i < count; i++) {
        char *clean = json_line(found[i].reason);
        if (found[i].processes < rec->count)
            fprintf(out, "GPU rows in %u of %u processes: %s\n", found[i].processes, rec->count,
                    clean ? clean : "?");
        else
            fprintf(out, "GPU rows %s\n", clean ? clean : "?");
        left -= found[i].processes;
        free(clean);
    }
    if (left)
        fprintf(out, "GPU rows in %u of %u processes: as the trace says of each\n", left,
                rec->count);
}

/* What was read: processes, threads, calls, and whether there are GPU rows. */
static void print_recording(const struct report *r, FILE *out)
{
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES];
    fprintf(out, "%u process%s, %u thread%s, %s calls, wall time %s\n", r->rec->count,
            r->rec->count == 1 ? "" : "es", r->rec->thread_count - r->rec->gpu_thread_count,
            r->rec->thread_count - r->rec->gpu_thread_count == 1 ? "" : "s",
            count_text(a, r->calls), time_text(b, r->end_ns - r->begin_ns));
    print_processes(r, out);
    print_gpu_rows(r->rec, out);
}

static void print_functions(const struct report *r, FILE *out)
{
    char a[1 + UNIT_TEXT_BYTES], b[1 + UNIT_TEXT_BYTES], c[UNIT_TEXT_BYTES], d[UNIT_TEXT_BYTES];
    char e[UNIT_TEXT_BYTES], f[UNIT_TEXT_BYTES], g[UNIT_TEXT_BYTES], h[UNIT_TEXT_BYTES], s[16];
    fprintf(out, "\n%7s %12s %12s %12s %12s %12s %12s %11s %9s  %s\n", "share", "total", "calls",
            "mean", "median", "p95", "max", "bytes", "errors", "function");
    for (uint32_t i = 0; i < r->row_count; i++) {
        const struct report_row *row = &r->rows[i];
        char *name = json_line(row->function->name);
        fprintf(out, "%7s %12s %12s %12s %12s %12s %12s %11s %9s  %s\n", share_text(r, row, s),
                total_text(row, a), calls_text(row, b), time_text(c, mean_ns(row)),
                time_text(d, quantile_ns(row, 0.5)), time_text(e, quantile_ns(row, 0.95)),
                time_text(f, row->max_ns), row->bytes ? bytes_text(g, row->bytes) : "",
                row->errors ? count_text(h, row->errors) : "", name ? name : "?");
        free(name);
    }
    bool nested = false;
    for (uint32_t i = 0; i < r->row_count; i++)
        nested |= r->rows[i].outer_ns < r->rows[i].total_ns;
    fprintf(out, "\nmedian and p95 are within 1 %%; share is of the time in calls%s\n",
            nested ? ", and a call's inside another is in that one's" : "");
    if (r->is_estimated)
        fprintf(out, "~: estimated; since a step of --overhead-max only some of these calls are "
                     "recorded\n");
}

/* Whoever asks for the stacks wants their table, not to look for it among all the others. */
void report_print_text(const struct report *r, FILE *out)
{
    print_recording(r, out);
    open_calls_print_text(&r->open, out);
    failures_print_text(&r->failures, r->begin_ns, out);
    if (r->stacks) {
        stack_report_print_text(r->stacks, out);
    } else {
        print_functions(r, out);
        gpu_report_print_text(r->gpu, out);
        cost_report_print_text(r->rec, out);
    }
    print_losses(r, out);
}

/* A row that is no function: zeros in the columns of numbers, so that they stay whole numbers. */
static void print_csv_count(enum csv_kind kind, const char *key, uint64_t count, FILE *out)
{
    report_csv_begin(kind, key, out);
    fprintf(out, ",,0,0,0,0,0,0,0,0,%llu\n", (unsigned long long)count);
}

void report_print_csv(const struct report *r, FILE *out)
{
    static const enum csv_kind kinds[] = {
        [LOSS_NONE] = CSV_NOTE, [LOSS_COUNTED] = CSV_LOSS, [LOSS_DAMAGE] = CSV_DAMAGE};
    fprintf(out, "kind,function,domain,calls,total_ns,mean_ns,median_ns,p95_ns,max_ns,bytes,errors,"
                 "count\n");
    for (uint32_t i = 0; i < r->row_count; i++) {
        const struct report_row *row = &r->rows[i];
        report_csv_begin(CSV_FUNCTION, row->function->name, out);
        fprintf(out, ",%s,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,0\n",
                api_domain_name(row->function->domain), (unsigned long long)row->count,
                (unsigned long long)row->total_ns, (unsigned long long)mean_ns(row),
                (unsigned long long)quantile_ns(row, 0.5),
                (unsigned long long)quantile_ns(row, 0.95), (unsigned long long)row->max_ns,
                (unsigned long long)row->bytes, (unsigned long long)row->errors);
    }
    open_calls_print_csv(&r->open, out);
    failures_print_csv(&r->failures, out);
    if (r->stacks)
        stack_report_print_csv(r->stacks, out);
    gpu_report_print_csv(r->gpu, out);
    cost_report_print_csv(r->rec, out);
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        struct loss_info info = loss_info(i);
        if (loss_value(&r->losses, i))
            print_csv_count(kinds[info.weight], info.key, loss_value(&r->losses, i), out);
    }
    if (r->rec->unread_files)
        print_csv_count(kinds[LOSS_DAMAGE], "unread_files", r->rec->unread_files, out);
}

static void print_json_row(const struct report_row *row, FILE *out)
{
    char *name = json_string(row->function->name, strlen(row->function->name));
    fprintf(out, "{\"function\": %s, \"domain\": \"%s\", \"calls\": %llu, \"total_ns\": %llu, ",
            name ? name : "\"?\"", api_domain_name(row->function->domain),
            (unsigned long long)row->count, (unsigned long long)row->total_ns);
    fprintf(out, "\"mean_ns\": %llu, \"median_ns\": %llu, \"p95_ns\": %llu, \"max_ns\": %llu, ",
            (unsigned long long)mean_ns(row), (unsigned long long)quantile_ns(row, 0.5),
            (unsigned long long)quantile_ns(row, 0.95), (unsigned long long)row->max_ns);
    fprintf(out, "\"bytes\": %llu, \"errors\": %llu", (unsigned long long)row->bytes,
            (unsigned long long)row->errors);
    if (row->count > row->recorded)
        fprintf(out, ", \"estimated_from\": %llu", (unsigned long long)row->recorded);
    fprintf(out, "}");
    free(name);
}

static void print_json_gpu_rows(const struct recording *rec, FILE *out)
{
    struct absence found[ABSENCES_MAX];
    unsigned count = gpu_statuses_find(rec, found);
    fprintf(out, "\"gpu_rows_of\": ");
    absences_print_json(found, count, "status", out);
    fprintf(out, ",\n");
}

void report_print_json(const struct report *r, FILE *out)
{
    const char *separator = "";
    fprintf(out, "{\n\"processes\": %u,\n\"threads\": %u,\n\"calls\": %llu,\n", r->rec->count,
            r->rec->thread_count - r->rec->gpu_thread_count, (unsigned long long)r->calls);
    char *gpu_rows = json_string(recording_gpu_rows(r->rec), strlen(recording_gpu_rows(r->rec)));
    fprintf(out, "\"wall_ns\": %llu,\n\"unread_files\": %u,\n\"gpu_rows\": %s,\n",
            (unsigned long long)(r->end_ns - r->begin_ns), r->rec->unread_files,
            gpu_rows ? gpu_rows : "null");
    free(gpu_rows);
    print_json_gpu_rows(r->rec, out);
    fprintf(out, "\"losses\": {");
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        if (!loss_value(&r->losses, i))
            continue;
        fprintf(out, "%s\"%s\": %llu", separator, loss_info(i).key,
                (unsigned long long)loss_value(&r->losses, i));
        separator = ", ";
    }
    fprintf(out, "},\n\"functions\": [");
    for (uint32_t i = 0; i < r->row_count; i++) {
        fprintf(out, i ? ",\n" : "\n");
        print_json_row(&r->rows[i], out);
    }
    fprintf(out, "\n]");
    open_calls_print_json(&r->open, out);
    failures_print_json(&r->failures, r->begin_ns, out);
    if (r->stacks)
        stack_report_print_json(r->stacks, out);
    gpu_report_print_json(r->gpu, out);
    cost_report_print_json(r->rec, out);
    fprintf(out, "\n}\n");
}

/* Of the devices: what they did, or why nothing of it is known. */
static void print_gpu_summary(const struct report *r, FILE *out)
{
    char a[UNIT_TEXT_BYTES];
    const char *rows = recording_gpu_rows(r->rec);
    struct gpu_totals t = gpu_report_totals(r->gpu);
    if (!recording_has_gpu(r->rec)) {
        bool absent = strncmp(rows, "absent", 6) == 0;
        fprintf(out, "  GPU        %s%s\n", absent ? "rows " : "no work recorded",
                absent ? rows : "");
    } else if (t.devices) {
        fprintf(out, "  GPU        %s kernels, ", count_text(a, t.kernels));
        if (t.devices > 1)
            fprintf(out, "%u devices ", t.devices);
        fprintf(out, "busy %.1f%% of the time from first to last work\n",
                100.0 * (double)t.busy_ns / (double)t.span_ns);
    }
    struct absence found[ABSENCES_MAX];
    unsigned count = recording_has_gpu(r->rec) ? absences_find(r->rec, "gpu_rows", found) : 0;
    for (unsigned i = 0; i < count; i++) {
        char *text = absence_text(&found[i], r->rec, "rows");
        char *clean = text ? json_line(text) : NULL;
        fprintf(out, "  GPU        %s\n", clean ? clean : "?");
        free(clean);
        free(text);
    }
}

void report_print_summary(const struct report *r, unsigned function_count, FILE *out)
{
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES], text[2048], s[16];
    fprintf(out, "  wall time  %s\n",
            time_text(a, r->whole_ns ? r->whole_ns : r->end_ns - r->begin_ns));
    if (r->whole_ns)
        fprintf(
            out,
            "  read       its first %s only, to be done soon; all that follows is of these, and "
            "'gpuprof report' reads all\n",
            time_text(a, r->end_ns - r->begin_ns));
    unsigned threads = r->rec->thread_count - r->rec->gpu_thread_count;
    fprintf(out, "  processes  %u (%u thread%s)\n", r->rec->count, threads,
            threads == 1 ? "" : "s");
    fprintf(out, "  calls      %s%s", count_text(a, r->calls), r->is_estimated ? " (about)" : "");
    if (r->errors)
        fprintf(out, ", %s returned an error", count_text(a, r->errors));
    failures_print_summary(&r->failures, out);
    fprintf(out, "\n");
    if (r->copy_calls)
        fprintf(out, "  copied     %s in %s calls\n", bytes_text(a, r->copy_bytes),
                count_text(b, r->copy_calls));
    print_gpu_summary(r, out);
    for (uint32_t i = 0; i < r->row_count && i < function_count; i++) {
        const struct report_row *row = &r->rows[i];
        fprintf(out, "  %6s  %10s  %s x %s\n", share_text(r, row, s), time_text(a, row->total_ns),
                count_text(b, row->count), row->function->name);
    }
    open_calls_print_summary(&r->open, out);
    cost_report_print_summary(r->rec, out);
    if (losses_weight(&r->losses) != LOSS_NONE)
        fprintf(out, "  lost       %s\n", losses_text(&r->losses, text, sizeof text));
    else
        fprintf(out, "  lost       nothing%s\n", r->whole_ns ? " of what was read" : "");
    if (r->losses.running)
        fprintf(out, "  running    %s of the processes: their calls so far\n",
                count_text(a, r->losses.running));
}
