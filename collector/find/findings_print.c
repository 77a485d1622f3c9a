/* SPDX-License-Identifier: Apache-2.0 */
/* The table of findings. */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/unit_text.h"
#include "find/findings.h"
#include "read/process_title.h"

#define WRAP_COLUMNS 54

enum { TITLE, NS = 3, SHARE, EVIDENCE = 13, ADVICE, NEXT, JOB = 17 };

static const struct column columns[] = {
    [TITLE] = {"title", "finding", COLUMN_LINES},
    {"id", MEMBER_OF(struct finding, kind, id)},
    {"where", MEMBER(struct finding, where)},
    [NS] = {"ns", "costs", COLUMN_NS, 12, MEMBER(struct finding, ns)},
    [SHARE] = {"share", "share", COLUMN_SHARE, 7, MEMBER_SHARE(struct finding, ns, of_ns)},
    {"window_ns", NULL, COLUMN_NUMBER, MEMBER(struct finding, window_ns)},
    {"of_ns", NULL, COLUMN_NUMBER, MEMBER(struct finding, of_ns)},
    {"total_ns", NULL, COLUMN_NUMBER, MEMBER(struct finding, total_ns)},
    {"devices", NULL, COLUMN_NUMBER, MEMBER(struct finding, devices)},
    COLUMN_RANK(struct finding, process),
    COLUMN_HOST(struct finding, process),
    COLUMN_PID(struct finding, process),
    {"device", NULL, COLUMN_NUMBER, .ascending = true, MEMBER(struct finding, device),
     .lacks = LACKS_MAX},
    [EVIDENCE] = {"evidence", .type = COLUMN_LIST},
    [ADVICE] = {"advice"},
    [NEXT] = {"next"},
    {"bytes", NULL, COLUMN_NUMBER, .lacks = LACKS_ZERO, MEMBER(struct finding, bytes)},
    [JOB] = {"job", NULL, COLUMN_NUMBER, .ascending = true},
};

/* Since the recording's first event. */
static uint64_t since(const struct findings *f, uint64_t at_ns)
{
    uint64_t origin_ns = f->walk->survey.origin_ns;
    return at_ns > origin_ns ? at_ns - origin_ns : 0;
}

static void put_evidence(const struct findings *f, const struct finding *found, FILE *out)
{
    fputc('[', out);
    for (uint32_t i = 0; i < found->row_count; i++) {
        const struct finding_row *row = &found->rows[i];
        fputs(i ? ", {\"name\": " : "{\"name\": ", out);
        json_put("", row->name, out);
        fputs(", \"where\": ", out);
        json_put("", row->where, out);
        fprintf(out, ", \"count\": %llu, \"ns\": %llu, \"longest_ns\": %llu, \"at_ns\": %llu",
                (unsigned long long)row->count, (unsigned long long)row->ns,
                (unsigned long long)row->longest_ns, (unsigned long long)since(f, row->at_ns));
        if (row->bytes)
            fprintf(out, ", \"bytes\": %llu", (unsigned long long)row->bytes);
        if (row->is_of_minor)
            fprintf(out, ", \"work_share\": %.6f", row->work_share / 1e6);
        fprintf(out, row->thread ? ", \"tid\": %u}" : "}", row->thread ? row->thread->tid : 0);
    }
    fputc(']', out);
}

/* The text as lines that a terminal of 80 columns has room for, behind the table's numbers. */
static void put_wrapped(const char *text, FILE *out)
{
    while (*text) {
        size_t length = strlen(text);
        size_t last = 0;
        for (size_t i = 0; length > WRAP_COLUMNS && i <= WRAP_COLUMNS; i++)
            last = text[i] == ' ' ? i : last;
        length = last ? last : length;
        fprintf(out, "\n%.*s", (int)length, text);
        text += length + (text[length] == ' ');
    }
}

