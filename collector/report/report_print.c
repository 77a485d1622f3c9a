/* SPDX-License-Identifier: Apache-2.0 */
/* Which tables a report shows, and how it is printed: text, JSON, csv, and the summary at the end
 * of a run. */
#include "report/report.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/cost_report.h"
#include "analyse/device_report.h"
#include "analyse/findings.h"
#include "analyse/gpu_report.h"
#include "analyse/idle.h"
#include "analyse/library_report.h"
#include "analyse/op_report.h"
#include "analyse/rank_report.h"
#include "analyse/source_report.h"
#include "analyse/stack_report.h"
#include "analyse/step_report.h"
#include "base/json_text.h"
#include "base/message.h"
#include "base/text.h"
#include "read/process.h"
#include "report/part_report.h"
#include "resolve/missing_reason.h"

#define PROCESSES_SHOWN_MAX 16
#define OTHERS_WIDTH_MAX    80
#define UNREAD_FILES        LOSS_COUNT /* the row after those of struct losses */

/* A declaration of analyses.def. */
struct table_list {
    const struct table_info *infos;
    unsigned count;
    const void *source;
    unsigned parts;
};

unsigned report_tables(const struct report *r, struct table *tables)
{
#define TABLES(...)    {__VA_ARGS__},
#define ANALYSIS(info) {&info.table, 1, &r->sums[ANALYSIS_##info], info.parts},
    const struct table_list lists[] = {
#include "analyse/analyses.def"
    };
    unsigned count = 0;
    for (unsigned i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (unsigned k = 0; k < lists[i].count; k++) {
            const struct table_info *info = &lists[i].infos[k];
            assert(count < REPORT_TABLES_MAX);
            if (info->columns && !(r->missing & info->needs))
                tables[count++] = (struct table){
                    .info = info, .source = lists[i].source, .parts = lists[i].parts};
        }
    return count;
}

/* Returns the table's position in --table, by its name or old name; UINT_MAX: not named. */
static unsigned request_of(const struct report_view *v, const struct table_info *info)
{
    unsigned old = word_in(v->tables, info->old_name), own = word_in(v->tables, info->name);
    return own < old ? own : old;
}

const struct table_info *report_table_at(unsigned index)
{
    static const struct report nothing; /* only the declarations are used */
    struct table tables[REPORT_TABLES_MAX];
    return index < report_tables(&nothing, tables) ? tables[index].info : NULL;
}

bool report_names(const struct report_view *v, const struct table_info *infos, unsigned count)
{
    bool any = false;
    for (unsigned i = 0; v->tables && i < count; i++)
        any |= request_of(v, &infos[i]) != UINT_MAX;
    return any;
}

unsigned report_leaves(const struct report_view *v, const struct recording *rec)
{
    static const struct report nothing; /* only the declarations are used */
    struct table tables[REPORT_TABLES_MAX];
    unsigned count = report_tables(&nothing, tables), parts = 0;
    unsigned missing = report_parts_missing(rec);
    bool is_text = v->format == FORMAT_TEXT;
    if (is_text && !v->tables && !v->is_full)
        return missing | REPORT_UNSEEN | REPORT_HOST;
    if (v->tables && v->format == FORMAT_JSON) /* JSON has sums beside tables without rows */
        return 0;
    if (!v->tables || v->by != BY_NAME || !(is_text || v->format == FORMAT_CSV))
        return missing;
    for (unsigned i = 0; i < count; i++)
        parts |= report_names(v, tables[i].info, 1) ? tables[i].parts : 0;
    if (parts & REPORT_MAKERS)
        parts |= REPORT_LIBRARIES;
    return (REPORT_EVERYTHING & ~parts) | missing;
}

uint64_t report_only(const struct report_view *v)
{
    const struct table_info *info;
    uint64_t only = 0;
    if (!v->tables || (v->format != FORMAT_TEXT && v->format != FORMAT_CSV))
        return 0;
    for (unsigned i = 0; (info = report_table_at(i)); i++) {
        unsigned number = report_names(v, info, 1) ? analyses_find(info) : 64;
        if (number == ANALYSES_COUNT)
            return 0;
        only |= number < 64 ? UINT64_C(1) << number : 0;
    }
    return analyses_are_of_rows(only) ? only : 0;
}

unsigned report_needs(const struct report_view *v)
{
    const struct table_info *info;
    unsigned needs = !v->tables || v->format == FORMAT_HTML ? PART_ALL : 0;
    for (unsigned i = 0; (info = report_table_at(i)); i++)
        needs |= report_names(v, info, 1) ? info->needs : 0;
    return v->format == FORMAT_JSON ? needs | PART_OVERVIEW : needs;
}

const struct table_info *report_not_in_parts(const struct report_view *v)
{
    const struct table_info *info;
    for (unsigned i = 0; (info = report_table_at(i)); i++)
        if (report_names(v, info, 1) && (info->by != BY_NAME || info == &step_changes.table ||
                                         (info >= step_tables && info < step_tables + STEP_TABLES)))
            return info;
    return NULL;
}

/* --by=stack shows its table alone, not among all others. */
bool report_wants(const struct report_view *v, const struct table_info *info,
                  enum report_format format)
{
    if (!info->key && format != FORMAT_CSV)
        return false; /* a part of every text and JSON in another form */
    if (v->tables)
        return report_names(v, info, 1);
    if (info->by != BY_NAME)
        return info->by == v->by;
    if (format != FORMAT_TEXT || info->place == PLACE_URGENT)
        return true;
    return v->by <= BY_RANGE && (v->is_full || info->place != PLACE_ASKED);
}

static unsigned text_rank(const struct report_view *v, const struct table_info *info)
{
    if (v->tables)
        return request_of(v, info);
    return info->place == PLACE_ASKED ? (unsigned)PLACES : info->place;
}

/* Sorts the tables into the order of the text, or the order in which they were named. Insertion
 * preserves the order of equal ranks. */
static void order_tables(const struct report_view *v, struct table *tables, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        struct table moved = tables[i];
        unsigned k = i;
        for (; k > 0 && text_rank(v, tables[k - 1].info) > text_rank(v, moved.info); k--)
            tables[k] = tables[k - 1];
        tables[k] = moved;
    }
}

