/* SPDX-License-Identifier: Apache-2.0 */
#include "read/process.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "error.h"
#include "live.h"
#include "record/losses.h"

struct chunk_place {
    struct live_chunk chunk;
    uint32_t index;
};

struct tail_reader {
    struct process *process;
    struct losses *losses; /* a view of the process's */
    const struct live_file *live;
    struct zstandard *codec;
    const struct clock_scale *scale;
    struct block_encoder *encoder;
    struct chunk_place *places;
    uint32_t place_count;
    uint8_t *data; /* one chunk of records */
    struct thread *thread;
    uint64_t block_begin; /* position of the first record in the encoder */
    uint64_t end_ns;      /* latest known end */
    bool is_flight;
};

static const struct clock_scale identity_scale = {.mult = 1ull << CLOCK_SCALE_SHIFT};

static int compare_places(const void *left, const void *right)
{
    const struct chunk_place *a = left, *b = right;
    return ORDER(a->chunk.thread, b->chunk.thread) ?:
           ORDER(a->chunk.position, b->chunk.position) ?: ORDER(a->index, b->index);
}

/* Makes a block of the encoder's records. */
static int live_tail_flush(struct tail_reader *r, const struct clock_scale *scale,
                           uint64_t position_end)
{
    if (r->encoder->record_count == 0)
        return 0;
    struct block_header h = {.thread = r->thread->number,
                             .position_begin = r->block_begin,
                             .position_end = position_end,
                             .flags = r->is_flight ? BLOCK_AFTER_GAP : 0};
    struct live_tail *t = &r->process->live;
    uint8_t *stored = NULL;
    int error = block_store(r->codec, r->encoder, scale, &h, &stored);
    if (error == 0) {
        ARRAY_PUSH(t->blocks, t->count, (&(struct live_block){h, stored}));
        t->bytes += h.stored_bytes;
    }
    block_encoder_reset(r->encoder);
    r->block_begin = position_end;
    return error;
}

/* Adds one record at `position` of `size` bytes. */
static int take_record(struct tail_reader *r, const uint8_t *data, size_t size,
                       const struct record *record, uint64_t position)
{
    int added = block_encoder_add(r->encoder, data, size);
    if (added == 0) {
        int error = live_tail_flush(r, r->scale, position);
        if (error < 0)
            return error;
        added = block_encoder_add(r->encoder, data, size);
    }
    assert(added == (int)size); /* record_parse accepted it */
    uint64_t end = record->begin + record->duration;
    r->end_ns = max_of(r->end_ns, clock_scale_ns(r->scale, max_of(end, record->begin)));
    r->losses->live_records++;
    return 0;
}

static int take_chunk(struct tail_reader *r, const struct chunk_place *place)
{
    const struct live_chunk *chunk = &place->chunk;
    ssize_t length = live_chunk_records(r->live, place->index, chunk, r->data);
    if (length < 0)
        return (int)length;
    length = (ssize_t)min_of((uint64_t)length, chunk->committed);
    struct thread *thread = r->thread;
    if (!thread->tid)
        thread->tid = chunk->tid;
    uint64_t gap = chunk->position > thread->live_end ? chunk->position - thread->live_end : 0;
    if (gap > losses_believable(r->end_ns)) {
        r->losses->live_damaged_bytes += chunk->committed;
        return 0;
    }
    if (gap) {
        /* It went on from a chunk that was copied too early: its snapshot ends there. */
        if (r->live->owner != LIVE_OWNER_ENDED)
            return 0;
        r->losses->missing_bytes += r->is_flight ? 0 : gap;
        thread->live_end = chunk->position;
    }
    if (r->is_flight)
        thread->live_end = max_of(thread->live_end, chunk->position + chunk->sealed);
    r->block_begin = thread->live_end;
    /* Skips what the stream file has: the program may have overwritten it since. */
    uint64_t stored = thread->live_end - chunk->position;
    size_t at = stored < (uint64_t)length ? (size_t)stored : (size_t)length;
    while (at < (size_t)length) {
        struct record record;
        int size = record_parse(r->data + at, (size_t)length - at, &record);
        if (size < 0) {
            r->losses->live_damaged_bytes += (uint64_t)length - at;
            break;
        }
        int error = take_record(r, r->data + at, (size_t)size, &record, chunk->position + at);
        if (error < 0)
            return error;
        at += (size_t)size;
    }
    thread->live_end = max_of(thread->live_end, chunk->position + at);
    /* The records are views of r->data, which the next chunk will overwrite. */
    return live_tail_flush(r, r->scale, thread->live_end);
}

