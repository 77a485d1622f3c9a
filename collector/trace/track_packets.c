/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/track_packets.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "resolve/host_facts.h"

#define PART_BYTES     (256u << 10) /* packets compressed together; at most 512 KiB */
#define PART_BYTES_MAX (448u << 10)

void track_packets_init(struct track_packets *t, struct output *out)
{
    *t = (struct track_packets){.out = out,
                                .is_plain = out->zstream,
                                .counter_names = {.plain = true, .text_max = STRING_TABLE_BYTES}};
}

void track_packets_release(struct track_packets *t)
{
    packet_release(&t->part);
    key_map_release(&t->tracks);
    kernel_names_release(&t->counter_names);
}

void track_packets_flush(struct track_packets *t)
{
    static const size_t head = 32;
    size_t used = t->part.used;
    if (!used)
        return;
    t->written += used;
    uint8_t *packed = !t->is_plain && used <= PART_BYTES_MAX ? memory_new(used + head, 1) : NULL;
    size_t length = packed ? zstream_pack(t->part.bytes, used, packed, used) : 0;
    if (length) {
        t->part.used = 0;
        size_t opened = packet_open(&t->part, TRACE_PACKET);
        packet_bytes(&t->part, PACKET_COMPRESSED, packed, length);
        packet_close(&t->part, opened);
    }
    free(packed);
    output_write(t->out, (const char *)t->part.bytes, t->part.used);
    t->part.used = 0;
}

/* Opens a packet in `part`; close it with the returned value. */
static size_t track_packet_open(struct track_packets *t)
{
    size_t opened = packet_open(&t->part, TRACE_PACKET);
    packet_number(&t->part, PACKET_SEQUENCE, 1);
    return opened;
}

static void track_packet_close(struct track_packets *t, size_t opened)
{
    packet_close(&t->part, opened);
    if (t->part.used >= PART_BYTES)
        track_packets_flush(t);
}

static void put_clock(struct packet *p, unsigned id, uint64_t ns)
{
    size_t opened = packet_open(p, SNAPSHOT_CLOCK);
    packet_number(p, CLOCK_ID, id);
    packet_number(p, CLOCK_TIMESTAMP, ns);
    packet_number(p, CLOCK_IS_INCREMENTAL, id == CLOCK_STEPS_ID);
    packet_close(p, opened);
}

void track_packets_begin(struct track_packets *t, uint64_t origin_ns)
{
    struct packet *p = &t->part;
    size_t packet = track_packet_open(t);
    packet_number(p, PACKET_FLAGS, FLAG_CLEARED);
    size_t opened = packet_open(p, PACKET_DEFAULTS);
    packet_number(p, DEFAULTS_CLOCK, CLOCK_STEPS_ID);
    packet_close(p, opened);
    opened = packet_open(p, PACKET_CLOCK_SNAPSHOT);
    put_clock(p, CLOCK_BOOTTIME_ID, 0);
    put_clock(p, CLOCK_REALTIME_ID, origin_ns);
    put_clock(p, CLOCK_STEPS_ID, 0);
    packet_close(p, opened);
    track_packet_close(t, packet);
}

static void put_service(struct track_packets *t, uint64_t ns, unsigned what)
{
    size_t packet = track_packet_open(t);
    packet_number(&t->part, PACKET_CLOCK, CLOCK_BOOTTIME_ID);
    packet_number(&t->part, PACKET_TIMESTAMP, ns);
    size_t opened = packet_open(&t->part, PACKET_SERVICE);
    packet_number(&t->part, what, true);
    packet_close(&t->part, opened);
    track_packet_close(t, packet);
}

void track_packets_show(struct track_packets *t, uint64_t from_ns, uint64_t to_ns)
{
    put_service(t, from_ns, SERVICE_STARTED);
    put_service(t, to_ns, SERVICE_DISABLED);
}

void track_packets_event(struct track_packets *t, uint64_t ns, unsigned field, struct packet *event,
                         struct packet *interned, bool is_end)
{
    size_t opened = track_packet_open(t);
    bool is_late = is_end || ns < t->last_ns;
    packet_number(&t->part, PACKET_TIMESTAMP, is_late ? ns : ns - t->last_ns);
    if (is_late)
        packet_number(&t->part, PACKET_CLOCK, CLOCK_BOOTTIME_ID);
    else
        t->last_ns = ns;
    if (interned->used) {
        packet_bytes(&t->part, PACKET_INTERNED, interned->bytes, interned->used);
        interned->used = 0;
    }
    packet_bytes(&t->part, field, event->bytes, event->used);
    event->used = 0;
    track_packet_close(t, opened);
}

/* ---- tracks -----------------------------------------------------------------------------------
 */

static uint64_t find_track(struct track_packets *t, struct key key, bool *is_new)
{
    uint64_t uuid = key_map_get(&t->tracks, key);
    *is_new = !uuid;
    if (uuid)
        return uuid;
    (void)key_map_set(&t->tracks, key, ++t->track_count);
    return t->track_count;
}