static enum exit_code check_table(const struct report_view *v, const char *word, size_t length)
{
    char text[NEAREST_TEXT_BYTES];
    struct nearest nearest = nearest_to(word, length);
    const struct table_info *info;
    for (unsigned i = 0; (info = report_table_at(i)); i++) {
        nearest_offer(&nearest, info->name);
        if (!word_is(word, length, info->name) &&
            !(info->old_name && word_is(word, length, info->old_name)))
            continue;
        if (info->by == BY_NAME || info->by == v->by)
            return EXIT_OK;
        return usage_error("report: the table %s needs --%s", info->name,
                           info->by == BY_STACK    ? "by=stack"
                           : info->by == BY_THREAD ? "by=thread"
                           : info->by == BY_SOURCE ? "source=DIR"
                                                   : "by=python-line");
    }
    return usage_error("report: unknown table '%.*s'%s; 'gpuprof help report' lists the tables",
                       (int)length, word, nearest_text(&nearest, "", text));
}

static enum exit_code check_sort(const struct report_view *v)
{
    const struct table_info *info, *infos[REPORT_TABLES_MAX];
    unsigned wanted = 0;
    for (unsigned i = 0; (info = report_table_at(i)); i++)
        if (report_wants(v, info, v->format))
            infos[wanted++] = info;
    return table_sort_check("report", v->how.sort, infos, wanted);
}

enum exit_code report_view_check(const struct report_view *v)
{
    for (const char *word = v->tables; word;) {
        size_t length = strcspn(word, ",");
        enum exit_code code = check_table(v, word, length);
        if (code != EXIT_OK)
            return code;
        word = word[length] ? word + length + 1 : NULL;
    }
    return v->how.sort ? check_sort(v) : EXIT_OK;
}

/* ---- losses ---------------------------------------------------------------------------------- */

enum { NAME, WEIGHT, KEY, COUNT };

static const struct column loss_columns[] = {
    [NAME] = {NULL, "what", .doc = "a loss, damage or note"},
    [WEIGHT] = {"kind", .doc = "loss, note or damage"},
    [KEY] = {"name", .doc = "the name of the counter"},
    [COUNT] = {"count", "count", COLUMN_COUNT, 14, .doc = "the number of them"},
};

static bool has_loss(const struct table *t, uint32_t index)
{
    const struct report *r = t->source;
    return index == UNREAD_FILES ? r->rec->unread_files : loss_value(&r->total.losses, index);
}

static void begin_losses(struct table *t)
{
    t->count = UNREAD_FILES + 1;
    for (uint32_t i = 0; i < t->count; i++)
        t->is_there |= has_loss(t, i);
}