static int take_open_call(struct tail_reader *r, const struct record *record, uint64_t stack)
{
    struct record open = {.type = RECORD_CALL,
                          .flags = record->flags & RECORD_NESTED,
                          .code = record->code,
                          .begin = clock_scale_ns(r->scale, record->begin),
                          .arg_count = record->arg_count};
    if (stack >> 32 == live_open_stack(record->begin, 0) >> 32)
        open.stack_id = (uint32_t)stack;
    open.duration = r->end_ns > open.begin ? r->end_ns - open.begin : 0;
    memcpy(open.args, record->args, sizeof open.args);
    uint8_t raw[8 * (RECORD_HEAD_WORDS + 1 + RECORD_ARGS_MAX)];
    int size = record_write(&open, raw, sizeof raw);
    if (size < 0)
        return GPUPROF_LIMIT;
    raw[1] |= RECORD_OPEN;
    r->block_begin = r->thread->live_end;
    size = block_encoder_add(r->encoder, raw, (size_t)size);
    assert(size > 0); /* an empty encoder always has room */
    r->losses->open_calls++;
    return live_tail_flush(r, &identity_scale, r->thread->live_end);
}

/* Adds the open calls of a chunk. A thread between two chunks may have left them in both. */
static int take_open_calls(struct tail_reader *r, const struct chunk_place *place)
{
    const struct live_chunk *chunk = &place->chunk;
    ssize_t length = live_chunk_records(r->live, place->index, chunk, r->data);
    if (length < 0)
        return (int)length;
    size_t at = chunk->committed;
    if (chunk->position + at < r->thread->live_end)
        return 0; /* the calls were finished, in the next chunk or the stream file */
    for (unsigned i = 0; i < chunk->open; i++) {
        struct record record;
        int size = at < (size_t)length ? record_parse(r->data + at, (size_t)length - at, &record)
                                       : GPUPROF_TRUNCATED;
        if (size < 0 || record.type != RECORD_CALL || record.flags & RECORD_BYTES) {
            if (r->live->owner == LIVE_OWNER_ENDED) /* else it went on meanwhile */
                r->losses->live_damaged_bytes += 8;
            return 0;
        }
        at += (size_t)size;
        if (record.begin <= r->thread->open_begin)
            continue;
        r->thread->open_begin = record.begin;
        int error = take_open_call(r, &record, chunk->open_stack);
        if (error < 0)
            return error;
    }
    return 0;
}

static int find_places(struct tail_reader *r)
{
    r->places = memory_new(r->live->chunk_count + 1u, sizeof *r->places);
    for (uint32_t i = 0; i < r->live->chunk_count; i++) {
        struct chunk_place *place = &r->places[r->place_count];
        int error = live_chunk_read(r->live, i, &place->chunk);
        if (error < 0)
            return error;
        if (place->chunk.state != LIVE_OWNED && place->chunk.state != LIVE_FULL)
            continue;
        if (place->chunk.passed > losses_believable(r->end_ns))
            r->losses->counters_damaged = 1;
        else
            r->process->live.passed += place->chunk.passed;
        place->index = i;
        r->place_count++;
    }
    qsort(r->places, r->place_count, sizeof *r->places, compare_places);
    return 0;
}

static int take_records(struct tail_reader *r)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < r->place_count; i++) {
        const struct chunk_place *place = &r->places[i];
        r->thread = thread_get(&r->process->threads, place->chunk.thread);
        if (!r->thread)
            return GPUPROF_LIMIT;
        if (i == 0 || place[-1].chunk.thread != place->chunk.thread) {
            r->thread->live_end = r->thread->position_end;
            r->thread->open_begin = 0;
        }
        error = take_chunk(r, place);
    }
    return error;
}

static int take_all_open_calls(struct tail_reader *r)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < r->place_count; i++) {
        const struct chunk_place *place = &r->places[i];
        r->thread = thread_find(&r->process->threads, place->chunk.thread);
        if (place->chunk.state == LIVE_OWNED && place->chunk.open && r->thread)
            error = take_open_calls(r, place);
    }
    return error;
}

int live_tail_read(struct process *p, const struct live_file *l, struct zstandard *codec,
                   uint64_t end_ns)
{
    struct tail_reader r = {.process = p,
                            .losses = &p->losses,
                            .live = l,
                            .codec = codec,
                            .scale = &l->header.scale,
                            .end_ns = max_of(live_file_alive_ns(l), end_ns),
                            .is_flight = p->dump_count != 0};
    p->losses.live_damaged_bytes += l->cut_bytes;
    p->losses.counters_damaged |= l->head_damaged;
    r.encoder = memory_from(malloc(sizeof *r.encoder));
    r.data = memory_from(malloc(l->chunk_bytes));
    int error = find_places(&r);
    if (error == 0) {
        block_encoder_reset(r.encoder);
        error = take_records(&r);
    }
    if (error == 0)
        error = take_all_open_calls(&r);
    free(r.places);
    free(r.data);
    free(r.encoder);
    return error;
}

void live_tail_release(struct live_tail *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->blocks[i].stored);
    free(t->blocks);
    *t = (struct live_tail){0};
}
