/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tables of device time, idle time, ranks and arrivals are made of, in a part: the times
 * of each device, the places its idle time is charged to, its collective kernels by communicator
 * and in order, and the times in which nothing else ran there. The combination finds which kernels
 * met and who waited, as a report of all recordings does. Some 20 bytes a kernel, and 5 for each of
 * these times. Places are texts, because only the part can resolve their lines.
 */
#include <stdlib.h>
#include <string.h>

#include "analyse/findings.h"
#include "analyse/idle.h"
#include "analyse/rank_report.h"
#include "analyse/step_report.h"
#include "base/array.h"
#include "base/memory.h"
#include "report/part_report.h"

/* A device with what is needed to sort it. */
struct placed {
    struct idle_device device;
    uint32_t *number; /* its number in its part */
    uint32_t at;      /* position among all, in the order of the parts */
};

struct carried_device {
    struct idle_device device;
    struct surveyed_device known;
};

static const struct part_field device_fields[] = {
    PART(struct carried_device, device.process),
    PART(struct carried_device, device.device),
    PART_SPAN(struct carried_device, device.begin_ns, device.end_ns),
    PART(struct carried_device, device.first_ns),
    PART(struct carried_device, device.parts),
    PART_SPAN(struct carried_device, device.idle_ns, device.stopped_ns),
    PART(struct carried_device, device.causes),
    PART(struct carried_device, device.loses_work),
    PART_SPAN(struct carried_device, known.uuid_high, known.uuid_low),
    PART_SPAN(struct carried_device, known.limits.major, known.limits.minor),
    PART(struct carried_device, known.name),
    {0}};

static const struct part_field row_fields[] = {
    PART_AS(struct idle_row, device, PART_DEVICE),
    PART(struct idle_row, cause, .below = IDLE_CAUSES),
    PART(struct idle_row, did, .below = DID_KINDS),
    PART(struct idle_row, place.is_open, .below = 2),
    PART(struct idle_row, place.side, .below = IDLE_SIDES),
    PART(struct idle_row, tid),
    PART(struct idle_row, work_share),
    PART(struct idle_row, text, .is_needed = true),
    PART(struct idle_row, where),
    PART_SPAN(struct idle_row, ns, longest_at_ns),
    {0}};

static const struct part_field place_fields[] = {
    PART(struct work_place, process),
    PART(struct work_place, cause, .below = ARRIVAL_WORKED + 1),
    PART_AS(struct work_place, text, PART_TEXT, .is_needed = true),
    {0}};

static const struct part_field sequence_fields[] = {
    PART_AS(struct rank_sequence, device, PART_DEVICE),
    PART(struct rank_sequence, communicator),
    PART(struct rank_sequence, ranks),
    PART(struct rank_sequence, name, .is_needed = true),
    PART(struct rank_sequence, is_numbered),
    {0}};

/* ---- devices; they come before everything that refers to one --------------------------------- */

static void idle_part_put_devices(struct report *r, struct part *p)
{
    for (uint32_t i = 0; r->idle && i < r->idle->device_count; i++) {
        struct carried_device row = {.device = r->idle->devices[i]};
        const struct surveyed_device *known =
            survey_device(&r->walk.survey, row.device.process, row.device.device);
        if (known)
            row.known = *known;
        part_put_row(p, device_fields, &row);
    }
    part_put_end(p);
}

static void add_devices(struct combination *c, struct part *p)
{
    struct idle *d = c->report.idle;
    struct carried_device row = {0};
    for (; part_get_row(p, device_fields, &row); row = (struct carried_device){0}) {
        const struct idle_device *device = &row.device;
        p->has_failed |= d->device_count == IDLE_DEVICES_MAX || device->end_ns < device->begin_ns ||
                         device->idle_ns > device->end_ns - device->begin_ns ||
                         device->causes[IDLE_START_UP] > device->idle_ns;
        if (p->has_failed)
            return;
        ARRAY_PUSH(p->devices, p->device_count, NULL);
        ARRAY_PUSH(d->devices, d->device_count, device);
        row.known.process = device->process->index;
        row.known.limits.device = device->device;
        if (row.known.name[0] || row.known.uuid_high || row.known.uuid_low)
            survey_add_device(&d->walk->survey, &row.known);
    }
}

