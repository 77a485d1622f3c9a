/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seal.h"

#include <errno.h>

#include "base/futex.h"
#include "base/pages.h"
#include "base/say.h"
#include "base/ticks.h"
#include "block.h"
#include "cost/cost_sums.h"
#include "crc32c.h"
#include "record/pool.h"
#include "record/thread.h"
#include "store/block_sink.h"
#include "store/compress.h"

#define OWN_CHUNK_BYTES  (512u << 10) /* for the writer's own records */
#define GOOD_BLOCK_BYTES (512u << 10) /* raw records of a thread that make a block of good size */
#define STAND_IN_BYTES   128
#define LIVENESS_NS      200000000u /* how often to check whether owners still exist */

/* A chunk with unsealed records, as found at the beginning of a pass. */
struct part {
    uint8_t *chunk;
    struct chunk_owner *owner; /* NULL: the chunk is the writer's own */
    uint64_t position;         /* of its first record */
    uint64_t committed;
    uint64_t sealed;
    uint32_t thread;
    bool full; /* no thread appends any more */
    /* what it contains from `sealed` on is not known: the program has overwritten the size */
    bool is_lost;
};

struct sealer {
    struct block_encoder encoder;
    struct part *parts;
    uint32_t part_count;
    uint32_t part_max;
    uint8_t *payload;
    size_t payload_bytes_max;
    uint8_t *block; /* header and frame */
    size_t block_bytes_max;
    uint8_t *own_chunk;
    uint8_t stand_in[STAND_IN_BYTES];
    uint64_t sequence;
    uint32_t cost_index;  /* of the thread being sealed; cost_sums.h */
    uint64_t sealed_ns;   /* when everything was last sealed */
    uint64_t liveness_ns; /* when owners were last checked */
};

/* Set by the thread that starts a recording; used by the sealer. */
static struct block_sink *sink;
static void (*report)(const uint8_t *record, size_t bytes);

void seal_report(void (*see)(const uint8_t *record, size_t bytes))
{
    report = see;
}

static void drop_pages(void *p, size_t bytes)
{
    if (p)
        munmap(p, bytes);
}

struct sealer *seal_create(struct block_sink *to)
{
    sink = to;
    struct sealer *s = pages_map(sizeof *s);
    if (!s)
        return NULL;
    s->part_max = atomic_load(&gp.pool.chunk_max) + 1;
    s->payload_bytes_max = BLOCK_PAYLOAD_BYTES_MAX;
    s->block_bytes_max = BLOCK_HEADER_BYTES + compress_bytes_max(BLOCK_PAYLOAD_BYTES_MAX);
    s->parts = pages_map(s->part_max * sizeof *s->parts);
    s->payload = pages_map(s->payload_bytes_max);
    s->block = pages_map(s->block_bytes_max);
    s->own_chunk = pages_map(OWN_CHUNK_BYTES);
    if (s->parts && s->payload && s->block && s->own_chunk)
        return s;
    int error = errno;
    seal_free(s);
    errno = error;
    return NULL;
}

void seal_free(struct sealer *s)
{
    drop_pages(s->parts, s->part_max * sizeof *s->parts);
    drop_pages(s->payload, s->payload_bytes_max);
    drop_pages(s->block, s->block_bytes_max);
    drop_pages(s->own_chunk, OWN_CHUNK_BYTES);
    drop_pages(s, sizeof *s);
}

