/* SPDX-License-Identifier: Apache-2.0 */
#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "futex.h"
#include "pool.h"
#include "say.h"
#include "start.h"
#include "ticks.h"
#include "writer.h"

#define FULL_WAKE 8 /* chunks left since the last wake that are worth waking the writer for */

__thread struct thread this_thread = {.epoch = EPOCH_THREAD};

/* Where a thread without a chunk puts its open call; nobody reads it. */
static uint8_t spare_chunk[LIVE_CHUNK_HEAD_BYTES] __attribute__((aligned(64)));

static void use_chunk(struct thread *t, uint8_t *chunk)
{
    t->chunk = chunk ? chunk : spare_chunk;
    t->cursor = t->chunk + LIVE_CHUNK_HEAD_BYTES;
    t->limit = chunk ? chunk + gp.pool.chunk_bytes : t->cursor;
}

bool thread_has_chunk(const struct thread *t)
{
    return t->chunk != spare_chunk;
}

/* A number names one thread: a chunk whose owner had the caller's tid belongs to a dead thread. */
static void leave_namesakes(uint32_t tid)
{
    uint32_t allocated = atomic_load(&gp.pool.allocated);
    for (uint32_t i = 0; i < allocated; i++) {
        uint8_t *chunk = pool_chunk(&gp.pool, i);
        uint64_t word = chunk_u64(chunk, LIVE_CHUNK_STATE); /* and the owner's number */
        if ((uint32_t)word == LIVE_OWNED && chunk_u32(chunk, LIVE_CHUNK_TID) == tid)
            pool_leave(&gp.pool, chunk, (uint32_t)(word >> 32));
    }
}

static uint8_t *wait_for_chunk(struct thread *t)
{
    uint8_t *chunk = pool_take(&gp.pool, t->number, t->tid, t->position);
    uint64_t wait_ns = gp.settings.numbers[SETTING_WAIT];
    if (chunk || t->waited || gp.settings.numbers[SETTING_ON_FULL] == ON_FULL_DROP || !wait_ns)
        return chunk;
    counter_add(COUNTER_WAITS, 1);
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + wait_ns;
    while (!chunk) {
        uint32_t event = atomic_load(&gp.pool.free_event);
        atomic_store(&gp.pool.wanted, 1);
        writer_wake();
        chunk = pool_take(&gp.pool, t->number, t->tid, t->position);
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (chunk || now_ns >= end_ns || !atomic_load(&gp.writer.running))
            break;
        futex_wait(&gp.pool.free_event, event, end_ns - now_ns);
    }
    t->waited = !chunk;
    return chunk;
}

static void copy_open(uint8_t *chunk, const uint64_t *open)
{
    memcpy(chunk + LIVE_CHUNK_OPEN_BEGIN, open + 1, (1 + LIVE_OPEN_ARGS) * sizeof *open);
    chunk_set_u64(chunk, LIVE_CHUNK_OPEN, open[0]);
}

static uint8_t *change_chunk(struct thread *t, size_t bytes)
{
    uint8_t *old = t->chunk;
    if (old != spare_chunk) {
        uint64_t open[2 + LIVE_OPEN_ARGS];
        memcpy(open, old + LIVE_CHUNK_OPEN, sizeof open);
        t->position += (uint64_t)(t->cursor - old) - LIVE_CHUNK_HEAD_BYTES;
        /* The open call is in one chunk or the other at any time: a kill must not lose it. */
        uint8_t *chunk = pool_take(&gp.pool, t->number, t->tid, t->position);
        if (chunk) {
            copy_open(chunk, open);
            use_chunk(t, chunk);
        } else {
            use_chunk(t, NULL);
        }
        chunk_set_u64(old, LIVE_CHUNK_OPEN, 0);
        pool_leave(&gp.pool, old, t->number);
        if (atomic_load_explicit(&gp.pool.full_count, memory_order_relaxed) >= FULL_WAKE)
            writer_wake();
        if (!chunk && (chunk = wait_for_chunk(t))) {
            copy_open(chunk, open);
            use_chunk(t, chunk);
        }
    } else {
        use_chunk(t, wait_for_chunk(t));
    }
    if (t->chunk != spare_chunk && (size_t)(t->limit - t->cursor) >= bytes) {
        t->waited = false;
        return t->cursor;
    }
    counter_add(COUNTER_DROPPED, 1);
    say(SAY_DROPPED,
        "events are being dropped (and counted): the %s buffer is full and the writer "
        "cannot keep up; raise --buffer or --wait",
        setting_infos[SETTING_BUFFER].variable);
    return NULL;
}

/*
 * A signal handler that leaves by longjmp, or a cancellation, in the middle of this would leave two
 * chunks with one position. By system call, because the C library lets its own signals through.
 */
uint8_t *thread_room_slow(struct thread *t, size_t bytes)
{
    int saved = errno;
    uint64_t all = UINT64_MAX, old = 0;
    int cancel_state;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    uint8_t *room = change_chunk(t, bytes);
    pthread_setcancelstate(cancel_state, &cancel_state);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof old);
    errno = saved;
    return room;
}

bool thread_append(struct thread *t, const struct record *r)
{
    size_t bytes =
        8 * (RECORD_HEAD_WORDS + 1 + (size_t)r->arg_count + 1 + (r->byte_count + 7u) / 8);
    uint8_t *room = thread_room(t, bytes);
    if (!room)
        return false;
    int written = record_write(r, room, bytes);
    if (written <= 0)
        return false;
    thread_commit(t, room, (size_t)written);
    return true;
}

static void append_thread_record(struct thread *t)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name, 0, 0, 0);
    struct record r = {.type = RECORD_THREAD,
                       .begin = ticks_now(),
                       .arg_count = 1,
                       .args = {t->tid},
                       .bytes = (const uint8_t *)name,
                       .byte_count = (uint32_t)strnlen(name, 16)};
    thread_append(t, &r);
}

bool thread_attach(struct thread *t)
{
    int saved = errno;
    if (!start_recording()) {
        errno = saved;
        return false;
    }
    uint64_t epoch = atomic_load(&gp.page->epoch);
    if (epoch == EPOCH_NONE || epoch == t->epoch) {
        errno = saved;
        return epoch != EPOCH_NONE;
    }
    /* Everything a thread had in another epoch lies in another process's file. */
    *t = (struct thread){.epoch = EPOCH_THREAD, .tid = thread_id(), .inside = t->inside};
    t->number = 1 + atomic_fetch_add(&gp.pool.thread_count, 1);
    leave_namesakes(t->tid);
    use_chunk(t, wait_for_chunk(t));
    t->epoch = epoch;
    append_thread_record(t);
    errno = saved;
    return true;
}
