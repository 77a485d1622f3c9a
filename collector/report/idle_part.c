/* SPDX-License-Identifier: Apache-2.0 */
#include "report/idle_part.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define KIND_NAME_BYTES 2 /* in a part, at least */
#define PLACE_BYTES     4
#define DEVICE_BYTES    24
#define ROW_BYTES       12
#define SEQUENCE_BYTES  7

/* What numbers of a part mean where all are added up. */
struct added_part {
    struct part *part;           /* a view */
    struct rank_numbers numbers; /* its lists are owned, and so are devices */
    uint32_t *devices;           /* their numbers in all */
    uint32_t device_count;
};

/* What is owned of a place that a part tells. */
struct told_place {
    struct idle_told told;
    struct thread thread;
};

/* A device, as it is put into order. */
struct placed {
    struct idle_device device;
    uint32_t of, number; /* the part, and there */
};

/* ---- what there is one of -------------------------------------------------------------------- */

static void carry_device(struct part *p, uint32_t *process, struct idle_device *d,
                         struct surveyed_device *known)
{
    uint64_t *const numbers[] = {&d->device,          &d->begin_ns,     &d->end_ns,
                                 &d->first_ns,        &d->idle_ns,      &d->stopped_ns,
                                 &known->uuid_high,   &known->uuid_low, &known->limits.major,
                                 &known->limits.minor};
    const char *name = known->name;
    part_u32(p, process);
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    for (unsigned i = 0; i < IDLE_BUSY_PARTS; i++)
        part_number(p, &d->parts[i]);
    for (unsigned i = 0; i < IDLE_CAUSES; i++)
        part_number(p, &d->causes[i]);
    part_flag(p, &d->loses_work);
    part_text(p, &name);
    p->has_failed |= !name || strlen(name) >= sizeof known->name;
    if (!p->has_failed && !p->is_written)
        memcpy(known->name, name, strlen(name) + 1);
}

static void carry_row(struct part *p, uint32_t *device, struct idle_row *row, uint32_t *tid,
                      uint32_t *work_share, const char **text, const char **where)
{
    uint64_t *const numbers[] = {&row->ns, &row->count, &row->longest_ns, &row->longest_at_ns};
    bool is_open = row->place.is_open;
    uint32_t side = row->place.side;
    part_u32(p, device);
    part_u32(p, &row->cause);
    part_flag(p, &is_open);
    part_u32(p, &side);
    part_u32(p, tid);
    part_u32(p, work_share);
    part_text(p, text);
    part_text(p, where);
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    p->has_failed |= row->cause >= IDLE_CAUSES || side >= IDLE_SIDES || !*text;
    row->place.is_open = is_open;
    row->place.side = (uint16_t)side;
}

static void carry_place(struct part *p, struct arrival_place *place, const char **text)
{
    part_u32(p, &place->process);
    part_u32(p, &place->cause);
    part_text(p, text);
    p->has_failed |= place->cause > ARRIVAL_WORKED || !*text;
}

static void carry_sequence(struct part *p, uint32_t *device, struct rank_sequence *s)
{
    part_u32(p, device);
    part_number(p, &s->communicator);
    part_u32(p, &s->ranks);
    part_text(p, &s->name);
    part_flag(p, &s->is_numbered);
    p->has_failed |= !s->name;
}

/* ---- into a part ----------------------------------------------------------------------------- */

static int put_rows(struct idle *d, struct part *p)
{
    int error = 0;
    bool has_more = d->rows.count >= IDLE_ROWS_MAX;
    part_flag(p, &has_more);
    part_count(p, &d->rows.count, ROW_BYTES);
    for (uint32_t i = 0; i < d->rows.count && error == 0; i++) {
        struct idle_row row = d->rows.list[i];
        const struct thread *thread = idle_row_thread(d, &row);
        char *where = NULL, *text = idle_place_text(d->walk, &d->lines, &row);
        error = text ? idle_where_text(d->walk, &d->lines, &row, &where) : GPUPROF_NO_MEMORY;
        if (error == 0)
            carry_row(p, &row.device, &row, &(uint32_t){thread ? thread->tid : 0},
                      &(uint32_t){idle_row_work_share(d, &row)}, &(const char *){text},
                      &(const char *){where});
        free(text);
        free(where);
    }
    return error;
}

