/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's state of a program's thread: its chunk and its open calls. Only the thread itself
 * uses it; other threads see the chunk's header.
 *
 * A chunk holds complete records, and after them those of open calls, the outermost first. Each
 * record is written at its final place when its call begins, and completed at the end.
 */
#ifndef GPUPROF_INJECT_THREAD_H
#define GPUPROF_INJECT_THREAD_H

#include "api/api.h"
#include "record/state.h"
#include "record/thread_cost.h"

/* A call's place in time and on the stack; call.h. */
struct call {
    uintptr_t mark; /* mode, and what distinguishes a live struct from other uses of the stack */
    struct call *below; /* for a call in thread.passed: the one that was there before */
};

enum passed_class { PASSED_LAUNCH, PASSED_COPY, PASSED_CLASS_COUNT };

/* Which of a thread's calls are passed by; pass_by.c. */
struct passer {
    uint32_t random;                      /* 0: not started */
    uint32_t gaps[PASSED_CLASS_COUNT];    /* calls to pass by before the next one is recorded */
    uint32_t pending[PASSED_CLASS_COUNT]; /* calls passed by since one was recorded */
};

#define CALL_BYTES_MAX (8 * (RECORD_HEAD_WORDS + 1 + API_ARGS_MAX)) /* of a call's record */
#define OPEN_BYTES_MAX ((size_t)LIVE_OPEN_MAX * CALL_BYTES_MAX)     /* kept free for open records */

/* A call that is open beside others, or without a record. */
struct open_call {
    struct call *call;
    bool is_recorded; /* it has a record in the chunk; otherwise that was dropped, and counted */
};

/* A call that only CUPTI's callbacks saw. It has no frame of ours, only one of CUDA's, which has
 * its arguments, if there are any. */
struct seen_call {
    struct call call;
    bool is_open;
    uint16_t code; /* enum api_code */
    uint32_t correlation;
    uintptr_t frame; /* 0: not known */
};

/* The part of a stack that is known to be readable; walk.c. */
struct stack_known {
    uintptr_t low;
    uintptr_t high;
};

struct thread {
    /* EPOCH_THREAD, or the page's epoch while this thread takes part; the bits above are the
     * ATTENTION_COSTS that it has followed. */
    uint64_t epoch;
    uint8_t *records;    /* the chunk's first record; NULL: the pool had no chunk */
    uint64_t used;       /* bytes of complete records */
    uint64_t limit;      /* the fast path is open while used < limit (call.h); 0: never */
    struct call *open;   /* the newest call of the user's, with CALL_BITS (below); NULL: none */
    uint64_t ended;      /* ticks: end of its last call; 0: not known */
    struct call *inside; /* the call for which we are in our own code: hooks pass through then */
    uint64_t capacity;   /* bytes of records that fit into the chunk */
    uint64_t position;   /* position of the chunk's first record in the thread's sequence */
    uint32_t number;     /* 1, 2, ...; the writer has 0 */
    uint32_t tid;
    bool waited; /* a wait for a chunk was too long: do not wait again until one was free */
    /* The number of open calls, if CALL_LISTED. Otherwise at most one is open, and has a record. */
    uint32_t open_count;
    struct open_call opens[LIVE_OPEN_MAX];
    struct seen_call seen[LIVE_OPEN_MAX]; /* the newest last; only one, except in signal handlers */
    uint32_t further;                     /* the last correlation id with a LINK record */
    bool in_init;                         /* in cuInit, called through its hook */
    bool has_unwound;                     /* libunwind has its data for this thread */
    bool has_moved;        /* a call ended on this thread that began on another; moved.h */
    bool is_hurried;       /* it must not wait for space: thread_hurry */
    uint8_t weighed_class; /* enum passed_class of `weighed`, below */
    /* of its own stack (low bits of the page number), not of that for handlers; stack.c */
    uint32_t own_page;
    uintptr_t caller;   /* caller of the hook that is on the slow path; hooks.c */
    uintptr_t stand_in; /* function called instead of CUDA's; resolve.h */
    uint64_t extending; /* `used` + 1 while open records move or get longer */
    struct room *room;  /* where its stack is being taken; stack.c */
    struct stack_known stack_known;
    struct thread_cost *cost; /* its cost sums; never NULL */
    uint32_t burst;           /* calls still to be timed on the slow path */
    uint32_t weight;          /* number of calls for which `weighed`, below, stands */
    uint32_t begun_stack;     /* stack of `begun`, below */
    uint32_t chance;          /* random state for stacks of allocations; 0: not started */
    struct call *timed;       /* the call being timed; NULL: none */
    uint64_t timed_ticks;     /* ticks spent at its begin */
    struct call *passed;      /* the newest call that is passed by or left out; it may be over */
    struct call *begun;       /* the call whose stack was taken at its begin; NULL: none */
    struct call *copying;     /* the copy whose contents were hashed; NULL: none */
    uint64_t content;         /* that hash; content.h */
    struct call *weighed;     /* the call that is recorded for others, too; NULL: none */
    struct call *sampled;     /* the call chosen at random to get a stack at its end; NULL: none */
    struct passer passer;
};