void seal_attach(struct sealer *s, struct thread *me)
{
    me->number = 0;
    me->tid = thread_id();
    /* never equal to the page's: only distinguishes this recording from a parent's */
    me->epoch = gp.next_epoch;
    me->records = s->own_chunk + LIVE_CHUNK_HEAD_BYTES;
    me->used = 0;
    me->capacity = OWN_CHUNK_BYTES - LIVE_CHUNK_HEAD_BYTES;
    s->sealed_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Leaves the chunk for an owner that is gone. */
static void look_after_owner(const struct chunk_owner *owner, uint8_t *chunk)
{
    uint32_t number = owner_number(owner);
    if (!thread_exists(atomic_load_explicit(&owner->tid, memory_order_relaxed)))
        pool_leave_dead(&gp.pool, chunk, number);
}

/* After a kill between the two steps they are lost, and not counted twice. */
static void count_passed(struct chunk_owner *owner, uint8_t *chunk)
{
    uint64_t passed = chunk_u64(chunk, LIVE_CHUNK_PASSED);
    uint64_t counted = chunk_u64(chunk, LIVE_CHUNK_COUNTED);
    if (passed == counted)
        return;
    if (passed - counted > UINT32_MAX) { /* impossible: the program has overwritten one */
        chunk_set_u64(chunk, LIVE_CHUNK_PASSED, 0);
        chunk_set_u64(chunk, LIVE_CHUNK_COUNTED, 0);
        counter_add(COUNTER_OVERWRITTEN, 1);
        return;
    }
    chunk_set_u64(chunk, LIVE_CHUNK_COUNTED, passed);
    counter_add(COUNTER_PASSED_BY, passed - counted);
    cost_sums_passed(atomic_load(&owner->cost), passed - counted);
    cost_sums_active(owner);
}

/* Returns how much of the chunk is plausible: the program may have overwritten its head. The owner
 * repairs it with its next record; otherwise the data is lost. */
static uint64_t believed(const struct chunk_owner *owner, struct part *p, uint64_t committed)
{
    uint64_t most = gp.pool.chunk_bytes - LIVE_CHUNK_HEAD_BYTES;
    uint64_t used = atomic_load_explicit(&owner->used, memory_order_acquire);
    if (p->full && used != CHUNK_USED_UNKNOWN)
        return used;
    if (committed <= most && committed >= p->sealed)
        return committed;
    p->is_lost = p->full;
    return p->sealed;
}

/* Its owner may empty the chunk while we read (pool_begin_anew): then the next pass reads it. */
static void add_part(struct sealer *s, struct chunk_owner *owner, uint8_t *chunk,
                     enum live_chunk_state state, uint32_t take)
{
    struct part *p = &s->parts[s->part_count];
    *p = (struct part){.chunk = chunk,
                       .owner = owner,
                       .thread = owner_number(owner),
                       .position = atomic_load_explicit(&owner->position, memory_order_acquire),
                       .sealed = atomic_load_explicit(&owner->sealed, memory_order_acquire),
                       .full = state == LIVE_FULL};
    uint64_t committed = chunk_u64(chunk, LIVE_CHUNK_COMMITTED) & ~(uint64_t)LIVE_OPEN_MASK;
    if (atomic_load_explicit(&owner->take, memory_order_acquire) != take)
        return;
    p->committed = believed(owner, p, committed);
    if (p->committed > p->sealed || p->full)
        s->part_count++;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* Heap sort, since qsort may allocate. */
static void sort_parts(struct part *parts, uint32_t count)
{
    for (uint32_t start = count / 2, end = count; end > 1;) {
        struct part moved;
        if (start > 0) {
            moved = parts[--start];
        } else {
            moved = parts[--end];
            parts[end] = parts[0];
        }
        uint32_t root = start;
        for (uint32_t child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && compare_parts(&parts[child], &parts[child + 1]) < 0)
                child++;
            if (compare_parts(&moved, &parts[child]) >= 0)
                break;
            parts[root] = parts[child];
        }
        parts[root] = moved;
    }
}

/*
 * Threads continue meanwhile. A chunk taken after the search began is left for the next pass:
 * otherwise what its thread has put into the previous chunk, after that was read, would be skipped.
 */
static void collect_parts(struct sealer *s, bool look_after)
{
    uint32_t takes = atomic_load(&gp.pool.take_count);
    uint32_t allocated = atomic_load(&gp.pool.allocated);
    s->part_count = 0;
    for (uint32_t i = 0; i < allocated; i++) {
        uint8_t *chunk = pool_chunk(&gp.pool, i);
        struct chunk_owner *owner = &gp.pool.owners[i];
        enum live_chunk_state state = owner_state(owner);
        if (state == LIVE_OWNED && look_after) {
            look_after_owner(owner, chunk);
            state = owner_state(owner);
        }
        uint32_t take = atomic_load_explicit(&owner->take, memory_order_acquire);
        bool is_older = (int32_t)(takes - take) >= 0;
        if (is_older && (state == LIVE_OWNED || state == LIVE_FULL)) {
            count_passed(owner, chunk);
            add_part(s, owner, chunk, state, take);
        }
    }
    sort_parts(s->parts, s->part_count);
}

/* An error ends the recording, and not the program. */
static bool seal_append(const uint8_t *block, size_t bytes)
{
    if (sink->append(sink, block, bytes))
        return true;
    int error = errno;
    uint64_t ms = (clock_ns(CLOCK_MONOTONIC) - gp.header.monotonic_zero_ns) / 1000000;
    atomic_store(&gp.counters[COUNTER_ENDED], 1);
    say(SAY_WRITE,
        "recording ended after %llu.%03llu s: cannot write '%s': %s; the data up to then can be "
        "read",
        (unsigned long long)ms / 1000, (unsigned long long)ms % 1000, sink->place,
        error == ENOENT ? "the folder or the file was removed" : error_text(error));
    return false;
}

static bool store_block(struct sealer *s, struct block_header *h)
{
    struct block_encoder *e = &s->encoder;
    uint32_t records = e->record_count;
    if (block_encode(e, &gp.header.scale, s->payload, s->payload_bytes_max, h) < 0) {
        counter_add(COUNTER_WRITE_LOST, records);
        block_encoder_reset(e);
        return true;
    }
    uint8_t *frame = s->block + BLOCK_HEADER_BYTES;
    size_t bytes = compress_frame(s->payload, h->payload_bytes, frame,
                                  s->block_bytes_max - BLOCK_HEADER_BYTES);
    h->sequence = s->sequence;
    h->flags = sink->flags | (api_calls_are_plain(e) ? (uint32_t)BLOCK_PLAIN_CALLS : 0);
    h->stored_bytes = (uint32_t)bytes;
    h->stored_crc = crc32c(0, frame, bytes);
    block_header_write(h, s->block);
    if (!seal_append(s->block, BLOCK_HEADER_BYTES + bytes)) {
        if (h->thread == 0) /* others are still in their chunks */
            counter_add(COUNTER_WRITE_LOST, records);
        block_encoder_reset(e);
        return false;
    }
    s->sequence++;
    pool_prepare(&gp.pool);
    for (uint32_t i = 0; h->thread && i < e->shape_count; i++)
        cost_sums_sealed(s->cost_index, e->shape_keys[i], e->shape_counts[i]);
    if (h->thread)
        cost_sums_reached(s->cost_index, h->max_ns);
    block_encoder_reset(e);
    return true;
}

/* Marks as stored what is before `position` in parts[first..last). */
static void mark_stored(struct sealer *s, uint32_t first, uint32_t last, uint64_t position)
{
    for (uint32_t i = first; i < last; i++) {
        struct part *p = &s->parts[i];
        uint64_t stored = position > p->position ? position - p->position : 0;
        if (stored > p->sealed && p->chunk != s->own_chunk)
            pool_set_sealed(&gp.pool, p->chunk, stored < p->committed ? stored : p->committed);
    }
}

/* Adds a record in place of lost ones, since a gap in a thread's positions would look like a
 * damaged file: it has the number of positions. */
static void add_stand_in(struct sealer *s)
{
    const char *name = counter_infos[COUNTER_OVERWRITTEN].name;
    struct record r = {
        RECORD_WITH(COUNTER, [COUNTER_VALUE] = atomic_load(&gp.counters[COUNTER_OVERWRITTEN])),
        .code = COUNTER_OVERWRITTEN, .begin = ticks_now(), .bytes = (const uint8_t *)name,
        .byte_count = (uint32_t)strlen(name)};
    int bytes = record_write(&r, s->stand_in, sizeof s->stand_in);
    if (bytes > 0)
        block_encoder_add(&s->encoder, s->stand_in, (size_t)bytes);
}

/*
 * All of parts[first..last) is in the stream: full chunks become free, and the others are marked.
 */
static void let_go(struct sealer *s, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i < last; i++) {
        if (s->parts[i].is_lost)
            counter_add(COUNTER_OVERWRITTEN, 1);
        if (s->parts[i].full)
            pool_free(&gp.pool, s->parts[i].chunk);
    }
}

