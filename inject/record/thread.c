/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "base/futex.h"
#include "base/say.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "bytes.h"
#include "record/feature.h"
#include "record/pool.h"
#include "record/start.h"
#include "record/wake.h"

#define FULL_WAKE 8 /* wake the writer after this many chunks were left */

__thread struct thread this_thread = THREAD_BLANK;

static uint8_t *chunk_of(const struct thread *t)
{
    return t->records ? t->records - LIVE_CHUNK_HEAD_BYTES : NULL;
}

/* Do calls, or some of them, take their stack at the begin? */
static bool begin_with_stacks(void)
{
    return gp.settings.numbers[SETTING_BACKTRACE] & ((1u << API_CLASS_COUNT) - 1) ||
           gp.settings.numbers[SETTING_BACKTRACE_THRESHOLD] == 0;
}

uint64_t thread_usual_limit(const struct thread *t)
{
    bool has_usual = process_clock.source != CLOCK_SOURCE_MONOTONIC &&
                     gp.settings.numbers[SETTING_FRONT] != FRONT_CUPTI && !begin_with_stacks();
    return t->records && has_usual && !t->has_moved && !t->passed ? t->capacity - OPEN_BYTES_MAX + 1
                                                                  : 0;
}

void thread_set_limit(struct thread *t)
{
    t->limit = t->burst || passing_calls() ? 0 : thread_usual_limit(t);
}

static void use_chunk(struct thread *t, uint8_t *chunk)
{
    t->records = chunk ? chunk + LIVE_CHUNK_HEAD_BYTES : NULL;
    t->used = 0;
    t->capacity = chunk ? gp.pool.chunk_bytes - LIVE_CHUNK_HEAD_BYTES : 0;
    if (chunk)
        atomic_store_explicit(&pool_owner(&gp.pool, chunk)->cost,
                              t->inside == CALL_FOR_GOOD ? THREAD_COST_OWN
                                                         : thread_cost_index(t->cost),
                              memory_order_relaxed);
    thread_set_limit(t);
}

void thread_follow(struct thread *t)
{
    t->epoch = (t->epoch & EPOCH_MASK) | (attention_now() & ATTENTION_COSTS);
    /* otherwise it makes few calls, and would only ever have the first calls of bursts */
    if (!t->burst)
        t->burst = THREAD_COST_BURST;
    thread_set_limit(t);
}

/* Counts the chunk's open records. Does not use its head, which may have been overwritten. */
static unsigned count_open(const struct thread *t)
{
    unsigned count = 0;
    if (!t->records || !call_newest(t))
        return 0;
    if (!call_has(t, CALL_LISTED))
        return 1;
    for (uint32_t i = 0; i < t->open_count; i++)
        count += t->opens[i].is_recorded;
    return count;
}

/* Open calls are listed as soon as one of them has no record. */
static void list_open(struct thread *t)
{
    struct call *newest = call_newest(t);
    if (newest && !call_has(t, CALL_LISTED)) {
        t->opens[0] = (struct open_call){newest, true};
        t->open_count = 1;
        call_set_newest(t, newest, CALL_LISTED);
    }
}

/* The `count` open records are dropped; their calls stay open without records. */
static void drop_open(struct thread *t, enum counter_index counter, unsigned count)
{
    if (!call_newest(t))
        return;
    list_open(t);
    for (uint32_t i = 0; i < t->open_count; i++)
        t->opens[i].is_recorded = false;
    counter_add(counter, count);
}

void thread_lose_open(struct thread *t)
{
    drop_open(t, COUNTER_OVERWRITTEN, count_open(t));
    if (t->records)
        chunk_commit(t->records, t->used);
}

struct open_records thread_find_open(struct thread *t)
{
    struct open_records o = {.count = count_open(t)};
    for (unsigned i = 0; i < o.count; i++) {
        uint64_t left = t->capacity - t->used - o.at[i];
        uint64_t word0 =
            left < 8 * RECORD_HEAD_WORDS ? 0 : load_u64(t->records + t->used + o.at[i]);
        uint64_t bytes = 8 * (uint64_t)record_word_count(word0);
        if (bytes < 8 * RECORD_HEAD_WORDS || bytes > CALL_BYTES_MAX || bytes > left) {
            thread_lose_open(t);
            return (struct open_records){0};
        }
        o.at[i + 1] = o.at[i] + (uint32_t)bytes;
    }
    return o;
}

