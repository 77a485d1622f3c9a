/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a snapshot in Python's pickle format, protocol 2, with opcodes that the reader of
 * PyTorch's viewer knows. Repeated texts, frames and lists of frames get a number in the memo, and
 * then take two bytes or five. Errors of the file stick to the output.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "memory/snapshot.h"
#include "resolve/call_tree.h"

#define NS_PER_US       1000
#define NOBODY          UINT32_MAX
#define SMALL_BYTES_MAX (2u << 20) /* maximum of PyTorch's segments for small blocks */

/* Named as in Python's pickletools. An item is added to its list or dictionary when complete. */
enum opcode {
    PROTO = 0x80,
    STOP = '.',
    EMPTY_DICT = '}',
    SETITEM = 's',
    EMPTY_LIST = ']',
    APPEND = 'a',
    BINUNICODE = 'X',
    BININT1 = 'K',
    LONG1 = 0x8a,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    TUPLE2 = 0x86,
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    BINGET = 'h',
    LONG_BINGET = 'j'
};

/* Repeated items: fixed texts, by address; frames, by number; and the frames of an owner. */
enum known { KNOWN_TEXT, KNOWN_FRAME, KNOWN_ORIGIN };

struct writing {
    struct snapshot *snapshot;
    struct call_tree *tree; /* a view */
    struct output *out;
    struct key_map known; /* (enum known, which) -> number in the memo + 1 */
    uint32_t memo_count;
    uint64_t allocated; /* bytes so far on the device being written */
    int error;
};

/* ---- values ---------------------------------------------------------------------------------- */

/* Writes the lowest `bytes` bytes of the number, lowest first. */
static void put_raw(struct writing *w, uint64_t number, unsigned bytes)
{
    char *out = output_room(w->out, sizeof number);
    for (; bytes--; number >>= 8)
        *out++ = (char)(number & 0xff);
    output_advance(w->out, out);
}

static void put(struct writing *w, enum opcode opcode)
{
    put_raw(w, opcode, 1);
}

/* LONG1 is signed. */
static void put_number(struct writing *w, uint64_t number)
{
    unsigned bytes = 2;
    if (number <= UINT8_MAX) {
        put(w, BININT1);
        put_raw(w, number, 1);
        return;
    }
    while (bytes < 8 && number >> (8 * bytes - 1))
        bytes++;
    put(w, LONG1);
    put_raw(w, bytes, 1);
    put_raw(w, number < INT64_MAX ? number : INT64_MAX, bytes);
}

/* Writes a text, as valid UTF-8. */
static void put_text(struct writing *w, const char *text)
{
    char *clean = json_line(text);
    size_t length = clean ? strlen(clean) : 0;
    put(w, BINUNICODE);
    put_raw(w, length, 4);
    if (clean)
        output_write(w->out, clean, length);
    else
        w->error = GPUPROF_NO_MEMORY;
    free(clean);
}

/* Writes an opcode about an item of the memo, in its short form if possible. */
static void put_memo(struct writing *w, enum opcode opcode, enum opcode long_one, uint32_t number)
{
    put(w, number <= UINT8_MAX ? opcode : long_one);
    put_raw(w, number, number <= UINT8_MAX ? 1 : 4);
}

/* Writes a remembered item again; false if the caller must write and remember it. */
static bool put_again(struct writing *w, enum known what, uint64_t which)
{
    uint64_t known = key_map_get(&w->known, (struct key){what, which, 0});
    if (known)
        put_memo(w, BINGET, LONG_BINGET, (uint32_t)(known - 1));
    return known;
}

/* Remembers the last item; if the map is full, it is written again each time. */
static void remember(struct writing *w, enum known what, uint64_t which)
{
    put_memo(w, BINPUT, LONG_BINPUT, w->memo_count++);
    if (key_map_set(&w->known, (struct key){what, which, 0}, w->memo_count) == GPUPROF_NO_MEMORY)
        w->error = GPUPROF_NO_MEMORY;
}

/* Writes a text of ours, for example the key of a dictionary. */
static void put_own(struct writing *w, const char *text)
{
    if (put_again(w, KNOWN_TEXT, (uintptr_t)text))
        return;
    put_text(w, text);
    remember(w, KNOWN_TEXT, (uintptr_t)text);
}

static void set_number(struct writing *w, const char *key, uint64_t number)
{
    put_own(w, key);
    put_number(w, number);
    put(w, SETITEM);
}

static void set_own(struct writing *w, const char *key, const char *value)
{
    put_own(w, key);
    put_own(w, value);
    put(w, SETITEM);
}