void idle_part_put_devices(struct idle *d, struct part *p)
{
    uint32_t devices = d ? d->device_count : 0;
    part_count(p, &devices, DEVICE_BYTES);
    for (uint32_t i = 0; i < devices; i++) {
        struct idle_device device = d->devices[i];
        const struct surveyed_device *known =
            survey_device(&d->walk->survey, device.process, device.device);
        struct surveyed_device shown = known ? *known : (struct surveyed_device){0};
        carry_device(p, &(uint32_t){device.process->index}, &device, &shown);
    }
}

int idle_part_put(struct idle *d, struct part *p)
{
    uint32_t nothing = 0;
    if (!d) {
        for (unsigned i = 0; i < 5; i++)
            part_u32(p, &nothing);
        return 0;
    }
    const struct arrivals *a = &d->arrivals;
    uint32_t kinds = a->kind_count, places = a->place_count;
    part_count(p, &kinds, KIND_NAME_BYTES);
    for (uint32_t i = 0; i < kinds; i++)
        part_text(p, &(const char *){a->kinds[i]});
    part_count(p, &places, PLACE_BYTES);
    for (uint32_t i = 0; i < places; i++) {
        struct arrival_place place = a->places[i];
        carry_place(p, &place, &(const char *){place.text});
    }
    struct idle_ranks *r = &d->ranks;
    int error = put_rows(d, p);
    part_count(p, &r->count, SEQUENCE_BYTES);
    for (uint32_t i = 0; i < r->count && error == 0; i++) {
        struct rank_sequence *sequence = &r->list[i];
        carry_sequence(p, &sequence->device, sequence);
        error = part_put_spans(p, &r->spool, &sequence->kernels.spans);
    }
    for (uint32_t i = 0; i < d->device_count && error == 0; i++) {
        const struct ranked_device *device = idle_ranks_device(r, i);
        error = device ? part_put_spans(p, &r->spool, &device->alone.spans) : GPUPROF_NO_MEMORY;
    }
    return error;
}

/* ---- and out of it --------------------------------------------------------------------------- */

static int add_kinds(struct added_part *a, struct arrivals *to)
{
    struct rank_numbers *n = &a->numbers;
    int error = 0;
    part_count(a->part, &n->kind_count, KIND_NAME_BYTES);
    n->kinds = calloc(n->kind_count + 1u, sizeof *n->kinds);
    for (uint32_t i = 0; i < n->kind_count && n->kinds && error == 0; i++) {
        const char *text = NULL;
        part_text(a->part, &text);
        error = arrivals_kind_named(to, text ? text : "", text ? strlen(text) : 0, &n->kinds[i]);
    }
    return n->kinds ? error : GPUPROF_NO_MEMORY;
}

/* Each text of the part is a place of its own there; there is one more, since they count from 1 on.
 */
static int add_places(struct added_part *a, struct arrivals *to, struct process *const *processes,
                      uint32_t process_count)
{
    struct rank_numbers *n = &a->numbers;
    uint32_t count = 0;
    int error = 0;
    part_count(a->part, &count, PLACE_BYTES);
    n->place_count = count + 1;
    n->places = calloc(n->place_count, sizeof *n->places);
    for (uint32_t i = 1; i <= count && n->places && error == 0; i++) {
        struct arrival_place place = {0};
        const char *text = NULL;
        carry_place(a->part, &place, &text);
        a->part->has_failed |= place.process >= process_count;
        if (a->part->has_failed)
            return 0;
        place.process = processes[place.process]->index;
        place.place = idle_text(text);
        error = arrivals_place(to, &place, &n->places[i]);
        struct arrival_place *made = n->places[i] ? &to->places[n->places[i] - 1] : NULL;
        if (made && !made->text && !(made->text = strdup(text)))
            error = GPUPROF_NO_MEMORY;
    }
    return n->places ? error : GPUPROF_NO_MEMORY;
}

