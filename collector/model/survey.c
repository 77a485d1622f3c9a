/* SPDX-License-Identifier: Apache-2.0 */
#include "model/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/message.h"
#include "error.h"
#include "record/gpu_record.h"

/* A range that opens gets a number, one that closes its end. */
static int take_range(struct survey *s, struct ranges *ranges, const struct event *e)
{
    struct range *range = NULL;
    int error = 0;
    /* What is around it must be asked for before it is there itself. */
    const struct range *around = ranges_innermost(ranges, e->thread, false);
    uint32_t parent = around ? around->node : 0;
    int change = ranges_take(ranges, e, &range);
    if (change == RANGE_OPENED) {
        if (s->nodes.count >= UINT32_MAX - 1)
            return 0;
        struct range_node node = {.text = range->text,
                                  .begin_ns = range->begin_ns,
                                  .end_ns = UINT64_MAX,
                                  .work_begin_ns = UINT64_MAX,
                                  .parent = parent,
                                  .sequence = range->sequence};
        error = spool_append(&s->nodes, &node);
        range->node = (uint32_t)s->nodes.count;
    } else if (change == RANGE_CLOSED && range->node) {
        struct range_node *node = spool_at(&s->nodes, range->node - 1u, true, &error);
        if (node)
            node->end_ns = range->end_ns;
    }
    return change < 0 ? change : error;
}

static int take_call(struct survey *s, struct ranges *ranges, const struct event *e)
{
    const struct record *r = e->record;
    if (r->flags & RECORD_OPEN && e->end_ns - e->begin_ns >= SURVEY_HANG_NS &&
        (e->function->class == API_SYNC || e->function->class == API_COPY))
        s->has_hung = s->is_hung[e->thread->index] = true;
    bool launches = e->function->launches && r->result == 0 &&
                    !(r->flags & (RECORD_CAPTURED | RECORD_OPEN | RECORD_STALE));
    if (!r->correlation) {
        s->untied[e->process->index] += launches && !(r->flags & RECORD_NESTED);
        return 0;
    }
    const struct range *range = ranges_innermost(ranges, e->thread, false);
    struct correlated_call call = {
        .process = e->process->index,
        .id = r->correlation,
        .begin_ns = e->begin_ns,
        .end_ns = e->end_ns,
        .thread = e->thread->index,
        .function = e->function->index,
        .range = range ? range->node : 0,
        .stack = r->stack_id,
        .flags = (uint16_t)((launches ? CORRELATION_LAUNCH : 0) |
                            (r->flags & RECORD_NESTED ? CORRELATION_NESTED : 0)),
    };
    return correlation_add(&s->calls, &call);
}

static int take_device(struct survey *s, const struct event *e)
{
    const struct record *r = e->record;
    struct key key = {e->process->index, record_arg(r, DEVICE_DEVICE), 0};
    if (s->device_count == SURVEY_DEVICES_MAX || key_map_get(&s->indexes, key))
        return 0;
    struct surveyed_device *devices =
        array_room(s->devices, s->device_count, &s->device_capacity, sizeof *devices, 16);
    if (!devices)
        return GPUPROF_NO_MEMORY;
    s->devices = devices;
    struct surveyed_device *d = &devices[s->device_count];
    *d = (struct surveyed_device){
        .process = e->process->index,
        .limits = {.device = record_arg(r, DEVICE_DEVICE),
                   .major = record_arg(r, DEVICE_MAJOR),
                   .minor = record_arg(r, DEVICE_MINOR),
                   .multiprocessors = record_arg(r, DEVICE_MULTIPROCESSORS),
                   .threads_max = record_arg(r, DEVICE_THREADS_MAX),
                   .blocks_max = record_arg(r, DEVICE_BLOCKS_MAX),
                   .registers_max = record_arg(r, DEVICE_REGISTERS_MAX),
                   .shared_max = record_arg(r, DEVICE_SHARED_MAX),
                   .shared_block_max = record_arg(r, DEVICE_SHARED_BLOCK_MAX),
                   .memory = record_arg(r, DEVICE_MEMORY),
                   .warp = record_arg(r, DEVICE_WARP)},
        .uuid_high = record_arg(r, DEVICE_UUID_HIGH),
        .uuid_low = record_arg(r, DEVICE_UUID_LOW),
    };
    size_t length = r->byte_count < sizeof d->name ? r->byte_count : sizeof d->name - 1;
    if (length)
        memcpy(d->name, r->bytes, length);
    return key_map_set(&s->indexes, key, ++s->device_count);
}

