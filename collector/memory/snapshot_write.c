/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a snapshot as a pickle, with keys, frames and lists of frames only once. */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "memory/snapshot.h"
#include "resolve/call_tree.h"

#define NS_PER_US       1000
#define NOBODY          UINT32_MAX
#define SMALL_BYTES_MAX (2u << 20) /* maximum of PyTorch's segments for small blocks */

/* Repeated items: fixed texts, by address; frames, by number; and the frames of an owner. */
enum known { KNOWN_TEXT, KNOWN_FRAME, KNOWN_ORIGIN };

struct writing {
    struct snapshot *snapshot;
    struct call_tree *tree;
    struct pickle pickle;
    struct key_map known; /* (enum known, which) -> number in the memo */
    uint64_t allocated;   /* bytes so far on the device being written */
    int error;
};

/* ---- frames ---------------------------------------------------------------------------------- */

/* Adds a remembered item again; false if the caller must add and remember it. */
static bool put_again(struct writing *w, enum known what, uint64_t which)
{
    uint64_t known = key_map_get(&w->known, (struct key){what, which, 0});
    if (known)
        pickle_again(&w->pickle, (uint32_t)known);
    return known;
}

/* Remembers the last item; if the map is full, it is written again each time. */
static void remember(struct writing *w, enum known what, uint64_t which)
{
    struct key key = {what, which, 0};
    if (key_map_set(&w->known, key, pickle_remember(&w->pickle)) == GPUPROF_NO_MEMORY)
        w->error = GPUPROF_NO_MEMORY;
}

static void snapshot_write_put(struct writing *w, const char *text)
{
    if (put_again(w, KNOWN_TEXT, (uintptr_t)text))
        return;
    pickle_text(&w->pickle, text);
    remember(w, KNOWN_TEXT, (uintptr_t)text);
}

static void put_clean(struct writing *w, const char *text)
{
    char *clean = json_line(text);
    pickle_text(&w->pickle, clean ? clean : "");
    w->error = clean ? w->error : GPUPROF_NO_MEMORY;
    free(clean);
}

static void put_frame(struct writing *w, const char *name, const char *file, uint64_t line)
{
    pickle_open_dict(&w->pickle);
    snapshot_write_put(w, "name");
    put_clean(w, name);
    snapshot_write_put(w, "filename");
    put_clean(w, file);
    snapshot_write_put(w, "line");
    pickle_number(&w->pickle, line);
    pickle_close(&w->pickle);
}

/* A number without a file is an offset, which is in the label. */
static void put_shown(struct writing *w, uint32_t number)
{
    const struct shown_frame *f = shown_frame_of(&w->tree->frames, number);
    if (put_again(w, KNOWN_FRAME, number))
        return;
    put_frame(w, f->name ? f->name->shown : f->label,
              f->file     ? f->file->raw
              : f->module ? f->module->raw
                          : "",
              f->file ? f->line : 0);
    remember(w, KNOWN_FRAME, number);
}

static void put_stack(struct writing *w, const struct memory_origin *o)
{
    uint32_t node = 0;
    if (o->function)
        put_frame(w, o->function->name, "", 0);
    int error = w->tree ? call_tree_stack(w->tree, 0, o->process, o->stack, NULL, &node) : 0;
    w->error = error < 0 ? error : w->error;
    for (; node; node = call_tree_node(w->tree, node)->parent)
        if (call_tree_node(w->tree, node)->frame)
            put_shown(w, call_tree_node(w->tree, node)->frame);
}

/* Writes the owner's frames, innermost first. */
static void snapshot_write_put_frames(struct writing *w, uint32_t origin)
{
    struct memory_report *m = w->snapshot->report;
    snapshot_write_put(w, "frames");
    if (origin == NOBODY) {
        pickle_open_list(&w->pickle);
        pickle_close(&w->pickle);
        return;
    }
    if (put_again(w, KNOWN_ORIGIN, origin))
        return;
    pickle_open_list(&w->pickle);
    if (m->origins.list[origin].by == MEMORY_BY_STACK && origin) {
        put_stack(w, &m->origins.list[origin]);
    } else {
        char *text = memory_origin_text(m, origin, NULL);
        put_frame(w, text ? text : "", "", 0);
        w->error = text ? w->error : GPUPROF_NO_MEMORY;
        free(text);
    }
    pickle_close(&w->pickle);
    remember(w, KNOWN_ORIGIN, origin);
}

/* ---- history --------------------------------------------------------------------------------- */

static void snapshot_write_put_number(struct writing *w, const char *key, uint64_t number)
{
    snapshot_write_put(w, key);
    pickle_number(&w->pickle, number);
}