int idle_parts_tell(struct idle_parts *a, const char *text, const char *where, uint32_t tid,
                    uint32_t work_share, struct idle_place *place)
{
    struct told_place **list =
        array_room(a->told, a->told_count, &a->told_capacity, sizeof *list, 64);
    struct told_place *told = list ? calloc(1, sizeof *told) : NULL;
    a->told = list ? list : a->told;
    if (!told)
        return GPUPROF_NO_MEMORY;
    list[a->told_count++] = told;
    told->thread.tid = tid;
    told->told = (struct idle_told){text, where, tid ? &told->thread : NULL, work_share};
    *place = (struct idle_place){
        .word = (uintptr_t)&told->told, .function = IDLE_NONE, .kind = IDLE_WORD_TOLD};
    return 0;
}

int idle_part_add_devices(struct idle_parts *all, struct idle *d, struct part *p,
                          struct process *const *processes, uint32_t process_count)
{
    struct added_part *list = array_room(all->list, all->count, &all->capacity, sizeof *list, 16);
    int error = 0;
    if (!list)
        return GPUPROF_NO_MEMORY;
    all->list = list;
    struct added_part *a = &list[all->count++];
    *a = (struct added_part){.part = p};
    part_count(p, &a->device_count, DEVICE_BYTES);
    a->devices = calloc(a->device_count + 1u, sizeof *a->devices);
    for (uint32_t i = 0; i < a->device_count && !p->has_failed && a->devices && error == 0; i++) {
        struct idle_device device = {0};
        struct surveyed_device known = {0};
        uint32_t process = 0;
        carry_device(p, &process, &device, &known);
        p->has_failed |= process >= process_count || d->device_count == IDLE_DEVICES_MAX ||
                         device.end_ns < device.begin_ns ||
                         device.idle_ns > device.end_ns - device.begin_ns ||
                         device.causes[IDLE_START_UP] > device.idle_ns;
        if (p->has_failed)
            return 0;
        struct idle_device *devices =
            array_room(d->devices, d->device_count, &d->device_capacity, sizeof *devices, 16);
        if (!devices)
            return GPUPROF_NO_MEMORY;
        d->devices = devices;
        device.process = processes[process];
        devices[d->device_count++] = device;
        known.process = device.process->index;
        known.limits.device = device.device;
        if (known.name[0] || known.uuid_high || known.uuid_low)
            error = survey_add_device(&d->walk->survey, &known);
    }
    return a->devices ? error : GPUPROF_NO_MEMORY;
}

/* As one walk meets them: by their first work, at one time by process. */
static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    uint32_t x = a->device.process->index, y = b->device.process->index;
    if (a->device.first_ns != b->device.first_ns)
        return a->device.first_ns < b->device.first_ns ? -1 : 1;
    if (x != y)
        return x < y ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

int idle_parts_order(struct idle_parts *all, struct idle *d)
{
    struct placed *list = calloc(d->device_count + 1u, sizeof *list);
    uint32_t at = 0;
    if (!list)
        return GPUPROF_NO_MEMORY;
    for (uint32_t of = 0; of < all->count; of++)
        for (uint32_t i = 0; i < all->list[of].device_count && at < d->device_count; i++, at++)
            list[at] = (struct placed){d->devices[at], of, i};
    qsort(list, at, sizeof *list, compare_placed);
    for (uint32_t i = 0; i < at; i++) {
        d->devices[i] = list[i].device;
        all->list[list[i].of].devices[list[i].number] = i;
    }
    free(list);
    d->ranked = calloc(at + 1u, sizeof *d->ranked);
    for (d->ranked_count = 0; d->ranked && d->ranked_count < at; d->ranked_count++) {
        const struct idle_device *device = &d->devices[d->ranked_count];
        d->ranked[d->ranked_count] = (struct idle_ranked){device->process, device->device,
                                                          d->ranked_count, device->loses_work};
    }
    return d->ranked ? 0 : GPUPROF_NO_MEMORY;
}