/* Beyond so many, launches that a pause met count as missing. */
static int take_pause(struct survey *s, const struct event *e)
{
    if (s->pause_count == SURVEY_PAUSES_MAX)
        return 0;
    struct surveyed_pause *pauses =
        array_room(s->pauses, s->pause_count, &s->pause_capacity, sizeof *pauses, 16);
    if (!pauses)
        return GPUPROF_NO_MEMORY;
    s->pauses = pauses;
    pauses[s->pause_count] = (struct surveyed_pause){.process = e->process->index,
                                                     .order = s->pause_count,
                                                     .begins = record_arg(e->record, 0),
                                                     .at_ns = e->begin_ns};
    s->pause_count++;
    return 0;
}

static int take(struct survey *s, struct ranges *ranges, const struct event *e)
{
    const struct record *r = e->record;
    int error = 0;
    switch (r->type) {
    case RECORD_CALL: return take_call(s, ranges, e);
    case RECORD_KERNEL_NAME:
        if (r->bytes && r->arg_count >= 1)
            error = kernel_name_set(&s->rec->reader.names, &e->process->gpu_names, r->args[0],
                                    r->bytes, r->byte_count);
        return error;
    case RECORD_DEVICE: return take_device(s, e);
    case RECORD_CONTEXT: {
        struct key key = {e->process->index, record_arg(r, CONTEXT_CONTEXT), 0};
        error = key_map_set(&s->contexts, key, (uint32_t)record_arg(r, CONTEXT_DEVICE) + 1ull);
        return error == GPUPROF_NO_MEMORY ? error : 0;
    }
    case RECORD_LINK:
        return correlation_link(&s->calls, e->process->index, r->correlation,
                                (uint32_t)record_arg(r, 0), e->begin_ns);
    case RECORD_MODULE:
    case RECORD_PYTHON:
    case RECORD_STACK: return stack_table_take(&s->stacks, e);
    case RECORD_PAUSE: return take_pause(s, e);
    case RECORD_STEP: s->stepped[e->process->index] = true; return 0;
    default: return take_range(s, ranges, e);
    }
}

