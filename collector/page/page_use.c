/* SPDX-License-Identifier: Apache-2.0 */
#include "page/page.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "record/gpu_record.h"
#include "resolve/nccl_call.h"

#define SPANS_A_STEP 4 /* so many spans show a step well */

void page_use_init(struct page_use *u, struct walk *walk, struct idle *idle, uint64_t begin_ns,
                   uint64_t end_ns, uint64_t step_ns)
{
    uint64_t window_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
    uint64_t bucket_ns = window_ns / PAGE_BUCKETS + 1;
    if (step_ns && step_ns / SPANS_A_STEP <= bucket_ns) /* uneven parts would look like waves */
        bucket_ns = (bucket_ns + step_ns - 1) / step_ns * step_ns;
    uint64_t spans = window_ns ? (window_ns - 1) / bucket_ns + 1 : 1;
    *u = (struct page_use){.walk = walk,
                           .idle = idle,
                           .begin_ns = begin_ns,
                           .window_ns = window_ns,
                           .bucket_ns = bucket_ns,
                           .spans = (unsigned)spans};
}

void page_use_release(struct page_use *u)
{
    free(u->devices);
    key_map_release(&u->places);
}

/* Returns the device. NULL: there is no room for it. */
static struct page_device *page_use_device_of(struct page_use *u, const struct process *p,
                                              uint64_t number)
{
    struct key key = {p->index, number, 0};
    uint32_t before = u->count;
    uint32_t place = KEY_MAP_ITEM(&u->places, key, u->devices, u->count, PAGE_USES_MAX, NULL);
    if (!place)
        return NULL;
    struct page_device *device = &u->devices[place - 1];
    if (u->count > before)
        *device = (struct page_device){.process = p, .device = number, .at_ns = u->begin_ns};
    return device;
}