static void snapshot_write_put_text(struct writing *w, const char *key, const char *value)
{
    snapshot_write_put(w, key);
    snapshot_write_put(w, value);
}

static void snapshot_write_put_event(struct writing *w, const char *action,
                                     const struct snapshot_item *item)
{
    pickle_open_dict(&w->pickle);
    snapshot_write_put_text(w, "action", action);
    bool is_oom = item->action == SNAPSHOT_OOM || item->action == SNAPSHOT_REFUSED;
    snapshot_write_put_number(w, is_oom ? "device_free" : "addr", item->address);
    snapshot_write_put_number(w, "size", item->bytes);
    snapshot_write_put_number(w, "stream", 0);
    snapshot_write_put_number(w, "time_us", item->at_ns / NS_PER_US);
    snapshot_write_put_frames(w, item->origin);
    pickle_close(&w->pickle);
    w->allocated += strcmp(action, "alloc") == 0 ? item->bytes : 0;
    w->allocated -= strcmp(action, "free_completed") == 0 ? item->bytes : 0;
}

/* Like PyTorch: a block without other streams is free as soon as requested. */
static void put_free(struct writing *w, const struct snapshot_item *item)
{
    snapshot_write_put_event(w, "free_requested", item);
    snapshot_write_put_event(w, "free_completed", item);
}

static bool is_used(const struct snapshot_device *d, uint32_t segment)
{
    return segment && d->used[segment];
}

static void put_item(struct writing *w, const struct snapshot_device *d,
                     const struct snapshot_item *item)
{
    bool is_mapped = item->action == SNAPSHOT_MAPPED || item->action == SNAPSHOT_UNMAPPED;
    bool is_own_block = is_mapped ? !d->maps_blocks : !is_used(d, item->segment);
    switch ((enum snapshot_action)item->action) {
    case SNAPSHOT_SEGMENT_GOT:
    case SNAPSHOT_MAPPED:
        snapshot_write_put_event(w, is_mapped ? "segment_map" : "segment_alloc", item);
        if (is_own_block)
            snapshot_write_put_event(w, "alloc", item);
        break;
    case SNAPSHOT_SEGMENT_GONE:
    case SNAPSHOT_UNMAPPED:
        if (is_own_block)
            put_free(w, item);
        snapshot_write_put_event(w, is_mapped ? "segment_unmap" : "segment_free", item);
        break;
    case SNAPSHOT_BLOCK_GOT: snapshot_write_put_event(w, "alloc", item); break;
    case SNAPSHOT_BLOCK_GONE: put_free(w, item); break;
    case SNAPSHOT_REFUSED:
        if (d->has_blocks)
            break;
        /* fall through */
    case SNAPSHOT_OOM: snapshot_write_put_event(w, "oom", item); break;
    case SNAPSHOT_MADE: break;
    }
}

/* Writes the time of the snapshot, which is the end. */
static void put_made(struct writing *w)
{
    const struct memory_report *m = w->snapshot->report;
    uint64_t end_ns = m->times.spans[2 * w->snapshot->process->index + 1];
    const struct snapshot_item made = {
        .bytes = w->allocated, .at_ns = end_ns, .origin = NOBODY, .action = SNAPSHOT_MADE};
    snapshot_write_put_event(w, "snapshot", &made);
}

static void snapshot_write_put_device(struct writing *w, struct snapshot_device *d)
{
    int error = 0;
    w->allocated = 0;
    pickle_open_list(&w->pickle);
    for (uint64_t i = 0; w->error == 0 && i < d->items.count; i++) {
        const struct snapshot_item *item = spool_at(&d->items, i, false, &error);
        if (item)
            put_item(w, d, item);
        w->error = item ? w->error : error;
    }
    if (d->is_used)
        put_made(w);
    pickle_close(&w->pickle);
}

static void snapshot_write_put_devices(struct writing *w)
{
    unsigned count = SNAPSHOT_DEVICES_MAX;
    while (count && !w->snapshot->devices[count - 1].is_used)
        count--;
    pickle_text(&w->pickle, "device_traces");
    pickle_open_list(&w->pickle);
    for (unsigned i = 0; i < count; i++)
        snapshot_write_put_device(w, &w->snapshot->devices[i]);
    pickle_close(&w->pickle);
}

/* ---- state at the end ------------------------------------------------------------------------ */

static void put_block(struct writing *w, uint64_t address, uint64_t bytes, const uint32_t *origin)
{
    pickle_open_dict(&w->pickle);
    snapshot_write_put_number(w, "address", address);
    snapshot_write_put_number(w, "size", bytes);
    snapshot_write_put_number(w, "requested_size", origin ? bytes : 0);
    snapshot_write_put_text(w, "state", origin ? "active_allocated" : "inactive");
    if (origin)
        snapshot_write_put_frames(w, *origin);
    pickle_close(&w->pickle);
}