/* Seals parts[first..last) of one thread; stored data is marked, and full chunks become free. */
static bool seal_thread(struct sealer *s, uint32_t first, uint32_t last)
{
    struct block_header h = {.thread = s->parts[first].thread};
    uint64_t position = s->parts[first].position + s->parts[first].sealed;
    h.position_begin = position;
    const struct chunk_owner *owner = s->parts[first].owner;
    s->cost_index = owner ? atomic_load(&owner->cost) : 0;
    if (owner)
        cost_sums_active(s->parts[last - 1].owner); /* of its current chunk */
    block_encoder_reset(&s->encoder);
    for (uint32_t i = first; i < last; i++) {
        struct part *p = &s->parts[i];
        uint64_t at = p->sealed;
        /* Nothing yet: everything in a full chunk was stored in an earlier pass, with the begin of
         * the next chunk, which its thread already had. */
        if (position == h.position_begin)
            h.position_begin = p->position + at;
        position = p->position + at;
        while (at < p->committed) {
            const uint8_t *record = p->chunk + LIVE_CHUNK_HEAD_BYTES + at;
            int bytes = block_encoder_add(&s->encoder, record, p->committed - at);
            if (bytes == 0) {
                h.position_end = position;
                if (!store_block(s, &h)) {
                    mark_stored(s, first, last, h.position_begin);
                    return false;
                }
                /* Now, and not at the end: a thread that is faster than we are then needs fewer
                 * chunks, whose pages are in a cache. */
                mark_stored(s, first, last, position);
                let_go(s, first, i);
                first = i;
                h.position_begin = position;
                continue;
            }
            /* the program has overwritten it; where the next one begins is not known */
            if (bytes < 0) {
                counter_add(COUNTER_OVERWRITTEN, 1);
                bytes = (int)(p->committed - at);
            } else {
                if (sink->see)
                    sink->see(sink, h.thread, position, record, (size_t)bytes);
                if (report)
                    report(record, (size_t)bytes);
            }
            at += (uint64_t)bytes;
            position += (uint64_t)bytes;
        }
    }
    h.position_end = position;
    if (!s->encoder.record_count && position > h.position_begin)
        add_stand_in(s);
    bool good = !s->encoder.record_count || store_block(s, &h);
    mark_stored(s, first, last, good ? position : h.position_begin);
    if (good)
        let_go(s, first, last);
    return good;
}

