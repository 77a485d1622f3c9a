/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the report: text, JSON, csv, and the summary at the end of a run. */
#include <stdlib.h>
#include <string.h>

#include "analyse/cost_report.h"
#include "base/json_text.h"
#include "base/text.h"
#include "read/process.h"
#include "report/overview.h"
#include "report/report.h"
#include "resolve/missing_reason.h"
#include "table/screen.h"

#define PROCESSES_SHOWN_MAX 16
#define OTHERS_WIDTH_MAX    80

static void print_processes(const struct report *r, FILE *out)
{
    char title[1024];
    char number[UNIT_TEXT_BYTES];
    for (uint32_t i = 0; i < r->rec->count && i < PROCESSES_SHOWN_MAX; i++) {
        const struct process *p = r->rec->processes[i];
        process_title(p, true, title, sizeof title);
        char *clean = json_line(title);
        uint64_t calls = r->process_calls[p->index];
        fprintf(out, "  %s: %s call%s\n", clean ? clean : "?", count_text(number, calls),
                plural_end(calls));
        free(clean);
    }
    if (r->rec->count > PROCESSES_SHOWN_MAX)
        fprintf(out, "  ... and %u more\n", r->rec->count - PROCESSES_SHOWN_MAX);
}

/* Prints the table of losses, which always ends the text. */
static void report_print_losses(const struct report *r, const struct report_view *v, FILE *out)
{
    struct table losses = {.info = &losses_table, .source = r};
    struct table_view how = v->how;
    how.is_named = report_names(v, &losses_table, 1);
    table_print_text(&losses, &how, out);
}

/* Prints where GPU rows come from, by groups of processes, so that a rank without rows shows. */
static void print_gpu_rows(const struct recording *rec, FILE *out)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    unsigned count = gpu_statuses_find(rec, found);
    for (unsigned i = 0; i < count; i++) {
        char *clean = json_line(found[i].reason);
        if (found[i].processes < rec->count)
            fprintf(out, "GPU rows in %u of %u processes: %s\n", found[i].processes, rec->count,
                    clean ? clean : "?");
        else
            fprintf(out, "GPU rows %s\n", clean ? clean : "?");
        free(clean);
    }
}

/* Prints the first screen; with --full also each process, and where its rows come from. */
static int print_recording(const struct report *r, const struct report_view *v, FILE *out)
{
    struct overview o;
    overview_init(&o, r);
    if (v->by > BY_RANGE)
        overview_print_head(&o, &v->how, out);
    else
        overview_print(&o, &v->how, out);
    if (!v->is_full)
        return 0;
    fputc('\n', out);
    print_processes(r, out);
    print_gpu_rows(r->rec, out);
    return 0;
}

/* Fills `tables` with those to be shown; returns the number. */
static unsigned wanted_tables(const struct report *r, const struct report_view *v,
                              struct table *tables)
{
    unsigned all = report_tables(r, tables), count = 0;
    for (unsigned i = 0; i < all; i++)
        if (report_wants(v, tables[i].info, v->format))
            tables[count++] = tables[i];
    return count;
}

static void print_tables(const struct report *r, const struct report_view *v, FILE *out)
{
    struct table tables[REPORT_TABLES_MAX];
    unsigned count = wanted_tables(r, v, tables);
    if (v->format == FORMAT_TEXT)
        report_tables_order(v, tables, count);
    for (unsigned i = 0; i < count; i++)
        (v->format == FORMAT_TEXT ? table_print_text : table_print_json)(&tables[i], &v->how, out);
}

/* Prints the names of tables that have rows and were not shown. */
static void print_others(const struct report *r, const struct report_view *v, FILE *out)
{
    struct table tables[REPORT_TABLES_MAX];
    unsigned count = report_tables(r, tables);
    const char *last = NULL;
    size_t width = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct table_info *info = tables[i].info;
        if (report_wants(v, info, FORMAT_TEXT) || info->by != BY_NAME || !info->key)
            continue;
        table_begin(&tables[i], &v->how, FORMAT_TEXT);
        if (tables[i].is_there && (!last || strcmp(last, info->name) != 0)) {
            size_t length = strlen(info->name) + 2;
            const char *before = !last ? "\nmore, with --full or --table=NAME:\n  "
                                 : width + length > OTHERS_WIDTH_MAX ? "\n  "
                                                                     : "  ";
            width = before[0] == '\n' ? length : width + length;
            fprintf(out, "%s%s", before, info->name);
            last = info->name;
        }
        table_end(&tables[i]);
    }
    if (last)
        fputc('\n', out);
}

int report_print_text(const struct report *r, const struct report_view *v, FILE *out)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    int error = 0;
    if (!v->tables)
        error = print_recording(r, v, out);
    else if (!recording_any(r->rec, process_has_gpu) ||
             missing_reasons_find(r->rec, "gpu_rows", found))
        print_gpu_rows(r->rec, out); /* explains empty GPU tables */
    if (error < 0)
        return error;
    print_tables(r, v, out);
    if (!v->tables && !v->is_full && v->by <= BY_RANGE)
        print_others(r, v, out);
    report_print_losses(r, v, out);
    return 0;
}

enum exit_code report_write_csv(const struct report *r, const struct report_view *v,
                                const char *path, uint64_t *room)
{
    struct table tables[REPORT_TABLES_MAX];
    unsigned count = wanted_tables(r, v, tables);
    return tables_write_csv(tables, count, &v->how, path, room);
}

static void print_json_gpu_rows(const struct recording *rec, FILE *out)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    unsigned count = gpu_statuses_find(rec, found);
    fprintf(out, "\"gpu_rows_of\": ");
    missing_reasons_print_json(found, count, "status", out);
    fprintf(out, ",\n\"notes\": ");
    missing_reasons_print_json(found, notes_find(rec, found), "text", out);
    fprintf(out, ",\n");
}

int report_print_json(const struct report *r, const struct report_view *v, FILE *out)
{
    const char *separator = "";
    fprintf(out, "{\n\"processes\": %u,\n\"threads\": %u,\n\"calls\": %llu,\n", r->rec->count,
            r->rec->thread_count - r->rec->own_thread_count, (unsigned long long)r->calls);
    fprintf(out, "\"wall_ns\": %llu,\n\"unread_files\": %u",
            (unsigned long long)(r->wall_end_ns - r->wall_begin_ns), r->rec->unread_files);
    json_printf(out, ",\n\"gpu_rows\": %s", recording_gpu_rows(r->rec));
    fputs(",\n", out);
    print_json_gpu_rows(r->rec, out);
    fprintf(out, "\"losses\": {");
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        if (!loss_value(&r->losses, i))
            continue;
        fprintf(out, "%s\"%s\": %llu", separator, loss_info(i).key,
                (unsigned long long)loss_value(&r->losses, i));
        separator = ", ";
    }
    fprintf(out, "}");
    struct overview o;
    overview_init(&o, r);
    fprintf(out, ",\n");
    if (r->missing & PART_OVERVIEW)
        fprintf(out, "\"overview\": null");
    else
        overview_print_json(&o, out);
    print_tables(r, v, out);
    fprintf(out, "\n}\n");
    return 0;
}

int report_print_summary(const struct report *r, unsigned function_count, FILE *out)
{
    struct overview o;
    overview_init(&o, r);
    overview_print_summary(&o, function_count, terminal_has_colour(fileno(out)), out);
    return 0;
}
