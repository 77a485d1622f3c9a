/* SPDX-License-Identifier: Apache-2.0 */
/* The table of findings. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/findings.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/next_words.h"
#include "base/text.h"
#include "read/process.h"
#include "table/screen.h"

#define WRAP_COLUMNS 54

/* What a place tells: "train (train)" is a function of an object without line information. */
enum known { KNOWS_NOTHING, KNOWS_FUNCTION, KNOWS_LINE, KNOWS_PYTHON };

static enum known known_of(const char *place)
{
    const char *in = place ? strrchr(place, '(') : NULL, *colon = in ? strrchr(in, ':') : NULL;
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    if (!in || in == place || in[-1] != ' ' || in[strlen(in) - 1] != ')')
        return KNOWS_NOTHING;
    if (digits && strcmp(colon + 1 + digits, ")") == 0)
        return colon - in > 3 && memcmp(colon - 3, ".py", 3) == 0 ? KNOWS_PYTHON : KNOWS_LINE;
    return strchr(in, ' ') ? KNOWS_NOTHING : KNOWS_FUNCTION;
}

/* Does its next command record stacks, to get lines for it? Otherwise other commands help. */
static bool records(const struct finding *f)
{
    return strstr(f->next ? f->next : f->kind->next, "--backtrace=") ||
           finding_id_of(f) == FINDING_HOST_BOUND;
}

/* The next command. It records nothing anew if the line is known, or the function and recording
 * would not show more. */
static const char *finding_next(const struct finding *f)
{
    const char *next = f->next ? f->next : f->kind->next;
    const struct finding_row *most = f->row_count ? &f->rows[0] : NULL;
    enum finding_id id = finding_id_of(f);
    enum known known = known_of(f->where);
    if (!records(f))
        return next;
    if (most && most->is_of_minor) /* what did the others do meanwhile? */
        return "gpuprof merge -o trace.json DATA";
    if (id == FINDING_HOST_BOUND) /* the line before the next call is not the one that ran */
        return most && most->did ? "gpuprof report --table=idle_host DATA" : next;
    if (known == KNOWS_NOTHING || (known == KNOWS_PYTHON && id == FINDING_LAUNCH_BOUND))
        return next; /* operators help, too */
    /* The cost lies between calls; tables of calls show only their own time. */
    if (id == FINDING_SYNC_IN_LOOP)
        return "gpuprof report --table=idle DATA";
    return known == KNOWS_PYTHON ? "gpuprof report --mine DATA" : "gpuprof report --by=stack DATA";
}

char *finding_next_line(const struct findings *f, const struct finding *found)
{
    return next_line(*f->next, finding_next(found));
}

const char *finding_title(const struct finding *f)
{
    return f->says.is_awaited ? "the other ranks wait in a collective for this one"
                              : f->kind->title;
}

static char *finding_advice(const struct finding *f)
{
    return text_printf("%s%s%s", f->kind->advice,
                       known_of(f->where) == KNOWS_FUNCTION && records(f)
                           ? " Compile the program with -g to see its lines."
                           : "",
                       f->says.lacks_ranks ? " Or ranks that are not here came late: report on "
                                             "all ranks to see which."
                                           : "");
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { TITLE, NS = 3, SHARE, EVIDENCE = 13, ADVICE, NEXT, JOB = 17 };

static const struct column columns[] = {
    [TITLE] = {"title", "finding", COLUMN_LINES, .doc = "what happened, with evidence and advice"},
    {"id", MEMBER_OF(struct finding, kind, id),
     .doc = "the finding's identifier, which never changes"},
    {"where", MEMBER(struct finding, where), .doc = "the place in the program that caused it"},
    [NS] = {"ns", "costs", COLUMN_NS, 12, MEMBER(struct finding, ns),
            .doc = "what it costs the device that loses most; none for memory"},
    [SHARE] = {"share", "share", COLUMN_SHARE, 7, MEMBER_SHARE(struct finding, ns, of_ns),
               .doc = "costs as a share of of_ns; for memory, bytes as a share of the peak"},
    {"window_ns", NULL, COLUMN_NUMBER, MEMBER(struct finding, window_ns),
     .doc = "the recorded time of the device after start-up"},
    {"of_ns", NULL, COLUMN_NUMBER, MEMBER(struct finding, of_ns),
     .doc = "the time that the share refers to"},
    {"total_ns", NULL, COLUMN_NUMBER, MEMBER(struct finding, total_ns),
     .doc = "what it costs all devices together"},
    {"devices", NULL, COLUMN_NUMBER, MEMBER(struct finding, devices),
     .doc = "the number of devices with this finding"},
    COLUMN_RANK(struct finding, process),
    COLUMN_HOST(struct finding, process),
    COLUMN_PID(struct finding, process),
    {"device", NULL, COLUMN_NUMBER, .ascending = true, MEMBER(struct finding, device),
     .lacks = LACKS_MAX, .doc = "the device that loses most"},
    [EVIDENCE] = {"evidence", .type = COLUMN_LIST,
                  .doc = "what the costs come from: name, time and place of each part"},
    [ADVICE] = {"advice", .doc = "what to do"},
    [NEXT] = {"next", .doc = "the command to run next"},
    {"bytes", NULL, COLUMN_NUMBER, .lacks = LACKS_ZERO, MEMBER(struct finding, bytes),
     .doc = "for memory: the bytes that it costs"},
    [JOB] = {"job", NULL, COLUMN_NUMBER, .ascending = true,
             .doc = "the job of the process, if there are several jobs"},
};

/* Relative to the recording's first event. */
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
        fputs(i ? ", " : "", out);
        json_printf(out,
                    "{\"name\": %s, \"where\": %s, \"count\": %" PRIu64 ", \"ns\": %" PRIu64
                    ", \"longest_ns\": %" PRIu64 ", \"at_ns\": %" PRIu64,
                    row->name, row->where, row->count, row->ns, row->longest_ns,
                    since(f, row->at_ns));
        if (row->bytes)
            fprintf(out, ", \"bytes\": %" PRIu64, row->bytes);
        if (row->did)
            fprintf(out, ", \"did\": \"%s\"", did_words[row->did]);
        if (row->is_of_minor)
            fprintf(out, ", \"work_share\": %.6f", row->work_share / 1e6);
        fprintf(out, row->tid ? ", \"tid\": %u}" : "}", row->tid);
    }
    fputc(']', out);
}