static void set_text(struct writing *w, const char *key, const char *value)
{
    put_own(w, key);
    put_text(w, value);
    put(w, SETITEM);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void put_frame(struct writing *w, const char *name, const char *file, uint64_t line)
{
    put(w, EMPTY_DICT);
    set_text(w, "name", name);
    set_text(w, "filename", file);
    set_number(w, "line", line);
}

static void add_frame(struct writing *w, const char *name)
{
    put_frame(w, name, "", 0);
    put(w, APPEND);
}

/* A number without a file is an offset, which is in the label. */
static void add_shown(struct writing *w, uint32_t number)
{
    const struct shown_frame *f = shown_frame_of(&w->tree->frames, number);
    if (!put_again(w, KNOWN_FRAME, number)) {
        put_frame(w, f->name ? f->name->shown : f->label,
                  f->file     ? f->file->raw
                  : f->module ? f->module->raw
                              : "",
                  f->file ? f->line : 0);
        remember(w, KNOWN_FRAME, number);
    }
    put(w, APPEND);
}

static void add_stack(struct writing *w, const struct memory_origin *o)
{
    uint32_t node = 0;
    if (o->function)
        add_frame(w, o->function->name);
    int error = call_tree_stack(w->tree, 0, o->process, o->stack, NULL, &node);
    w->error = error < 0 ? error : w->error;
    for (; node; node = call_tree_node(w->tree, node)->parent)
        if (call_tree_node(w->tree, node)->frame)
            add_shown(w, call_tree_node(w->tree, node)->frame);
}

/* Sets the owner's frames, innermost first. */
static void set_frames(struct writing *w, uint32_t origin)
{
    struct memory_report *m = w->snapshot->report;
    put_own(w, "frames");
    if (!put_again(w, KNOWN_ORIGIN, origin)) {
        put(w, EMPTY_LIST);
        if (origin == NOBODY) {
            ; /* the list stays empty */
        } else if (origin && m->origins.list[origin].by == MEMORY_BY_STACK) {
            add_stack(w, &m->origins.list[origin]);
        } else {
            char *text = memory_owner_text(m, origin);
            add_frame(w, text ? text : "");
            w->error = text ? w->error : GPUPROF_NO_MEMORY;
            free(text);
        }
        remember(w, KNOWN_ORIGIN, origin);
    }
    put(w, SETITEM);
}

/* ---- history --------------------------------------------------------------------------------- */

static void add_event(struct writing *w, const char *action, const struct snapshot_item *item)
{
    bool is_oom = item->action == SNAPSHOT_OOM || item->action == SNAPSHOT_REFUSED;
    put(w, EMPTY_DICT);
    set_own(w, "action", action);
    set_number(w, is_oom ? "device_free" : "addr", item->address);
    set_number(w, "size", item->bytes);
    set_number(w, "stream", 0);
    set_number(w, "time_us", item->at_ns / NS_PER_US);
    set_frames(w, item->origin);
    put(w, APPEND);
}

static void add_alloc(struct writing *w, const struct snapshot_item *item)
{
    add_event(w, "alloc", item);
    w->allocated += item->bytes;
}

/* Like PyTorch: a block without other streams is free as soon as requested. */
static void add_free(struct writing *w, const struct snapshot_item *item)
{
    add_event(w, "free_requested", item);
    add_event(w, "free_completed", item);
    w->allocated -= item->bytes;
}

static bool is_used(const struct snapshot_device *d, uint32_t segment)
{
    return segment && d->used[segment];
}

static void add_item(struct writing *w, const struct snapshot_device *d,
                     const struct snapshot_item *item)
{
    bool is_mapped = item->action == SNAPSHOT_MAPPED || item->action == SNAPSHOT_UNMAPPED;
    bool is_own_block = is_mapped ? !d->maps_blocks : !is_used(d, item->segment);
    switch ((enum snapshot_action)item->action) {
    case SNAPSHOT_SEGMENT_GOT:
    case SNAPSHOT_MAPPED:
        add_event(w, is_mapped ? "segment_map" : "segment_alloc", item);
        if (is_own_block)
            add_alloc(w, item);
        break;
    case SNAPSHOT_SEGMENT_GONE:
    case SNAPSHOT_UNMAPPED:
        if (is_own_block)
            add_free(w, item);
        add_event(w, is_mapped ? "segment_unmap" : "segment_free", item);
        break;
    case SNAPSHOT_BLOCK_GOT: add_alloc(w, item); break;
    case SNAPSHOT_BLOCK_GONE: add_free(w, item); break;
    case SNAPSHOT_REFUSED:
        if (d->has_blocks)
            break;
        /* fall through */
    case SNAPSHOT_OOM: add_event(w, "oom", item); break;
    }
}

/* Adds the device's list of actions, which ends with the snapshot itself. */
static void add_device(struct writing *w, struct snapshot_device *d)
{
    const struct memory_report *m = w->snapshot->report;
    w->allocated = 0;
    put(w, EMPTY_LIST);
    for (uint64_t i = 0; w->error == 0 && i < d->items.count; i++)
        add_item(w, d, spool_at(&d->items, i, false));
    const struct snapshot_item end = {.bytes = w->allocated,
                                      .at_ns = m->processes[w->snapshot->process->index].last_ns,
                                      .origin = NOBODY};
    if (d->is_used)
        add_event(w, "snapshot", &end);
    put(w, APPEND);
}

static void set_devices(struct writing *w)
{
    unsigned count = SNAPSHOT_DEVICES_MAX;
    while (count && !w->snapshot->devices[count - 1].is_used)
        count--;
    put_own(w, "device_traces");
    put(w, EMPTY_LIST);
    for (unsigned i = 0; i < count; i++)
        add_device(w, &w->snapshot->devices[i]);
    put(w, SETITEM);
}

/* ---- state at the end ------------------------------------------------------------------------ */

/* Adds a block in use or, of NOBODY, a gap. Returns the bytes in use. */
static uint64_t add_block(struct writing *w, uint64_t address, uint64_t bytes, uint32_t origin)
{
    uint64_t used = origin == NOBODY ? 0 : bytes;
    if (!bytes)
        return 0;
    put(w, EMPTY_DICT);
    set_number(w, "address", address);
    set_number(w, "size", bytes);
    set_number(w, "requested_size", used);
    set_own(w, "state", used ? "active_allocated" : "inactive");
    if (used)
        set_frames(w, origin);
    put(w, APPEND);
    return used;
}

static uint32_t origin_of(const struct writing *w, const struct layout_range *range)
{
    return w->snapshot->ledger.blocks[range->place].owner;
}

/* True if a block has ever been in the segment. */
static bool was_used(const struct writing *w, const struct layout_range *s)
{
    const struct snapshot_device *d = snapshot_device(w->snapshot, s->device);
    const struct mapping *found = mappings_find(&d->segments, s->address, 1);
    return s->is_mapped ? d->maps_blocks : is_used(d, found ? found->to : 0);
}

/* Sets the blocks of the segment at *i and the gaps between them, and makes *i the last of them;
 * returns the bytes in use. A block outside segments is its own. */
static uint64_t set_blocks(struct writing *w, const struct layout_range *s, uint32_t *i)
{
    const struct ledger_layout *layout = &w->snapshot->layout;
    const struct layout_range *t;
    uint64_t at = s->address, end = s->address + s->bytes, used = 0;
    put_own(w, "blocks");
    put(w, EMPTY_LIST);
    *i -= s->is_tensor;
    for (; (t = layout_tensor(layout, s, *i + 1)) && t->address >= at; ++*i) {
        add_block(w, at, t->address - at, NOBODY);
        used += add_block(w, t->address, t->bytes, origin_of(w, t));
        at = t->address + t->bytes;
    }
    bool is_own_block = at == s->address && !was_used(w, s);
    used += add_block(w, at, end - at, is_own_block ? origin_of(w, s) : NOBODY);
    put(w, SETITEM);
    return used;
}

static void set_segments(struct writing *w)
{
    put_own(w, "segments");
    put(w, EMPTY_LIST);
    for (uint32_t i = 0; w->error == 0 && i < w->snapshot->layout.count; i++) {
        const struct layout_range *s = &w->snapshot->layout.list[i];
        const struct snapshot_device *d = snapshot_device(w->snapshot, s->device);
        put(w, EMPTY_DICT);
        uint64_t used = set_blocks(w, s, &i);
        set_number(w, "device", (uint64_t)(d - w->snapshot->devices));
        set_number(w, "address", s->address);
        set_number(w, "total_size", s->bytes);
        set_number(w, "allocated_size", used);
        set_number(w, "active_size", used);
        set_number(w, "requested_size", used);
        set_number(w, "stream", 0);
        set_own(w, "segment_type", s->bytes <= SMALL_BYTES_MAX ? "small" : "large");
        put_own(w, "segment_pool_id");
        put_number(w, 0);
        put_number(w, 0);
        put(w, TUPLE2);
        put(w, SETITEM);
        put_own(w, "is_expandable");
        put(w, s->is_mapped ? NEWTRUE : NEWFALSE);
        put(w, SETITEM);
        set_frames(w, origin_of(w, s));
        put(w, APPEND);
    }
    put(w, SETITEM);
}

int snapshot_write(struct snapshot *s, struct output *out)
{
    struct writing w = {.snapshot = s, .tree = &s->report->tree, .out = out};
    put(&w, PROTO);
    put_raw(&w, 2, 1);
    put(&w, EMPTY_DICT);
    set_devices(&w);
    set_segments(&w);
    put_own(&w, "allocator_settings");
    put(&w, EMPTY_DICT);
    put(&w, SETITEM);
    put_own(&w, "external_annotations");
    put(&w, EMPTY_LIST);
    put(&w, SETITEM);
    put(&w, STOP);
    key_map_release(&w.known);
    return w.error;
}
