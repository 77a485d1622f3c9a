/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gpuprof memory -o x.pickle`: the memory history of a process in the format of PyTorch's
 * snapshots (torch.cuda.memory._snapshot), which pytorch.org/memory_viz and torch.cuda._memory_viz
 * open. Segments come from CUDA, blocks from PyTorch's allocator; a segment without blocks is its
 * own block. Host memory and arrays are left out. If a moment is requested, the history ends there.
 *
 * The file is in Python's pickle format, protocol 2, with opcodes that the reader of PyTorch's
 * viewer knows. Repeated texts, frames and lists of frames get a number in the memo, and then take
 * two bytes or five. Errors of the file stick to the output.
 *
 * Memory: 1 byte a segment, up to SEGMENTS_MAX of a device, beside the ledger's. An unnamed file
 * (spool.h) stores 40 bytes for each action.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/spool.h"
#include "memory/memory_report.h"
#include "output/output.h"

#define SEGMENTS_MAX    (1u << 23) /* beyond that, blocks in them are not tracked */
#define NS_PER_US       1000
#define NOBODY          UINT32_MAX
#define SMALL_BYTES_MAX (2u << 20) /* maximum of PyTorch's segments for small blocks */

/* Facts of a device that make an action untrue. They are known only at the end, and are indices of
 * its `known`; those from FIRST_SEGMENT on: a block has been in that segment. */
enum unless {
    ALWAYS,      /* no fact */
    HAS_BLOCKS,  /* of PyTorch's allocator */
    MAPS_BLOCKS, /* some blocks lie in mapped memory: then all mapped memory is for blocks */
    FIRST_SEGMENT
};

struct action {
    const char *name; /* PyTorch's */
    uint64_t address; /* for an OOM: free bytes, if the program knew; else 0 */
    uint64_t bytes;
    uint64_t at_ns;
    uint32_t origin;
    uint32_t unless;
};

struct snapshot_device {
    struct spool actions;
    struct mappings segments; /* live segments that are not mapped; each leads to its fact */
    bool *known;              /* owned, by fact */
    uint32_t fact_count;
    uint64_t free; /* free bytes at the program's last query; 0: no query */
};

struct snapshot {
    struct memory_report *report;
    const struct process *process;
    struct ledger ledger;
    struct ledger_layout layout; /* at the end */
    struct output *out;
    struct key_map memo; /* (enum memo, which) -> number in the memo + 1 */
    uint32_t memo_count;
    uint64_t allocated; /* bytes so far on the device being written */
    struct snapshot_device devices[SNAPSHOT_DEVICES_MAX];
};

/* One that is not known, or beyond the maximum, counts as the first. */
static struct snapshot_device *device_of(struct snapshot *s, uint32_t number)
{
    return &s->devices[number < SNAPSHOT_DEVICES_MAX ? number : 0];
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void note(struct snapshot *s, const struct ledger_block *b, uint64_t at_ns, const char *name,
                 uint32_t unless)
{
    const struct action action = {name, b->address, b->bytes, at_ns, b->owner, unless};
    spool_append(&device_of(s, b->device)->actions, &action);
}

/* Like PyTorch: a block without other streams is free as soon as requested. */
static void note_free(struct snapshot *s, const struct ledger_block *b, uint64_t at_ns,
                      uint32_t unless)
{
    note(s, b, at_ns, "free_requested", unless);
    note(s, b, at_ns, "free_completed", unless);
}

/* Returns the fact that a block has been in it; ALWAYS beyond the maximum. */
static uint32_t add_segment(struct snapshot_device *d, const struct ledger_block *b)
{
    if (d->fact_count == FIRST_SEGMENT + SEGMENTS_MAX)
        return ALWAYS;
    struct mapping segment = {.address = b->address, .bytes = b->bytes, .to = d->fact_count};
    ARRAY_PUSH(d->known, d->fact_count, NULL);
    mappings_add(&d->segments, &segment); /* only a forged one overlaps another */
    return segment.to;
}

/* Notes that a block of PyTorch's allocator lies in a segment. Returns false if it does not. */
static bool use_segment(struct snapshot *s, struct snapshot_device *d, const struct ledger_block *b)
{
    const struct mapping *segment = mappings_find(&d->segments, b->address, 1);
    const struct mapping *map =
        mappings_find(&s->ledger.mappings[b->process->index], b->address, 1);
    bool is_mapped = map && map->to;
    d->known[HAS_BLOCKS] = true;
    d->known[MAPS_BLOCKS] |= is_mapped;
    if (segment)
        d->known[segment->to] = true;
    return segment || is_mapped;
}

/* Sets `row` to the fact of the segment; for a block of PyTorch's allocator, to whether it lies in
 * a segment. If not, it is its own. */
static void note_got(struct snapshot *s, struct snapshot_device *d, struct ledger_block *b)
{
    bool is_tensor = b->kind == LEDGER_TENSOR;
    b->row = is_tensor ? use_segment(s, d, b) : add_segment(d, b);
    if (!is_tensor || !b->row)
        note(s, b, b->begin_ns, "segment_alloc", ALWAYS);
    note(s, b, b->begin_ns, "alloc", is_tensor ? ALWAYS : b->row);
}

static void note_gone(struct snapshot *s, struct snapshot_device *d, const struct ledger_block *b,
                      uint64_t at_ns)
{
    bool is_tensor = b->kind == LEDGER_TENSOR;
    const struct mapping *segment = mappings_find(&d->segments, b->address, 1);
    if (!is_tensor && segment && segment->to == b->row)
        mappings_remove(&d->segments, segment);
    note_free(s, b, at_ns, is_tensor ? ALWAYS : b->row);
    if (!is_tensor || !b->row)
        note(s, b, at_ns, "segment_free", ALWAYS);
}

static void snapshot_change(void *context, enum ledger_change change, struct ledger_block *b,
                            uint64_t at_ns)
{
    struct snapshot *s = context;
    struct snapshot_device *d = device_of(s, b->device);
    bool is_shown = b->kind != LEDGER_ARRAY && b->kind != LEDGER_PHYSICAL;
    if (b->is_host)
        return;
    if (change == LEDGER_GOT && is_shown) {
        note_got(s, d, b);
    } else if (change == LEDGER_GONE && is_shown) {
        note_gone(s, d, b, at_ns);
    } else if (change == LEDGER_MAPPED) {
        note(s, b, at_ns, "segment_map", ALWAYS);
        note(s, b, at_ns, "alloc", MAPS_BLOCKS);
    } else if (change == LEDGER_UNMAPPED) {
        note_free(s, b, at_ns, MAPS_BLOCKS);
        note(s, b, at_ns, "segment_unmap", ALWAYS);
    } else if (change == LEDGER_FAILED) { /* PyTorch's allocator then tries another way */
        b->address = d->free;
        note(s, b, at_ns, "oom", b->kind == LEDGER_TENSOR ? ALWAYS : HAS_BLOCKS);
    } else if (change == LEDGER_ASKED) {
        d->free = b->bytes;
    }
}

static uint32_t snapshot_owner(void *context, const struct slice *slice, unsigned kind)
{
    return memory_origin_of(((struct snapshot *)context)->report, slice, kind);
}

/* ---- values ---------------------------------------------------------------------------------- */

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
enum memo { MEMO_TEXT, MEMO_FRAME, MEMO_ORIGIN };

/* Writes the lowest `bytes` bytes of the number, lowest first. */
static void put_raw(struct snapshot *s, uint64_t number, unsigned bytes)
{
    char *out = output_room(s->out, sizeof number);
    for (; bytes--; number >>= 8)
        *out++ = (char)(number & 0xff);
    output_advance(s->out, out);
}

static void put(struct snapshot *s, enum opcode opcode)
{
    put_raw(s, opcode, 1);
}

/* LONG1 is signed. */
static void put_number(struct snapshot *s, uint64_t number)
{
    put(s, number <= UINT8_MAX ? BININT1 : LONG1);
    if (number > UINT8_MAX)
        put_raw(s, sizeof number, 1);
    put_raw(s, number < INT64_MAX ? number : INT64_MAX, number > UINT8_MAX ? sizeof number : 1);
}

/* Writes a text, as valid UTF-8. */
static void put_text(struct snapshot *s, const char *text)
{
    char *clean = json_line(text);
    put(s, BINUNICODE);
    put_raw(s, strlen(clean), 4);
    output_write(s->out, clean, strlen(clean));
    free(clean);
}

/* Writes an opcode about an item of the memo, in its short form if possible. */
static void put_memo(struct snapshot *s, enum opcode opcode, enum opcode long_one, uint32_t number)
{
    put(s, number <= UINT8_MAX ? opcode : long_one);
    put_raw(s, number, number <= UINT8_MAX ? 1 : 4);
}

/* Writes a remembered item again; false if the caller must write and remember it. */
static bool put_again(struct snapshot *s, enum memo what, uint64_t which)
{
    uint64_t known = key_map_get(&s->memo, (struct key){what, which, 0});
    if (known)
        put_memo(s, BINGET, LONG_BINGET, (uint32_t)(known - 1));
    return known;
}

/* Remembers the last item; if the map is full, it is written again each time. */
static void remember(struct snapshot *s, enum memo what, uint64_t which)
{
    put_memo(s, BINPUT, LONG_BINPUT, s->memo_count++);
    key_map_set(&s->memo, (struct key){what, which, 0}, s->memo_count);
}

/* Writes a text of ours, for example the key of a dictionary. */
static void put_own(struct snapshot *s, const char *text)
{
    if (put_again(s, MEMO_TEXT, (uintptr_t)text))
        return;
    put_text(s, text);
    remember(s, MEMO_TEXT, (uintptr_t)text);
}

static void set_number(struct snapshot *s, const char *key, uint64_t number)
{
    put_own(s, key);
    put_number(s, number);
    put(s, SETITEM);
}

static void set_own(struct snapshot *s, const char *key, const char *value)
{
    put_own(s, key);
    put_own(s, value);
    put(s, SETITEM);
}

static void set_text(struct snapshot *s, const char *key, const char *value)
{
    put_own(s, key);
    put_text(s, value);
    put(s, SETITEM);
}

/* Sets a list or dictionary that stays empty. */
static void set_empty(struct snapshot *s, const char *key, enum opcode empty)
{
    put_own(s, key);
    put(s, empty);
    put(s, SETITEM);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void put_frame(struct snapshot *s, const char *name, const char *file, uint64_t line)
{
    put(s, EMPTY_DICT);
    set_text(s, "name", name);
    set_text(s, "filename", file);
    set_number(s, "line", line);
}

static void add_frame(struct snapshot *s, const char *name)
{
    put_frame(s, name, "", 0);
    put(s, APPEND);
}

/* A number without a file is an offset, which is in the label. */
static void add_shown(struct snapshot *s, uint32_t number)
{
    const struct shown_frame *f = shown_frame_of(&s->report->tree.frames, number);
    if (!put_again(s, MEMO_FRAME, number)) {
        put_frame(s, f->name ? f->name->shown : f->label,
                  f->file     ? f->file->raw
                  : f->module ? f->module->raw
                              : "",
                  f->file ? f->line : 0);
        remember(s, MEMO_FRAME, number);
    }
    put(s, APPEND);
}

static void add_stack(struct snapshot *s, const struct memory_origin *o)
{
    struct call_tree *tree = &s->report->tree;
    uint32_t node = call_tree_stack(tree, 0, o->process, o->stack, NULL);
    if (o->function)
        add_frame(s, o->function->name);
    for (; node; node = call_tree_node(tree, node)->parent)
        if (call_tree_node(tree, node)->frame)
            add_shown(s, call_tree_node(tree, node)->frame);
}

/* Sets the owner's frames, innermost first. */
static void set_frames(struct snapshot *s, uint32_t origin)
{
    const struct memory_report *m = s->report;
    put_own(s, "frames");
    if (!put_again(s, MEMO_ORIGIN, origin)) {
        put(s, EMPTY_LIST);
        if (origin && origin != NOBODY && m->origins.list[origin].by == MEMORY_BY_STACK) {
            add_stack(s, &m->origins.list[origin]);
        } else if (origin != NOBODY) {
            char *text = memory_owner_text(m, origin);
            add_frame(s, text);
            free(text);
        }
        remember(s, MEMO_ORIGIN, origin);
    }
    put(s, SETITEM);
}

/* ---- history --------------------------------------------------------------------------------- */

static void add_action(struct snapshot *s, const struct action *a)
{
    put(s, EMPTY_DICT);
    set_own(s, "action", a->name);
    set_number(s, strcmp(a->name, "oom") == 0 ? "device_free" : "addr", a->address);
    set_number(s, "size", a->bytes);
    set_number(s, "stream", 0);
    set_number(s, "time_us", a->at_ns / NS_PER_US);
    set_frames(s, a->origin);
    put(s, APPEND);
    if (strcmp(a->name, "alloc") == 0)
        s->allocated += a->bytes;
    else if (strcmp(a->name, "free_completed") == 0)
        s->allocated -= a->bytes;
}

/* Adds the device's list of actions, which ends with the snapshot itself. */
static void add_device(struct snapshot *s, struct snapshot_device *d)
{
    s->allocated = 0;
    put(s, EMPTY_LIST);
    for (uint64_t i = 0; i < d->actions.count; i++) {
        const struct action *a = spool_at(&d->actions, i, false);
        if (!d->known[a->unless])
            add_action(s, a);
    }
    const struct action end = {.name = "snapshot",
                               .bytes = s->allocated,
                               .at_ns = s->report->processes[s->process->index].last_ns,
                               .origin = NOBODY};
    if (d->actions.count)
        add_action(s, &end);
    put(s, APPEND);
}

static void set_devices(struct snapshot *s)
{
    unsigned count = SNAPSHOT_DEVICES_MAX;
    while (count && !s->devices[count - 1].actions.count)
        count--;
    put_own(s, "device_traces");
    put(s, EMPTY_LIST);
    for (unsigned i = 0; i < count; i++)
        add_device(s, &s->devices[i]);
    put(s, SETITEM);
}

/* ---- state at the end ------------------------------------------------------------------------ */

/* Adds a block in use or, of NOBODY, a gap. Returns the bytes in use. */
static uint64_t add_block(struct snapshot *s, uint64_t address, uint64_t bytes, uint32_t origin)
{
    uint64_t used = origin == NOBODY ? 0 : bytes;
    if (!bytes)
        return 0;
    put(s, EMPTY_DICT);
    set_number(s, "address", address);
    set_number(s, "size", bytes);
    set_number(s, "requested_size", used);
    set_own(s, "state", used ? "active_allocated" : "inactive");
    if (used)
        set_frames(s, origin);
    put(s, APPEND);
    return used;
}

static uint32_t origin_of(const struct snapshot *s, const struct layout_range *range)
{
    return s->ledger.blocks[range->place].owner;
}

/* Sets the blocks of the segment at *i and the gaps between them, and makes *i the last of them;
 * returns the bytes in use. A block outside segments is its own. */
static uint64_t set_blocks(struct snapshot *s, const struct layout_range *segment, uint32_t *i)
{
    const struct snapshot_device *d = device_of(s, segment->device);
    const struct mapping *found = mappings_find(&d->segments, segment->address, 1);
    uint32_t unless = segment->is_mapped ? MAPS_BLOCKS : found ? found->to : ALWAYS;
    const struct layout_range *t;
    uint64_t at = segment->address, end = segment->address + segment->bytes, used = 0;
    put_own(s, "blocks");
    put(s, EMPTY_LIST);
    *i -= segment->is_tensor;
    for (; (t = layout_tensor(&s->layout, segment, *i + 1)) && t->address >= at; ++*i) {
        add_block(s, at, t->address - at, NOBODY);
        used += add_block(s, t->address, t->bytes, origin_of(s, t));
        at = t->address + t->bytes;
    }
    bool is_own_block = at == segment->address && !d->known[unless];
    used += add_block(s, at, end - at, is_own_block ? origin_of(s, segment) : NOBODY);
    put(s, SETITEM);
    return used;
}

static void set_segments(struct snapshot *s)
{
    put_own(s, "segments");
    put(s, EMPTY_LIST);
    for (uint32_t i = 0; i < s->layout.count; i++) {
        const struct layout_range *segment = &s->layout.list[i];
        put(s, EMPTY_DICT);
        uint64_t used = set_blocks(s, segment, &i);
        set_number(s, "device", (uint64_t)(device_of(s, segment->device) - s->devices));
        set_number(s, "address", segment->address);
        set_number(s, "total_size", segment->bytes);
        set_number(s, "allocated_size", used);
        set_number(s, "active_size", used);
        set_number(s, "requested_size", used);
        set_number(s, "stream", 0);
        set_own(s, "segment_type", segment->bytes <= SMALL_BYTES_MAX ? "small" : "large");
        put_own(s, "segment_pool_id");
        put_number(s, 0);
        put_number(s, 0);
        put(s, TUPLE2);
        put(s, SETITEM);
        set_empty(s, "is_expandable", segment->is_mapped ? NEWTRUE : NEWFALSE);
        set_frames(s, origin_of(s, segment));
        put(s, APPEND);
    }
    put(s, SETITEM);
}

static void snapshot_init(struct snapshot *s, struct memory_report *m,
                          const struct process *process, struct output *out)
{
    const struct ledger_user user = {
        .context = s, .change = snapshot_change, .owner = snapshot_owner};
    *s = (struct snapshot){.report = m, .process = process, .out = out};
    for (unsigned i = 0; i < SNAPSHOT_DEVICES_MAX; i++) {
        struct snapshot_device *d = &s->devices[i];
        spool_init(&d->actions, sizeof(struct action));
        while (d->fact_count < FIRST_SEGMENT)
            ARRAY_PUSH(d->known, d->fact_count, NULL);
    }
    ledger_init(&s->ledger, &m->walk, &user);
    s->ledger.until_ns = m->times.asked_ns == UINT64_MAX ? 0 : m->times.asked_ns;
}

static void snapshot_release(struct snapshot *s)
{
    for (unsigned i = 0; i < SNAPSHOT_DEVICES_MAX; i++) {
        spool_release(&s->devices[i].actions);
        free(s->devices[i].segments.list);
        free(s->devices[i].known);
    }
    free(s->layout.list);
    key_map_release(&s->memo);
    ledger_release(&s->ledger);
}

static void snapshot_put(struct snapshot *s)
{
    put(s, PROTO);
    put_raw(s, 2, 1);
    put(s, EMPTY_DICT);
    set_devices(s);
    set_segments(s);
    set_empty(s, "allocator_settings", EMPTY_DICT);
    set_empty(s, "external_annotations", EMPTY_LIST);
    put(s, STOP);
}

int snapshot_write(struct memory_report *m, const struct process *process, struct output *out)
{
    struct snapshot s;
    snapshot_init(&s, m, process, out);
    struct consumer consumers[] = {ledger_consumer(&s.ledger)};
    consumers[0].needs |= WALK_SPANS;
    int error = walk_run(&m->walk, process, consumers, 1);
    if (error >= 0) {
        ledger_layout_make(&s.layout, &s.ledger, process);
        snapshot_put(&s);
    }
    snapshot_release(&s);
    return error < 0 ? error : 0;
}