#define THREAD_BLANK                                                                               \
    {                                                                                              \
        .epoch = EPOCH_THREAD, .cost = &thread_cost_shared                                         \
    }

/* TLS model initial-exec: the library is preloaded. */
extern HIDDEN __thread struct thread this_thread;

/* Value of thread.inside: the thread is in our own code for ever (the writer); all its calls pass
 * through. */
#define CALL_FOR_GOOD ((struct call *)(uintptr_t)8)

/*
 * Bits of thread.open, so that one comparison checks everything for the fast path. LISTED: the end
 * has more to do than to complete the record. INSIDE: we are in our own code for thread.inside; if
 * that is NULL, at the begin or end of the call itself, on the fast path.
 */
#define CALL_LISTED ((uintptr_t)1)
#define CALL_INSIDE ((uintptr_t)2)
#define CALL_BITS   (CALL_LISTED | CALL_INSIDE)

static inline struct call *call_with(const struct call *c, uintptr_t bits)
{
    return (struct call *)((uintptr_t)c | bits);
}

static inline bool call_has(const struct thread *t, uintptr_t bit)
{
    return (uintptr_t)t->open & bit;
}

/* Returns the newest open call, or NULL. */
static inline struct call *call_newest(const struct thread *t)
{
    return (struct call *)((uintptr_t)t->open & ~CALL_BITS);
}

/* Makes `c` the newest open call; keeps the INSIDE bit. */
static inline void call_set_newest(struct thread *t, const struct call *c, uintptr_t listed)
{
    t->open = call_with(c, listed | ((uintptr_t)t->open & CALL_INSIDE));
}

/* `inside` alone also covers "not yet" and "no longer", except at the end of the only call
 * (call_enter_only). */
static inline bool call_thread_is_inside(const struct thread *t)
{
    return call_has(t, CALL_INSIDE) || (t->inside && t->inside == t->open);
}

/*
 * From here on a signal handler's calls on this thread pass through. The compiler must not read
 * `used` earlier, or a handler's record in between would be overwritten. A handler that came
 * between the first two stores left `inside` unset.
 */
static inline void call_enter(struct thread *t, struct call *c)
{
    t->inside = c;
    atomic_signal_fence(memory_order_seq_cst);
    t->open = call_with(t->open, CALL_INSIDE);
    atomic_signal_fence(memory_order_seq_cst);
    t->inside = c;
    atomic_signal_fence(memory_order_seq_cst);
}

/* In this order: otherwise a handler that jumps away would leave INSIDE set without `inside`. */
static inline void call_leave(struct thread *t)
{
    atomic_signal_fence(memory_order_seq_cst);
    t->open = (struct call *)((uintptr_t)t->open & ~CALL_INSIDE);
    atomic_signal_fence(memory_order_seq_cst);
    t->inside = NULL;
}

/* Does the thread take part in the current recording? */
static inline bool thread_takes_part(const struct thread *t)
{
    return (t->epoch & EPOCH_MASK) == epoch_now();
}

/* Has the writer requested something since the last thread_follow? */
static inline bool thread_is_asked(const struct thread *t)
{
    return (t->epoch ^ attention_now()) & ATTENTION_COSTS;
}

/* Does what was requested: times a burst of calls. */
void thread_follow(struct thread *t);

/* The limit of a thread that is not in a burst. 0 inside a call that is passed by or left out:
 * CUDA's calls in it would otherwise take the fast path if recording resumes meanwhile. */
uint64_t thread_usual_limit(const struct thread *t);

/* Sets the limit: 0 in a burst, or while calls are passed by. */
void thread_set_limit(struct thread *t);

/*
 * Makes the calling thread take part: starts the recording if needed, takes a chunk, and records
 * the thread's name. Returns false if this call is not to be recorded (recording is off, failed or
 * ended).
 */
bool thread_attach(struct thread *t);

