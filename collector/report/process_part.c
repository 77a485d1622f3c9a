/* SPDX-License-Identifier: Apache-2.0 */
/* A process in a part: header, metadata, losses, gpuprof's own cost, and dumps. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "report/part_report.h"

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

static int process_part_put(struct report *r, struct part *p)
{
    uint32_t count = r->rec->count;
    part_rows(p, &count, process_fields);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t header[STREAM_HEADER_BYTES_MAX];
        const uint8_t *data = header;
        struct process *process = r->rec->processes[i];
        for (uint32_t k = 0; k < process->dump_count; k++) {
            report_moment(process, &process->dumps[k].begin_ns);
            report_moment(process, &process->dumps[k].at_ns);
        }
        int size = stream_header_write(&process->header, header, sizeof header);
        p->has_failed |= size < 0;
        part_bytes(p, &data, &(uint32_t){size < 0 ? 0 : (uint32_t)size});
        part_put(p, process_fields, process);
        part_put(p, reported_fields,
                 &(struct process_reported){.losses = r->walk.losses[i],
                                            .calls = r->process_calls[i],
                                            .window = r->walk.recorded[i].window});
    }
    return 0;
}

/* Reads into an empty process. */
static int process_part_get(struct part *p, struct process *process,
                            struct process_reported *reported)
{
    const uint8_t *data = NULL;
    uint32_t size = 0;
    part_bytes(p, &data, &size);
    p->has_failed |= !p->has_failed && stream_header_read(&process->header, data, size) < 0;
    if (p->has_failed)
        return 0;
    part_get(p, process_fields, process);
    part_get(p, reported_fields, reported);
    process->losses = reported->losses;
    return clock_map_init(&process->clock, &process->header) < 0 ? GPUPROF_NO_MEMORY : 0;
}

static int process_part_add(struct combination *c, struct part *p)
{
    struct recording *rec = &c->rec;
    int error = 0;
    part_rows(p, &p->process_count, process_fields);
    for (uint32_t i = 0; i < p->process_count && error == 0 && !p->has_failed; i++) {
        struct process *process = malloc(sizeof *process);
        uint32_t index = rec->count, reported_count = index;
        if (!process || ARRAY_PUSH(c->reported, reported_count, NULL) < 0 ||
            ARRAY_PUSH(rec->processes, rec->count, &process) < 0) {
            free(process);
            return GPUPROF_NO_MEMORY;
        }
        *process = (struct process){
            .number = index,
            .index = index,
            .min_ns = UINT64_MAX,
            .file = {.fd = -1, .size = (p->length + p->span_bytes) / p->process_count}};
        error = process_part_get(p, process, &c->reported[process->index]);
    }
    return error;
}

const struct part_section process_part = {process_part_put, process_part_add, NULL};
