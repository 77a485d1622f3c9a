/* SPDX-License-Identifier: Apache-2.0 */
#include "page/page_use.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "error.h"
#include "model/nccl_call.h"
#include "record/gpu_record.h"

void page_use_init(struct page_use *u, struct walk *walk, uint64_t begin_ns, uint64_t end_ns)
{
    begin_ns = begin_ns < UINT64_MAX - PAGE_BUCKETS ? begin_ns : UINT64_MAX - PAGE_BUCKETS;
    end_ns = end_ns < UINT64_MAX - PAGE_BUCKETS ? end_ns : UINT64_MAX - PAGE_BUCKETS;
    uint64_t window_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
    *u = (struct page_use){
        .walk = walk, .begin_ns = begin_ns, .bucket_ns = window_ns / PAGE_BUCKETS + 1};
}

void page_use_release(struct page_use *u)
{
    for (uint32_t i = 0; i < u->count; i++)
        free(u->devices[i]);
    free(u->devices);
    key_map_release(&u->places);
    key_map_release(&u->beyond);
}

/* NULL with *error 0: there is no room for it. */
static struct page_device *device_of(struct page_use *u, const struct process *p, uint64_t number,
                                     int *error)
{
    struct key key = {p->index, number, 0};
    uint64_t place = key_map_get(&u->places, key);
    if (place)
        return u->devices[place - 1];
    if (u->count == PAGE_USES_MAX) {
        *error = key_map_set(&u->beyond, key, 1) == GPUPROF_NO_MEMORY ? GPUPROF_NO_MEMORY : 0;
        return NULL;
    }
    struct page_device **devices =
        array_room(u->devices, u->count, &u->capacity, sizeof *devices, 8);
    struct page_device *device = devices ? calloc(1, sizeof *device) : NULL;
    u->devices = devices ? devices : u->devices;
    if (!device || key_map_set(&u->places, key, u->count + 1ull) < 0) {
        free(device);
        *error = GPUPROF_NO_MEMORY;
        return NULL;
    }
    *device = (struct page_device){.process = p, .device = number, .at_ns = u->begin_ns};
    return devices[u->count++] = device;
}

static void spread(struct page_use *u, uint64_t *buckets, uint64_t from_ns, uint64_t to_ns)
{
    while (from_ns < to_ns) {
        uint64_t place = (from_ns - u->begin_ns) / u->bucket_ns;
        uint64_t end_ns = u->begin_ns + (place + 1) * u->bucket_ns;
        if (place >= PAGE_BUCKETS)
            return;
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        buckets[place] += end_ns - from_ns;
        from_ns = end_ns;
    }
}

/* Nothing has begun since device->at_ns. */
static void pass_time(struct page_use *u, struct page_device *device, uint64_t to_ns)
{
    while (device->at_ns < to_ns) {
        unsigned kind = 0;
        while (kind < USE_KINDS && device->until_ns[kind] <= device->at_ns)
            kind++;
        uint64_t end_ns =
            kind < USE_KINDS && device->until_ns[kind] < to_ns ? device->until_ns[kind] : to_ns;
        if (kind < USE_KINDS)
            spread(u, device->ns[kind], device->at_ns, end_ns);
        device->at_ns = end_ns;
    }
}

static int take(void *context, const struct slice *s)
{
    struct page_use *u = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    int error = 0;
    if (!is_stream_work(r->type) || e->begin_ns < u->begin_ns)
        return 0;
    struct page_device *device = device_of(u, e->process, record_arg(r, KERNEL_DEVICE), &error);
    if (!device)
        return error;
    bool is_kernel = r->type == RECORD_KERNEL;
    enum page_use_kind kind = is_kernel || r->type == RECORD_GRAPH ? USE_COMPUTE : USE_COPIES;
    const struct kernel_name *name =
        is_kernel ? walk_kernel(u->walk, e->process, record_arg(r, KERNEL_NAME_INDEX)) : NULL;
    if (name && nccl_is_kernel(name))
        kind = USE_COMMUNICATION;
    pass_time(u, device, e->begin_ns);
    if (device->until_ns[kind] < e->end_ns)
        device->until_ns[kind] = e->end_ns;
    return 0;
}

static int end(void *context)
{
    struct page_use *u = context;
    for (uint32_t i = 0; i < u->count; i++)
        pass_time(u, u->devices[i], u->begin_ns + PAGE_BUCKETS * u->bucket_ns);
    return 0;
}

struct consumer page_use_consumer(struct page_use *u)
{
    return (struct consumer){.context = u, .take = take, .end = end};
}

/* Shares of a bucket in 64 steps, a letter each: a quarter of the bytes that numbers take. */
static void put_shares(const struct page_use *u, const uint64_t *buckets, FILE *out)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    fputs(", \"", out);
    for (unsigned i = 0; i < PAGE_BUCKETS; i++)
        fputc(letters[(uint64_t)((double)buckets[i] / (double)u->bucket_ns * 63 + 0.5)], out);
    fputc('"', out);
}

static uint64_t sum(const uint64_t *buckets)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < PAGE_BUCKETS; i++)
        ns += buckets[i];
    return ns;
}

/* A device is [process, number, then of each kind its time, and of each kind the shares]. */
int page_use_put(const struct page_use *u, struct page_data *d)
{
    fprintf(d->stream,
            "{\"begin_ns\": %" PRIu64 ", \"bucket_ns\": %" PRIu64 ", \"left_out\": %u, "
            "\"devices\": [",
            u->begin_ns, u->bucket_ns, u->beyond.count);
    for (uint32_t i = 0; i < u->count; i++) {
        const struct page_device *device = u->devices[i];
        fprintf(d->stream, "%s[%u, %" PRIu64, i ? ",\n" : "\n", device->process->index,
                device->device);
        for (unsigned kind = 0; kind < USE_KINDS; kind++)
            fprintf(d->stream, ", %" PRIu64, sum(device->ns[kind]));
        for (unsigned kind = 0; kind < USE_KINDS; kind++)
            put_shares(u, device->ns[kind], d->stream);
        fputc(']', d->stream);
    }
    fputs("]}", d->stream);
    return 0;
}
