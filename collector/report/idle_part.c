/* SPDX-License-Identifier: Apache-2.0 */
#include "report/idle_part.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define KIND_NAME_BYTES 2 /* in a part, at least */
#define PLACE_BYTES     4
#define DEVICE_BYTES    20
#define SEQUENCE_BYTES  4
#define KERNEL_BYTES    7
#define ALONE_BYTES     2

/* What numbers of a part mean where all are added up. */
struct added_part {
    struct part *part;        /* a view */
    uint32_t *kinds, *places; /* owned, and so are the others */
    uint32_t *sequences;      /* 0: there is no room for it */
    uint32_t *sequence_devices;
    uint32_t kind_count, place_count, sequence_count;
    uint32_t first_device, device_count;
};

/* The kernels of a device, and the times in which it did nothing else, as they lie in a part. */
struct idle_stream {
    struct part kernels, alone;
    uint32_t kernels_left, alone_left;
    uint64_t kernel_ns, alone_ns; /* begin of the one before */
    uint32_t of;                  /* place in the list of parts */
    uint32_t device;              /* in all of them */
};

/* ---- what there is one of -------------------------------------------------------------------- */

static void carry_device(struct part *p, uint32_t *process, struct idle_device *d)
{
    uint64_t *const numbers[] = {&d->device, &d->begin_ns, &d->end_ns, &d->idle_ns, &d->stopped_ns};
    part_u32(p, process);
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        part_number(p, numbers[i]);
    for (unsigned i = 0; i < IDLE_BUSY_PARTS; i++)
        part_number(p, &d->parts[i]);
    for (unsigned i = 0; i < IDLE_CAUSES; i++)
        part_number(p, &d->causes[i]);
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

static void put_stream(struct part *p, struct part *stream, uint32_t count)
{
    const uint8_t *data = stream->data;
    uint32_t length = (uint32_t)stream->length;
    p->has_failed |= stream->has_failed || stream->length > PART_BYTES_MAX;
    part_u32(p, &count);
    part_bytes(p, &data, &length);
    part_release(stream);
}

static int put_kernels(struct idle *d, struct part *p)
{
    int error = 0;
    for (uint32_t i = 0; i < d->device_count && error == 0; i++) {
        struct part stream = {.is_written = true};
        uint64_t before_ns = 0, next = idle_ranks_first(&d->ranks, i, &error);
        uint32_t count = 0;
        while (next && error == 0) {
            const struct rank_kernel *k = spool_at(&d->ranks.kernels, next - 1, false, &error);
            struct rank_kernel kernel = k ? *k : (struct rank_kernel){0};
            next = kernel.next_there;
            count += k != NULL;
            if (k)
                carry_kernel(&stream, &kernel, &before_ns);
        }
        put_stream(p, &stream, count);
    }
    return error;
}

/* All devices' lie in one spool, in the order of time. */
static int put_alone(struct idle *d, struct part *p)
{
    struct part *streams = calloc(d->device_count + 1u, sizeof *streams);
    uint64_t *before = calloc(d->device_count + 1u, sizeof *before);
    uint32_t *counts = calloc(d->device_count + 1u, sizeof *counts);
    int error = streams && before && counts ? 0 : GPUPROF_NO_MEMORY;
    for (uint64_t i = 0; error == 0 && i < d->ranks.alone.count; i++) {
        const struct rank_span *s = spool_at(&d->ranks.alone, i, false, &error);
        struct rank_span span = s ? *s : (struct rank_span){0};
        struct part *stream = &streams[span.device];
        stream->is_written = true;
        carry_alone(stream, &span, &before[span.device]);
        counts[span.device]++;
    }
    for (uint32_t i = 0; i < d->device_count && streams && counts; i++)
        put_stream(p, &streams[i], counts[i]);
    free(streams);
    free(before);
    free(counts);
    return error;
}

int idle_part_put(struct idle *d, struct part *p)
{
    uint32_t nothing = 0;
    if (!d) {
        for (unsigned i = 0; i < 4; i++)
            part_u32(p, &nothing);
        return 0;
    }
    const struct arrivals *a = &d->arrivals;
    uint32_t kinds = a->kind_count, places = a->place_count, devices = d->device_count;
    part_count(p, &kinds, KIND_NAME_BYTES);
    for (uint32_t i = 0; i < kinds; i++)
        part_text(p, &(const char *){a->kinds[i]});
    part_count(p, &places, PLACE_BYTES);
    for (uint32_t i = 0; i < places; i++) {
        struct arrival_place place = a->places[i];
        carry_place(p, &place, &(const char *){place.text});
    }
    part_count(p, &devices, DEVICE_BYTES);
    for (uint32_t i = 0; i < devices; i++) {
        struct idle_device device = d->devices[i];
        carry_device(p, &(uint32_t){device.process->index}, &device);
    }
    part_count(p, &d->ranks.count, SEQUENCE_BYTES);
    for (uint32_t i = 0; i < d->ranks.count; i++) {
        struct rank_sequence sequence = d->ranks.list[i];
        carry_sequence(p, &(uint32_t){sequence.device}, &sequence);
    }
    int error = put_kernels(d, p);
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

static int add_devices(struct added_part *a, struct idle *d, struct process *const *processes,
                       uint32_t process_count)
{
    part_count(a->part, &a->device_count, DEVICE_BYTES);
    a->first_device = d->device_count;
    for (uint32_t i = 0; i < a->device_count && !a->part->has_failed; i++) {
        struct idle_device device = {0};
        uint32_t process = 0;
        carry_device(a->part, &process, &device);
        a->part->has_failed |= process >= process_count || d->device_count == IDLE_DEVICES_MAX;
        if (a->part->has_failed)
            return 0;
        struct idle_device *devices =
            array_room(d->devices, d->device_count, &d->device_capacity, sizeof *devices, 16);
        if (!devices)
            return GPUPROF_NO_MEMORY;
        d->devices = devices;
        device.process = processes[process];
        devices[d->device_count++] = device;
    }
    return 0;
}

static int add_sequences(struct added_part *a, struct idle *d)
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
        a->part->has_failed |= device >= a->device_count;
        if (a->part->has_failed)
            return 0;
        a->sequence_devices[i] = a->first_device + device;
        error = idle_ranks_sequence(&d->ranks, a->first_device + device, s.communicator, s.name,
                                    s.communicator ? s.communicator : (uintptr_t)s.name,
                                    &a->sequences[i]);
    }
    return error;
}

