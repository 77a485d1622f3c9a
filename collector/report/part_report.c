/* SPDX-License-Identifier: Apache-2.0 */
#include "report/part_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "analyse/findings.h"
#include "analyse/gpu_report.h"
#include "analyse/idle.h"
#include "analyse/library_report.h"
#include "analyse/op_report.h"
#include "analyse/rank_report.h"
#include "analyse/step_report.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "error.h"

const char *part_report_missing(unsigned missing, char text[static PART_MISSING_BYTES])
{
    static const char *const words[] = {
        "hangs", "collectives that differ, or did not end", "more collectives than a part keeps",
        "counters and energy of devices", "memory problems (also in 'gpuprof memory')"};
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        if (missing >> i & 1)
            length += (size_t)snprintf(text + length, PART_MISSING_BYTES - length, "%s%s",
                                       length ? ", " : "", words[i]);
    return text;
}

/* Returns what the report has that no part has. */
static unsigned find_missing(const struct report *r)
{
    const struct hang *h = &r->hang;
    unsigned missing = h->open.total || h->unfinished.row_count || h->quiet.count ? PART_HANGS : 0;
    missing |= h->collectives.pending.total || collectives_may_wait(&h->collectives) ||
                       collective_calls_differ(&r->sums[ANALYSIS_collective_calls_sums])
                   ? PART_COLLECTIVES
                   : 0;
    missing |= r->libraries && r->libraries->has_forgotten ? PART_LIBRARIES : 0;
    missing |= r->devices->count || r->devices->missing_reason_count || r->energy->count
                   ? PART_COUNTERS
                   : 0;
    missing |= r->peaks.ooms || (r->marks && memory_peaks_show_fault(&r->peaks, r->marks))
                   ? PART_MEMORY
                   : 0;
    return missing;
}

/* ---- single values, and tables of sums ------------------------------------------------------- */

static const struct part_field whole_fields[] = {
    PART(struct report, walk.survey.origin_ns, .join = PART_FIRST),
    PART(struct report, walk.kernels.dropped, .join = PART_ADD),
    PART(struct report, walk.texts.dropped, .join = PART_ADD),
    PART(struct report, total.errors, .join = PART_ADD),
    PART(struct report, total.copy_calls, .join = PART_ADD),
    PART(struct report, total.copy_bytes, .join = PART_ADD),
    PART(struct report, total.begin_ns, .join = PART_FIRST),
    PART(struct report, total.end_ns, .join = PART_LAST),
    PART(struct report, time.wall_begin_ns, .join = PART_FIRST),
    PART(struct report, time.wall_end_ns, .join = PART_LAST),
    PART(struct report, peaks.ooms, .join = PART_ADD),
    PART(struct report, missing, .join = PART_OR),
    PART(struct report, total.is_estimated, .join = PART_OR),
    {0}};

static const struct part_field recording_fields[] = {
    PART(struct recording, thread_count, .join = PART_ADD),
    PART(struct recording, own_thread_count, .join = PART_ADD),
    PART(struct recording, unread_files, .join = PART_ADD),
    {0}};

static void put_whole(struct report *r, struct part *p)
{
    r->missing = find_missing(r);
    part_fields(p, whole_fields, r);
    part_fields(p, recording_fields, r->rec);
    part_flag(p, &(bool){!r->making.histogram_rows});
    analyses_put(r->sums, p);
    p->has_more |= (r->ops && r->ops->has_more) || (r->libraries && r->libraries->has_more);
}

static void add_whole(struct combination *c, struct part *p)
{
    bool has_few_times = false;
    part_fields(p, whole_fields, &c->report);
    part_fields(p, recording_fields, &c->rec);
    part_flag(p, &has_few_times);
    c->has_few_times |= has_few_times;
    p->has_failed |= c->report.time.wall_end_ns < c->report.time.wall_begin_ns;
    analyses_add(c->report.sums, p);
}

static int end_whole(struct combination *c)
{
    struct report *r = &c->report;
    report_sum_up(r);
    analyses_finish(r->sums);
    r->missing |=
        collective_calls_differ(&r->sums[ANALYSIS_collective_calls_sums]) ? PART_COLLECTIVES : 0;
    return 0;
}

/* ---- texts ----------------------------------------------------------------------------------- */

struct reported_text {
    const char *text;
};

static const struct part_field text_fields[] = {PART(struct reported_text, text), {0}};

void part_put_text(struct part *p, const char *text)
{
    part_put_row(p, text_fields, &(struct reported_text){text});
}

bool part_get_text(struct part *p, const char **text)
{
    struct reported_text row = {0};
    bool has_text = part_get_row(p, text_fields, &row);
    *text = row.text;
    return has_text;
}

