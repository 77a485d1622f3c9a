/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread of the program holds of us: its chunk and the call that it has open. Everything
 * here is touched by its own thread only; the chunk's header is what others see.
 */
#ifndef GPUPROF_INJECT_THREAD_H
#define GPUPROF_INJECT_THREAD_H

#include <string.h>

#include "state.h"

struct call;

/* Calls of the user's open at once on a thread, one inside the other: signal handlers, callbacks.
 */
#define OPEN_CALLS_MAX 3

/* An open call that another user's call came on top of, with its words in the live file. */
struct open_call {
    struct call *call;
    uint64_t words[2 + LIVE_OPEN_ARGS];
};

struct thread {
    uint64_t epoch;      /* EPOCH_THREAD, or the page's while this thread takes part */
    uint8_t *chunk;      /* its header; the spare page when the pool gave none */
    uint8_t *cursor;     /* where the next record goes */
    uint8_t *limit;      /* end of the chunk; == cursor on the spare page */
    struct call *open;   /* the newest call of the user's, NULL = none; lies on the stack */
    struct call *inside; /* the call inside whose record-keeping we are: hooks pass through then */
    uint64_t position;   /* of the chunk's first record in the thread's sequence */
    uint32_t number;     /* 1, 2, ...; 0 is the writer */
    uint32_t tid;
    bool waited; /* a wait for a chunk ran out: do not wait again until one was free */
    uint32_t below_count;
    struct open_call below[OPEN_CALLS_MAX - 1]; /* under `open`, oldest first */
};

/* TLS is initial-exec: the library is preloaded, and 300 bytes fit into the static reserve. */
extern __thread struct thread this_thread;

/*
 * Makes the calling thread take part: starts the recording if need be, takes a chunk, notes the
 * thread's name. False: this call is not to be recorded (recording is off, failed or ended).
 */
bool thread_attach(struct thread *t);

/* False while the thread stands on the spare page: what is written there, nobody reads. */
bool thread_has_chunk(const struct thread *t);

/*
 * Room for `bytes` in the thread's chunk, changing chunks if need be. NULL: dropped and counted.
 * May wait up to the setting "wait".
 */
uint8_t *thread_room_slow(struct thread *t, size_t bytes);

static inline uint8_t *thread_room(struct thread *t, size_t bytes)
{
    if (likely((size_t)(t->limit - t->cursor) >= bytes))
        return t->cursor;
    return thread_room_slow(t, bytes);
}

#define AHEAD_BYTES 512 /* some records: as long as a cache line takes from another processor */

/* The writer has read these lines since they were last written; asks for them before their turn. */
static inline void thread_fetch_ahead(uint8_t *room)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(room[AHEAD_BYTES])); /* the builtin says "to read" */
#else
    __builtin_prefetch(room + AHEAD_BYTES, 1);
#endif
}

/* Makes `bytes` at `room`, the cursor, part of the sequence: a kill does not lose them any more. */
static inline void thread_commit(struct thread *t, uint8_t *room, size_t bytes)
{
    uint8_t *chunk = t->chunk;
    thread_fetch_ahead(room);
    t->cursor = room + bytes;
    __atomic_store_n((uint64_t *)(void *)(chunk + LIVE_CHUNK_COMMITTED),
                     (uint64_t)(room + bytes - chunk) - LIVE_CHUNK_HEAD_BYTES, __ATOMIC_RELEASE);
}

/* Appends any record. False: dropped and counted. Times are ticks. */
bool thread_append(struct thread *t, const struct record *r);

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "live files are little-endian; the hot path stores words as the processor does"
#endif

#endif
