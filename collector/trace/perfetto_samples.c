/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/track_packets.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "resolve/host_facts.h"

#define NO_STACK_TEXT "[no stack]"
#define NUMBER_NONE   1  /* number of an empty stack, frame and module; others are higher */
#define WEIGHT_MAX    64 /* heavier samples count as this many */

enum reported { REPORTED_CALLSTACK, REPORTED_FRAME, REPORTED_MAPPING };

void perfetto_samples_release(struct perfetto_samples *p)
{
    packet_release(&p->sample);
    packet_release(&p->interned);
    key_map_release(&p->reported);
    free(p->way);
}

/* Returns true the first time, and remembers the value. */
static bool is_new(struct perfetto_samples *p, enum reported what, uint64_t which, uint64_t value)
{
    struct key key = {what, which, 0};
    if (key_map_get(&p->reported, key))
        return false;
    p->failed |= key_map_set(&p->reported, key, value) == GPUPROF_NO_MEMORY;
    return true;
}

static void perfetto_samples_put_text(struct packet *p, unsigned table, uint64_t number,
                                      const char *text)
{
    size_t opened = packet_open(p, table);
    packet_number(p, INTERNED_NUMBER, number);
    packet_bytes(p, INTERNED_TEXT, text, strlen(text));
    packet_close(p, opened);
}

/* Viewers colour frames by mapping; for a Python frame it is the file. */
static uint64_t mapping_of(struct perfetto_samples *p, const struct kernel_name *path)
{
    struct key key = {REPORTED_MAPPING, (uintptr_t)path, 0};
    uint64_t number = key_map_get(&p->reported, key);
    if (number)
        return number;
    number = ++p->mappings;
    (void)is_new(p, REPORTED_MAPPING, (uintptr_t)path, number);
    const char *text = path ? path->shown : "";
    perfetto_samples_put_text(&p->interned, INTERNED_PATH, number, *text == '/' ? text + 1 : text);
    size_t opened = packet_open(&p->interned, INTERNED_MAPPING);
    packet_number(&p->interned, INTERNED_NUMBER, number);
    packet_number(&p->interned, MAPPING_PATH, number);
    packet_close(&p->interned, opened);
    return number;
}

static uint64_t frame_of(struct perfetto_samples *p, uint32_t number)
{
    uint64_t shown = NUMBER_NONE + number;
    if (!is_new(p, REPORTED_FRAME, shown, true))
        return shown;
    const struct shown_frame *f = number ? shown_frame_of(&p->tree->frames, number) : NULL;
    uint64_t mapping =
        mapping_of(p, f ? f->kind == SHOWN_PYTHON || !f->module ? f->file : f->module : NULL);
    perfetto_samples_put_text(&p->interned, INTERNED_FUNCTION, shown, f ? f->label : NO_STACK_TEXT);
    size_t opened = packet_open(&p->interned, INTERNED_FRAME);
    packet_number(&p->interned, INTERNED_NUMBER, shown);
    packet_number(&p->interned, FRAME_FUNCTION, shown);
    packet_number(&p->interned, FRAME_MAPPING, mapping);
    packet_close(&p->interned, opened);
    return shown;
}

/* Writes the frames and modules first, which cannot nest inside. Frames go from the outermost
 * in. */
static uint64_t callstack_of(struct perfetto_samples *p, uint32_t node)
{
    uint64_t shown = NUMBER_NONE + node;
    uint32_t count = 0;
    if (!is_new(p, REPORTED_CALLSTACK, shown, true))
        return shown;
    for (uint32_t n = node; n && !p->failed; n = call_tree_node(p->tree, n)->parent) {
        uint32_t frame = call_tree_node(p->tree, n)->frame;
        p->failed |= ARRAY_PUSH(p->way, count, &frame) < 0;
    }
    for (uint32_t i = 0; i < count || i < !node; i++)
        frame_of(p, node ? p->way[i] : 0);
    size_t opened = packet_open(&p->interned, INTERNED_CALLSTACK);
    packet_number(&p->interned, INTERNED_NUMBER, shown);
    for (uint32_t i = count; i > 0; i--)
        packet_number(&p->interned, CALLSTACK_FRAME, NUMBER_NONE + p->way[i - 1]);
    if (!node)
        packet_number(&p->interned, CALLSTACK_FRAME, NUMBER_NONE);
    packet_close(&p->interned, opened);
    return shown;
}

int perfetto_sample(struct perfetto_samples *p, struct track_packets *t, const struct slice *s,
                    uint64_t ns)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    const struct range *range = walk_range(s, false);
    struct host_sample sample;
    uint32_t node = 0;
    if (!host_sample(s, &sample) || !sample.is_cpu)
        return 0;
    const struct thread *thread = sample.thread ? sample.thread : e->thread;
    uint64_t count = sample.count < WEIGHT_MAX ? sample.count : WEIGHT_MAX;
    int error = p->tree && r->stack_id ? call_tree_stack(p->tree, 0, e->process->index, r->stack_id,
                                                         range ? range->text : NULL, &node)
                                       : 0;
    if (error < 0)
        return error;
    uint64_t callstack = callstack_of(p, node);
    for (; count; count--) {
        packet_number(&p->sample, PERF_PID, e->process->shown_pid);
        packet_number(&p->sample, PERF_TID, thread->shown_tid);
        packet_number(&p->sample, PERF_CALLSTACK, callstack);
        packet_number(&p->sample, PERF_MODE, sample.in_kernel ? MODE_KERNEL : MODE_USER);
        track_packets_event(t, ns, PACKET_SAMPLE, &p->sample, &p->interned);
    }
    return p->failed || p->sample.failed || p->interned.failed ? GPUPROF_NO_MEMORY : 0;
}