/* A tid names one thread: a chunk whose owner had the caller's tid belongs to a dead thread. */
static void leave_namesakes(uint32_t tid)
{
    uint32_t allocated = atomic_load(&gp.pool.allocated);
    for (uint32_t i = 0; i < allocated; i++) {
        uint8_t *chunk = pool_chunk(&gp.pool, i);
        const struct chunk_owner *owner = &gp.pool.owners[i];
        uint64_t word = atomic_load(&owner->word);
        if ((uint32_t)word == LIVE_OWNED && atomic_load(&owner->tid) == tid)
            pool_leave_dead(&gp.pool, chunk, (uint32_t)(word >> 32));
    }
}

/*
 * Puts the open records, `bytes` long, after the complete ones; `stack` belongs to the newest one.
 */
static void put_open(struct thread *t, const uint8_t *records, size_t bytes, unsigned count,
                     uint64_t stack)
{
    memcpy(t->records + t->used, records, bytes);
    chunk_set_u64(chunk_of(t), LIVE_CHUNK_OPEN_STACK, stack);
    chunk_commit(t->records, t->used + count);
}

/*
 * Takes a chunk, the first one or another. If there is none, empties the current one, if the writer
 * has stored it. The open records move along: they are in one chunk or the other at any time, so
 * that a kill does not lose them. Returns false if nothing has changed.
 */
static bool change_chunk(struct thread *t)
{
    uint8_t *old = chunk_of(t);
    uint8_t open[OPEN_BYTES_MAX];
    struct open_records o = thread_find_open(t);
    unsigned count = o.count;
    size_t bytes = o.at[count];
    uint64_t used = t->used, position = t->position + used;
    uint64_t stack = old ? chunk_u64(old, LIVE_CHUNK_OPEN_STACK) : 0;
    uint8_t *chunk = pool_take(&gp.pool, t->number, t->tid, position, !old);
    bool is_stored = old && used && atomic_load(&pool_owner(&gp.pool, old)->sealed) == used;
    if (!chunk && !is_stored)
        return false;
    if (old)
        memcpy(open, t->records + used, bytes);
    if (chunk) {
        use_chunk(t, chunk);
        put_open(t, open, bytes, count, stack);
    } else {
        pool_begin_anew(&gp.pool, old, position);
        use_chunk(t, old);
        put_open(t, open, bytes, count, stack);
        pool_begun(&gp.pool, old);
    }
    t->position = position;
    if (chunk && old) {
        chunk_set_u64(old, LIVE_CHUNK_COMMITTED, used);
        pool_leave(&gp.pool, old, t->number, used);
        if (atomic_load_explicit(&gp.pool.full_count, memory_order_relaxed) >= FULL_WAKE)
            writer_wake();
    }
    return true;
}

/* The same with a wait. Returns false if the wait was too long; records that do not fit are
 * dropped. */
static bool wait_for_chunk(struct thread *t)
{
    uint64_t wait_ns = gp.settings.numbers[SETTING_WAIT];
    if (change_chunk(t))
        return true;
    if (t->waited || t->is_hurried || gp.settings.numbers[SETTING_ON_FULL] == ON_FULL_DROP ||
        !wait_ns) {
        if (!atomic_exchange(&gp.pool.wanted, 1))
            writer_wake();
        return false;
    }
    counter_add(COUNTER_WAITS, 1);
    uint64_t begin = ticks_now();
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + wait_ns;
    bool changed;
    for (;;) {
        uint32_t event = atomic_load(&gp.pool.free_event);
        atomic_store(&gp.pool.wanted, 1);
        writer_wake();
        changed = change_chunk(t);
        if (changed)
            break;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (now_ns >= end_ns || !atomic_load(&gp.writer.running))
            break;
        futex_wait(&gp.pool.free_event, event, end_ns - now_ns);
    }
    t->waited = !changed;
    thread_cost_time(t->cost, COST_WAIT, ticks_now() - begin);
    return changed;
}

static bool has_room_beside(const struct thread *t, size_t bytes, const struct open_records *o)
{
    return t->records && t->capacity - t->used >= bytes + o->at[o->count];
}

static bool thread_has_room(struct thread *t, size_t bytes)
{
    struct open_records o = thread_find_open(t);
    return has_room_beside(t, bytes, &o);
}

