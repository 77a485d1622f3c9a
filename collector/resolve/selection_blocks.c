/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the blocks that a walk with a selection reads. */
#include <stdlib.h>

#include "error.h"
#include "record/gpu_record.h"
#include "resolve/look_ahead.h"
#include "resolve/selection.h"

/* Context of calls, which a table of rows (rows.h) does not need. It needs a link (rare), which may
 * be in a later block than its call. */
#define AROUND_TYPES                                                                               \
    (block_type_bit(RECORD_PUSH) | block_type_bit(RECORD_POP) |                                    \
     block_type_bit(RECORD_RANGE_START) | block_type_bit(RECORD_RANGE_END) |                       \
     block_type_bit(RECORD_MARK) | block_type_bit(RECORD_STEP) | block_type_bit(RECORD_OP_BEGIN) | \
     block_type_bit(RECORD_OP_END) | block_type_bit(RECORD_LIBRARY_BEGIN) |                        \
     block_type_bit(RECORD_LIBRARY_END) | block_type_bit(RECORD_MEMORY) |                          \
     block_type_bit(RECORD_TENSOR) | block_type_bit(RECORD_CONTENT) |                              \
     block_type_bit(RECORD_SILENCE))

/* Clock noise can place work this long before its call. */
static uint64_t selection_blocks_later(uint64_t ns)
{
    return ns < UINT64_MAX - AHEAD_NS ? ns + AHEAD_NS : UINT64_MAX;
}

/* Whether the block has nothing in these steps or ranges. With `matters`, earlier blocks are needed
 * in any case. Their work may come much later. */
static bool is_beside(const struct time_spans *spans, const struct block_span *b, bool has_work,
                      bool matters)
{
    if (!spans->count)
        return !matters;
    return (!matters && selection_blocks_later(b->end_ns) < spans->list[0].begin_ns) ||
           (!has_work &&
            b->begin_ns >= selection_blocks_later(spans->list[spans->count - 1].end_ns));
}

/* The last calls of a process that did not exit normally show why it hung. */
static bool reads_all_of(const struct process *p)
{
    return p->live.count || p->end_reason != END_EXIT;
}

/* Other records are read at any time: few blocks have them, and they explain others. */
static bool is_passed(const struct selection *s, uint64_t types)
{
    uint64_t passed = CALL_TYPES | WORK_TYPES | (s->reads == CALLS_OF_ROWS ? AROUND_TYPES : 0);
    return types && !(types & ~passed);
}

bool selection_wants(void *context, const struct process *p, const struct block_span *b)
{
    const struct selection *s = context;
    bool has_calls = b->types & CALL_TYPES, has_work = b->types & WORK_TYPES, matters;
    if (!is_passed(s, b->types) || reads_all_of(p) || (has_calls && s->reads == CALLS_OF_ALL) ||
        (has_work && s->keeps_work))
        return true;
    matters = has_calls && (s->reads == CALLS_UP_TO || (s->called && s->called[b->entry]));
    bool is_wanted = b->begin_ns < (has_calls ? selection_blocks_later(s->to_ns) : s->to_ns) &&
                     (matters || b->end_ns >= s->from_ns);
    for (unsigned i = 0; is_wanted && i < SELECTION_SPANS; i++)
        is_wanted = !s->spans[i] || !is_beside(&s->spans[i][p->index], b, has_work, matters);
    return is_wanted;
}

/* ---- calls before the selection -------------------------------------------------------------- */

/* Correlation ids of a process as if they had 64 bits: they start again after 2^32. */
struct called_ids {
    uint64_t last;  /* seen; the next one is less than 2^31 away */
    uint64_t least; /* of the work; UINT64_MAX: none */
};

/*
 * Finds the calls of selected work. Correlation ids rise along each thread, so take the least id of
 * that work. Each thread's calls are in the last block that begins with a smaller id, and in the
 * blocks after it.
 */
struct called {
    struct selection *s;
    struct called_ids *ids; /* owned, by process index */
    uint8_t *left;          /* owned, by thread index: whether more blocks are needed */
    struct time_span span;  /* selected time of the current process */
    bool is_work;           /* looks for work now; else for calls */
    uint8_t *payload;       /* owned, of the current block */
    size_t capacity;
};

enum { LEFT_NONE, LEFT_ONE, LEFT_MORE };

static bool is_correlated(unsigned type)
{
    return is_stream_work(type) || type == RECORD_SYNC || type == RECORD_OVERHEAD ||
           type == RECORD_MEMORY;
}

static uint64_t whole_id(struct called_ids *ids, uint32_t id)
{
    ids->last += (uint64_t)(int32_t)(id - (uint32_t)ids->last);
    return ids->last;
}

/* Updates the least id by work that overlaps the selection. Returns 0 or an error. */
static int selection_blocks_take_work(struct called *c, struct process *p,
                                      struct block_decoder *decoder)
{
    struct called_ids *ids = &c->ids[p->index];
    struct clock_place clock = {0};
    struct record r;
    int more;
    while ((more = block_decoder_next(decoder, &r)) > 0) {
        uint64_t begin_ns, end_ns, begin = r.begin < CLOCK_NS_MAX ? r.begin : CLOCK_NS_MAX;
        uint64_t duration = r.duration < CLOCK_NS_MAX ? r.duration : CLOCK_NS_MAX;
        if (!is_correlated(r.type) || !r.correlation || whole_id(ids, r.correlation) >= ids->least)
            continue;
        clock_map_look_both(&p->clock, &clock, begin, begin + duration, &begin_ns, &end_ns);
        if (begin_ns < c->span.end_ns && end_ns >= c->span.begin_ns)
            ids->least = ids->last;
    }
    return more;
}

