/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "error.h"
#include "record/gpu_record.h"

/* A block of the heap: closed (only its time is known), open, or open with a window. */
struct open_block {
    struct event event; /* the next event; closed: no thread, and the begin of its first */
    uint64_t order;     /* twice the index of the process, + 1 once open; read with `event` */
    struct block_place place;
    struct clock_place clock;
    struct record record; /* record of the next event */
    uint32_t done;        /* records taken out of the block, including `record` */
    uint8_t *payload;     /* NULL: closed, or read again for the next window */
    size_t capacity;
    struct block_decoder decoder;
    struct record *window; /* owned, with byte strings; NULL: the whole payload is in memory */
    size_t window_bytes;   /* of both */
    uint32_t window_at, window_count;
};

/* Holds the begin, so that most comparisons do not access the block. */
struct heap_node {
    uint64_t begin_ns;
    struct open_block *block;
};

struct timeline {
    struct recording *rec;
    struct losses *losses;  /* a view: by process index */
    struct heap_node *heap; /* owned, and so are the blocks */
    uint32_t count;
    uint32_t entry;      /* index entry of the blocks that were added last */
    uint32_t next_entry; /* next index entry */
    uint64_t next_ns;    /* begin of that; UINT64_MAX: none */
    uint32_t process;    /* by process: index of the process that is read */
    bool is_handed_out;  /* the root event was returned, so the root must advance */
    uint64_t open_bytes; /* bytes of payloads, decoders and windows */
    uint64_t open_bytes_max;
    struct process *failed;
    uint64_t late_ns; /* monotonic time from which no block is opened */
    bool has_calls;   /* a call was returned */
    struct timeline_scope scope;
};

static void set_next_entry(struct timeline *t, uint32_t entry)
{
    const struct block_index *x = &t->rec->index;
    t->next_entry = entry;
    t->next_ns = entry < x->count ? x->entries[entry].time : UINT64_MAX;
}

struct timeline *timeline_create(struct recording *rec, struct losses *losses,
                                 uint64_t open_bytes_max, const struct timeline_scope *scope)
{
    struct timeline *t = memory_new(1, sizeof *t);
    t->rec = rec;
    t->losses = losses;
    t->open_bytes_max = open_bytes_max;
    t->scope = *scope;
    t->late_ns = scope->ns_max ? monotonic_ns() + scope->ns_max : UINT64_MAX;
    const struct process *first = scope->only                       ? scope->only
                                  : scope->by_process && rec->count ? rec->processes[0]
                                                                    : NULL;
    set_next_entry(t, first ? first->first_entry : 0);
    return t;
}

static void drop_payload(struct timeline *t, struct open_block *b)
{
    if (!b->payload)
        return;
    t->open_bytes -= b->decoder.bytes + b->capacity;
    block_decoder_release(&b->decoder);
    free(b->payload);
    b->payload = NULL;
    b->capacity = 0;
}

static void drop_window(struct timeline *t, struct open_block *b)
{
    t->open_bytes -= b->window_bytes;
    for (uint32_t i = 0; i < b->window_count; i++)
        free((uint8_t *)b->window[i].bytes);
    free(b->window);
    b->window = NULL;
    b->window_bytes = 0;
    b->window_at = b->window_count = 0;
}

static void block_free(struct timeline *t, struct open_block *b)
{
    drop_payload(t, b);
    drop_window(t, b);
    free(b);
}

void timeline_free(struct timeline *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->count; i++)
        block_free(t, t->heap[i].block);
    free(t->heap);
    free(t);
}

/* Order of events with the same begin; closed blocks of a process come first, so that they open in
 * time. */