/* ---- processes: header, metadata, losses, gpuprof's own cost, and dumps -----------------------
 */

_Static_assert(sizeof(struct losses) % sizeof(uint64_t) == 0, "they are numbers, all of them");

static const struct part_field step_down_fields[] = {
    PART(struct step_down, step),   PART(struct step_down, begin_ns), PART(struct step_down, share),
    PART(struct step_down, budget), PART(struct step_down, text),     {0}};

static const struct part_field meta_fields[] = {
    PART(struct process_meta, text, .is_needed = true), PART(struct process_meta, begin), {0}};

static const struct part_field dump_fields[] = {
    PART_SPAN(struct process_dump, number, lost), PART(struct process_dump, text), {0}};

static const struct part_field process_fields[] = {
    PART(struct process, file.path, .is_needed = true),
    PART(struct process, end_reason),
    PART(struct process, has_gpu),
    PART_SPAN(struct process, min_ns, max_ns),
    PART_LIST(struct process, meta, meta_count, meta_fields, .below = META_ENTRIES_MAX + 1),
    PART_SPAN(struct process, costs.rows, costs.sum),
    PART(struct process, costs.worst_tid),
    PART(struct process, costs.worst_name),
    PART_LIST(struct process, costs.steps, costs.step_count, step_down_fields),
    PART_LIST(struct process, dumps, dump_count, dump_fields),
    {0}};

static const struct part_field reported_fields[] = {
    PART_SPAN(struct process_reported, losses, window), {0}};

/* Converts a time to the header's clock, since the reader of a part has no other. */
static void report_moment(struct process *p, uint64_t *ns)
{
    uint64_t shown_ns = clock_map_ns(&p->clock, *ns), zero_ns = clock_map_ns(&p->clock, 0);
    *ns = shown_ns > zero_ns ? shown_ns - zero_ns : 0;
}

/* Transfers a process; reading, into an empty one. */
static void carry_process(struct part *p, struct process *process,
                          struct process_reported *reported)
{
    uint8_t header[STREAM_HEADER_BYTES_MAX];
    const uint8_t *data = header;
    int size = p->is_written ? stream_header_write(&process->header, header, sizeof header) : 0;
    uint32_t bytes = size < 0 ? 0 : (uint32_t)size;
    part_bytes(p, &data, &bytes);
    p->has_failed |= size < 0 || (!p->is_written && !p->has_failed &&
                                  stream_header_read(&process->header, data, bytes) < 0);
    part_fields(p, process_fields, process);
    part_fields(p, reported_fields, reported);
}

static void process_part_put(struct report *r, struct part *p)
{
    uint32_t count = r->rec->count;
    part_rows(p, &count, process_fields);
    for (uint32_t i = 0; i < count; i++) {
        struct process *process = r->rec->processes[i];
        struct process_reported reported = {.losses = r->walk.losses[i],
                                            .calls = r->total.process_calls[i],
                                            .window = r->walk.recorded[i].window};
        for (uint32_t k = 0; k < process->dump_count; k++) {
            report_moment(process, &process->dumps[k].begin_ns);
            report_moment(process, &process->dumps[k].at_ns);
        }
        carry_process(p, process, &reported);
    }
}

static void process_part_add(struct combination *c, struct part *p)
{
    struct recording *rec = &c->rec;
    part_rows(p, &p->process_count, process_fields);
    for (uint32_t i = 0; i < p->process_count && !p->has_failed; i++) {
        struct process *process = memory_new(1, sizeof *process);
        uint32_t index = rec->count, reported_count = index;
        ARRAY_PUSH(c->reported, reported_count, NULL);
        ARRAY_PUSH(rec->processes, rec->count, &process);
        *process = (struct process){
            .number = index,
            .index = index,
            .min_ns = UINT64_MAX,
            .file = {.fd = -1, .size = (p->length + p->span_bytes) / p->process_count}};
        carry_process(p, process, &c->reported[index]);
        process->losses = c->reported[index].losses;
        if (!p->has_failed)
            clock_map_init(&process->clock, &process->header);
    }
}

/* ---- the program's steps ----------------------------------------------------------------------
 */

static const struct part_field steps_fields[] = {PART(struct steps, kind, .below = STEPS_NONE + 1),
                                                 PART(struct steps, has_sampled),
                                                 PART(struct steps, beyond),
                                                 {0}};

static const struct part_field step_fields[] = {
    PART(struct step, process), PART(struct step, begin_ns),   PART(struct step, end_ns),
    PART(struct step, number),  PART(struct step, is_partial), {0}};

