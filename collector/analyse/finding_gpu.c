/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"

#define FOUND_RECENT 256 /* cached streams */

#define CHAIN_MIN    3       /* kernels; fusing fewer gains nothing */
#define CHAIN_GAP_NS 1000000 /* a longer gap ends a chain */
#define TINY_NS      5000    /* a shorter kernel takes about as long to start as to run */
#define START_NS     2000    /* an empty kernel: what merging saves for each kernel replaced */

#define NONE       UINT32_MAX
#define COPY_ASYNC 1 /* flag of COPY_FLAGS, as in CUPTI */

enum memory_kind { MEMORY_PAGEABLE = 1, MEMORY_PINNED = 2 };

/* What evidence counts: the address of a kernel's name (0: it has none), or a copy by its kind and
 * memories. */
#define WHAT_COPY     (1ull << 63)
#define WHAT_REPEATED (1ull << 31) /* the device got the same bytes before */

/* A piece of work, and where it was launched. */
struct work {
    uint64_t what; /* 0: a kernel without a name, or a copy that costs nothing */
    uint64_t begin_ns;
    uint32_t where, stream;
};

/* By the index of idle.h's devices. A device's time belongs to one part of idle.h at each moment.
 * The time of a part is that of the work that began last in it. */
struct found_device {
    uint64_t computes_ns;                /* end of its kernels so far */
    struct work last[IDLE_BUSY_PARTS];   /* not for IDLE_COMPUTE */
    uint64_t before_ns[IDLE_BUSY_PARTS]; /* time of the part when that began */
    bool has_copy_stream;                /* a stream copies and runs no kernels */
};

/* A kernel of a chain. */
struct chain_link {
    struct work work;
    uint64_t own_ns;
    uint64_t duration_ns;
};

struct found_stream {
    uint32_t process; /* index */
    uint32_t place;   /* index of its device in `devices` */
    uint64_t device;
    uint64_t stream;
    bool has_kernels;
    uint64_t copies_alone_ns; /* of copies that could run beside kernels */
    uint64_t end_ns;          /* end of the chain's last kernel */
    uint32_t chain_count;
    struct chain_link links[CHAIN_MIN - 1]; /* the first kernels; later the longest so far */
};

struct finding_gpu {
    struct walk *walk; /* a view, like the next ones */
    struct idle *idle;
    struct evidences *found;
    struct work_places wheres;
    struct found_device *devices; /* owned, like the pointers below */
    uint32_t device_count;
    struct found_stream *streams;
    uint32_t stream_count;
    struct key_map places;  /* (device, stream) -> index in `streams` + 1 */
    struct key_map uploads; /* (process and device, bytes, hash) -> first upload and its place */
    uint32_t recent[FOUND_RECENT]; /* indices in `streams` */
};

struct finding_gpu *finding_gpu_create(struct walk *walk, struct idle *idle,
                                       struct evidences *found)
{
    struct finding_gpu *g = memory_new(1, sizeof *g);
    *g = (struct finding_gpu){.walk = walk, .idle = idle, .found = found, .wheres.walk = walk};
    return g;
}

void finding_gpu_free(struct finding_gpu *g)
{
    work_places_release(&g->wheres);
    free(g->devices);
    free(g->streams);
    key_map_release(&g->places);
    key_map_release(&g->uploads);
    free(g);
}

bool finding_gpu_is_full(const struct finding_gpu *g)
{
    return g->device_count >= FOUND_DEVICES_MAX || g->wheres.count == WORK_PLACES_MAX;
}

/* The index of the work's stream; NONE: there are too many streams or devices. */
static __attribute__((noinline)) uint32_t
find_stream(struct finding_gpu *g, const struct process *p, uint64_t device, uint64_t stream)
{
    uint32_t known = idle_device_place(g->idle, p, device);
    const struct found_stream new = {
        .process = p->index, .place = known - 1, .device = device, .stream = stream};
    struct key key = {known, stream, 0};
    if (!known || known > FOUND_DEVICES_MAX)
        return NONE;
    while (g->device_count < known)
        ARRAY_PUSH(g->devices, g->device_count, NULL);
    evidence_charged(g->found, known - 1);
    uint32_t number =
        KEY_MAP_ITEM(&g->places, key, g->streams, g->stream_count, FOUND_STREAMS_MAX, &new);
    return number ? number - 1 : NONE;
}