bool seal_own(struct sealer *s, struct thread *me)
{
    if (!me->used)
        return true;
    s->parts[0] =
        (struct part){.chunk = s->own_chunk, .position = me->position, .committed = me->used};
    bool good = seal_thread(s, 0, 1);
    me->position += me->used;
    me->used = 0;
    return good;
}

bool seal_pass(struct sealer *s, struct thread *me, bool all, uint64_t now_ns)
{
    if (!seal_own(s, me))
        return false;
    bool due = now_ns - s->sealed_ns >= gp.settings.numbers[SETTING_SEAL];
    bool pressed =
        atomic_exchange(&gp.pool.wanted, 0) ||
        4 * (uint64_t)atomic_load(&gp.pool.full_count) >= 3 * (uint64_t)gp.pool.shared_max;
    bool look_after = all || pressed || now_ns - s->liveness_ns >= LIVENESS_NS;
    if (look_after)
        s->liveness_ns = now_ns;
    if (due || all)
        s->sealed_ns = now_ns;
    collect_parts(s, look_after);
    bool freed = false;
    for (uint32_t first = 0, last; first < s->part_count; first = last) {
        uint64_t bytes = 0;
        for (last = first; last < s->part_count && s->parts[last].thread == s->parts[first].thread;
             last++)
            bytes += s->parts[last].committed - s->parts[last].sealed;
        if (!all && !due && !pressed && bytes < GOOD_BLOCK_BYTES)
            continue;
        if (!seal_thread(s, first, last))
            return false;
        freed = true;
    }
    if (freed) {
        atomic_fetch_add(&gp.pool.free_event, 1);
        futex_wake_all(&gp.pool.free_event);
    }
    return true;
}

/* Counts records that are in chunks only, as far as the program has not overwritten them. */
static uint64_t count_left(void)
{
    uint64_t records = 0;
    uint32_t allocated = atomic_load(&gp.pool.allocated);
    for (uint32_t i = 0; i < allocated; i++) {
        uint8_t *chunk = pool_chunk(&gp.pool, i);
        const struct chunk_owner *owner = pool_owner(&gp.pool, chunk);
        enum live_chunk_state state = owner_state(owner);
        uint64_t end = chunk_u64(chunk, LIVE_CHUNK_COMMITTED) & ~(uint64_t)LIVE_OPEN_MASK;
        uint64_t room = gp.pool.chunk_bytes - LIVE_CHUNK_HEAD_BYTES;
        struct record_layout layout;
        if (state != LIVE_OWNED && state != LIVE_FULL)
            continue;
        for (uint64_t at = atomic_load(&owner->sealed); at < end && end <= room; records++) {
            const uint8_t *record = chunk + LIVE_CHUNK_HEAD_BYTES + at;
            if (record_lay_out(record, end - at, load_u64(record), &layout) < 0)
                break;
            at += 8 * (uint64_t)layout.words;
        }
    }
    return records;
}

void seal_report_end(void)
{
    uint64_t counters[COUNTER_COUNT];
    if (!atomic_load(&gp.counters[COUNTER_ENDED]))
        return;
    for (unsigned i = 0; i < COUNTER_COUNT; i++)
        counters[i] = atomic_load(&gp.counters[i]);
    counters[COUNTER_WRITE_LOST] += gp.pool.is_file ? 0 : count_left();
    sink->end(sink, counters);
}