static void fill_loss(const struct table *t, uint32_t index, struct cell *cells)
{
    static const char *const weights[] = {
        [LOSS_NONE] = "note", [LOSS_COUNTED] = "loss", [LOSS_DAMAGE] = "damage"};
    static const struct loss_info unread = {
        "unread_files", "files that could not be read at all", LOSS_DAMAGE, true, false, false};
    const struct report *r = t->source;
    bool is_unread = index == UNREAD_FILES;
    struct loss_info info = is_unread ? unread : loss_info(index);
    cells[WEIGHT] = cell_text(weights[info.weight]);
    cells[KEY] = cell_text(info.key);
    cells[COUNT] =
        cell_number(is_unread ? r->rec->unread_files : loss_value(&r->total.losses, index));
    cells[NAME] =
        cell_printf("%s%s%s", info.is_count ? "" : "processes: ", info.text,
                    info.weight == LOSS_NONE && !info.leaves_out ? " (nothing is missing)" : "");
}

const struct table_info losses_table = {
    .name = "losses",
    .csv_name = "losses",
    .title = "losses and notes",
    TABLE_COLUMNS(loss_columns),
    .is_summary = true,
    .text_none = ": nothing was lost, and there are no notes",
    .begin = begin_losses,
    .has = has_loss,
    .row = fill_loss,
};

/* ---- printing -------------------------------------------------------------------------------- */

static void print_processes(const struct report *r, FILE *out)
{
    char title[1024];
    char number[UNIT_TEXT_BYTES];
    for (uint32_t i = 0; i < r->rec->count && i < PROCESSES_SHOWN_MAX; i++) {
        const struct process *p = r->rec->processes[i];
        process_title(p, true, title, sizeof title);
        char *clean = json_line(title);
        uint64_t calls = r->total.process_calls[p->index];
        fprintf(out, "  %s: %s call%s\n", clean, count_text(number, calls), plural_end(calls));
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
                    clean);
        else
            fprintf(out, "GPU rows %s\n", clean);
        free(clean);
    }
}

/* Prints the first screen; with --full also each process, and where its rows come from. */
static void print_recording(const struct report *r, const struct report_view *v, FILE *out)
{
    struct overview o;
    overview_init(&o, r);
    if (v->by > BY_RANGE)
        overview_print_head(&o, &v->how, out);
    else
        overview_print(&o, &v->how, out);
    if (!v->is_full)
        return;
    fputc('\n', out);
    print_processes(r, out);
    print_gpu_rows(r->rec, out);
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
        order_tables(v, tables, count);
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

void report_print_text(const struct report *r, const struct report_view *v, FILE *out)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    if (!v->tables)
        print_recording(r, v, out);
    else if (!recording_any(r->rec, process_has_gpu) ||
             missing_reasons_find(r->rec, "gpu_rows", found))
        print_gpu_rows(r->rec, out); /* explains empty GPU tables */
    print_tables(r, v, out);
    if (!v->tables && !v->is_full && v->by <= BY_RANGE)
        print_others(r, v, out);
    report_print_losses(r, v, out);
}

enum exit_code report_write_csv(const struct report *r, const struct report_view *v,
                                const char *path, uint64_t *room)
{
    struct table tables[REPORT_TABLES_MAX];
    unsigned count = wanted_tables(r, v, tables);
    return tables_write_csv(tables, count, &v->how, path, room);
}

void report_print_json(const struct report *r, const struct report_view *v, FILE *out)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    const char *separator = "";
    json_printf(out,
                "{\n\"processes\": %u,\n\"threads\": %u,\n\"calls\": %llu,\n\"wall_ns\": %llu"
                ",\n\"unread_files\": %u,\n\"gpu_rows\": %s,\n\"gpu_rows_of\": ",
                r->rec->count, r->rec->thread_count - r->rec->own_thread_count,
                (unsigned long long)r->total.calls,
                (unsigned long long)(r->time.wall_end_ns - r->time.wall_begin_ns),
                r->rec->unread_files, recording_gpu_rows(r->rec));
    missing_reasons_print_json(found, gpu_statuses_find(r->rec, found), "status", out);
    fputs(",\n\"notes\": ", out);
    missing_reasons_print_json(found, notes_find(r->rec, found), "text", out);
    fputs(",\n\"losses\": {", out);
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        if (!loss_value(&r->total.losses, i))
            continue;
        fprintf(out, "%s\"%s\": %llu", separator, loss_info(i).key,
                (unsigned long long)loss_value(&r->total.losses, i));
        separator = ", ";
    }
    fputs("},\n", out);
    struct overview o;
    overview_init(&o, r);
    if (r->missing & PART_OVERVIEW)
        fputs("\"overview\": null", out);
    else
        overview_print_json(&o, out);
    print_tables(r, v, out);
    fputs("\n}\n", out);
}