static void get_stream(struct part *p, struct part *stream, uint32_t *count, unsigned bytes)
{
    const uint8_t *data = NULL;
    uint32_t length = 0;
    part_u32(p, count);
    part_bytes(p, &data, &length);
    p->has_failed |= *count > length / bytes;
    *count = p->has_failed ? 0 : *count;
    *stream = (struct part){.data = (uint8_t *)data, .length = p->has_failed ? 0 : length};
}

static int add_streams(struct idle_parts *all, uint32_t of)
{
    struct added_part *a = &all->list[of];
    uint32_t first = all->stream_count;
    for (uint32_t i = 0; i < a->device_count; i++) {
        struct idle_stream *streams =
            array_room(all->streams, all->stream_count, &all->stream_capacity, sizeof *streams, 16);
        if (!streams)
            return GPUPROF_NO_MEMORY;
        all->streams = streams;
        struct idle_stream *s = &streams[all->stream_count++];
        *s = (struct idle_stream){.of = of, .device = a->first_device + i};
        get_stream(a->part, &s->kernels, &s->kernels_left, KERNEL_BYTES);
    }
    for (uint32_t i = first; i < all->stream_count; i++)
        get_stream(a->part, &all->streams[i].alone, &all->streams[i].alone_left, ALONE_BYTES);
    return 0;
}

int idle_part_add(struct idle_parts *all, struct idle *d, struct part *p,
                  struct process *const *processes, uint32_t process_count)
{
    struct added_part *list = array_room(all->list, all->count, &all->capacity, sizeof *list, 16);
    if (!list)
        return GPUPROF_NO_MEMORY;
    all->list = list;
    struct added_part *a = &list[all->count];
    *a = (struct added_part){.part = p};
    all->count++;
    int error = add_kinds(a, &d->arrivals);
    if (error == 0)
        error = add_places(a, &d->arrivals, processes, process_count);
    if (error == 0)
        error = add_devices(a, d, processes, process_count);
    if (error == 0)
        error = add_sequences(a, d);
    return error < 0 || p->has_failed ? error : add_streams(all, all->count - 1);
}

/* The next kernel of a device. 0 or an error. */
static int take_kernel(struct added_part *a, struct idle_stream *s, struct idle *d)
{
    struct rank_kernel k = {.begin_ns = s->kernel_ns, .end_ns = s->kernel_ns};
    carry_kernel(&s->kernels, &k, &s->kernel_ns);
    s->kernels_left--;
    bool is_bad = s->kernels.has_failed || k.sequence >= a->sequence_count ||
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

static int take_alone(struct added_part *a, struct idle_stream *s, struct idle *d)
{
    struct rank_span span = {.begin_ns = s->alone_ns, .end_ns = s->alone_ns};
    carry_alone(&s->alone, &span, &s->alone_ns);
    s->alone_left--;
    a->part->has_failed |= s->alone.has_failed;
    return idle_ranks_alone(&d->ranks, s->device, span.begin_ns, span.end_ns);
}

/* One of each device in turn: those that met lie close together then. Devices of which all is
 * taken leave the list. */
static int take_turn(struct idle_parts *all, struct idle *d)
{
    uint32_t left = 0;
    int error = 0;
    for (uint32_t i = 0; i < all->stream_count && error == 0; i++) {
        struct idle_stream *s = &all->streams[i];
        struct added_part *a = &all->list[s->of];
        if (a->part->has_failed)
            continue;
        if (s->kernels_left)
            error = take_kernel(a, s, d);
        if (error == 0 && s->alone_left)
            error = take_alone(a, s, d);
        if (s->kernels_left || s->alone_left)
            all->streams[left++] = *s;
        else
            a->part->has_failed |=
                s->kernels.at != s->kernels.length || s->alone.at != s->alone.length;
    }
    all->stream_count = left;
    return error;
}

int idle_part_add_end(struct idle_parts *all, struct idle *d)
{
    int error = 0;
    while (all->stream_count && error == 0)
        error = take_turn(all, d);
    return error < 0 || d->walk->rec->count < 2 ? error : idle_waits_charge(d);
}

void idle_parts_release(struct idle_parts *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        free(all->list[i].kinds);
        free(all->list[i].places);
        free(all->list[i].sequences);
        free(all->list[i].sequence_devices);
    }
    free(all->list);
    free(all->streams);
}