static bool before_at_same_time(const struct open_block *a, const struct open_block *b)
{
    if (a->order != b->order)
        return a->order < b->order;
    if (a->event.thread) {
        bool a_call = a->record.type == RECORD_CALL;
        bool b_call = b->record.type == RECORD_CALL;
        if (a_call != b_call)
            return b_call;
        if (a->event.thread->number != b->event.thread->number)
            return a->event.thread->number < b->event.thread->number;
        if (a_call && a->event.end_ns != b->event.end_ns)
            return a->event.end_ns > b->event.end_ns;
    }
    if (a->place.header.position_begin != b->place.header.position_begin)
        return a->place.header.position_begin < b->place.header.position_begin;
    return a->place.offset < b->place.offset;
}

static inline bool timeline_before(const struct heap_node *a, const struct heap_node *b)
{
    return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns
                                      : before_at_same_time(a->block, b->block);
}

/* Restores the heap after the block of the root has advanced. */
static inline void sift_root(struct timeline *t)
{
    struct heap_node *heap = t->heap;
    struct heap_node node = {heap->block->event.begin_ns, heap->block};
    uint32_t at = 0, child;
    while ((child = 2 * at + 1) < t->count) {
        if (child + 1 < t->count && timeline_before(&heap[child + 1], &heap[child]))
            child++;
        if (!timeline_before(&heap[child], &node))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = node;
}

static void timeline_push(struct timeline *t, struct open_block *b)
{
    struct heap_node node = {.begin_ns = b->event.begin_ns, .block = b};
    uint32_t at = t->count;
    ARRAY_PUSH(t->heap, t->count, &node);
    while (at > 0 && timeline_before(&node, &t->heap[(at - 1) / 2])) {
        t->heap[at] = t->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    t->heap[at] = node;
}

/* Reads the payload and skips the records that were taken before. */
static int open_payload(struct timeline *t, struct open_block *b)
{
    int error =
        process_block(b->event.process, &t->rec->reader, &b->place, &b->payload, &b->capacity);
    if (t->rec->progress)
        progress_add(t->rec->progress, b->place.header.stored_bytes);
    if (error == 0)
        error = block_decoder_init(&b->decoder, b->payload, b->place.header.payload_bytes,
                                   b->place.header.record_count);
    if (error == GPUPROF_NO_MEMORY) /* of the decoder */
        memory_missing();
    if (error < 0) {
        free(b->payload);
        b->payload = NULL;
        b->capacity = 0;
        return error;
    }
    t->open_bytes += b->capacity + b->decoder.bytes;
    for (uint32_t i = 0; i < b->done; i++)
        if (block_decoder_next(&b->decoder, &b->record) <= 0)
            return GPUPROF_DAMAGED;
    return 0;
}

/* Copies the next records from the payload, up to WINDOW_BYTES, then drops it. */
static int fill_window(struct timeline *t, struct open_block *b)
{
    int more = 1;
    drop_window(t, b);
    b->window = memory_new(WINDOW_RECORDS, sizeof *b->window);
    b->window_bytes = WINDOW_RECORDS * sizeof *b->window;
    t->open_bytes += b->window_bytes;
    while (b->window_count < WINDOW_RECORDS && b->window_bytes < WINDOW_BYTES) {
        struct record *r = &b->window[b->window_count];
        if ((more = block_decoder_next(&b->decoder, r)) <= 0)
            break;
        b->window_count++;
        b->window_bytes += r->byte_count;
        t->open_bytes += r->byte_count;
        if (r->bytes)
            r->bytes = memcpy(memory_new(r->byte_count + 1u, 1), r->bytes, r->byte_count);
    }
    drop_payload(t, b);
    return more < 0 && b->window_count == 0 ? more : 0;
}

/* Next record of a block that has, gets or loses a window. Returns 1, 0 at its end, or an error. */
static __attribute__((noinline)) int next_by_window(struct timeline *t, struct open_block *b)
{
    int more;
    if (b->window_at < b->window_count) {
        b->record = b->window[b->window_at++];
        return 1;
    }
    if (!b->payload && (more = open_payload(t, b)) < 0)
        return more;
    if (t->open_bytes > t->open_bytes_max && (b->window || t->count > 1)) {
        if ((more = fill_window(t, b)) < 0)
            return more;
        if (!b->window_count)
            return GPUPROF_DAMAGED;
        b->record = b->window[b->window_at++];
        return 1;
    }
    drop_window(t, b);
    return block_decoder_next(&b->decoder, &b->record);
}

/* The next record of an open block: 1, 0 at its end, or an error. */
static inline int next_record(struct timeline *t, struct open_block *b)
{
    if (b->done == b->place.header.record_count)
        return 0;
    int more = !b->payload || t->open_bytes > t->open_bytes_max
                   ? next_by_window(t, b)
                   : block_decoder_next(&b->decoder, &b->record);
    if (more <= 0)
        return more;
    b->done++;
    uint64_t begin = b->record.begin < CLOCK_NS_MAX ? b->record.begin : CLOCK_NS_MAX;
    uint64_t duration = b->record.duration < CLOCK_NS_MAX ? b->record.duration : CLOCK_NS_MAX;
    const struct clock_map *clock = &b->event.process->clock;
    b->event.begin_ns = clock_map_look(clock, &b->clock, begin);
    b->event.end_ns = clock_map_look(clock, &b->clock, begin + duration);
    return 1;
}

/* Handles the end of the root's block, or an error. Returns 0 or an error. */
static __attribute__((noinline)) int end_root(struct timeline *t, int more)
{
    struct open_block *b = t->heap[0].block;
    if (more == GPUPROF_IO) {
        t->failed = b->event.process;
        return more;
    }
    if (more < 0) {
        struct losses *l = &t->losses[b->event.process->index];
        l->damaged_blocks++;
        l->damaged_records += b->place.header.record_count - b->done;
    }
    block_free(t, b);
    t->heap[0] = t->heap[--t->count];
    if (t->count)
        sift_root(t);
    return 0;
}

/* Advances the root and restores the heap. */
static inline int advance_root(struct timeline *t)
{
    int more = next_record(t, t->heap[0].block);
    if (more <= 0)
        return end_root(t, more);
    sift_root(t);
    return 0;
}

static void add_closed(struct timeline *t, struct process *p, uint64_t offset, uint64_t time)
{
    struct open_block *b = memory_new(1, sizeof *b);
    b->event =
        (struct event){.record = &b->record, .process = p, .begin_ns = time, .entry = t->entry};
    b->order = 2ull * p->index;
    b->place.offset = offset;
    timeline_push(t, b);
}

static bool timeline_is_wanted(const struct timeline *t, const struct process *p,
                               const struct block_span *b)
{
    const uint64_t work = block_type_bit(RECORD_KERNEL) | block_type_bit(RECORD_COPY) |
                          block_type_bit(RECORD_SET) | block_type_bit(RECORD_GRAPH);
    const struct timeline_scope *s = &t->scope;
    if (s->wants && !s->wants(s->wants_context, p, b))
        return false;
    if (s->work_last_ns && b->types && !(b->types & ~work)) {
        uint64_t *last_ns = &s->work_last_ns[p->index];
        *last_ns = b->end_ns > *last_ns ? b->end_ns : *last_ns;
        return false;
    }
    return true;
}

static void add_wanted(struct timeline *t, struct process *p, uint64_t offset,
                       const struct block_header *h)
{
    struct clock_place clock = {0};
    uint64_t begin_ns = clock_map_look(&p->clock, &clock, h->min_ns);
    uint64_t end_ns = clock_map_look(&p->clock, &clock, h->max_ns);
    const struct block_span span = {begin_ns, end_ns, block_types(h), t->entry};
    if (timeline_is_wanted(t, p, &span))
        add_closed(t, p, offset, begin_ns);
}

/* Adds the blocks of an index entry to the heap, closed. */
static int add_entry(struct timeline *t, const struct index_entry *entry)
{
    struct process *p = t->rec->loaded[entry->process];
    t->entry = (uint32_t)(entry - t->rec->index.entries);
    const struct block_span span = {entry->time, entry->end, entry->types, t->entry};
    if (p->is_elsewhere || !timeline_is_wanted(t, p, &span))
        return 0;
    if (entry->count == 1) {
        add_closed(t, p, entry->offset, entry->time);
        return 0;
    }
    for (uint32_t i = 0; entry->offset & LIVE_BLOCK && i < entry->count; i++) {
        uint64_t offset = entry->offset + i;
        add_wanted(t, p, offset, &p->live.blocks[offset & ~LIVE_BLOCK].header);
    }
    if (entry->offset & LIVE_BLOCK)
        return 0;
    struct stream_scan scan;
    stream_scan_init(&scan, &p->file, &t->rec->reader.pool, entry->offset);
    for (uint32_t i = 0; i < entry->count; i++) {
        struct block_place block;
        int more = stream_scan_next(&scan, &block);
        if (more <= 0)
            return more;
        add_wanted(t, p, block.offset, &block.header);
    }
    return 0;
}

/* Whether the maximum duration has passed. It never ends before the first call. */
static bool is_late(struct timeline *t)
{
    if (!t->has_calls || t->late_ns == UINT64_MAX || monotonic_ns() < t->late_ns)
        return false;
    return *t->scope.is_cut = true;
}

/* Opens the closed block at the root. */
static int open_root(struct timeline *t)
{
    struct open_block *b = t->heap[0].block;
    int error = open_payload(t, b);
    if (error < 0)
        return end_root(t, error);
    b->event.thread = thread_find(&b->event.process->threads, b->place.header.thread);
    b->order |= 1;
    return b->event.thread ? advance_root(t) : end_root(t, GPUPROF_DAMAGED);
}

/* Brings the next event to the root. Returns 1, 0 at the end, or an error. */
static __attribute__((noinline)) int timeline_settle(struct timeline *t)
{
    const struct block_index *x = &t->rec->index;
    for (;;) {
        int error = 0;
        if (t->next_entry < x->count && (t->count == 0 || t->next_ns <= t->heap[0].begin_ns)) {
            const struct index_entry *entry = &x->entries[t->next_entry];
            bool is_chained = t->scope.only || t->scope.by_process;
            set_next_entry(t, is_chained ? entry->next : t->next_entry + 1);
            t->failed = t->rec->loaded[entry->process];
            error = add_entry(t, entry);
        } else if (t->count && t->heap[0].block->event.thread) {
            return 1;
        } else if (!t->count && t->scope.by_process && t->process + 1 < t->rec->count) {
            set_next_entry(t, t->rec->processes[++t->process]->first_entry);
        } else if (!t->count || is_late(t)) {
            return 0;
        } else {
            error = open_root(t);
        }
        if (error < 0)
            return error;
    }
}

/* Whether the root is the next event already. */
static bool is_settled(const struct timeline *t)
{
    return t->count && t->heap[0].begin_ns < t->next_ns && t->heap[0].block->event.thread;
}

/* Inlines the decoder: calling it takes 17 more instructions, of some 250. */
__attribute__((flatten)) int timeline_next(struct timeline *t, struct event *event)
{
    if (t->is_handed_out) {
        t->is_handed_out = false;
        int error = advance_root(t);
        if (error < 0)
            return error;
    }
    int more = is_settled(t) ? 1 : timeline_settle(t);
    if (more <= 0)
        return more;
    *event = t->heap[0].block->event;
    t->is_handed_out = true;
    event->function = NULL;
    if (record_has_function(event->record->type)) {
        struct process *p = event->process;
        t->has_calls = true;
        event->function = function_of(&t->rec->reader.functions, &p->codes, event->record->code);
        if (event->function->domain == FUNCTION_DOMAIN_ANY)
            t->losses[p->index].unknown_functions++;
    }
    return 1;
}

const char *timeline_path(const struct timeline *t)
{
    return t->failed ? t->failed->file.path : "gpuprof-collector";
}
