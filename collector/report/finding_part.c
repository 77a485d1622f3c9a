/* SPDX-License-Identifier: Apache-2.0 */
#include "report/finding_part.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define NAME_BYTES  2 /* in a part, at least */
#define PLACE_BYTES 2
#define SUM_BYTES   8
#define LATE_BYTES  6

static void carry_sum(struct part *p, struct finding_sum *s)
{
    uint64_t *const numbers[] = {&s->what, &s->count, &s->ns, &s->longest_ns, &s->at_ns};
    part_u32(p, &s->kind);
    part_u32(p, &s->device);
    part_u32(p, &s->where);
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    p->has_failed |= s->kind >= FINDING_KINDS;
}

/* *before_ns is when the one before began: most are of one device. */
static void carry_late(struct part *p, struct late_sum *s, uint64_t *before_ns)
{
    uint64_t delta_ns = s->begin_ns - *before_ns, length_ns = s->end_ns - s->begin_ns;
    part_number(p, &delta_ns);
    part_number(p, &length_ns);
    part_number(p, &s->ns);
    part_number(p, &s->what);
    part_u32(p, &s->device);
    part_u32(p, &s->where);
    s->begin_ns = *before_ns += delta_ns;
    s->end_ns = s->begin_ns + length_ns;
    s->kind = FINDING_EXPOSED_COMMUNICATION;
    s->count = 1;
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

static int put_late(struct findings *f, struct part *p)
{
    struct part stream = {.is_written = true};
    uint64_t before_ns = 0;
    uint32_t count = 0;
    int error = 0;
    for (uint64_t i = 0; i < f->gpu.late.count && error == 0; i++) {
        const struct late_sum *late = spool_at(&f->gpu.late, i, false, &error);
        struct late_sum sum = late ? *late : (struct late_sum){0};
        if (!sum.end_ns)
            continue;
        error = work_places_known(&f->gpu.wheres, &sum.where);
        count++;
        carry_late(&stream, &sum, &before_ns);
    }
    part_stream(p, &stream, count);
    return error;
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
    return put_late(f, p);
}

/* ---- and out of it --------------------------------------------------------------------------- */

/* What numbers of the part are here. */
struct texts {
    uint64_t *names; /* owned, and so are places: 0, it is not known */
    uint32_t *places;
    uint32_t name_count, place_count;
};

struct finding_part {
    struct part *part, late; /* views */
    uint32_t late_count;
    uint32_t of; /* which part it is */
    struct texts texts;
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
        error = text ? idle_parts_tell(all, text, text, 0, &place) : 0;
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
            f->sums.rows[place - 1] = sum;
    }
    return error;
}

static int add_late(struct finding_part *a, struct findings *f, const struct idle_parts *all)
{
    struct part *p = a->part;
    uint64_t before_ns = 0;
    int error = 0;
    for (uint32_t i = 0; i < a->late_count && error == 0 && !p->has_failed; i++) {
        struct late_sum sum = {0};
        carry_late(&a->late, &sum, &before_ns);
        p->has_failed |= a->late.has_failed || !sum.end_ns;
        translate(all, a->of, p, &a->texts, &sum.device, &sum.what, &sum.where);
        if (!p->has_failed)
            error = finding_gpu_add_late(&f->gpu, f->idle, &sum);
    }
    p->has_failed |= a->late.at != a->late.length;
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
    if (error == 0 && !p->has_failed)
        part_get_stream(p, &a->late, &a->late_count, LATE_BYTES);
    return error;
}

int finding_parts_end(struct finding_parts *parts, struct findings *f, const struct idle_parts *all)
{
    int error = 0;
    for (uint32_t i = 0; i < parts->count && error == 0; i++)
        error = add_late(&parts->list[i], f, all);
    return error;
}

void finding_parts_release(struct finding_parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        free(parts->list[i].texts.names);
        free(parts->list[i].texts.places);
    }
    free(parts->list);
    *parts = (struct finding_parts){0};
}