/* Orders devices as one walk meets them: by process, then by their first work. */
static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    return ORDER(a->device.process->index, b->device.process->index) ?:
           ORDER(a->device.first_ns, b->device.first_ns) ?:
           ORDER(a->at, b->at);
}

static int order_devices(struct combination *c)
{
    struct idle *d = c->report.idle;
    struct placed *list = memory_new(d->device_count + 1u, sizeof *list);
    uint32_t at = 0;
    d->tracks = memory_new(d->device_count + 1u, sizeof *d->tracks);
    for (uint32_t of = 0; of < c->part_count; of++)
        for (uint32_t i = 0; i < c->parts[of].device_count; i++, at++)
            list[at] = (struct placed){d->devices[at], &c->parts[of].devices[i], at};
    qsort(list, at, sizeof *list, compare_placed);
    for (uint32_t i = 0; i < at; i++) {
        const struct idle_device *device = &list[i].device;
        d->devices[i] = *device;
        d->tracks[i] = (struct idle_track){.process = device->process,
                                           .device = device->device,
                                           .place = i,
                                           .loses_work = device->loses_work};
        *list[i].number = i;
    }
    d->track_count = at;
    free(list);
    return 0;
}

const struct part_section device_part = {idle_part_put_devices, add_devices, order_devices};

/* ---- idle time, and which kernels met -------------------------------------------------------- */

static void idle_part_put(struct report *r, struct part *p)
{
    struct idle *d = r->idle;
    for (unsigned i = 0; !d && i < 4; i++)
        part_put_end(p);
    if (!d)
        return;
    const struct arrivals *a = &d->arrivals;
    for (uint32_t i = 0; i < a->kind_count; i++)
        part_put_text(p, a->kinds[i]);
    part_put_end(p);
    for (uint32_t i = 0; i < a->places.count; i++)
        part_put_row(p, place_fields, &a->places.list[i]);
    part_put_end(p);
    p->has_more |= d->rows.count >= IDLE_ROWS_MAX;
    for (uint32_t i = 0; i < d->rows.count; i++)
        part_put_row(p, row_fields, &d->rows.list[i]);
    part_put_end(p);
    struct idle_ranks *ranks = &d->ranks;
    for (uint32_t i = 0; i < ranks->count; i++) {
        part_put_row(p, sequence_fields, &ranks->list[i]);
        part_put_spans(p, &ranks->spool, &ranks->list[i].kernels.spans);
    }
    part_put_end(p);
    for (uint32_t i = 0; i < d->device_count; i++)
        part_put_spans(p, &ranks->spool, &d->tracks[i].alone.spans);
}

static void add_kinds(struct part *p, struct arrivals *to, struct rank_numbers *n)
{
    const char *text;
    while (part_get_text(p, &text)) {
        uint32_t number = arrivals_kind_named(to, text ? text : "", text ? strlen(text) : 0);
        ARRAY_PUSH(n->kinds, n->kind_count, &number);
    }
}

/* Makes a place for each text of the part. The list has one more item, since places count from
 * 1. */
static void add_places(struct part *p, struct work_places *to, struct rank_numbers *n)
{
    ARRAY_PUSH(n->places, n->place_count, NULL);
    for (struct work_place row = {0}; part_get_row(p, place_fields, &row);
         row = (struct work_place){0}) {
        p->has_failed |= row.process >= p->process_count;
        if (p->has_failed)
            return;
        row.process = p->processes[row.process]->index;
        row.place = idle_text(row.text);
        row.text = NULL;
        uint32_t number = work_places_number(to, &row);
        ARRAY_PUSH(n->places, n->place_count, &number);
    }
}

/* Adds the rows. All rows of a device are in one part, in order. */
static void add_rows(struct part *p, struct idle *d)
{
    struct idle_row row = {0};
    for (; part_get_row(p, row_fields, &row); row = (struct idle_row){0}) {
        row.place.word = (uintptr_t)row.text; /* no other row has it */
        row.place.kind = IDLE_WORD_OURS;
        row.place.function = row.thread = IDLE_NONE;
        row.process = d->devices[row.device].process->index;
        p->has_more |= d->rows.count >= IDLE_ROWS_MAX;
        struct idle_row *to = idle_rows_add_sum(&d->rows, &row);
        if (to->place.word == row.place.word) {
            to->text = row.text;
            to->where = row.where;
            to->tid = row.tid;
            to->work_share = row.work_share;
            continue;
        }
        free(row.text);
        free(row.where);
    }
    free(row.text);
    free(row.where);
}

