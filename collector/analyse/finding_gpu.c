/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/finding_gpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "record/gpu_record.h"

const struct finding_kind finding_kinds[FINDING_KINDS] = {
#define FINDING(NAME, id, share, floor, title, advice, next, measures)                             \
    [FINDING_##NAME] = {id, share, floor * 1000000ull, title, advice, next, measures},
#include "analyse/finding_kinds.def"
};

#define NONE       UINT32_MAX
#define COPY_ASYNC 1 /* flag of COPY_FLAGS, as in CUPTI */

enum memory_kind { MEMORY_PAGEABLE = 1, MEMORY_PINNED = 2 };

/* What a sum counts: a name by index, or a copy by its kind and memories. Parts of a lane have the
 * stream + 1 in the upper bits. */
#define WHAT_COPY     (1ull << 32)
#define WHAT_REPEATED (1ull << 31) /* the device got the same bytes before */
#define WHAT_STREAM   33

/* First words of keys in `places`; no process has them. */
enum { MAP_STREAM = 1u << 31, MAP_NAME };

int finding_gpu_init(struct finding_gpu *g, struct walk *walk, const struct idle *idle)
{
    uint64_t more = recording_bytes(walk->rec) / FINDING_SUM_BYTES;
    uint32_t most = FINDING_SUMS_MAX - FINDING_SUMS_FREE;
    *g = (struct finding_gpu){.walk = walk, .idle = idle};
    g->sums.rows_max = FINDING_SUMS_FREE + (uint32_t)min_of(more, most);
    work_places_init(&g->wheres, walk);
    spool_init(&g->exposed, sizeof(struct byte_chunk));
    return ARRAY_PUSH(g->names, g->name_count, NULL); /* for kernels without a name */
}

void finding_gpu_release(struct finding_gpu *g)
{
    work_places_release(&g->wheres);
    spool_release(&g->exposed);
    free(g->devices);
    free(g->streams);
    free(g->names);
    free(g->sums.rows);
    key_map_release(&g->sums.places);
    key_map_release(&g->places);
    key_map_release(&g->uploads);
}

int finding_gpu_devices(struct finding_gpu *g, uint32_t count)
{
    int error = 0;
    while (error == 0 && g->device_count < count && g->device_count < FOUND_DEVICES_MAX)
        error = ARRAY_PUSH(g->devices, g->device_count, NULL);
    return error;
}

/* Sets *place to the index of the work's stream; NONE: there are too many streams or devices. */
static __attribute__((noinline)) int find_stream(struct finding_gpu *g, const struct process *p,
                                                 uint64_t device, uint64_t stream, uint32_t *place)
{
    uint32_t known = idle_device_place(g->idle, p, device);
    const struct found_stream new = {
        .process = p->index, .place = known - 1, .device = device, .stream = stream};
    struct key key = {MAP_STREAM, known, stream};
    *place = NONE;
    if (!known || known > FOUND_DEVICES_MAX)
        return 0;
    int error = finding_gpu_devices(g, known);
    if (error == 0)
        error = KEY_MAP_ITEM(&g->places, key, g->streams, g->stream_count, FOUND_STREAMS_MAX, &new,
                             place);
    *place = error == 0 && *place ? *place - 1 : NONE;
    return error;
}

static int stream_of(struct finding_gpu *g, const struct process *p, const struct record *r,
                     uint32_t *place)
{
    uint64_t device = record_arg(r, KERNEL_DEVICE), stream = record_arg(r, KERNEL_STREAM);
    uint32_t *recent =
        &g->recent_streams[(stream ^ device << 3 ^ (uint64_t)p->index << 5) % FOUND_RECENT];
    const struct found_stream *s = *recent < g->stream_count ? &g->streams[*recent] : NULL;
    *place = *recent;
    if (s && s->stream == stream && s->device == device && s->process == p->index)
        return 0;
    int error = find_stream(g, p, device, stream, place);
    *recent = *place;
    return error;
}

/* Sets *index to the index of a name; 0: unnamed, or beyond the limit. */
static int index_name(struct finding_gpu *g, const struct kernel_name *name, uint32_t *index)
{
    struct key key = {MAP_NAME, (uintptr_t)name, 0};
    uint32_t before = g->name_count, number = 0;
    int error = name ? KEY_MAP_ITEM(&g->places, key, g->names, g->name_count, FOUND_NAMES_MAX, NULL,
                                    &number)
                     : 0;
    if (g->name_count > before)
        g->names[before] = (struct found_name){name, kernel_class_of(name)};
    *index = number ? number - 1 : 0;
    return error;
}

static inline __attribute__((always_inline)) int
finding_gpu_name_of(struct finding_gpu *g, struct process *p, uint64_t number, uint32_t *index)
{
    struct found_recent *recent = &g->recent[(number ^ (uint64_t)p->index << 4) % FOUND_RECENT];
    *index = recent->name;
    if (recent->name && recent->number == number && recent->process == p->index)
        return 0;
    int error = index_name(g, walk_kernel(g->walk, p, number), index);
    if (error == 0 && *index)
        *recent = (struct found_recent){.process = p->index, .name = *index, .number = number};
    return error;
}

static bool is_pageable(uint64_t source, uint64_t destination)
{
    return source == MEMORY_PAGEABLE || destination == MEMORY_PAGEABLE;
}

/* Did the device get the same bytes before, from another call? The first call often is the slow
 * one, with a stack: its place stands in where others have none. */
static int is_repeated(struct finding_gpu *g, const struct event *e, uint32_t *where, bool *is)
{
    const struct record *r = e->record;
    uint32_t process = e->process->index;
    struct key key = {(uint64_t)process << 32 | (uint32_t)record_arg(r, COPY_DEVICE),
                      record_arg(r, COPY_BYTES),
                      survey_content(&g->walk->survey, process, r->correlation)};
    uint64_t first = key.c ? key_map_get(&g->uploads, key) : 0;
    *is = first && (uint32_t)first != r->correlation;
    if (*is && !*where)
        *where = (uint32_t)(first >> 32);
    return key.c && !first
               ? key_map_set_anew(&g->uploads, key, (uint64_t)*where << 32 | r->correlation,
                                  FOUND_UPLOADS_MAX)
               : 0;
}

/* The number for a copy between host and device that could be faster, run beside kernels, or be
 * left out; 0: other copies. */
static uint64_t copy_what(const struct record *r, bool is_again)
{
    uint64_t kind = record_arg(r, COPY_KIND), source = record_arg(r, COPY_SOURCE);
    uint64_t destination = record_arg(r, COPY_DESTINATION);
    bool is_pinned = source == MEMORY_PINNED || destination == MEMORY_PINNED;
    uint64_t what = WHAT_COPY | kind << 16 | source << 8 | destination;
    if ((source | destination) >> 8 || kind >> 15 || (source == destination))
        return 0;
    if (is_again)
        return what | WHAT_REPEATED;
    return is_pageable(source, destination) || (is_pinned && record_arg(r, COPY_FLAGS) & COPY_ASYNC)
               ? what
               : 0;
}

/* ---- charging -------------------------------------------------------------------------------- */

/* Adds `count` items that took `ns` together to the evidence; the longest began at `at_ns`. */
static inline int add_sum(struct finding_gpu *g, enum finding_id kind, uint32_t device,
                          uint64_t what, uint32_t where, uint32_t count, uint64_t ns,
                          uint64_t at_ns)
{
    return finding_sums_add(&g->sums, &(struct finding_sum){.kind = kind,
                                                            .device = device,
                                                            .what = what,
                                                            .where = where,
                                                            .count = count,
                                                            .ns = ns,
                                                            .longest_ns = ns,
                                                            .at_ns = at_ns});
}

static inline int charge(struct finding_gpu *g, enum finding_id kind, uint32_t device,
                         uint64_t what, uint32_t where, uint64_t ns, uint64_t at_ns)
{
    g->devices[device].ns[kind] += ns;
    return add_sum(g, kind, device, what, where, 1, ns, at_ns);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Charges a part that is over: its time alone is complete. */
static int part_is_over(struct finding_gpu *g, uint32_t device, enum lane lane,
                        const struct lane_part *part)
{
    uint64_t what = part->what & ((1ull << WHAT_STREAM) - 1);
    uint32_t stream = (uint32_t)(part->what >> WHAT_STREAM);
    if (!what || !part->alone_ns)
        return 0;
    if (lane == LANE_COMMUNICATION) {
        uint64_t hidden_ns = part->end_ns - part->begin_ns - part->alone_ns;
        const struct span exposed = {part->begin_ns, part->end_ns, {hidden_ns, what, part->where}};
        work_places_want(&g->wheres, part->where);
        return span_put(&g->exposed, &g->devices[device].exposed, &exposed, exposed_kind);
    }
    if (what & WHAT_REPEATED) { /* counted already: a hidden one is superfluous, too */
        g->devices[device].ns[FINDING_REPEATED_UPLOAD] += part->alone_ns;
        return add_sum(g, FINDING_REPEATED_UPLOAD, device, what, part->where, 0, part->alone_ns,
                       part->begin_ns);
    }
    if (is_pageable(what >> 8 & 0xff, what & 0xff))
        return charge(g, FINDING_PAGEABLE_COPIES, device, what, part->where, part->alone_ns,
                      part->begin_ns);
    g->streams[stream - 1].copies_alone_ns += part->alone_ns;
    return add_sum(g, FINDING_ONE_STREAM, device, what, part->where, 1, part->alone_ns,
                   part->begin_ns);
}

/* Counts the lane's parts up to `ns`, as alone from `alone_from` on, and charges those that end. */
static int use_up(struct finding_gpu *g, uint32_t device, enum lane lane, uint64_t alone_from,
                  uint64_t ns)
{
    struct lane_parts *parts = &g->devices[device].lanes.parts[lane];
    int error = 0;
    while (error == 0 && parts->count) {
        struct lane_part *part = &parts->list[parts->first];
        if (part->known_ns >= ns)
            break;
        uint64_t end_ns = min_of(part->end_ns, ns);
        part->alone_ns += overlap_ns(alone_from, end_ns, part->known_ns, end_ns);
        part->known_ns = end_ns;
        if (part->end_ns > ns)
            break;
        parts->first = (parts->first + 1) % LANE_PARTS_MAX;
        parts->count--;
        error = part_is_over(g, device, lane, part);
    }
    return error;
}

/* Advances the device to `ns`. No work begins until then: work covers each lane from at_ns until
 * its end. */
static inline int advance(struct finding_gpu *g, uint32_t device, uint64_t ns)
{
    struct device_lanes *d = &g->devices[device].lanes;
    uint64_t from_ns = d->at_ns;
    int error = 0;
    if (ns <= from_ns)
        return 0;
    for (unsigned lane = 0; error == 0 && lane < LANES; lane++) {
        uint64_t alone_from = from_ns, to_ns = min_of(d->end_ns[lane], ns);
        if (to_ns > from_ns) {
            d->alone_ns[lane] += to_ns - from_ns;
            from_ns = to_ns;
        }
        if (lane != LANE_COMPUTE && d->parts[lane].count)
            error = use_up(g, device, (enum lane)lane, alone_from, ns);
    }
    d->at_ns = ns;
    return error;
}

/* Adds work that begins now, once the device has advanced; cut at the end of a selection of time.
 * Returns its own ns. */
static inline uint64_t add_to_lane(struct finding_gpu *g, uint32_t device, enum lane lane,
                                   uint64_t begin_ns, uint64_t end_ns, uint64_t what,
                                   uint32_t where)
{
    const struct walk_filter *f = g->walk->filter;
    struct device_lanes *d = &g->devices[device].lanes;
    struct lane_parts *parts = &d->parts[lane];
    end_ns = f && f->is_span ? min_of(end_ns, f->to_ns) : end_ns;
    begin_ns = max_of(max_of(begin_ns, d->at_ns), d->end_ns[lane]);
    if (end_ns <= begin_ns)
        return 0;
    d->end_ns[lane] = end_ns;
    if (lane != LANE_COMPUTE && parts->count == LANE_PARTS_MAX)
        parts->list[(parts->first + parts->count - 1) % LANE_PARTS_MAX].end_ns = end_ns;
    else if (lane != LANE_COMPUTE)
        parts->list[(parts->first + parts->count++) % LANE_PARTS_MAX] =
            (struct lane_part){.begin_ns = begin_ns,
                               .end_ns = end_ns,
                               .known_ns = begin_ns,
                               .what = what,
                               .where = where};
    return end_ns - begin_ns;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static inline int charge_tiny(struct finding_gpu *g, uint32_t device, const struct chain_link *link)
{
    uint64_t saved_ns = link->own_ns < START_NS ? link->own_ns : START_NS;
    return link->duration_ns < TINY_NS && saved_ns
               ? charge(g, FINDING_TINY_KERNELS, device, link->name, link->where, saved_ns,
                        link->begin_ns)
               : 0;
}

/* Ends a chain. Kernels not charged to it may be tiny: too few, or the longest, which would remain.
 */
static int chain_close(struct finding_gpu *g, struct found_stream *s)
{
    int error = 0;
    uint32_t kept = s->chain_count < CHAIN_MIN ? s->chain_count : 1;
    for (uint32_t i = 0; error == 0 && i < kept; i++)
        error = charge_tiny(g, s->place, &s->links[i]);
    s->chain_count = 0;
    return error;
}

/* Keeps the longer one in *longest and charges the other. */
static int chain_charge(struct finding_gpu *g, uint32_t device, struct chain_link *longest,
                        struct chain_link link)
{
    if (link.own_ns > longest->own_ns) {
        struct chain_link shorter = *longest;
        *longest = link;
        link = shorter;
    }
    return charge(g, FINDING_UNFUSED_ELEMENTWISE, device, link.name, link.where, link.own_ns,
                  link.begin_ns);
}

static int chain_add(struct finding_gpu *g, struct found_stream *s, const struct chain_link *link)
{
    int error = 0;
    uint64_t end_ns = link->begin_ns + link->duration_ns;
    if (s->chain_count && link->begin_ns > s->end_ns && link->begin_ns - s->end_ns > CHAIN_GAP_NS)
        error = chain_close(g, s);
    s->end_ns = s->chain_count && s->end_ns > end_ns ? s->end_ns : end_ns;
    if (++s->chain_count < CHAIN_MIN) {
        s->links[s->chain_count - 1] = *link;
        return error;
    }
    for (uint32_t i = 1; error == 0 && s->chain_count == CHAIN_MIN && i < CHAIN_MIN - 1; i++)
        error = chain_charge(g, s->place, &s->links[0], s->links[i]);
    s->chain_count = CHAIN_MIN; /* or more */
    return error < 0 ? error : chain_charge(g, s->place, &s->links[0], *link);
}

/* Inline, since most work is kernels: a call would take a tenth of their time here. */
static inline __attribute__((always_inline)) int
finding_gpu_take_kernel(struct finding_gpu *g, uint32_t stream, uint32_t name, uint32_t where,
                        uint64_t begin_ns, uint64_t end_ns)
{
    struct found_stream *s = &g->streams[stream];
    enum kernel_class class = g->names[name].class;
    enum lane lane = class == KERNEL_COMMUNICATION ? LANE_COMMUNICATION : LANE_COMPUTE;
    int error = advance(g, s->place, begin_ns);
    struct chain_link link = {
        .name = name,
        .where = where,
        .own_ns = add_to_lane(g, s->place, lane, begin_ns, end_ns, name, where),
        .duration_ns = end_ns - begin_ns,
        .begin_ns = begin_ns,
    };
    s->has_kernels = true;
    if (error == 0 && class == KERNEL_ELEMENTWISE)
        return chain_add(g, s, &link);
    if (error == 0 && s->chain_count)
        error = chain_close(g, s);
    if (error < 0 || class == KERNEL_COMMUNICATION)
        return error;
    return class == KERNEL_FP32_GEMM
               ? charge(g, FINDING_FP32_GEMM, s->place, name, where, link.own_ns, begin_ns)
               : charge_tiny(g, s->place, &link);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Takes a copy or a graph launch. */
static int take_other(struct finding_gpu *g, const struct event *e, uint32_t stream, uint32_t where)
{
    const struct record *r = e->record;
    struct found_stream *s = &g->streams[stream];
    bool is_again = false;
    int error = r->type == RECORD_COPY ? is_repeated(g, e, &where, &is_again) : 0;
    uint64_t what = r->type == RECORD_COPY ? copy_what(r, is_again) : 0;
    if (error == 0 && what & WHAT_REPEATED)
        error = add_sum(g, FINDING_REPEATED_UPLOAD, s->place, what, where, 1, 0, e->begin_ns);
    if (error == 0)
        error = advance(g, s->place, e->begin_ns);
    if (error < 0)
        return error;
    enum lane lane = r->type == RECORD_GRAPH ? LANE_COMPUTE : LANE_COPIES;
    s->has_kernels |= lane == LANE_COMPUTE;
    add_to_lane(g, s->place, lane, e->begin_ns, e->end_ns, (stream + 1ull) << WHAT_STREAM | what,
                where);
    return chain_close(g, s);
}

int finding_gpu_take(void *context, const struct slice *s)
{
    struct finding_gpu *g = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    uint32_t stream, where, name = 0;
    int error = stream_of(g, e->process, r, &stream);
    if (error < 0 || stream == NONE)
        return error;
    error = work_places_take(&g->wheres, s, &where);
    if (error == 0 && r->type == RECORD_KERNEL)
        error = finding_gpu_name_of(g, e->process, record_arg(r, KERNEL_NAME_INDEX), &name);
    if (error < 0)
        return error;
    return r->type == RECORD_KERNEL
               ? finding_gpu_take_kernel(g, stream, name, where, e->begin_ns, e->end_ns)
               : take_other(g, e, stream, where);
}

/* Tensor cores came with compute capability 7.0. */
static bool has_tensor_cores(const struct finding_gpu *g, const struct process *p, uint64_t device)
{
    const struct surveyed_device *known = survey_device(&g->walk->survey, p, device);
    return known && known->limits.major >= 7;
}

/* Copies and kernels that wait for each other cost what the shorter of both takes. They cost
 * nothing if the program already has a stream for copies. */
static void charge_one_stream(struct finding_gpu *g)
{
    for (uint32_t i = 0; i < g->stream_count; i++) {
        const struct found_stream *s = &g->streams[i];
        g->devices[s->place].ns[FINDING_ONE_STREAM] += s->copies_alone_ns;
        g->devices[s->place].has_copy_stream |= s->copies_alone_ns && !s->has_kernels;
    }
    for (uint32_t i = 0; i < g->device_count; i++) {
        const struct found_device *d = &g->devices[i];
        uint64_t *ns = &g->devices[i].ns[FINDING_ONE_STREAM];
        *ns = d->has_copy_stream ? 0 : min_of(*ns, d->lanes.alone_ns[LANE_COMPUTE]);
    }
}

int finding_gpu_end(void *context)
{
    struct finding_gpu *g = context;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < g->stream_count; i++)
        error = chain_close(g, &g->streams[i]);
    for (uint32_t i = 0; error == 0 && i < g->device_count; i++) {
        const struct idle_device *of = &g->idle->devices[i];
        for (unsigned lane = 0; error == 0 && lane < LANES; lane++)
            error = advance(g, i, g->devices[i].lanes.end_ns[lane]);
        if (!has_tensor_cores(g, of->process, of->device))
            g->devices[i].ns[FINDING_FP32_GEMM] = 0;
    }
    charge_one_stream(g);
    return error;
}

int finding_gpu_add_exposed(struct finding_gpu *g, struct idle *idle, uint32_t device,
                            const struct span *exposed)
{
    uint64_t waited_ns = 0;
    uint64_t ns = exposed->end_ns - exposed->begin_ns - exposed->numbers[EXPOSED_HIDDEN_NS];
    int error = 0;
    if (device < FOUND_DEVICES_MAX)
        error = idle_waited(idle, device, exposed->begin_ns, exposed->end_ns, &waited_ns);
    return error == 0 && ns > waited_ns
               ? add_sum(g, FINDING_EXPOSED_COMMUNICATION, device, exposed->numbers[EXPOSED_WHAT],
                         (uint32_t)exposed->numbers[EXPOSED_WHERE], 1, ns - waited_ns,
                         exposed->begin_ns)
               : error;
}

/* How much was a wait is known when all shares are there. */
int finding_gpu_settle(struct finding_gpu *g, struct idle *idle)
{
    int error = 0, more;
    if (g->walk->rec->share)
        return 0;
    for (uint32_t i = 0; error == 0 && i < g->device_count; i++) {
        struct span_reader reader;
        span_reader_init(&reader, &g->exposed, &g->devices[i].exposed);
        while (error == 0 && (more = span_next(&reader, exposed_kind)) != 0)
            error = more < 0 ? more : finding_gpu_add_exposed(g, idle, i, &reader.span);
    }
    return error;
}

bool finding_gpu_is_copy(uint64_t what)
{
    return what & WHAT_COPY;
}

int finding_gpu_name(struct finding_gpu *g, const char *raw, uint32_t *what)
{
    const struct kernel_name *name = NULL;
    int error =
        raw ? kernel_name_intern(&g->walk->kernels, (const uint8_t *)raw, strlen(raw), &name) : 0;
    return error < 0 ? error : index_name(g, name, what);
}

const char *finding_gpu_text(const struct finding_gpu *g, uint64_t what,
                             char text[static GPU_TITLE_BYTES])
{
    if (what & WHAT_COPY)
        return copy_title(what >> 16 & 0x7fff, what >> 8 & 0xff, what & 0xff, text);
    const struct kernel_name *name = g->names[what].name;
    return name ? name->shown : "kernels without a name";
}