/* Checks the first call of a block. A link may be in the block after its call. */
static int take_calls(struct called *c, struct process *p, const struct block_header *h,
                      struct block_decoder *decoder)
{
    const struct thread *thread = thread_find(&p->threads, h->thread);
    struct record r;
    int more;
    while ((more = block_decoder_next(decoder, &r)) > 0 &&
           !(r.type == RECORD_CALL && r.correlation))
        ;
    if (more > 0 && thread && whole_id(&c->ids[p->index], r.correlation) < c->ids[p->index].least)
        c->left[thread->index] =
            h->types & block_type_bit(RECORD_LINK) && c->left[thread->index] == LEFT_MORE
                ? LEFT_ONE
                : LEFT_NONE;
    return more < 0 ? more : 0;
}

/* Reads a block; ignores a damaged one, which the walk counts. Returns 0 or an error. */
static int look_at(struct called *c, struct process *p, uint64_t offset)
{
    struct reader *reader = &c->s->walk->rec->reader;
    struct block_place place = {.offset = offset};
    struct block_decoder decoder;
    int error = process_block(p, reader, &place, &c->payload, &c->capacity);
    if (error == 0)
        error = block_decoder_init(&decoder, c->payload, place.header.payload_bytes,
                                   place.header.record_count);
    if (error == 0) {
        error = c->is_work ? selection_blocks_take_work(c, p, &decoder)
                           : take_calls(c, p, &place.header, &decoder);
        block_decoder_release(&decoder);
    }
    return error == GPUPROF_DAMAGED ? 0 : error;
}

/* Reads all blocks of an entry. */
static int look_into(struct called *c, const struct index_entry *entry)
{
    struct recording *rec = c->s->walk->rec;
    struct process *p = rec->loaded[entry->process];
    struct stream_scan scan;
    struct block_place block;
    int error = 0;
    if (entry->count == 1)
        return look_at(c, p, entry->offset);
    stream_scan_init(&scan, &p->file, &rec->reader.pool, entry->offset);
    for (uint32_t i = 0; i < entry->count && error == 0; i++) {
        if ((error = stream_scan_next(&scan, &block)) <= 0)
            break;
        error = look_at(c, p, block.offset);
    }
    return error;
}

/* Whether its blocks may have records of these types. */
static bool may_have(const struct index_entry *entry, uint64_t types)
{
    return !entry->types || entry->types & types;
}

static int find_least(struct called *c)
{
    const struct recording *rec = c->s->walk->rec;
    int error = 0;
    c->is_work = true;
    for (uint32_t i = 0; error == 0 && i < rec->index.count; i++) {
        const struct index_entry *entry = &rec->index.entries[i];
        const struct process *p = rec->loaded[entry->process];
        c->span = c->s->filter.bounds(c->s, p);
        if (!p->is_elsewhere && !reads_all_of(p) && may_have(entry, WORK_TYPES) &&
            entry->time < c->span.end_ns && entry->end >= c->span.begin_ns)
            error = look_into(c, entry);
    }
    return error;
}

/* Goes backwards from the last block before the end of the selection. */
static int find_calls(struct called *c)
{
    struct selection *s = c->s;
    const struct recording *rec = s->walk->rec;
    int error = 0;
    c->is_work = false;
    for (uint32_t i = rec->index.count; error == 0 && i-- > 0;) {
        const struct index_entry *entry = &rec->index.entries[i];
        struct process *p = rec->loaded[entry->process];
        const struct thread *thread =
            entry->thread == INDEX_THREADS ? NULL : thread_find(&p->threads, entry->thread);
        uint8_t *left = thread ? &c->left[thread->index] : NULL;
        if (c->ids[p->index].least == UINT64_MAX || !may_have(entry, CALL_TYPES) ||
            entry->time >= selection_blocks_later(s->to_ns) || (left && *left == LEFT_NONE))
            continue;
        s->called[i] = true;
        if (left && *left == LEFT_ONE)
            *left = LEFT_NONE;
        else
            error = look_into(c, entry);
    }
    return error;
}

/* Steps and ranges select work by its call, so earlier calls are not needed. */
int selection_begin(void *context, bool ties)
{
    struct selection *s = context;
    const struct recording *rec = s->walk->rec;
    struct called c = {.s = s};
    bool is_needed = ties && (s->reads == CALLS_OF_WORK || s->reads == CALLS_OF_ROWS) &&
                     !s->spans[SPANS_STEPS] && !s->spans[SPANS_RANGES];
    free(s->called);
    s->called = NULL;
    if (!is_needed)
        return 0;
    s->called = calloc(rec->index.count + 1u, sizeof *s->called);
    c.ids = malloc((rec->count + 1u) * sizeof *c.ids);
    c.left = malloc(rec->thread_count + 1u);
    int error = s->called && c.ids && c.left ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; error == 0 && i < rec->count; i++)
        c.ids[i] = (struct called_ids){1ull << 62, UINT64_MAX};
    if (error == 0)
        memset(c.left, LEFT_MORE, rec->thread_count + 1u);
    if (error == 0)
        error = find_least(&c);
    if (error == 0)
        error = find_calls(&c);
    free(c.ids);
    free(c.left);
    free(c.payload);
    return error;
}