static void step_part_put(struct report *r, struct part *p)
{
    struct steps nothing = {.kind = STEPS_NONE};
    struct steps *s = r->marks ? r->marks : &nothing;
    part_fields(p, steps_fields, s);
    for (uint32_t i = 0; i < s->count; i++)
        part_put_row(p, step_fields, &s->list[i]);
    part_put_end(p);
}

static void step_part_add(struct combination *c, struct part *p)
{
    struct steps *s = c->report.marks, whole = {0};
    part_fields(p, steps_fields, &whole);
    p->has_more |= whole.beyond != 0;
    s->has_sampled |= whole.has_sampled;
    if (!p->has_failed && whole.kind < s->kind) {
        s->kind = whole.kind;
        s->count = 0;
    }
    for (struct step row = {0}; part_get_row(p, step_fields, &row); row = (struct step){0}) {
        p->has_failed |= row.end_ns < row.begin_ns;
        if (whole.kind <= s->kind)
            ARRAY_PUSH(s->list, s->count, &row);
    }
}

static int step_part_compare(const void *left, const void *right)
{
    const struct step *a = left, *b = right;
    return ORDER(a->process->index, b->process->index)
               ?: ORDER(a->begin_ns, b->begin_ns)
               ?: ORDER(a->end_ns, b->end_ns);
}

static int step_part_end(struct combination *c)
{
    struct steps *s = c->report.marks;
    if (s->kind == STEPS_GRAPH && s->has_sampled) /* the same as if one process had recorded all */
        s->count = 0;
    ARRAY_SORT(s->list, s->count, step_part_compare);
    for (uint32_t i = 0; i < s->count; i++)
        s->firsts[s->list[i].process->index + 1]++;
    for (uint32_t i = 0; i < c->rec.count; i++)
        s->firsts[i + 1] += s->firsts[i];
    return 0;
}

static const struct part_section step_part = {step_part_put, step_part_add, step_part_end};

/* ---- spans that cross blocks ---------------------------------------------------------------- */

static const struct part_field crossing_fields[] = {
    PART(struct crossing, process), PART_SPAN(struct crossing, begin_ns, inner_ns),
    PART(struct crossing, thread),  PART(struct crossing, ended_by),
    PART(struct crossing, inside),  PART(struct crossing, has_work),
    PART(struct crossing, is_kept), {0}};

static void crossing_part_put(struct report *r, struct part *p)
{
    struct crossings *c = &r->crossings;
    part_flag(p, &c->is_unusable);
    for (uint64_t i = 0; !c->is_unusable && i < c->rows.count; i++)
        part_put_row(p, crossing_fields, spool_at(&c->rows, i, false));
    part_put_end(p);
}

static void crossing_part_add(struct combination *c, struct part *p)
{
    bool is_unusable = false;
    part_flag(p, &is_unusable);
    c->report.crossings.is_unusable |= is_unusable;
    for (struct crossing row = {0}; part_get_row(p, crossing_fields, &row);
         row = (struct crossing){0})
        spool_append(&c->report.crossings.rows, &row);
}

static const struct part_section crossing_part = {crossing_part_put, crossing_part_add, NULL};

/* ---- a combination --------------------------------------------------------------------------- */

/* Reports a fault of a part, unless the combination is quiet. */
#define WRONG(c, ...) ((c)->is_quiet ? EXIT_USAGE : usage_error("report: " __VA_ARGS__))

static int compare_parts(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    return ORDER(a->index, b->index);
}

/* Sorts the parts by number, and checks that they are one complete set without duplicates. */
static enum exit_code check_set(struct combination *c)
{
    const struct part first = c->parts[0];
    qsort(c->parts, c->part_count, sizeof *c->parts, compare_parts);
    for (uint32_t i = 0; i < c->part_count || i < first.count; i++) {
        const struct part *p = i < c->part_count ? &c->parts[i] : NULL;
        if (!p || p->index > i)
            return WRONG(c, "part %u of %u (they count from 0 on) is missing; name all of them", i,
                         first.count);
        if (p->index < i || p->count != first.count || p->set != first.set)
            return WRONG(c,
                         "%s is part %u of %u, which does not fit %s: name each part of one set "
                         "once, all made of the same files",
                         p->path, p->index, p->count, first.path);
    }
    return EXIT_OK;
}

