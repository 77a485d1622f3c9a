/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What findings are made of, in a part: the time charged to each device, the names and places that
 * a finding may report, and each device's exposed communication. How much of that was a wait for
 * another rank is known only when all parts are there. Some 20 bytes each.
 */
#include <stdlib.h>
#include <string.h>

#include "analyse/findings.h"
#include "analyse/rank_report.h"
#include "base/array.h"
#include "error.h"
#include "report/part_report.h"
#include "resolve/symbols.h"

static const struct part_field device_fields[] = {PART(struct found_device, ns), {0}};

static const struct part_field sum_fields[] = {
    PART(struct finding_sum, kind, .below = FINDING_KINDS),
    PART_AS(struct finding_sum, device, PART_DEVICE),
    PART(struct finding_sum, where),
    PART(struct finding_sum, what),
    PART_SPAN(struct finding_sum, count, at_ns),
    {0}};

/* Returns 0 if there is no idle time. */
static uint32_t device_count(const struct findings *f)
{
    return f->idle ? f->gpu.device_count : 0;
}

static int finding_part_put(struct report *r, struct part *p)
{
    struct findings *f = r->findings;
    const struct finding_gpu *g = &f->gpu;
    uint32_t devices = device_count(f);
    p->has_more |= devices >= FOUND_DEVICES_MAX || f->gpu.sums.count == f->gpu.sums.rows_max ||
                   g->name_count == FOUND_NAMES_MAX || g->wheres.count == WORK_PLACES_MAX;
    for (uint32_t i = 0; i < devices; i++)
        part_put_row(p, device_fields, &g->devices[i]);
    part_put_end(p);
    for (uint32_t i = 0; devices && i < g->name_count; i++)
        part_put_text(p, g->names[i].name ? g->names[i].name->raw : NULL);
    part_put_end(p);
    for (uint32_t i = 0; devices && i < g->wheres.count; i++)
        part_put_text(p, g->wheres.list[i].text);
    part_put_end(p);
    for (uint32_t i = 0; devices && i < f->gpu.sums.count; i++)
        if (findings_may_report(f, &f->gpu.sums.rows[i]))
            part_put_row(p, sum_fields, &f->gpu.sums.rows[i]);
    part_put_end(p);
    return 0;
}

static int add_name(struct combination *c, const char *text, uint32_t *number)
{
    return finding_gpu_name(&c->report.findings->gpu, text, number);
}

static int add_place(struct combination *c, const char *text, uint32_t *number)
{
    const struct idle_reported reported = {text, text, NULL, IDLE_NONE};
    struct work_place place = {0};
    int error = text ? part_report_place(c, &reported, 0, &place.place) : 0;
    return text && error == 0 ? work_places_number(&c->report.findings->gpu.wheres, &place, number)
                              : error;
}

/* Translates numbers of a name and a place from the part to the combination. */
static void translate(struct part *p, const struct part_numbers *n, uint64_t *what, uint32_t *where)
{
    bool is_copy = finding_gpu_is_copy(*what);
    p->has_failed |= (!is_copy && *what >= n->name_count) || *where > n->place_count;
    if (p->has_failed)
        return;
    *what = is_copy ? *what : n->names[*what];
    *where = *where ? n->places[*where - 1] : 0;
}

static int finding_part_add(struct combination *c, struct part *p)
{
    struct findings *f = c->report.findings;
    struct part_numbers *n = &c->numbers[p->index];
    struct found_device charged = {0};
    struct finding_sum sum = {0};
    for (; part_get_row(p, device_fields, &charged); n->device_count++) {
        uint32_t device = part_device(p, n->device_count);
        if (device < f->gpu.device_count)
            memcpy(f->gpu.devices[device].ns, charged.ns, sizeof charged.ns);
    }
    int error = part_texts(c, p, &n->names, &n->name_count, add_name);
    if (error == 0)
        error = part_texts(c, p, &n->places, &n->place_count, add_place);
    for (; error == 0 && part_get_row(p, sum_fields, &sum); sum = (struct finding_sum){0}) {
        translate(p, n, &sum.what, &sum.where);
        if (p->has_failed)
            return 0;
        error = finding_sums_add(&f->gpu.sums, &sum);
    }
    return error;
}

const struct part_section finding_part = {finding_part_put, finding_part_add, NULL};

/* ---- exposed communication, once the waiting ranks are known --------------------------------- */

static int put_exposed(struct report *r, struct part *p)
{
    struct findings *f = r->findings;
    int error = 0;
    for (uint32_t i = 0; i < device_count(f) && error == 0; i++)
        error = part_put_spans(p, &f->gpu.exposed, &f->gpu.devices[i].exposed);
    return error;
}

static int add_exposed(struct combination *c, struct part *p)
{
    struct findings *f = c->report.findings;
    const struct part_numbers *n = &c->numbers[p->index];
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < n->device_count && !p->has_failed; i++) {
        struct span_reader reader;
        struct packed_spans spans;
        uint32_t device = part_device(p, i);
        part_get_spans(p, &spans);
        span_reader_init_packed(&reader, &spans);
        while (error == 0 && !p->has_failed && span_next(&reader, exposed_kind) > 0) {
            struct span exposed = reader.span;
            uint32_t where = (uint32_t)exposed.numbers[EXPOSED_WHERE];
            p->has_failed |= where != exposed.numbers[EXPOSED_WHERE];
            translate(p, n, &exposed.numbers[EXPOSED_WHAT], &where);
            exposed.numbers[EXPOSED_WHERE] = where;
            if (!p->has_failed)
                error = finding_gpu_add_exposed(&f->gpu, f->idle, device, &exposed);
        }
        p->has_failed |= reader.has_failed;
    }
    return error;
}

static int end_exposed(struct combination *c)
{
    int error = findings_finish(c->report.findings, &c->report.hang, SYMBOLS_OFF);
    if (error == 0)
        rank_report_make(&c->report.ranks, &c->rec, c->report.idle);
    return error;
}

const struct part_section exposed_part = {put_exposed, add_exposed, end_exposed};