/* Wraps the text for a terminal of 80 columns, beside the table's numbers. */
static void put_wrapped(const char *text, FILE *out)
{
    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = text_wrap(text, WRAP_COLUMNS);
        fprintf(out, "\n%.*s", (int)length, text);
    }
}

const char *finding_base(const struct finding *f)
{
    return f->bytes                     ? " (share of the peak)"
           : finding_is_of_all(f->kind) ? " (share of all the time)"
                                        : "";
}

/* The finding for people: evidence, advice and next command below its title. */
static void findings_print_put_text(const struct findings *f, const struct finding *found,
                                    FILE *out)
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
        fprintf(out, "\n%s: ", clean);
        bool has_line = row->did && row->where && strstr(row->name, row->where);
        if (row->where && !has_line && strcmp(row->where, row->name) != 0)
            fprintf(out, "%s:\n  ", row->where); /* so that both fit a terminal */
        fprintf(out, "%s, ", row->bytes ? bytes_text(a, row->bytes) : time_text(a, row->ns));
        if (row->bytes)
            fprintf(out, "%s block%s left, ", count_text(b, row->count),
                    row->count == 1 ? "" : "s");
        else if (row->count == 1)
            fputs("once, ", out);
        else
            fprintf(out, "%s times, the longest ", count_text(b, row->count));
        if (row->at_ns < f->walk->survey.origin_ns)
            fputs("since the process started", out);
        else
            fprintf(out, "%s %s",
                    row->bytes        ? "the peak at"
                    : row->count == 1 ? "at"
                                      : "began at",
                    time_text(c, since(f, row->at_ns)));
        if (row->is_of_minor)
            fprintf(out, "\n  by a thread that launches %.1f%% of the GPU's work",
                    row->work_share / 1e4);
        free(clean);
    }
    char *advice = finding_advice(found);
    put_wrapped(advice, out);
    free(advice);
    char *next = finding_next_line(f, found);
    fprintf(out, "\nnext: %s", next);
    free(next);
}

static struct cell printed(const struct findings *f, const struct finding *found,
                           void (*put)(const struct findings *, const struct finding *, FILE *))
{
    struct new_text text;
    FILE *out = new_text_begin(&text);
    put(f, found, out);
    return cell_owned(new_text_end(&text, out));
}

static void findings_print_fill_row(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct findings *f = t->source;
    const struct finding *found = &f->list[index];
    char text[UNIT_TEXT_BYTES];
    cells[TITLE] = cell_text(finding_title(found));
    if (found->bytes)
        cells[SHARE] = cell_share(found->bytes, found->of_bytes);
    if (found->bytes && t->format == FORMAT_TEXT)
        cells[NS] = cell_owned(memory_text(bytes_text(text, found->bytes)));
    if (found->process->is_of_several && found->process->job != JOB_NONE)
        cells[JOB] = cell_number(found->process->job);
    cells[ADVICE] = cell_owned(finding_advice(found));
    cells[NEXT] = cell_owned(finding_next_line(f, found));
    if (t->format == FORMAT_JSON)
        cells[EVIDENCE] = printed(f, found, put_evidence);
    if (t->format == FORMAT_TEXT)
        cells[TITLE] = printed(f, found, findings_print_put_text);
}

const struct table_info findings_table = {
    .name = "findings",
    .key = "findings",
    .needs = PART_HANGS | PART_COUNTERS | PART_MEMORY,
    .title = "findings, the most expensive first",
    TABLE_COLUMNS(columns),
    .rows = {ROWS_IN(struct findings, list, count)},
    .is_summary = true,
    .text_none = ": nothing costs enough (most findings need 5% of the time and 50 ms); idle time "
                 "with the cause waiting or preempted is never one",
    .row = findings_print_fill_row,
};
