/* SPDX-License-Identifier: Apache-2.0 */
/* Processes in a part: header, metadata, losses, gpuprof's own cost, and dumps; and their steps. */
#include <stdlib.h>
#include <string.h>

#include "analyse/rank_report.h"
#include "base/array.h"
#include "base/memory.h"
#include "error.h"
#include "report/part_report.h"
#include "resolve/steps.h"

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

static int process_part_put(struct report *r, struct part *p)
{
    uint32_t count = r->rec->count;
    part_rows(p, &count, process_fields);
    for (uint32_t i = 0; i < count; i++) {
        struct process *process = r->rec->processes[i];
        struct process_reported reported = {.losses = r->walk.losses[i],
                                            .calls = r->process_calls[i],
                                            .window = r->walk.recorded[i].window};
        for (uint32_t k = 0; k < process->dump_count; k++) {
            report_moment(process, &process->dumps[k].begin_ns);
            report_moment(process, &process->dumps[k].at_ns);
        }
        carry_process(p, process, &reported);
    }
    return 0;
}

static int process_part_add(struct combination *c, struct part *p)
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
    return 0;
}

const struct part_section process_part = {process_part_put, process_part_add, NULL};

/* ---- the program's steps ---- */

static const struct part_field steps_fields[] = {PART(struct steps, kind, .below = STEPS_NONE + 1),
                                                 PART(struct steps, has_sampled),
                                                 PART(struct steps, beyond),
                                                 {0}};

static const struct part_field step_fields[] = {
    PART(struct step, process), PART(struct step, begin_ns),   PART(struct step, end_ns),
    PART(struct step, number),  PART(struct step, is_partial), {0}};

static int step_part_put(struct report *r, struct part *p)
{
    struct steps nothing = {.kind = STEPS_NONE};
    struct steps *s = r->marks ? r->marks : &nothing;
    part_fields(p, steps_fields, s);
    for (uint32_t i = 0; i < s->count; i++)
        part_put_row(p, step_fields, &s->list[i]);
    part_put_end(p);
    return 0;
}

static int step_part_add(struct combination *c, struct part *p)
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
    return 0;
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
    return rank_report_init(&c->report.ranks, &c->rec, s);
}

const struct part_section step_part = {step_part_put, step_part_add, step_part_end};
