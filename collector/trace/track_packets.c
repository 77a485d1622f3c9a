/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/track_packets.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "resolve/host_facts.h"

#define PART_BYTES     (256u << 10) /* packets compressed together; at most 512 KiB */
#define PART_BYTES_MAX (448u << 10)

/* What has a number, besides enum track. */
enum { NUMBER_COUNTER = TRACK_OF_THREAD + 1, NUMBER_CALLSTACK, NUMBER_FRAME, NUMBER_MAPPING };

void track_packets_release(struct track_packets *t)
{
    packet_release(&t->part);
    packet_release(&t->event);
    packet_release(&t->interned);
    key_map_release(&t->numbers);
    free(t->way);
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

void track_packets_begin(struct track_packets *t, uint64_t origin_ns, uint64_t from_ns,
                         uint64_t to_ns)
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
    if (to_ns > from_ns) {
        put_service(t, from_ns, SERVICE_STARTED);
        put_service(t, to_ns, SERVICE_DISABLED);
    }
}

void track_packets_event(struct track_packets *t, uint64_t ns, unsigned field, bool is_end)
{
    size_t opened = track_packet_open(t);
    bool is_late = is_end || ns < t->last_ns;
    packet_number(&t->part, PACKET_TIMESTAMP, is_late ? ns : ns - t->last_ns);
    if (is_late)
        packet_number(&t->part, PACKET_CLOCK, CLOCK_BOOTTIME_ID);
    else
        t->last_ns = ns;
    if (t->interned.used)
        packet_bytes(&t->part, PACKET_INTERNED, t->interned.bytes, t->interned.used);
    packet_bytes(&t->part, field, t->event.bytes, t->event.used);
    t->interned.used = t->event.used = 0;
    track_packet_close(t, opened);
}

/* ---- tracks -----------------------------------------------------------------------------------
 */

/* Returns the number of what these values identify. */
static uint64_t number_of(struct track_packets *t, unsigned what, uint64_t which, uint64_t more,
                          bool *is_new)
{
    struct key key = {what, which, more};
    uint64_t number = key_map_get(&t->numbers, key);
    *is_new = !number;
    if (number)
        return number;
    key_map_set(&t->numbers, key, ++t->count);
    return t->count;
}

uint64_t perfetto_track(struct track_packets *t, enum track kind, int64_t pid, int64_t tid,
                        unsigned field, struct json_piece text)
{
    struct packet *p = &t->part;
    bool is_new, is_thread = kind == TRACK_OF_THREAD;
    uint64_t uuid = number_of(t, kind, (uint64_t)pid, (uint64_t)tid, &is_new);
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
    uint64_t hash = bytes_hash(0, text, length);
    uint64_t parent = perfetto_track(t, TRACK_OF_PROCESS, pid, 0, 0, (struct json_piece){0});
    uint64_t uuid = number_of(t, NUMBER_COUNTER, (uint64_t)pid, hash, &is_new);
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
#define WEIGHT_MAX    64 /* heavier samples count as this many */

static void put_interned_text(struct packet *p, unsigned table, uint64_t number, const char *text)
{
    size_t opened = packet_open(p, table);
    packet_number(p, INTERNED_NUMBER, number);
    packet_bytes(p, INTERNED_TEXT, text, strlen(text));
    packet_close(p, opened);
}

/* Viewers colour frames by mapping; for a Python frame it is the file. */
static uint64_t mapping_of(struct track_packets *t, const struct kernel_name *path)
{
    struct packet *p = &t->interned;
    bool is_new;
    uint64_t number = number_of(t, NUMBER_MAPPING, (uintptr_t)path, 0, &is_new);
    if (!is_new)
        return number;
    const char *text = path ? path->shown : "";
    put_interned_text(p, INTERNED_PATH, number, *text == '/' ? text + 1 : text);
    size_t opened = packet_open(p, INTERNED_MAPPING);
    packet_number(p, INTERNED_NUMBER, number);
    packet_number(p, MAPPING_PATH, number);
    packet_close(p, opened);
    return number;
}

static uint64_t frame_of(struct track_packets *t, uint32_t frame)
{
    struct packet *p = &t->interned;
    const struct shown_frame *f = frame ? shown_frame_of(&t->tree->frames, frame) : NULL;
    bool is_new;
    uint64_t number = number_of(t, NUMBER_FRAME, frame, 0, &is_new);
    if (!is_new)
        return number;
    uint64_t mapping =
        mapping_of(t, f ? f->kind == SHOWN_PYTHON || !f->module ? f->file : f->module : NULL);
    put_interned_text(p, INTERNED_FUNCTION, number, f ? f->label : NO_STACK_TEXT);
    size_t opened = packet_open(p, INTERNED_FRAME);
    packet_number(p, INTERNED_NUMBER, number);
    packet_number(p, FRAME_FUNCTION, number);
    packet_number(p, FRAME_MAPPING, mapping);
    packet_close(p, opened);
    return number;
}

/* Writes the frames and modules first, which cannot nest inside. Frames go from the outermost
 * in. */
static uint64_t callstack_of(struct track_packets *t, uint32_t node)
{
    struct packet *p = &t->interned;
    uint32_t count = 0;
    bool is_new;
    uint64_t number = number_of(t, NUMBER_CALLSTACK, node, 0, &is_new);
    if (!is_new)
        return number;
    do {
        const struct tree_node *n = node ? call_tree_node(t->tree, node) : NULL;
        uint64_t frame = frame_of(t, n ? n->frame : 0);
        ARRAY_PUSH(t->way, count, &frame);
        node = n ? n->parent : 0;
    } while (node);
    size_t opened = packet_open(p, INTERNED_CALLSTACK);
    packet_number(p, INTERNED_NUMBER, number);
    while (count)
        packet_number(p, CALLSTACK_FRAME, t->way[--count]);
    packet_close(p, opened);
    return number;
}

void perfetto_sample(struct track_packets *t, const struct slice *s, uint64_t ns)
{
    const struct event *e = &s->event;
    const struct host_span *range = walk_range(s);
    uint32_t stack = t->tree ? e->record->stack_id : 0, node = 0;
    struct host_sample sample;
    if (!host_sample(s, &sample) || !sample.is_cpu)
        return;
    const struct thread *thread = sample.thread ? sample.thread : e->thread;
    if (stack)
        node = call_tree_stack(t->tree, 0, e->process->index, stack, range ? range->text : NULL);
    uint64_t callstack = callstack_of(t, node);
    for (uint64_t count = min_of(sample.count, WEIGHT_MAX); count; count--) {
        packet_number(&t->event, PERF_PID, e->process->shown_pid);
        packet_number(&t->event, PERF_TID, thread->shown_tid);
        packet_number(&t->event, PERF_CALLSTACK, callstack);
        packet_number(&t->event, PERF_MODE, sample.in_kernel ? MODE_KERNEL : MODE_USER);
        track_packets_event(t, ns, PACKET_SAMPLE, false);
    }
}