static int compare_pauses(const void *left, const void *right)
{
    const struct surveyed_pause *a = left;
    const struct surveyed_pause *b = right;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static int walk(struct survey *s, struct timeline *timeline)
{
    struct ranges ranges;
    struct event event;
    int more = ranges_init(&ranges, s->rec, NULL);
    while (more >= 0 && (more = timeline_next(timeline, &event)) > 0) {
        if (!s->origin_ns && event_is_visible(event.record->type))
            s->origin_ns = event.begin_ns;
        int error = take(s, &ranges, &event);
        more = error < 0 ? error : more;
    }
    ranges_release(&ranges);
    if (s->pause_count)
        qsort(s->pauses, s->pause_count, sizeof *s->pauses, compare_pauses);
    return more < 0 ? more : correlation_finish(&s->calls);
}

int survey_make(struct survey *s, struct recording *rec)
{
    *s = (struct survey){.rec = rec};
    correlation_init(&s->calls);
    spool_init(&s->nodes, sizeof(struct range_node));
    s->stepped = calloc(rec->count + 1u, sizeof *s->stepped);
    s->untied = calloc(rec->count + 1u, sizeof *s->untied);
    s->is_hung = calloc(rec->thread_count + 1u, sizeof *s->is_hung);
    struct losses *before = calloc(rec->count + 1u, sizeof *before);
    struct timeline *timeline = timeline_create(rec, OPEN_BYTES_MAX);
    int error = s->stepped && s->untied && s->is_hung && before && timeline ? 0 : GPUPROF_NO_MEMORY;
    stack_table_init(&s->stacks, recording_bytes(rec));
    for (uint32_t i = 0; error == 0 && i < rec->count; i++)
        before[i] = rec->processes[i]->losses;
    if (error == 0)
        error = walk(s, timeline);
    if (error < 0)
        message("%s: %s", timeline ? timeline_path(timeline) : "gpuprof-collector",
                error == GPUPROF_IO ? strerror(errno) : gpuprof_error_text(error));
    /* Damage will be met and counted again, and handles will get their names again. */
    for (uint32_t i = 0; before && i < rec->count; i++) {
        rec->processes[i]->losses = before[i];
        kernel_handles_release(&rec->reader.names, &rec->processes[i]->kernels);
    }
    timeline_free(timeline);
    free(before);
    return error;
}

void survey_release(struct survey *s)
{
    correlation_release(&s->calls);
    spool_release(&s->nodes);
    stack_table_release(&s->stacks);
    key_map_release(&s->contexts);
    key_map_release(&s->indexes);
    free(s->devices);
    free(s->pauses);
    free(s->stepped);
    free(s->untied);
    free(s->is_hung);
}

const struct surveyed_device *survey_device(const struct survey *s, const struct process *p,
                                            uint64_t device)
{
    uint64_t place = key_map_get(&s->indexes, (struct key){p->index, device, 0});
    return place ? &s->devices[place - 1] : NULL;
}

uint64_t survey_context_device(const struct survey *s, const struct process *p, uint64_t context)
{
    uint64_t value = key_map_get(&s->contexts, (struct key){p->index, context, 0});
    return value ? value - 1 : 0;
}

const struct range_node *survey_range(struct survey *s, uint32_t number, int *error)
{
    return spool_at(&s->nodes, number - 1u, false, error);
}

int survey_project(struct survey *s, const struct correlated_call *call, uint64_t begin_ns,
                   uint64_t end_ns)
{
    int error = 0;
    for (uint32_t number = call->range; number;) {
        struct range_node *node = spool_at(&s->nodes, number - 1u, true, &error);
        if (!node)
            return error;
        number = node->parent;
        if (node->end_ns <= call->begin_ns) /* a free one, over before one that began inside it */
            continue;
        if (node->work_begin_ns > begin_ns)
            node->work_begin_ns = begin_ns;
        if (node->work_end_ns < end_ns)
            node->work_end_ns = end_ns;
    }
    return 0;
}

/* The first of the pauses of that process, or where it would be. */
static uint32_t first_pause(const struct survey *s, uint32_t process)
{
    uint32_t low = 0;
    for (uint32_t high = s->pause_count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (s->pauses[middle].process < process)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* When `process` recorded nothing: *gaps is the caller's to free. How many, or an error. */
static int64_t find_gaps(const struct survey *s, uint32_t process, struct correlation_gap **gaps)
{
    uint32_t count = 0;
    uint32_t first = first_pause(s, process), end = first;
    while (end < s->pause_count && s->pauses[end].process == process)
        end++;
    *gaps = calloc(end - first + 1u, sizeof **gaps);
    if (!*gaps)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = first; i < end; i++) {
        const struct surveyed_pause *p = &s->pauses[i];
        bool is_open = count && (*gaps)[count - 1].end_ns == UINT64_MAX;
        if (p->begins == is_open)
            continue;
        if (is_open)
            (*gaps)[count - 1].end_ns = p->at_ns;
        else
            (*gaps)[count++] = (struct correlation_gap){p->at_ns, UINT64_MAX};
    }
    return count;
}

int survey_tell(struct survey *s, struct process *p)
{
    uint64_t unmatched = 0;
    struct correlation_gap *gaps;
    struct correlation_hangs hangs = {.is_hung = s->is_hung};
    if (!process_wants_kernels(p))
        return 0;
    int64_t count = find_gaps(s, p->index, &gaps);
    if (count < 0)
        return (int)count;
    int error = 0;
    if (s->has_hung) {
        hangs.last_ns = calloc(s->rec->thread_count + 1u, sizeof *hangs.last_ns);
        error = hangs.last_ns ? 0 : GPUPROF_NO_MEMORY;
    }
    if (error == 0)
        error = correlation_unmatched(&s->calls, p->index, gaps, (uint32_t)count,
                                      hangs.last_ns ? &hangs : NULL, &unmatched,
                                      &p->losses.gpu_pending);
    free(gaps);
    free(hangs.last_ns);
    p->losses.gpu_untied = s->untied[p->index];
    process_count_unmatched(p, unmatched);
    return error;
}

const struct kernel_name *survey_kernel(const struct process *p, uint64_t name)
{
    return name ? kernel_name_of(&p->gpu_names, name) : NULL;
}
