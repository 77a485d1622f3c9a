/* SPDX-License-Identifier: Apache-2.0 */
#include "report/idle_part.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define KIND_NAME_BYTES 2 /* in a part, at least */
#define PLACE_BYTES     4
#define DEVICE_BYTES    23
#define ROW_BYTES       9
#define SEQUENCE_BYTES  4
#define KERNEL_BYTES    8
#define ALONE_BYTES     2

/* What numbers of a part mean where all are added up. */
struct added_part {
    struct part *part;        /* a view */
    uint32_t *kinds, *places; /* owned, and so are the others */
    uint32_t *sequences;      /* 0: there is no room for it */
    uint32_t *sequence_devices;
    uint32_t kind_count, place_count, sequence_count;
    uint32_t *devices; /* their numbers in all */
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

/* The kernels of a device, or the times in which it did nothing else, as they lie in a part. */
struct idle_stream {
    struct part values;
    uint32_t left;
    uint64_t before_ns; /* begin of the one before */
    uint32_t of;        /* place in the list of parts */
    uint32_t device;    /* in all of them */
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
    part_text(p, &name);
    p->has_failed |= !name || strlen(name) >= sizeof known->name;
    if (!p->has_failed && !p->is_written)
        memcpy(known->name, name, strlen(name) + 1);
}

static void carry_row(struct part *p, uint32_t *device, struct idle_row *row, uint32_t *tid,
                      const char **text, const char **where)
{
    uint64_t *const numbers[] = {&row->ns, &row->count, &row->longest_ns, &row->longest_at_ns};
    part_u32(p, device);
    part_u32(p, &row->cause);
    part_u32(p, tid);
    part_text(p, text);
    part_text(p, where);
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    p->has_failed |= row->cause >= IDLE_CAUSES || !*text;
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
    part_text(p, &s->name);
    p->has_failed |= !s->name;
}

/* *before_ns is when the one before began. */
static void carry_kernel(struct part *p, struct rank_kernel *k, uint64_t *before_ns)
{
    uint64_t delta_ns = k->begin_ns - *before_ns, ns = k->end_ns - k->begin_ns;
    part_u32(p, &k->sequence);
    part_number(p, &k->number);
    part_number(p, &delta_ns);
    part_number(p, &ns);
    part_u32(p, &k->facts.kind);
    part_number(p, &k->facts.idle_ns);
    part_u32(p, &k->facts.idle_place);
    part_u32(p, &k->facts.work_place);
    k->begin_ns = *before_ns += delta_ns;
    k->end_ns = k->begin_ns + ns;
}

static void carry_alone(struct part *p, struct rank_span *s, uint64_t *before_ns)
{
    uint64_t delta_ns = s->begin_ns - *before_ns, ns = s->end_ns - s->begin_ns;
    part_number(p, &delta_ns);
    part_number(p, &ns);
    s->begin_ns = *before_ns += delta_ns;
    s->end_ns = s->begin_ns + ns;
}

/* ---- into a part ----------------------------------------------------------------------------- */

/* Items of all devices lie in one spool, in the order of time: read once, they go to a stream a
 * device. */
struct device_streams {
    struct part *parts; /* owned, and so are the others */
    uint64_t *before_ns;
    uint32_t *counts;
    uint32_t device_count;
};

static int streams_init(struct device_streams *s, uint32_t device_count)
{
    *s = (struct device_streams){.parts = calloc(device_count + 1u, sizeof *s->parts),
                                 .before_ns = calloc(device_count + 1u, sizeof *s->before_ns),
                                 .counts = calloc(device_count + 1u, sizeof *s->counts),
                                 .device_count = device_count};
    return s->parts && s->before_ns && s->counts ? 0 : GPUPROF_NO_MEMORY;
}

static struct part *stream_of(struct device_streams *s, uint32_t device)
{
    s->parts[device].is_written = true;
    s->counts[device]++;
    return &s->parts[device];
}

static void streams_put(struct device_streams *s, struct part *p)
{
    for (uint32_t i = 0; i < s->device_count && s->parts && s->counts; i++)
        part_stream(p, &s->parts[i], s->counts[i]);
    free(s->parts);
    free(s->before_ns);
    free(s->counts);
}

static int put_kernels(struct idle *d, struct part *p)
{
    struct device_streams streams;
    int error = streams_init(&streams, d->device_count);
    for (uint64_t i = 0; error == 0 && i < d->ranks.kernels.count; i++) {
        const struct rank_kernel *k = spool_at(&d->ranks.kernels, i, false, &error);
        if (!k)
            break;
        struct rank_kernel kernel = *k;
        uint32_t device = d->ranks.list[kernel.sequence].device;
        carry_kernel(stream_of(&streams, device), &kernel, &streams.before_ns[device]);
    }
    streams_put(&streams, p);
    return error;
}

static int put_alone(struct idle *d, struct part *p)
{
    struct device_streams streams;
    int error = streams_init(&streams, d->device_count);
    for (uint64_t i = 0; error == 0 && i < d->ranks.alone.count; i++) {
        const struct rank_span *s = spool_at(&d->ranks.alone, i, false, &error);
        if (!s)
            break;
        struct rank_span span = *s;
        carry_alone(stream_of(&streams, span.device), &span, &streams.before_ns[span.device]);
    }
    streams_put(&streams, p);
    return error;
}

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
                      &(const char *){text}, &(const char *){where});
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
    part_count(p, &d->ranks.count, SEQUENCE_BYTES);
    for (uint32_t i = 0; i < d->ranks.count; i++) {
        struct rank_sequence sequence = d->ranks.list[i];
        carry_sequence(p, &(uint32_t){sequence.device}, &sequence);
    }
    int error = put_rows(d, p);
    error = error < 0 ? error : put_kernels(d, p);
    return error < 0 ? error : put_alone(d, p);
}