const char *finding_base(const struct finding *f)
{
    return f->bytes                                      ? " (share of the most there was)"
           : f->kind == &finding_kinds[FINDING_START_UP] ? " (share of all the time)"
                                                         : "";
}

/* What a finding says to people: its evidence, what to do and what to run stand below its title. */
static void put_text(const struct findings *f, const struct finding *found, FILE *out)
{
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES], c[UNIT_TEXT_BYTES];
    char who[RANK_TITLE_BYTES];
    fputs(finding_title(found), out);
    if (process_rank(found->process) || f->walk->rec->count > 1)
        fprintf(out, ", %s", process_who(found->process, who));
    if (found->device != UINT64_MAX)
        fprintf(out, ", GPU %llu", (unsigned long long)found->device);
    if (found->devices > 1)
        fprintf(out, " (and %llu more)", (unsigned long long)found->devices - 1);
    fputs(finding_base(found), out);
    for (uint32_t i = 0; i < found->row_count; i++) {
        const struct finding_row *row = &found->rows[i];
        char *clean = json_line(row->name);
        fprintf(out, "\n%s: ", clean ? clean : "?");
        if (row->where && strcmp(row->where, row->name) != 0)
            fprintf(out, "%s:\n  ", row->where); /* so that a terminal has room for both */
        fprintf(out, "%s, ", row->bytes ? bytes_text(a, row->bytes) : time_text(a, row->ns));
        if (row->bytes)
            fprintf(out, "%s block%s left, ", count_text(b, row->count),
                    row->count == 1 ? "" : "s");
        else if (row->count == 1)
            fputs("once, ", out);
        else
            fprintf(out, "%s times, the longest ", count_text(b, row->count));
        if (row->at_ns < f->walk->survey.origin_ns)
            fputs("from the process's start on", out);
        else
            fprintf(out, "%s %s",
                    row->bytes        ? "the peak at"
                    : row->count == 1 ? "at"
                                      : "began at",
                    time_text(c, since(f, row->at_ns)));
        if (row->is_of_minor)
            fprintf(out, "\n  by a thread that makes %.1f%% of the GPU's work",
                    row->work_share / 1e4);
        free(clean);
    }
    char *advice = finding_advice(found);
    put_wrapped(advice ? advice : "?", out);
    free(advice);
    char *next = finding_next_line(f, found);
    fprintf(out, "\nnext: %s", next ? next : "?");
    free(next);
}

static struct cell printed(const struct findings *f, const struct finding *found,
                           void (*put)(const struct findings *, const struct finding *, FILE *))
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return cell_owned(NULL);
    put(f, found, out);
    return cell_owned(fclose(out) == 0 ? text : NULL);
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct findings *f = t->source;
    const struct finding *found = &f->list[index];
    char text[UNIT_TEXT_BYTES];
    cells[TITLE] = cell_text(finding_title(found));
    if (found->bytes)
        cells[SHARE] = cell_share(found->bytes, found->of_bytes);
    if (found->bytes && format == FORMAT_TEXT)
        cells[NS] = cell_owned(strdup(bytes_text(text, found->bytes)));
    if (found->process->is_of_several && found->process->job != JOB_NONE)
        cells[JOB] = cell_number(found->process->job);
    cells[ADVICE] = cell_owned(finding_advice(found));
    cells[NEXT] = cell_owned(finding_next_line(f, found));
    if (format == FORMAT_JSON)
        cells[EVIDENCE] = printed(f, found, put_evidence);
    if (format == FORMAT_TEXT)
        cells[TITLE] = printed(f, found, put_text);
}

const struct table_info findings_table = {
    .name = "findings",
    .key = "findings",
    .title = "what to fix first",
    TABLE_COLUMNS(columns),
    .rows = {ROWS_IN(struct findings, list, count)},
    .is_summary = true,
    .text_none = ": nothing costs enough (most kinds need 5 %, and 50 ms of the whole run); idle "
                 "time of the "
                 "causes waiting and preempted is no finding",
    .json_empty = "[]",
    .row = fill_row,
};