uint32_t idle_parts_device(const struct idle_parts *all, uint32_t of, uint32_t device)
{
    const struct added_part *a = &all->list[of];
    a->part->has_failed |= device >= a->device_count;
    return a->part->has_failed ? IDLE_NONE : a->devices[device];
}

static struct rank_spans get_spans(struct added_part *a)
{
    struct rank_spans s = {.numbers = &a->numbers};
    part_get_spans(a->part, &s.view, &s.view_bytes, &s.spans.count);
    return s;
}

static int add_sequences(const struct idle_parts *all, struct added_part *a, struct idle *d)
{
    uint32_t count = 0;
    int error = 0;
    part_count(a->part, &count, SEQUENCE_BYTES);
    for (uint32_t i = 0; i < count && error == 0; i++) {
        struct rank_sequence s = {0};
        uint32_t place = 0;
        carry_sequence(a->part, &s.device, &s);
        s.device = idle_parts_device(all, (uint32_t)(a - all->list), s.device);
        s.kernels = get_spans(a);
        if (a->part->has_failed)
            return 0;
        error = idle_ranks_sequence(&d->ranks, s.device, s.communicator, s.name,
                                    s.communicator ? s.communicator : (uintptr_t)s.name, &place);
        if (place)
            d->ranks.list[place - 1] = s;
    }
    return error;
}

static int add_alone(struct added_part *a, struct idle *d)
{
    for (uint32_t i = 0; i < a->device_count && !a->part->has_failed; i++) {
        struct ranked_device *device = idle_ranks_device(&d->ranks, a->devices[i]);
        if (!device)
            return GPUPROF_NO_MEMORY;
        device->alone = get_spans(a);
    }
    return 0;
}

/* Those of a device are in one part, and come in their order. */
static int add_rows(struct idle_parts *all, struct added_part *a, struct idle *d)
{
    struct part *p = a->part;
    bool has_more = false;
    uint32_t count = 0;
    int error = 0;
    part_flag(p, &has_more);
    part_count(p, &count, ROW_BYTES);
    for (uint32_t i = 0; i < count && error == 0; i++) {
        const char *text = NULL, *where = NULL;
        struct idle_row row = {.thread = IDLE_NONE};
        uint32_t tid = 0, work_share = 0;
        carry_row(p, &row.device, &row, &tid, &work_share, &text, &where);
        struct idle_place place = row.place;
        row.device = idle_parts_device(all, (uint32_t)(a - all->list), row.device);
        if (p->has_failed)
            return 0;
        row.process = d->devices[row.device].process->index;
        has_more |= d->rows.count >= IDLE_ROWS_MAX;
        error = idle_parts_tell(all, text, where, tid, work_share, &row.place);
        row.place.is_open = place.is_open;
        row.place.side = place.side;
        if (error == 0)
            error = idle_rows_add_sum(&d->rows, &row);
    }
    all->has_more |= has_more;
    return error;
}

int idle_part_add(struct idle_parts *all, struct idle *d, uint32_t of,
                  struct process *const *processes, uint32_t process_count)
{
    struct added_part *a = &all->list[of];
    int error = add_kinds(a, &d->arrivals);
    if (error == 0)
        error = add_places(a, &d->arrivals, processes, process_count);
    if (error == 0)
        error = add_rows(all, a, d);
    if (error == 0)
        error = add_sequences(all, a, d);
    return error == 0 ? add_alone(a, d) : error;
}

int idle_part_add_end(struct idle_parts *all, struct idle *d)
{
    int error = d->walk->rec->count < 2 ? 0 : idle_waits_charge(d);
    for (uint32_t i = 0; i < all->count; i++)
        all->list[i].part->has_failed |= all->list[i].numbers.has_failed;
    return error;
}

void idle_parts_release(struct idle_parts *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        free(all->list[i].numbers.kinds);
        free(all->list[i].numbers.places);
        free(all->list[i].devices);
    }
    for (uint32_t i = 0; i < all->told_count; i++)
        free(all->told[i]);
    free(all->told);
    free(all->list);
}