/*
 * Changes chunks if needed, so that `bytes` more fit beside the open records, which move along. May
 * wait up to the setting "wait". Returns false if there is no space; the caller's event is dropped
 * and counted.
 */
bool thread_make_room(struct thread *t, size_t bytes);

/* Offsets of the open records, the outermost first, in bytes after the complete ones. */
struct open_records {
    unsigned count;
    uint32_t at[LIVE_OPEN_MAX + 1]; /* the last one: where they end */
};

/*
 * Finds the open records in the chunk, each at least a head and at most CALL_BYTES_MAX long, all
 * within the chunk. The program can overwrite them at any time, so their lengths are read once,
 * here. If they are invalid, all are lost, and counted, and their calls stay open without records.
 */
struct open_records thread_find_open(struct thread *t);

/* The same if only the caller can see that the open records are invalid. */
void thread_lose_open(struct thread *t);

/* some records: the time that fetching a cache line from another processor takes */
#define AHEAD_BYTES 512

/* The writer has read these lines since they were last written; prefetches them. */
static inline void chunk_fetch_ahead(uint8_t *record)
{
#if defined(__x86_64__)
    /* the builtin would fetch them for reading */
    __asm__ volatile("prefetchw %0" : : "m"(record[AHEAD_BYTES]));
#else
    __builtin_prefetch(record + AHEAD_BYTES, 1);
#endif
}

/* Makes records survive a kill from now on: bytes of complete records and open ones after them. */
static inline void chunk_commit(uint8_t *records, uint64_t committed)
{
    __atomic_store_n((uint64_t *)(void *)(records - LIVE_CHUNK_HEAD_BYTES + LIVE_CHUNK_COMMITTED),
                     committed, __ATOMIC_RELEASE);
}

/* Notes the stack of the call that began at `begin` (ticks), while it is open. */
static inline void thread_note_stack(struct thread *t, uint64_t begin, uint32_t stack)
{
    __atomic_store_n(
        (uint64_t *)(void *)(t->records - LIVE_CHUNK_HEAD_BYTES + LIVE_CHUNK_OPEN_STACK),
        live_open_stack(begin, stack), __ATOMIC_RELAXED);
}

/* From here on, until it is called with false, records without space are dropped and counted at
 * once: others may be waiting for what the thread holds. Returns the previous value. */
static inline bool thread_hurry(struct thread *t, bool is_hurried)
{
    bool before = t->is_hurried;
    t->is_hurried = is_hurried;
    return before;
}

/* Appends a record before the open ones. Returns false if it was dropped and counted. Times are in
 * ticks. */
bool thread_append(struct thread *t, const struct record *r);

/* The same for a record without text: its first word, begin, result, and arguments. */
bool thread_append_slowly(struct thread *t, uint64_t word0, uint64_t begin, int result,
                          const uint64_t *args);

/* The same, in few instructions if no call is open and there is space. */
static inline bool thread_append_words(struct thread *t, uint64_t word0, uint64_t begin, int result,
                                       const uint64_t *args)
{
    uint64_t used = t->used, bytes = 8 * (uint64_t)record_word_count(word0);
    if (unlikely(call_newest(t)) || unlikely(!t->records) || unlikely(t->capacity - used < bytes))
        return thread_append_slowly(t, word0, begin, result, args);
    uint8_t *records = t->records;
    uint64_t *r = (uint64_t *)(void *)(records + used);
    chunk_fetch_ahead(records + used);
    r[0] = word0;
    r[1] = begin;
    r[2] = 0;
    r[3] = (uint32_t)result;
    if (bytes > 8 * RECORD_HEAD_WORDS)
        memcpy(r + RECORD_HEAD_WORDS, args, bytes - 8 * RECORD_HEAD_WORDS);
    t->used = used + bytes;
    chunk_commit(records, used + bytes);
    return true;
}

/* Leaves the chunk to the writer, with no call open; the next record takes another. */
void thread_leave(struct thread *t);

/* Completes an open record that has `before` ones before it, and moves it before all of them. If it
 * is not the newest call's, signals are blocked (thread_settle). */
void thread_close(struct thread *t, unsigned before);

/* The same, with its stack's number and its weight. Returns false if it was dropped with its chunk,
 * and counted. */
bool thread_close_with(struct thread *t, unsigned before, uint32_t stack, uint32_t weight);

/*
 * Repairs the state after longjmp has left our own code, anywhere except where signals were
 * blocked: what the chunk says is right. A record without an open call is removed; calls may be
 * found to be over.
 */
void thread_settle(struct thread *t);

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "live files are little-endian; the hot path stores words as the processor does"
#endif

#endif