/* Signals are blocked: a signal handler that leaves by longjmp, or a cancellation, would otherwise
 * leave two chunks at one position. */
bool thread_make_room(struct thread *t, size_t bytes)
{
    if (likely(thread_has_room(t, bytes)))
        return true;
    int saved = errno;
    int cancel_state;
    uint64_t mask = block_signals();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    wait_for_chunk(t);
    pthread_setcancelstate(cancel_state, &cancel_state);
    restore_signals(mask);
    bool has = thread_has_room(t, bytes);
    if (has) {
        t->waited = false;
    } else {
        counter_add(COUNTER_DROPPED, 1);
        note(SAY_DROPPED, "the buffer was full and the writer could not keep up; raise --buffer or "
                          "--tune wait");
    }
    errno = saved;
    return has;
}

bool thread_append(struct thread *t, const struct record *r)
{
    size_t bytes = record_bytes(r);
    if (!thread_make_room(t, bytes))
        return false;
    struct open_records o = thread_find_open(t);
    unsigned count = o.count;
    uint8_t *room = t->records + t->used;
    if (!has_room_beside(t, bytes, &o)) { /* the program has just overwritten them */
        counter_add(COUNTER_DROPPED, 1);
        return false;
    }
    if (count) {
        t->extending = t->used + 1; /* if this is left by longjmp, they are dropped, and counted */
        atomic_signal_fence(memory_order_seq_cst);
        chunk_commit(t->records, t->used);
        memmove(room + bytes, room, o.at[count]);
    }
    int written = record_write(r, room, bytes);
    if (written > 0)
        t->used += (size_t)written;
    chunk_commit(t->records, t->used + count);
    atomic_signal_fence(memory_order_seq_cst);
    t->extending = 0;
    assert(t->used % 8 == 0 && t->used + o.at[count] <= t->capacity);
    return written > 0;
}

__attribute__((noinline)) bool thread_append_slowly(struct thread *t, uint64_t word0,
                                                    uint64_t begin, int result,
                                                    const uint64_t *args)
{
    struct record r = {.type = (uint8_t)word0,
                       .flags = (uint8_t)(word0 >> 8),
                       .code = (uint16_t)(word0 >> 32),
                       .result = result,
                       .begin = begin,
                       .arg_count = (uint8_t)(record_word_count(word0) - RECORD_HEAD_WORDS)};
    if (r.arg_count)
        memcpy(r.args, args, r.arg_count * sizeof *args);
    return thread_append(t, &r);
}

void thread_leave(struct thread *t)
{
    if (!t->records)
        return;
    t->position += t->used;
    pool_leave(&gp.pool, chunk_of(t), t->number, t->used);
    use_chunk(t, NULL);
}

void thread_close(struct thread *t, unsigned before)
{
    uint8_t record[CALL_BYTES_MAX];
    struct open_records o = thread_find_open(t);
    if (before >= o.count)
        return;
    size_t below = o.at[before], bytes = o.at[before + 1] - below;
    uint8_t *room = t->records + t->used;
    if (below) {
        chunk_commit(t->records, t->used);
        memcpy(record, room + below, bytes);
        memmove(room + bytes, room, below);
        memcpy(room, record, bytes);
    }
    chunk_fetch_ahead(room);
    t->used += bytes;
    chunk_commit(t->records, t->used + o.count - 1);
}

/* Removes an open record; those of newer calls move down, and are hidden meanwhile. */
static void thread_take_out(struct thread *t, const struct open_records *o, unsigned before)
{
    uint8_t *room = t->records + t->used;
    chunk_commit(t->records, t->used + before);
    memmove(room + o->at[before], room + o->at[before + 1], o->at[o->count] - o->at[before + 1]);
    chunk_commit(t->records, t->used + o->count - 1);
}

/*
 * Open records are hidden while one gets longer. After a kill at that moment, a call that has
 * returned has neither an open nor a complete record; if a signal handler leaves by longjmp, it is
 * lost, and counted.
 */