/* Adds the time until `to_ns` to the spans; nothing has begun since device->at_ns. */
static void page_use_pass_time(struct page_use *u, struct page_device *device, uint64_t to_ns)
{
    while (device->at_ns < to_ns) {
        uint64_t span = (device->at_ns - u->begin_ns) / u->bucket_ns, end_ns = to_ns;
        unsigned kind = 0;
        while (kind < USE_KINDS && device->until_ns[kind] <= device->at_ns)
            kind++;
        if (kind < USE_KINDS && span < u->spans) {
            end_ns = min_of(end_ns, device->until_ns[kind]);
            end_ns = min_of(end_ns, u->begin_ns + (span + 1) * u->bucket_ns);
            device->ns[kind][span] += end_ns - device->at_ns;
        }
        device->at_ns = end_ns;
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int page_use_take(void *context, const struct slice *s)
{
    struct page_use *u = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    if (!is_stream_work(r->type) || e->begin_ns < u->begin_ns)
        return 0;
    struct page_device *device = page_use_device_of(u, e->process, record_arg(r, KERNEL_DEVICE));
    if (!device)
        return 0;
    bool is_kernel = r->type == RECORD_KERNEL;
    enum page_use_kind kind = is_kernel || r->type == RECORD_GRAPH ? USE_COMPUTE : USE_COPIES;
    const struct kernel_name *name =
        is_kernel ? walk_kernel(u->walk, e->process, record_arg(r, KERNEL_NAME_INDEX)) : NULL;
    if (name && nccl_is_kernel(name))
        kind = USE_COMMUNICATION;
    page_use_pass_time(u, device, e->begin_ns);
    device->until_ns[kind] = max_of(device->until_ns[kind], e->end_ns);
    return 0;
}

static int compare_devices(const void *left, const void *right)
{
    const struct page_device *a = left, *b = right;
    return ORDER(a->process->index, b->process->index) ?: ORDER(a->device, b->device);
}

/* Separates waits for other ranks from communication, and finds the run time. */
static void take_waits(struct page_use *u, struct page_device *device)
{
    struct idle *idle = u->idle;
    uint32_t place = 0;
    uint64_t next = 0;
    struct idle_wait wait;
    while (idle && place < idle->device_count &&
           (idle->devices[place].process != device->process ||
            idle->devices[place].device != device->device))
        place++;
    if (!idle || place == idle->device_count)
        return;
    const struct idle_device *of = &idle->devices[place];
    device->run_ns = of->end_ns - of->begin_ns - of->causes[IDLE_START_UP] - of->stopped_ns;
    for (uint64_t i = 0; i < u->spans; i++) {
        uint64_t *all_ns = &device->ns[USE_COMMUNICATION][i], ns = 0;
        uint64_t at_ns = u->begin_ns + i * u->bucket_ns, end_ns = at_ns + u->bucket_ns;
        for (; idle_wait_at(idle, place, next, &wait); next++) {
            ns += overlap_ns(wait.begin_ns, wait.end_ns, at_ns, end_ns);
            if (wait.end_ns > end_ns)
                break;
        }
        device->ns[USE_WAITS][i] = min_of(ns, *all_ns);
        *all_ns -= device->ns[USE_WAITS][i];
    }
}

/* Finishes the counts and sorts devices by rank. */
static int page_use_end(void *context)
{
    struct page_use *u = context;
    ARRAY_SORT(u->devices, u->count, compare_devices);
    for (uint32_t i = 0; i < u->count; i++) {
        page_use_pass_time(u, &u->devices[i], u->begin_ns + u->spans * u->bucket_ns);
        take_waits(u, &u->devices[i]);
    }
    return 0;
}

struct consumer page_use_consumer(struct page_use *u)
{
    return (struct consumer){.context = u, .take = page_use_take, .end = page_use_end};
}

/* Writes shares of a bucket in 64 levels. */
static void put_shares(const struct page_use *u, const uint64_t *buckets, FILE *out)
{
    fputs(", \"", out);
    for (unsigned i = 0; i < u->spans; i++) {
        uint64_t left_ns = u->window_ns - i * u->bucket_ns; /* the last bucket may be shorter */
        uint64_t ns = left_ns ? min_of(left_ns, u->bucket_ns) : u->bucket_ns;
        double share = (double)min_of(buckets[i], ns) / (double)ns;
        fputc(PAGE_LETTERS[(unsigned)(share * 63 + 0.5)], out);
    }
    fputc('"', out);
}

static uint64_t sum(const uint64_t *buckets)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < PAGE_BUCKETS; i++)
        ns += buckets[i];
    return ns;
}

/* Writes the devices: [process, number, time of each kind, shares of each kind, time after
 * start-up]. */
void page_put_use(const struct page *p, struct page_data *d)
{
    const struct page_use *u = &p->use;
    uint64_t origin_ns = u->walk->survey.origin_ns;
    bool is_full = u->count == PAGE_USES_MAX && u->idle && u->idle->device_count > u->count;
    page_printf(d,
                "{\"begin_ns\": %" PRIu64 ", \"from_ns\": %" PRIu64 ", \"window_ns\": %" PRIu64
                ", \"bucket_ns\": %" PRIu64 ", \"spans\": %u, \"left_out\": %u, \"devices\": [",
                u->begin_ns, u->begin_ns > origin_ns ? u->begin_ns - origin_ns : 0, u->window_ns,
                u->bucket_ns, u->spans, is_full ? u->idle->device_count - u->count : 0);
    for (uint32_t i = 0; i < u->count; i++) {
        const struct page_device *device = &u->devices[i];
        fprintf(d->stream, "%s[%u, %" PRIu64, i ? ",\n" : "\n", device->process->index,
                device->device);
        for (unsigned kind = 0; kind < USE_KINDS; kind++)
            fprintf(d->stream, ", %" PRIu64, sum(device->ns[kind]));
        for (unsigned kind = 0; kind < USE_KINDS; kind++)
            put_shares(u, device->ns[kind], d->stream);
        fprintf(d->stream, ", %" PRIu64 "]", device->run_ns);
    }
    fputs("]}", d->stream);
}