uint64_t perfetto_track(struct track_packets *t, enum track kind, int64_t pid, int64_t tid,
                        unsigned field, struct json_piece text)
{
    struct packet *p = &t->part;
    bool is_new, is_thread = kind == TRACK_OF_THREAD;
    uint64_t uuid = find_track(t, (struct key){kind, (uint64_t)pid, (uint64_t)tid}, &is_new);
    if (!is_new && !text.length)
        return uuid;
    size_t packet = track_packet_open(t);
    size_t opened = packet_open(p, PACKET_TRACK_DESCRIPTOR);
    packet_number(p, TRACK_UUID, uuid);
    size_t row = packet_open(p, is_thread ? TRACK_THREAD : TRACK_PROCESS);
    packet_number(p, is_thread ? THREAD_DESCRIPTOR_PID : PROCESS_PID, (uint64_t)pid);
    if (is_thread)
        packet_number(p, THREAD_DESCRIPTOR_TID, (uint64_t)tid);
    if (text.length)
        packet_string(p, field, text);
    packet_close(p, row);
    packet_close(p, opened);
    track_packet_close(t, packet);
    return uuid;
}

uint64_t perfetto_counter(struct track_packets *t, int64_t pid, struct json_piece name,
                          struct json_piece key)
{
    char text[256];
    bool is_new;
    if (name.length + key.length > sizeof text)
        return 0;
    size_t length = json_unescape(name, text);
    text[length++] = ' ';
    length += json_unescape(key, text + length);
    const struct kernel_name *named = kernel_name_intern(&t->counter_names, text, length);
    uint64_t parent = perfetto_track(t, TRACK_OF_PROCESS, pid, 0, 0, (struct json_piece){0});
    uint64_t uuid =
        find_track(t, (struct key){TRACK_OF_COUNTER, (uint64_t)pid, (uintptr_t)named}, &is_new);
    if (!is_new)
        return uuid;
    struct packet *p = &t->part;
    size_t packet = track_packet_open(t);
    size_t opened = packet_open(p, PACKET_TRACK_DESCRIPTOR);
    packet_number(p, TRACK_UUID, uuid);
    packet_number(p, TRACK_PARENT, parent);
    packet_bytes(p, TRACK_NAME, text, length);
    packet_close(p, packet_open(p, TRACK_COUNTER));
    packet_close(p, opened);
    track_packet_close(t, packet);
    return uuid;
}

/* ---- CPU samples ------------------------------------------------------------------------------
 */

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
static bool is_first(struct perfetto_samples *p, enum reported what, uint64_t which, uint64_t value)
{
    struct key key = {what, which, 0};
    if (key_map_get(&p->reported, key))
        return false;
    (void)key_map_set(&p->reported, key, value);
    return true;
}

static void put_interned_text(struct packet *p, unsigned table, uint64_t number, const char *text)
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
    (void)is_first(p, REPORTED_MAPPING, (uintptr_t)path, number);
    const char *text = path ? path->shown : "";
    put_interned_text(&p->interned, INTERNED_PATH, number, *text == '/' ? text + 1 : text);
    size_t opened = packet_open(&p->interned, INTERNED_MAPPING);
    packet_number(&p->interned, INTERNED_NUMBER, number);
    packet_number(&p->interned, MAPPING_PATH, number);
    packet_close(&p->interned, opened);
    return number;
}

static uint64_t frame_of(struct perfetto_samples *p, uint32_t number)
{
    uint64_t shown = NUMBER_NONE + number;
    if (!is_first(p, REPORTED_FRAME, shown, true))
        return shown;
    const struct shown_frame *f = number ? shown_frame_of(&p->tree->frames, number) : NULL;
    uint64_t mapping =
        mapping_of(p, f ? f->kind == SHOWN_PYTHON || !f->module ? f->file : f->module : NULL);
    put_interned_text(&p->interned, INTERNED_FUNCTION, shown, f ? f->label : NO_STACK_TEXT);
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
    if (!is_first(p, REPORTED_CALLSTACK, shown, true))
        return shown;
    for (uint32_t n = node; n; n = call_tree_node(p->tree, n)->parent)
        ARRAY_PUSH(p->way, count, &call_tree_node(p->tree, n)->frame);
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

void perfetto_sample(struct perfetto_samples *p, struct track_packets *t, const struct slice *s,
                     uint64_t ns)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    const struct host_span *range = walk_range(s);
    struct host_sample sample;
    uint32_t node = 0;
    if (!host_sample(s, &sample) || !sample.is_cpu)
        return;
    const struct thread *thread = sample.thread ? sample.thread : e->thread;
    uint64_t count = sample.count < WEIGHT_MAX ? sample.count : WEIGHT_MAX;
    if (p->tree && r->stack_id)
        node =
            call_tree_stack(p->tree, 0, e->process->index, r->stack_id, range ? range->text : NULL);
    uint64_t callstack = callstack_of(p, node);
    for (; count; count--) {
        packet_number(&p->sample, PERF_PID, e->process->shown_pid);
        packet_number(&p->sample, PERF_TID, thread->shown_tid);
        packet_number(&p->sample, PERF_CALLSTACK, callstack);
        packet_number(&p->sample, PERF_MODE, sample.in_kernel ? MODE_KERNEL : MODE_USER);
        track_packets_event(t, ns, PACKET_SAMPLE, &p->sample, &p->interned, false);
    }
}