static uint32_t origin_of(const struct writing *w, const struct layout_range *range)
{
    return w->snapshot->ledger.books.blocks[range->place].owner;
}

/* True if a block has ever been in the segment. */
static bool was_used(const struct writing *w, const struct layout_range *s)
{
    const struct snapshot_device *d = snapshot_device(w->snapshot, s->device);
    const struct mapping *found = mappings_find(&d->segments, s->address, 1);
    return s->is_mapped ? d->maps_blocks : is_used(d, found ? found->to : 0);
}

/* Writes the blocks of a segment and the gaps between them; returns the bytes in use. */
static uint64_t put_blocks(struct writing *w, const struct layout_range *s, bool writes)
{
    const struct ledger_layout *layout = &w->snapshot->layout;
    uint64_t at = s->address, end = s->address + s->bytes, held = 0;
    uint32_t origin;
    for (uint32_t i = layout_tensor_from(layout, at); i < layout->tensor_count; i++) {
        const struct layout_range *t = &layout->tensors[i];
        if (t->address < at || !layout_has(s, t))
            break;
        if (writes && t->address > at)
            put_block(w, at, t->address - at, NULL);
        origin = origin_of(w, t);
        if (writes)
            put_block(w, t->address, t->bytes, &origin);
        held += t->bytes;
        at = t->address + t->bytes;
    }
    bool is_own_block = at == s->address && !was_used(w, s);
    origin = origin_of(w, s);
    if (writes && at < end)
        put_block(w, at, end - at, is_own_block ? &origin : NULL);
    return is_own_block ? s->bytes : held;
}

static void put_segment(struct writing *w, const struct layout_range *s)
{
    const struct snapshot_device *d = snapshot_device(w->snapshot, s->device);
    uint64_t held = put_blocks(w, s, false);
    pickle_open_dict(&w->pickle);
    snapshot_write_put_number(w, "device", (uint64_t)(d - w->snapshot->devices));
    snapshot_write_put_number(w, "address", s->address);
    snapshot_write_put_number(w, "total_size", s->bytes);
    snapshot_write_put_number(w, "allocated_size", held);
    snapshot_write_put_number(w, "active_size", held);
    snapshot_write_put_number(w, "requested_size", held);
    snapshot_write_put_number(w, "stream", 0);
    snapshot_write_put_text(w, "segment_type", s->bytes <= SMALL_BYTES_MAX ? "small" : "large");
    snapshot_write_put(w, "segment_pool_id");
    pickle_pair(&w->pickle, 0, 0);
    snapshot_write_put(w, "is_expandable");
    pickle_bool(&w->pickle, s->is_mapped);
    snapshot_write_put_frames(w, origin_of(w, s));
    snapshot_write_put(w, "blocks");
    pickle_open_list(&w->pickle);
    put_blocks(w, s, true);
    pickle_close(&w->pickle);
    pickle_close(&w->pickle);
}

/* Writes the segments; a block outside segments is its own. */
static void put_segments(struct writing *w)
{
    const struct ledger_layout *layout = &w->snapshot->layout;
    uint32_t tensor = 0;
    pickle_text(&w->pickle, "segments");
    pickle_open_list(&w->pickle);
    for (uint32_t i = 0; w->error == 0 && i <= layout->segment_count; i++) {
        const struct layout_range *s = i < layout->segment_count ? &layout->segments[i] : NULL;
        for (; tensor < layout->tensor_count; tensor++) {
            const struct layout_range *t = &layout->tensors[tensor];
            if (s && t->address >= s->address + s->bytes)
                break;
            if (!s || t->address < s->address || !layout_has(s, t))
                put_segment(w, t);
        }
        if (s)
            put_segment(w, s);
    }
    pickle_close(&w->pickle);
}

int snapshot_write(struct snapshot *s, struct call_tree *tree, struct output *out)
{
    struct writing w = {.snapshot = s, .tree = tree};
    pickle_begin(&w.pickle, out);
    pickle_open_dict(&w.pickle);
    snapshot_write_put_devices(&w);
    put_segments(&w);
    pickle_text(&w.pickle, "allocator_settings");
    pickle_open_dict(&w.pickle);
    pickle_close(&w.pickle);
    pickle_text(&w.pickle, "external_annotations");
    pickle_open_list(&w.pickle);
    pickle_close(&w.pickle);
    pickle_close(&w.pickle);
    pickle_end(&w.pickle);
    key_map_release(&w.known);
    return w.error;
}
