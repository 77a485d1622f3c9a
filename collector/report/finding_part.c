/* SPDX-License-Identifier: Apache-2.0 */
#include "report/finding_part.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define NAME_BYTES  2 /* in a part, at least */
#define PLACE_BYTES 2
#define SUM_BYTES   8

static void carry_sum(struct part *p, struct finding_sum *s)
{
    uint64_t *const numbers[] = {&s->what, &s->count, &s->ns, &s->longest_ns, &s->at_ns};
    part_u32(p, &s->kind);
    part_u32(p, &s->device);
    part_u32(p, &s->where);
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    p->has_failed |= s->kind >= FINDING_KINDS;
}

/* ---- into a part ----------------------------------------------------------------------------- */

static void put_texts(const struct finding_gpu *g, struct part *p)
{
    uint32_t names = g->name_count, places = g->wheres.count;
    part_count(p, &names, NAME_BYTES);
    for (uint32_t i = 0; i < names; i++)
        part_text(p, &(const char *){g->names[i].name ? g->names[i].name->raw : NULL});
    part_count(p, &places, PLACE_BYTES - 1);
    for (uint32_t i = 0; i < places; i++)
        part_text(p, &(const char *){g->wheres.list[i].text});
}

static void put_sums(const struct findings *f, struct part *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->sums.count; i++)
        count += findings_may_tell(f, &f->sums.rows[i]);
    part_count(p, &count, SUM_BYTES);
    for (uint32_t i = 0; i < f->sums.count; i++) {
        struct finding_sum sum = f->sums.rows[i];
        if (findings_may_tell(f, &sum))
            carry_sum(p, &sum);
    }
}

int finding_part_put(struct findings *f, struct part *p)
{
    uint32_t devices = f->idle ? f->gpu.device_count : 0;
    bool has_more = devices >= FOUND_DEVICES_MAX || f->sums.count == f->sums.rows_max ||
                    f->gpu.name_count == FOUND_NAMES_MAX || f->gpu.wheres.count == WORK_PLACES_MAX;
    part_flag(p, &has_more);
    part_count(p, &devices, FINDING_KINDS);
    for (uint32_t i = 0; i < devices; i++)
        for (unsigned id = 0; id < FINDING_KINDS; id++)
            part_number(p, &f->gpu.devices[i].ns[id]);
    if (!devices)
        return 0;
    put_texts(&f->gpu, p);
    put_sums(f, p);
    int error = 0;
    for (uint32_t i = 0; i < devices && error == 0; i++)
        error = part_put_spans(p, finding_gpu_settled(&f->gpu), &f->gpu.devices[i].exposed);
    return error;
}

/* ---- and out of it --------------------------------------------------------------------------- */

/* What numbers of the part are here. */
struct texts {
    uint64_t *names; /* owned, and so are places: 0, it is not known */
    uint32_t *places;
    uint32_t name_count, place_count;
};

/* Exposed communication of a device. */
struct exposed_view {
    const uint8_t *data;
    size_t length;
    uint64_t count;
};

struct finding_part {
    struct part *part; /* a view */
    uint32_t of;       /* which part it is */
    struct texts texts;
    struct exposed_view *exposed; /* owned, by device there */
    uint32_t device_count;
};

static int get_texts(struct findings *f, struct idle_parts *all, struct part *p, struct texts *t)
{
    int error = 0;
    part_count(p, &t->name_count, NAME_BYTES - 1);
    t->names = calloc(t->name_count + 1u, sizeof *t->names);
    for (uint32_t i = 0; t->names && error == 0 && i < t->name_count; i++) {
        const char *name = NULL;
        part_text(p, &name);
        error = finding_gpu_name(&f->gpu, name, &t->names[i]);
    }
    part_count(p, &t->place_count, PLACE_BYTES - 1);
    t->places = calloc(t->place_count + 1u, sizeof *t->places);
    for (uint32_t i = 0; t->places && error == 0 && i < t->place_count; i++) {
        const char *text = NULL;
        struct idle_place place;
        part_text(p, &text);
        error = text ? idle_parts_tell(all, text, text, 0, IDLE_NONE, &place) : 0;
        if (text && error == 0)
            error = work_places_number(&f->gpu.wheres, 0, &place, &t->places[i]);
    }
    return t->names && t->places ? error : GPUPROF_NO_MEMORY;
}

/* The device, name and place of a part become those that they are here. */
static void translate(const struct idle_parts *all, uint32_t of, struct part *p,
                      const struct texts *t, uint32_t *device, uint64_t *what, uint32_t *where)
{
    bool is_copy = finding_gpu_is_copy(*what);
    *device = idle_parts_device(all, of, *device);
    p->has_failed |= (!is_copy && *what >= t->name_count) || *where > t->place_count;
    if (p->has_failed)
        return;
    *what = is_copy ? *what : t->names[*what];
    *where = *where ? t->places[*where - 1] : 0;
}