bool thread_close_with(struct thread *t, unsigned before, uint32_t stack, uint32_t weight)
{
    bool has_room = thread_make_room(t, 8);
    struct open_records o = thread_find_open(t);
    if (before >= o.count)
        return false;
    if (!has_room) { /* counted there: the record is removed */
        thread_take_out(t, &o, before);
        return false;
    }
    if (!has_room_beside(t, 8, &o) || o.at[before + 1] - o.at[before] + 8 > CALL_BYTES_MAX) {
        thread_lose_open(t);
        return false;
    }
    uint64_t *record = (uint64_t *)(void *)(t->records + t->used + o.at[before]);
    t->extending = t->used + 1;
    atomic_signal_fence(memory_order_seq_cst);
    chunk_commit(t->records, t->used);
    atomic_signal_fence(memory_order_seq_cst);
    /* and those of newer calls */
    memmove(&record[RECORD_HEAD_WORDS + 1], &record[RECORD_HEAD_WORDS],
            o.at[o.count] - o.at[before] - 8 * RECORD_HEAD_WORDS);
    record[RECORD_HEAD_WORDS] = stack | (uint64_t)weight << 32;
    record[0] = (record[0] | (uint64_t)RECORD_EXTENDED << 8) + (1ull << 16);
    chunk_commit(t->records, t->used + o.count);
    atomic_signal_fence(memory_order_seq_cst);
    t->extending = 0;
    thread_close(t, before);
    return true;
}

/* Can the chunk's head be right? It has one complete record less than we know, or the program has
 * overwritten it. */
static bool may_say(const struct thread *t, uint64_t used)
{
    return used == t->used ||
           (used < t->used &&
            t->used - used == 8 * (uint64_t)record_word_count(load_u64(t->records + used)));
}

void thread_settle(struct thread *t)
{
    if (!t->records)
        return;
    uint64_t committed = chunk_u64(chunk_of(t), LIVE_CHUNK_COMMITTED);
    uint32_t count = (uint32_t)(committed & LIVE_OPEN_MASK), wanted = count_open(t);
    /* it is not open yet, or no longer */
    if (!t->inside && !call_has(t, CALL_LISTED) && count == 0) {
        call_set_newest(t, NULL, 0);
        wanted = 0;
    }
    bool is_extending = t->extending && committed == t->extending - 1;
    t->extending = 0;
    if (!may_say(t, committed - count) || count > LIVE_OPEN_MAX) {
        chunk_commit(t->records, t->used + wanted);
        return;
    }
    t->used = committed - count;
    if (count > wanted) { /* the newest was not yet noted as open */
        chunk_commit(t->records, t->used + wanted);
    } else if (count < wanted) {
        if (count + 1 == wanted && !is_extending) { /* the newest is over; otherwise they moved */
            list_open(t);
            t->opens[t->open_count - 1].is_recorded = false;
        } else {
            drop_open(t, COUNTER_DROPPED, wanted);
        }
    }
}

static void append_thread_record(struct thread *t)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name, 0, 0, 0);
    struct record r = {RECORD_WITH(THREAD, [THREAD_TID] = t->tid), .begin = ticks_now(),
                       .bytes = (const uint8_t *)name, .byte_count = (uint32_t)strnlen(name, 16)};
    thread_append(t, &r);
}

bool thread_attach(struct thread *t)
{
    int saved = errno;
    uint64_t begin = ticks_now();
    if (!start_recording()) {
        errno = saved;
        return false;
    }
    uint64_t epoch = epoch_now();
    if (epoch == EPOCH_NONE || thread_takes_part(t)) {
        errno = saved;
        return epoch != EPOCH_NONE;
    }
    /* What the thread has of another epoch is in another process's file. */
    *t = (struct thread){.epoch = EPOCH_THREAD,
                         .tid = thread_id(),
                         .open = call_with(NULL, (uintptr_t)t->open & CALL_INSIDE),
                         .inside = t->inside,
                         .caller = t->caller,
                         .stand_in = t->stand_in,
                         .has_moved = t->has_moved,
                         .is_hurried = t->is_hurried,
                         .cost = &thread_cost_shared};
    t->number = 1 + atomic_fetch_add(&gp.pool.thread_count, 1);
    t->cost = thread_cost_take(t->number, t->tid, t->inside == CALL_FOR_GOOD);
    leave_namesakes(t->tid);
    wait_for_chunk(t);
    t->epoch = epoch | (attention_now() & ATTENTION_COSTS);
    append_thread_record(t);
    FEATURES_DO(attached, (t));
    if (attention_now() & ATTENTION_COSTS) { /* it may end before it is asked again */
        t->burst = THREAD_COST_BURST;
        thread_set_limit(t);
    }
    thread_cost_time(t->cost, COST_START, ticks_now() - begin);
    errno = saved;
    return true;
}