static uint32_t stream_of(struct finding_gpu *g, const struct process *p, const struct record *r)
{
    uint64_t device = record_arg(r, KERNEL_DEVICE), stream = record_arg(r, KERNEL_STREAM);
    uint32_t *recent = &g->recent[(stream ^ device << 3 ^ (uint64_t)p->index << 5) % FOUND_RECENT];
    const struct found_stream *s = *recent < g->stream_count ? &g->streams[*recent] : NULL;
    if (!s || s->stream != stream || s->device != device || s->process != p->index)
        *recent = find_stream(g, p, device, stream);
    return *recent;
}

static bool is_pageable(uint64_t source, uint64_t destination)
{
    return source == MEMORY_PAGEABLE || destination == MEMORY_PAGEABLE;
}

/* Did the device get the same bytes before, from another call? The first call often is the slow
 * one, with a stack: its place stands in where others have none. */
static bool is_repeated(struct finding_gpu *g, const struct event *e, uint32_t *where)
{
    const struct record *r = e->record;
    uint32_t process = e->process->index;
    struct key key = {(uint64_t)process << 32 | (uint32_t)record_arg(r, COPY_DEVICE),
                      record_arg(r, COPY_BYTES),
                      survey_content(&g->walk->survey, process, r->correlation)};
    uint64_t first = key.c ? key_map_get(&g->uploads, key) : 0;
    bool is_again = first && (uint32_t)first != r->correlation;
    if (is_again && !*where)
        *where = (uint32_t)(first >> 32);
    if (key.c && !first)
        key_map_set_anew(&g->uploads, key, (uint64_t)*where << 32 | r->correlation,
                         FOUND_UPLOADS_MAX);
    return is_again;
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

/* Adds `count` items that took `ns` together to the evidence. */
static void add_evidence(struct finding_gpu *g, enum finding_id kind, uint32_t device,
                         const struct work *work, uint32_t count, uint64_t ns)
{
    struct evidences *all = g->found;
    const struct evidence new = {
        .kind = kind, .device = device, .what = work->what, .place = work->where};
    struct key key = {(uint64_t)kind << 32 | device, work->what, work->where};
    uint64_t of = work->what ^ work->what >> 8 ^ work->where ^ device ^ kind << 4;
    uint32_t *recent = &all->recent[of % EVIDENCE_RECENT];
    struct evidence *to = *recent ? &all->list[*recent - 1] : NULL;
    if (!to || to->kind != kind || to->device != device || to->what != work->what ||
        to->place != work->where) {
        *recent = KEY_MAP_ITEM(&all->places, key, all->list, all->count, all->count_max, &new);
        if (!*recent)
            return;
        to = &all->list[*recent - 1];
    }
    if (ns > to->is.longest_ns || to->is.count == 0) {
        to->is.longest_ns = ns;
        to->is.at_ns = work->begin_ns;
    }
    to->is.count += count;
    to->is.ns += ns;
}

static void charge(struct finding_gpu *g, enum finding_id kind, uint32_t device,
                   const struct work *work, uint64_t ns)
{
    g->found->charged[device].ns[kind] += ns;
    add_evidence(g, kind, device, work, 1, ns);
}

/* Charges the time of the part since its last work began, which `next` follows (NULL: the end). */
static void end_last(struct finding_gpu *g, uint32_t device, enum idle_part part,
                     const struct work *next)
{
    struct found_device *d = &g->devices[device];
    const struct idle_device *time = &g->idle->devices[device];
    const struct work last = d->last[part];
    /* At the end, waits for other ranks are idle time. */
    uint64_t now_ns =
        time->parts[part] + (part == IDLE_COMMUNICATING ? time->causes[IDLE_COMMUNICATION] : 0);
    uint64_t ns = now_ns - d->before_ns[part];
    d->before_ns[part] = now_ns;
    if (next)
        d->last[part] = *next;
    if (!ns || (part == IDLE_COPYING && !last.what))
        return;
    if (part == IDLE_COMMUNICATING) {
        add_evidence(g, FINDING_EXPOSED_COMMUNICATION, device, &last, 1, ns);
    } else if (last.what & WHAT_REPEATED) { /* counted already: a hidden one is superfluous, too */
        g->found->charged[device].ns[FINDING_REPEATED_UPLOAD] += ns;
        add_evidence(g, FINDING_REPEATED_UPLOAD, device, &last, 0, ns);
    } else if (is_pageable(last.what >> 8 & 0xff, last.what & 0xff)) {
        charge(g, FINDING_PAGEABLE_COPIES, device, &last, ns);
    } else {
        g->streams[last.stream].copies_alone_ns += ns;
        add_evidence(g, FINDING_ONE_STREAM, device, &last, 1, ns);
    }
}

/* The time of work that computes, cut at the end of a selection of time, without that of earlier
 * work. */
static inline uint64_t compute(struct finding_gpu *g, uint32_t device, uint64_t begin_ns,
                               uint64_t end_ns)
{
    const struct walk_filter *f = g->walk->filter;
    uint64_t *until_ns = &g->devices[device].computes_ns;
    end_ns = f && f->is_span ? min_of(end_ns, f->to_ns) : end_ns;
    begin_ns = max_of(begin_ns, *until_ns);
    *until_ns = max_of(*until_ns, end_ns);
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void charge_tiny(struct finding_gpu *g, uint32_t device, const struct chain_link *link)
{
    uint64_t saved_ns = min_of(link->own_ns, START_NS);
    if (link->duration_ns < TINY_NS && saved_ns)
        charge(g, FINDING_TINY_KERNELS, device, &link->work, saved_ns);
}

/* Ends a chain. Kernels not charged to it may be tiny: too few, or the longest, which would remain.
 */
static void chain_close(struct finding_gpu *g, struct found_stream *s)
{
    uint32_t kept = s->chain_count < CHAIN_MIN ? s->chain_count : 1;
    for (uint32_t i = 0; i < kept; i++)
        charge_tiny(g, s->place, &s->links[i]);
    s->chain_count = 0;
}

/* Keeps the longer one in *longest and charges the other. */
static void chain_charge(struct finding_gpu *g, uint32_t device, struct chain_link *longest,
                         const struct chain_link *link)
{
    const struct chain_link before = *longest;
    bool is_longer = link->own_ns > before.own_ns;
    *longest = is_longer ? *link : before;
    link = is_longer ? &before : link;
    charge(g, FINDING_UNFUSED_ELEMENTWISE, device, &link->work, link->own_ns);
}

static void chain_add(struct finding_gpu *g, struct found_stream *s, const struct chain_link *link)
{
    uint64_t begin_ns = link->work.begin_ns;
    if (s->chain_count && begin_ns > s->end_ns + CHAIN_GAP_NS)
        chain_close(g, s);
    s->end_ns = max_of(s->chain_count ? s->end_ns : 0, begin_ns + link->duration_ns);
    if (++s->chain_count < CHAIN_MIN) {
        s->links[s->chain_count - 1] = *link;
        return;
    }
    if (s->chain_count == CHAIN_MIN)
        chain_charge(g, s->place, &s->links[0], &s->links[1]);
    chain_charge(g, s->place, &s->links[0], link);
}

/* Inline, since most work is kernels: a call would take a tenth of their time here. */
static inline __attribute__((always_inline)) void take_kernel(struct finding_gpu *g,
                                                              enum kernel_class class,
                                                              const struct work *work,
                                                              uint64_t end_ns)
{
    struct found_stream *s = &g->streams[work->stream];
    struct chain_link link = {.work = *work, .duration_ns = end_ns - work->begin_ns};
    s->has_kernels = true;
    if (class != KERNEL_COMMUNICATION)
        link.own_ns = compute(g, s->place, work->begin_ns, end_ns);
    if (class != KERNEL_ELEMENTWISE && s->chain_count)
        chain_close(g, s);
    if (class == KERNEL_COMMUNICATION)
        end_last(g, s->place, IDLE_COMMUNICATING, work);
    else if (class == KERNEL_ELEMENTWISE)
        chain_add(g, s, &link);
    else if (class == KERNEL_FP32_GEMM)
        charge(g, FINDING_FP32_GEMM, s->place, work, link.own_ns);
    else
        charge_tiny(g, s->place, &link);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Takes a copy, a set or a graph launch. */
static void take_other(struct finding_gpu *g, const struct event *e, struct work *work)
{
    const struct record *r = e->record;
    struct found_stream *s = &g->streams[work->stream];
    if (r->type == RECORD_COPY)
        work->what = copy_what(r, is_repeated(g, e, &work->where));
    if (work->what & WHAT_REPEATED)
        add_evidence(g, FINDING_REPEATED_UPLOAD, s->place, work, 1, 0);
    if (r->type == RECORD_GRAPH) {
        s->has_kernels = true;
        compute(g, s->place, e->begin_ns, e->end_ns);
    } else {
        end_last(g, s->place, IDLE_COPYING, work);
    }
    chain_close(g, s);
}

int finding_gpu_take(void *context, const struct slice *s)
{
    struct finding_gpu *g = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    struct work work = {.begin_ns = e->begin_ns, .stream = stream_of(g, e->process, r)};
    if (work.stream == NONE)
        return 0;
    work.where = work_places_take(&g->wheres, s);
    if (r->type != RECORD_KERNEL) {
        take_other(g, e, &work);
        return 0;
    }
    const struct idle_name *name =
        idle_kernel(g->idle, e->process, record_arg(r, KERNEL_NAME_INDEX));
    work.what = (uintptr_t)name->name;
    take_kernel(g, name->class, &work, e->end_ns);
    return 0;
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
    struct finding_charges *charged = g->found->charged;
    for (uint32_t i = 0; i < g->stream_count; i++) {
        const struct found_stream *s = &g->streams[i];
        charged[s->place].ns[FINDING_ONE_STREAM] += s->copies_alone_ns;
        g->devices[s->place].has_copy_stream |= s->copies_alone_ns && !s->has_kernels;
    }
    for (uint32_t i = 0; i < g->device_count; i++) {
        const struct found_device *d = &g->devices[i];
        uint64_t *ns = &charged[i].ns[FINDING_ONE_STREAM];
        *ns = d->has_copy_stream ? 0 : min_of(*ns, g->idle->devices[i].parts[IDLE_COMPUTE]);
    }
}

int finding_gpu_end(void *context)
{
    struct finding_gpu *g = context;
    for (uint32_t i = 0; i < g->stream_count; i++)
        chain_close(g, &g->streams[i]);
    for (uint32_t i = 0; i < g->device_count; i++) {
        const struct idle_device *of = &g->idle->devices[i];
        end_last(g, i, IDLE_COMMUNICATING, NULL);
        end_last(g, i, IDLE_COPYING, NULL);
        if (!has_tensor_cores(g, of->process, of->device))
            g->found->charged[i].ns[FINDING_FP32_GEMM] = 0;
    }
    charge_one_stream(g);
    return 0;
}

/* ---- evidence -------------------------------------------------------------------------------- */

void finding_gpu_want(struct finding_gpu *g)
{
    for (uint32_t i = 0; i < g->found->count; i++)
        if (evidence_is_reported(g->found, &g->found->list[i]))
            work_places_want(&g->wheres, g->found->list[i].place);
    work_places_add_lines(&g->wheres, &g->idle->lines);
}

/* The name for people of an evidence's `what`, perhaps in `text`. */
static const char *name_of(uint64_t what, char text[static GPU_TITLE_BYTES])
{
    const struct kernel_name *name = (const void *)(uintptr_t)what;
    if (what & WHAT_COPY)
        return copy_title(what >> 16 & 0x7fff, what >> 8 & 0xff, what & 0xff, text);
    return name ? name->shown : "kernels without a name";
}

void finding_gpu_name(struct finding_gpu *g)
{
    work_places_name(&g->wheres, &g->idle->lines);
    for (uint32_t i = 0; i < g->found->count; i++) {
        struct evidence *e = &g->found->list[i];
        char text[GPU_TITLE_BYTES];
        const struct work_place *place = work_places_at(&g->wheres, e->place);
        const char *where = place ? place->text : NULL;
        if (e->is.name || !evidence_is_reported(g->found, e)) /* named by its part */
            continue;
        e->is.name = memory_text(name_of(e->what, text));
        e->is.where = memory_text(where);
    }
}