/* Places that are not known, of which a part has several, are one here. */
static void add_sum(struct finding_sum *to, const struct finding_sum *sum)
{
    if (sum->longest_ns > to->longest_ns || !to->count) {
        to->longest_ns = sum->longest_ns;
        to->at_ns = sum->at_ns;
    }
    to->count += sum->count;
    to->ns += sum->ns;
}

static int add_sums(struct findings *f, const struct idle_parts *all, uint32_t of, struct part *p,
                    const struct texts *t)
{
    uint32_t count = 0, place = 0, recent = 0;
    int error = 0;
    part_count(p, &count, SUM_BYTES);
    for (uint32_t i = 0; i < count && error == 0; i++) {
        struct finding_sum sum = {0};
        carry_sum(p, &sum);
        translate(all, of, p, t, &sum.device, &sum.what, &sum.where);
        if (p->has_failed)
            return 0;
        error =
            finding_sums_find(&f->sums, sum.kind, sum.device, sum.what, sum.where, &recent, &place);
        if (error == 0 && place)
            add_sum(&f->sums.rows[place - 1], &sum);
    }
    return error;
}

static int get_exposed(struct finding_part *a, uint32_t device_count)
{
    a->exposed = calloc(device_count + 1u, sizeof *a->exposed);
    if (!a->exposed)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < device_count; i++) {
        struct exposed_view *view = &a->exposed[i];
        part_get_spans(a->part, &view->data, &view->length, &view->count);
    }
    a->device_count = device_count;
    return 0;
}

static int add_exposed(struct finding_part *a, uint32_t number, struct findings *f,
                       const struct idle_parts *all)
{
    const struct exposed_view *view = &a->exposed[number];
    struct span_reader reader;
    struct part *p = a->part;
    int error = 0;
    span_reader_init_view(&reader, view->data, view->length, view->count);
    while (error == 0 && !p->has_failed && span_next(&reader, exposed_kind) > 0) {
        struct span exposed = reader.span;
        uint32_t device = number, where = (uint32_t)exposed.numbers[EXPOSED_WHERE];
        p->has_failed |= where != exposed.numbers[EXPOSED_WHERE];
        translate(all, a->of, p, &a->texts, &device, &exposed.numbers[EXPOSED_WHAT], &where);
        exposed.numbers[EXPOSED_WHERE] = where;
        if (!p->has_failed)
            error = finding_gpu_add_exposed(&f->gpu, f->idle, device, &exposed);
    }
    p->has_failed |= reader.has_failed;
    return error;
}

int finding_part_add(struct finding_parts *parts, struct findings *f, struct idle_parts *all,
                     uint32_t of, struct part *p)
{
    uint32_t devices = 0;
    bool has_more = false;
    struct finding_part *list =
        array_room(parts->list, parts->count, &parts->capacity, sizeof *list, 16);
    if (!list)
        return GPUPROF_NO_MEMORY;
    parts->list = list;
    struct finding_part *a = &list[parts->count++];
    *a = (struct finding_part){.part = p, .of = of};
    part_flag(p, &has_more);
    part_count(p, &devices, FINDING_KINDS);
    all->has_more |= has_more;
    for (uint32_t i = 0; i < devices; i++) {
        uint32_t place = idle_parts_device(all, of, i);
        for (unsigned id = 0; id < FINDING_KINDS; id++) {
            uint64_t ns = 0;
            part_number(p, &ns);
            if (place < f->gpu.device_count)
                f->gpu.devices[place].ns[id] = ns;
        }
    }
    if (!devices || p->has_failed)
        return 0;
    int error = get_texts(f, all, p, &a->texts);
    if (error == 0)
        error = add_sums(f, all, of, p, &a->texts);
    return error == 0 && !p->has_failed ? get_exposed(a, devices) : error;
}

int finding_parts_end(struct finding_parts *parts, struct findings *f, const struct idle_parts *all)
{
    int error = 0;
    for (uint32_t i = 0; i < parts->count; i++)
        for (uint32_t k = 0; k < parts->list[i].device_count && error == 0; k++)
            error = add_exposed(&parts->list[i], k, f, all);
    return error;
}

void finding_parts_release(struct finding_parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        free(parts->list[i].texts.names);
        free(parts->list[i].texts.places);
        free(parts->list[i].exposed);
    }
    free(parts->list);
    *parts = (struct finding_parts){0};
}