/* Arranges the processes, and begins the report. */
static int start_report(struct combination *c)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->part_count; i++)
        bytes += c->parts[i].length;
    struct report *r = &c->report;
    struct recording *rec = &c->rec;
    *r = (struct report){.is_combined = true,
                         .making.histogram_rows =
                             histogram_rows_max(0) + bytes / PART_HISTOGRAM_ROW};
    if (rec->count) {
        recording_find_jobs(rec);
        if (!c->is_quiet)
            recording_say_jobs(rec, "select one with 'gpuprof report --job=N' of the recordings");
        recording_arrange(rec);
    }
    report_begin(r, rec,
                 &(struct report_request){.use = USE_PARTS, .by = BY_NAME, .groups = c->groups});
    cost_report_init(&r->cost, rec);
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process_reported *reported = &c->reported[rec->processes[i]->number];
        r->total.process_calls[i] = reported->calls;
        r->walk.recorded[i].window = reported->window;
    }
    for (uint32_t i = 0, first = 0; i < c->part_count; first += c->parts[i++].process_count)
        c->parts[i].processes = rec->loaded ? rec->loaded + first : NULL; /* in parts' order */
    return 0;
}

/* ---- sections -------------------------------------------------------------------------------- */

static void put_more(struct report *r, struct part *p)
{
    const struct recording *rec = r->rec;
    part_flag(p, &p->has_more);
    for (size_t at = 0; at < rec->looked_at_bytes; at += strlen(rec->looked_at + at) + 1)
        part_put_text(p, rec->looked_at + at);
    part_put_end(p);
}

static void add_more(struct combination *c, struct part *p)
{
    bool has_more = false;
    const char *file;
    part_flag(p, &has_more);
    c->has_more |= has_more || p->has_more;
    while (part_get_text(p, &file))
        if (file)
            recording_note_file(&c->rec, file);
}

static const struct part_section process_part = {process_part_put, process_part_add, start_report};
static const struct part_section whole_part = {put_whole, add_whole, end_whole};
static const struct part_section more_part = {put_more, add_more, NULL};

static const struct part_section *const sections[] = {&process_part, &step_part,  &crossing_part,
                                                      &device_part,  &whole_part, &idle_part,
                                                      &finding_part, &more_part};
#define SECTIONS      (sizeof sections / sizeof sections[0])
#define HEAD_SECTIONS 3

int part_report_put(struct report *r, struct part *p)
{
    for (unsigned i = 0; i < SECTIONS; i++)
        sections[i]->put(r, p);
    return p->has_failed ? GPUPROF_LIMIT : 0;
}

static enum exit_code damaged(const struct combination *c, const struct part *p)
{
    return WRONG(c, "%s: is damaged: it does not hold what it says", p->path);
}

static enum exit_code part_report_add_up(struct combination *c, unsigned count)
{
    int error = 0;
    for (unsigned s = 0; s < count && error == 0; s++) {
        for (uint32_t i = 0; i < c->part_count; i++) {
            sections[s]->add(c, &c->parts[i]);
            if (c->parts[i].has_failed)
                return damaged(c, &c->parts[i]);
        }
        error = sections[s]->end ? sections[s]->end(c) : 0;
    }
    for (uint32_t i = 0; i < c->part_count && error == 0 && count == SECTIONS; i++)
        if (c->parts[i].has_failed || c->parts[i].at != c->parts[i].length)
            return damaged(c, &c->parts[i]);
    return say_error("report", error);
}

static enum exit_code combine(struct combination *c, uint32_t count, combination_part_fn *read,
                              void *context, unsigned section_count)
{
    enum exit_code code = EXIT_OK;
    c->parts = memory_new(count, sizeof *c->parts);
    c->numbers = memory_new(count, sizeof *c->numbers);
    reader_init(&c->rec.reader);
    for (uint32_t i = 0; code == EXIT_OK && i < count; i++) {
        code = read(context, i, &c->parts[i]);
        c->part_count++;
    }
    if (code == EXIT_OK)
        code = check_set(c);
    return code == EXIT_OK ? part_report_add_up(c, section_count) : code;
}

enum exit_code combination_make(struct combination *c, uint32_t count, combination_part_fn *read,
                                void *context, bool quiet, bool groups)
{
    *c = (struct combination){.is_quiet = quiet, .groups = groups};
    return combine(c, count, read, context, SECTIONS);
}

enum exit_code combination_make_head(struct combination *c, uint32_t count,
                                     combination_part_fn *read, void *context)
{
    *c = (struct combination){.is_quiet = true};
    return combine(c, count, read, context, HEAD_SECTIONS);
}

void combination_release(struct combination *c)
{
    c->rec.thread_count = 0; /* the threads are in the parts */
    if (c->report.rec)
        report_release(&c->report);
    recording_release(&c->rec);
    for (uint32_t i = 0; i < c->part_count; i++) {
        free(c->numbers[i].kinds);
        free(c->numbers[i].places);
        part_release(&c->parts[i]);
    }
    free(c->reported);
    free(c->numbers);
    free(c->parts);
}