/* ---- and out of it --------------------------------------------------------------------------- */

static int add_kinds(struct added_part *a, struct arrivals *to)
{
    int error = 0;
    a->kind_count = part_count(a->part, &a->kind_count, KIND_NAME_BYTES);
    a->kinds = calloc(a->kind_count + 1u, sizeof *a->kinds);
    for (uint32_t i = 0; i < a->kind_count && a->kinds && error == 0; i++) {
        const char *text = NULL;
        part_text(a->part, &text);
        error = arrivals_kind_named(to, text ? text : "", text ? strlen(text) : 0, &a->kinds[i]);
    }
    return a->kinds ? error : GPUPROF_NO_MEMORY;
}

/* Each text of the part is a place of its own there. */
static int add_places(struct added_part *a, struct arrivals *to, struct process *const *processes,
                      uint32_t process_count)
{
    int error = 0;
    part_count(a->part, &a->place_count, PLACE_BYTES);
    a->places = calloc(a->place_count + 1u, sizeof *a->places);
    for (uint32_t i = 0; i < a->place_count && a->places && error == 0; i++) {
        struct arrival_place place = {0};
        const char *text = NULL;
        carry_place(a->part, &place, &text);
        a->part->has_failed |= place.process >= process_count;
        if (a->part->has_failed)
            return 0;
        place.process = processes[place.process]->index;
        place.place = idle_text(text);
        error = arrivals_place(to, &place, &a->places[i]);
        struct arrival_place *made = a->places[i] ? &to->places[a->places[i] - 1] : NULL;
        if (made && !made->text && !(made->text = strdup(text)))
            error = GPUPROF_NO_MEMORY;
    }
    return a->places ? error : GPUPROF_NO_MEMORY;
}

int idle_parts_tell(struct idle_parts *a, const char *text, const char *where, uint32_t tid,
                    struct idle_place *place)
{
    struct told_place **list =
        array_room(a->told, a->told_count, &a->told_capacity, sizeof *list, 64);
    struct told_place *told = list ? calloc(1, sizeof *told) : NULL;
    a->told = list ? list : a->told;
    if (!told)
        return GPUPROF_NO_MEMORY;
    list[a->told_count++] = told;
    told->thread.tid = tid;
    told->told = (struct idle_told){text, where, tid ? &told->thread : NULL};
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
    return 0;
}

uint32_t idle_parts_device(const struct idle_parts *all, uint32_t of, uint32_t device)
{
    const struct added_part *a = &all->list[of];
    a->part->has_failed |= device >= a->device_count;
    return a->part->has_failed ? IDLE_NONE : a->devices[device];
}

static int add_sequences(const struct idle_parts *all, struct added_part *a, struct idle *d)
{
    int error = 0;
    part_count(a->part, &a->sequence_count, SEQUENCE_BYTES);
    a->sequences = calloc(a->sequence_count + 1u, sizeof *a->sequences);
    a->sequence_devices = calloc(a->sequence_count + 1u, sizeof *a->sequence_devices);
    if (!a->sequences || !a->sequence_devices)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < a->sequence_count && error == 0; i++) {
        struct rank_sequence s = {0};
        uint32_t device = 0;
        carry_sequence(a->part, &device, &s);
        device = idle_parts_device(all, (uint32_t)(a - all->list), device);
        if (a->part->has_failed)
            return 0;
        a->sequence_devices[i] = device;
        error = idle_ranks_sequence(&d->ranks, device, s.communicator, s.name,
                                    s.communicator ? s.communicator : (uintptr_t)s.name,
                                    &a->sequences[i]);
    }
    return error;
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
        uint32_t tid = 0;
        carry_row(p, &row.device, &row, &tid, &text, &where);
        row.device = idle_parts_device(all, (uint32_t)(a - all->list), row.device);
        if (p->has_failed)
            return 0;
        row.process = d->devices[row.device].process->index;
        has_more |= d->rows.count >= IDLE_ROWS_MAX;
        error = idle_parts_tell(all, text, where, tid, &row.place);
        if (error == 0)
            error = idle_rows_add_sum(&d->rows, &row);
    }
    all->has_more |= has_more;
    return error;
}