static struct rank_spans get_spans(struct part *p, struct rank_numbers *n)
{
    struct rank_spans s = {.numbers = n};
    part_get_spans(p, &s.stored);
    s.spans.count = s.stored.count;
    return s;
}

static void add_sequences(struct part *p, struct idle_ranks *ranks, struct rank_numbers *n)
{
    for (struct rank_sequence s = {0}; part_get_row(p, sequence_fields, &s);
         s = (struct rank_sequence){0}) {
        s.kernels = get_spans(p, n);
        p->has_failed |= !n->kind_count; /* each kernel has a kind */
        if (p->has_failed)
            return;
        uint32_t place = idle_ranks_sequence(ranks, s.device, s.communicator, s.name,
                                             s.communicator ? s.communicator : (uintptr_t)s.name);
        if (place)
            ranks->list[place - 1] = s;
    }
}

static void idle_part_add(struct combination *c, struct part *p)
{
    struct idle *d = c->report.idle;
    struct rank_numbers *n = &c->numbers[p->index];
    add_kinds(p, &d->arrivals, n);
    add_places(p, &d->arrivals.places, n);
    add_rows(p, d);
    add_sequences(p, &d->ranks, n);
    for (uint32_t i = 0; i < p->device_count && !p->has_failed; i++)
        d->tracks[p->devices[i]].alone = get_spans(p, n);
}

static int idle_part_end(struct combination *c)
{
    if (c->rec.count > 1)
        idle_waits_charge(c->report.idle);
    for (uint32_t i = 0; i < c->part_count; i++)
        c->parts[i].has_failed |= c->numbers[i].has_failed;
    idle_finish(c->report.idle);
    return 0;
}

const struct part_section idle_part = {idle_part_put, idle_part_add, idle_part_end};

/* ---- findings -------------------------------------------------------------------------------- */

/* What findings are made of, in a part: what is charged to each device for its work, and the
 * evidence that a finding may report. Some 100 bytes each. */
static const struct part_field charged_fields[] = {PART(struct finding_charges, ns), {0}};

static const struct part_field evidence_fields[] = {
    PART(struct evidence, kind, .below = FINDING_KINDS),
    PART_AS(struct evidence, device, PART_DEVICE),
    PART(struct evidence, is.name, .is_needed = true),
    PART(struct evidence, is.where),
    PART_SPAN(struct evidence, is.count, is.at_ns),
    {0}};

static void finding_part_put(struct report *r, struct part *p)
{
    const struct findings *f = r->findings;
    const struct evidences *work = &f->work;
    p->has_more |= finding_gpu_is_full(f->gpu) || work->count == work->count_max;
    for (uint32_t i = 0; r->idle && i < r->idle->device_count && i < work->charged_count; i++)
        part_put_row(p, charged_fields, &work->charged[i]);
    part_put_end(p);
    for (uint32_t i = 0; r->idle && i < work->count; i++)
        if (evidence_is_reported(work, &work->list[i]))
            part_put_row(p, evidence_fields, &work->list[i]);
    part_put_end(p);
}

static void finding_part_add(struct combination *c, struct part *p)
{
    struct evidences *work = &c->report.findings->work;
    struct finding_charges charged;
    struct evidence row = {0};
    for (uint32_t i = 0; part_get_row(p, charged_fields, &charged); i++) {
        uint32_t device = part_device(p, i);
        if (!p->has_failed)
            *evidence_charged(work, device) = charged;
    }
    for (; part_get_row(p, evidence_fields, &row); row = (struct evidence){0})
        ARRAY_PUSH(work->list, work->count, &row);
    free(row.is.name);
    free(row.is.where);
}

static int finding_part_end(struct combination *c)
{
    findings_finish(c->report.findings, &c->report.hang, SYMBOLS_OFF);
    step_waits_find(c->report.marks, c->report.idle);
    rank_report_make(&c->report.ranks, &c->rec, c->report.marks, c->report.idle);
    return 0;
}

const struct part_section finding_part = {finding_part_put, finding_part_add, finding_part_end};