static int add_streams(struct idle_parts *all, struct idle_streams *streams, uint32_t of,
                       unsigned bytes)
{
    struct added_part *a = &all->list[of];
    for (uint32_t i = 0; i < a->device_count; i++) {
        struct idle_stream *list =
            array_room(streams->list, streams->count, &streams->capacity, sizeof *list, 16);
        if (!list)
            return GPUPROF_NO_MEMORY;
        streams->list = list;
        struct idle_stream *s = &list[streams->count++];
        *s = (struct idle_stream){.of = of, .device = a->devices[i]};
        part_get_stream(a->part, &s->values, &s->left, bytes);
    }
    return 0;
}

int idle_part_add(struct idle_parts *all, struct idle *d, uint32_t of,
                  struct process *const *processes, uint32_t process_count)
{
    struct added_part *a = &all->list[of];
    int error = add_kinds(a, &d->arrivals);
    if (error == 0)
        error = add_places(a, &d->arrivals, processes, process_count);
    if (error == 0)
        error = add_sequences(all, a, d);
    if (error == 0)
        error = add_rows(all, a, d);
    if (error == 0 && !a->part->has_failed)
        error = add_streams(all, &all->kernels, of, KERNEL_BYTES);
    if (error == 0 && !a->part->has_failed)
        error = add_streams(all, &all->alone, of, ALONE_BYTES);
    return error;
}

static void leave_out_empty(struct idle_parts *all, struct idle_streams *streams)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < streams->count; i++) {
        struct idle_stream *s = &streams->list[i];
        struct part *part = all->list[s->of].part;
        if (s->left && !part->has_failed)
            streams->list[left++] = *s;
        else
            part->has_failed |= s->values.at != s->values.length;
    }
    streams->count = left;
    streams->turn = 0;
}

/* The one that has the next of them; NULL: nothing is left. One of each device in turn: those that
 * met lie close together then. */
static struct idle_stream *next_stream(struct idle_parts *all, struct idle_streams *streams)
{
    while (streams->count) {
        if (streams->turn == streams->count) {
            leave_out_empty(all, streams);
            continue;
        }
        struct idle_stream *s = &streams->list[streams->turn++];
        if (s->left && !all->list[s->of].part->has_failed) {
            s->left--;
            return s;
        }
    }
    return NULL;
}

/* 0 or an error. */
static int take_kernel(struct idle_parts *all, struct idle_stream *s, struct idle *d)
{
    struct added_part *a = &all->list[s->of];
    struct rank_kernel k = {.begin_ns = s->before_ns, .end_ns = s->before_ns};
    carry_kernel(&s->values, &k, &s->before_ns);
    bool is_bad = s->values.has_failed || k.sequence >= a->sequence_count ||
                  a->sequence_devices[k.sequence] != s->device || k.facts.kind >= a->kind_count ||
                  k.facts.idle_place > a->place_count || k.facts.work_place > a->place_count;
    a->part->has_failed |= is_bad;
    uint32_t sequence = is_bad ? 0 : a->sequences[k.sequence];
    if (!sequence)
        return 0;
    k.sequence = sequence - 1;
    k.facts.kind = a->kinds[k.facts.kind];
    k.facts.idle_place = k.facts.idle_place ? a->places[k.facts.idle_place - 1] : 0;
    k.facts.work_place = k.facts.work_place ? a->places[k.facts.work_place - 1] : 0;
    return idle_ranks_add(&d->ranks, &k);
}

static int next_alone(void *context, struct rank_span *span)
{
    struct idle_parts *all = context;
    struct idle_stream *s = next_stream(all, &all->alone);
    if (!s)
        return 0;
    *span =
        (struct rank_span){.begin_ns = s->before_ns, .end_ns = s->before_ns, .device = s->device};
    carry_alone(&s->values, span, &s->before_ns);
    all->list[s->of].part->has_failed |= s->values.has_failed;
    return 1;
}

int idle_part_add_end(struct idle_parts *all, struct idle *d)
{
    const struct rank_spans alone = {all, next_alone};
    struct idle_stream *s;
    int error = 0;
    while (error == 0 && (s = next_stream(all, &all->kernels)))
        error = take_kernel(all, s, d);
    return error < 0 || d->walk->rec->count < 2 ? error : idle_waits_charge(d, &alone);
}

void idle_parts_release(struct idle_parts *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        free(all->list[i].kinds);
        free(all->list[i].places);
        free(all->list[i].devices);
        free(all->list[i].sequences);
        free(all->list[i].sequence_devices);
    }
    for (uint32_t i = 0; i < all->told_count; i++)
        free(all->told[i]);
    free(all->told);
    free(all->list);
    free(all->kernels.list);
    free(all->alone.list);
}
