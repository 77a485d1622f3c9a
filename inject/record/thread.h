/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread of the program holds of us: its chunk and the calls that it has open. Everything
 * here is touched by its own thread only; the chunk's header is what others see.
 *
 * A chunk holds whole records, and behind them those of the calls that are open, the outermost
 * first: each is written where it will stay when its call begins, and completed at its end.
 */
#ifndef GPUPROF_INJECT_THREAD_H
#define GPUPROF_INJECT_THREAD_H

#include "api/api.h"
#include "record/state.h"
#include "record/thread_cost.h"

/* A call's place in time and on the stack; call.h. */
struct call {
    uintptr_t mark; /* mode, and what tells a live struct from what the stack was used for since */
    struct call *below; /* of a call in thread.passed: the one that was there before it */
};

enum passed_class { PASSED_LAUNCH, PASSED_COPY, PASSED_CLASS_COUNT };

/* Which of a thread's calls are passed by; pass_by.c. */
struct passer {
    uint32_t random;                      /* 0 = not begun */
    uint32_t gaps[PASSED_CLASS_COUNT];    /* calls to pass by, before one is recorded */
    uint32_t pending[PASSED_CLASS_COUNT]; /* passed by since one was */
};

#define CALL_BYTES_MAX (8 * (RECORD_HEAD_WORDS + 1 + API_ARGS_MAX)) /* of a call's record */
#define OPEN_BYTES_MAX ((size_t)LIVE_OPEN_MAX * CALL_BYTES_MAX)     /* kept free for open records */

/* A call that is open beside others, or without a record. */
struct open_call {
    struct call *call;
    bool is_recorded; /* it has a record in the chunk; else it was dropped, and counted */
};

/*
 * A call that only CUPTI's callbacks saw. It has no frame of ours, but one of CUDA's, where its
 * arguments lie, if it has any.
 */
struct seen_call {
    struct call call;
    bool is_open;
    uint16_t code; /* enum api_code */
    uint32_t correlation;
    uintptr_t frame; /* 0 = not known */
};

/* Of a stack, what is known to be readable; walk.c. */
struct stack_known {
    uintptr_t low;
    uintptr_t high;
};

struct thread {
    /* EPOCH_THREAD, or the page's while this thread takes part; above it the ATTENTION_COSTS that
     * it has followed. */
    uint64_t epoch;
    uint8_t *records;    /* the chunk's first; NULL = the pool gave no chunk */
    uint64_t used;       /* bytes of whole records */
    uint64_t limit;      /* a usual call may begin while used < limit (call.h); 0: never */
    struct call *open;   /* the newest call of the user's, with CALL_BITS (below); NULL = none */
    uint64_t ended;      /* ticks: the end of its last call; 0 = it is not known */
    struct call *inside; /* the call inside whose record-keeping we are: hooks pass through then */
    uint64_t capacity;   /* bytes of records that the chunk has room for */
    uint64_t position;   /* of the chunk's first record in the thread's sequence */
    uint32_t number;     /* 1, 2, ...; 0 is the writer */
    uint32_t tid;
    bool waited; /* a wait for a chunk ran out: do not wait again until one was free */
    /* All open calls, if CALL_LISTED: it is the last. Else it is alone, and has a record. */
    uint32_t open_count;
    struct open_call opens[LIVE_OPEN_MAX];
    struct seen_call seen[LIVE_OPEN_MAX]; /* the newest last; one but for signal handlers */
    uint32_t further;      /* the last correlation id that a LINK record was made for */
    bool in_init;          /* in cuInit, by way of its hook */
    bool has_unwound;      /* libunwind has what it needs of this thread */
    bool has_moved;        /* a call ended on it that began on another; moved.h */
    bool is_hurried;       /* it is not to wait for room: thread_hurry */
    uint8_t weighed_class; /* enum passed_class of `weighed`, below */
    uint32_t own_page;     /* of a stack (its number's low bits), not that for handlers; stack.c */
    uintptr_t caller;      /* of the hook that goes the long way now; see hooks.c */
    uintptr_t stand_in;    /* what is called instead of CUDA's function; see resolve.h */
    uint64_t extending;    /* 1 + `used`, while open records make room or get longer */
    struct room *room;     /* where its stack is being taken; stack.c */
    struct stack_known stack_known;
    struct thread_cost *cost; /* what we have cost it; never NULL */
    uint32_t burst;           /* calls that go the long way yet, to be timed */
    uint32_t weight;          /* for how many `weighed`, below, is recorded */
    uint32_t begun_stack;     /* of `begun`, below */
    uint32_t chance;          /* of whose stack is taken; 0 = not begun */
    struct call *timed;       /* the one that is being timed, NULL = none */
    uint64_t timed_ticks;     /* what its begin has taken */
    struct call *passed;      /* the newest that is passed by or left out; it may be over */
    struct call *begun;       /* whose stack was taken when it began, NULL = none */
    struct call *copying;     /* whose content is known, NULL = none */
    uint64_t content;         /* as the hash that content.h makes of it */
    struct call *weighed;     /* the one that is recorded for others too, NULL = none */
    struct call *sampled;     /* its stack is to be taken when it ends, by chance; NULL = none */
    struct passer passer;
};

#define THREAD_BLANK                                                                               \
    {                                                                                              \
        .epoch = EPOCH_THREAD, .cost = &thread_cost_shared                                         \
    }

/* TLS is initial-exec: the library is preloaded. */
extern HIDDEN __thread struct thread this_thread;

/* As thread.inside: in our own code for good. The writer; all that it calls passes through. */
#define CALL_FOR_GOOD ((struct call *)(uintptr_t)8)

/*
 * Bits of thread.open, so that the usual call asks for all of it with one look. LISTED: its end has
 * more to do than to complete its record. INSIDE: we are inside our own code, on behalf of
 * thread.inside; if that is NULL, at the begin or end of the call itself, on the short way.
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

/* The newest open call, or NULL. */
static inline struct call *call_newest(const struct thread *t)
{
    return (struct call *)((uintptr_t)t->open & ~CALL_BITS);
}

/* `c` is the newest open call from here on; where we are does not change. */
static inline void call_set_newest(struct thread *t, const struct call *c, uintptr_t listed)
{
    t->open = call_with(c, listed | ((uintptr_t)t->open & CALL_INSIDE));
}

/* `inside` alone says "not yet", or "no more"; but for the end of the only call (call_enter_only).
 */
static inline bool call_thread_is_inside(const struct thread *t)
{
    return call_has(t, CALL_INSIDE) || (t->inside && t->inside == t->open);
}

/*
 * From here on a signal handler's calls on this thread pass through. The compiler must not read
 * `used` before: a handler's call in between would be overwritten. One that came between the first
 * two stores has left no name for where we are.
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

/* In this order: without a name for where we are, a handler that jumps would leave us there. */
static inline void call_leave(struct thread *t)
{
    atomic_signal_fence(memory_order_seq_cst);
    t->open = (struct call *)((uintptr_t)t->open & ~CALL_INSIDE);
    atomic_signal_fence(memory_order_seq_cst);
    t->inside = NULL;
}

/* Does it take part in the recording of now? */
static inline bool thread_takes_part(const struct thread *t)
{
    return (t->epoch & EPOCH_MASK) == epoch_now();
}

/* Has the writer asked for something since it was last followed? */
static inline bool thread_is_asked(const struct thread *t)
{
    return (t->epoch ^ attention_now()) & ATTENTION_COSTS;
}

/* Does what was asked: a burst of calls is timed. */
void thread_follow(struct thread *t);

/* The usual limit of a thread that has no burst before it. 0 inside a call that is passed by or
 * left out: what CUDA calls there would be a usual call, if calls go on meanwhile. */
uint64_t thread_usual_limit(const struct thread *t);

/* The limit as it is to be: 0 in a burst, or while calls are passed by. */
void thread_set_limit(struct thread *t);

/*
 * Makes the calling thread take part: starts the recording if need be, takes a chunk, notes the
 * thread's name. False: this call is not to be recorded (recording is off, failed or ended).
 */
bool thread_attach(struct thread *t);

/*
 * Changes chunks if need be so that `bytes` more fit beside the open records, which move along.
 * May wait up to the setting "wait". False: there is no room; the caller's event is dropped and
 * counted.
 */
bool thread_make_room(struct thread *t, size_t bytes);

/* Where the open records begin, the outermost first, in bytes behind the whole ones. */
struct open_records {
    unsigned count;
    uint32_t at[LIVE_OPEN_MAX + 1]; /* the last: where they end */
};

/*
 * The open records in the chunk, each at least a head and at most CALL_BYTES_MAX long, and all in
 * the chunk. The program can write over them at any time, so their lengths are read once, here.
 * Where they cannot be, all of them are lost, and counted, and their calls go on without records.
 */
struct open_records thread_find_open(struct thread *t);

/* The same for open records of which only the caller sees that they are not what they were. */
void thread_lose_open(struct thread *t);

#define AHEAD_BYTES 512 /* some records: as long as a cache line takes from another processor */

/* The writer has read these lines since they were last written; asks for them before their turn. */
static inline void chunk_fetch_ahead(uint8_t *record)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(record[AHEAD_BYTES])); /* the builtin says "to read" */
#else
    __builtin_prefetch(record + AHEAD_BYTES, 1);
#endif
}

/* What a kill does not take from now on: bytes of whole records + open ones behind them. */
static inline void chunk_commit(uint8_t *records, uint64_t committed)
{
    __atomic_store_n((uint64_t *)(void *)(records - LIVE_CHUNK_HEAD_BYTES + LIVE_CHUNK_COMMITTED),
                     committed, __ATOMIC_RELEASE);
}

/* The stack of the call that begins at `begin`, in ticks, for as long as it is open. */
static inline void thread_note_stack(struct thread *t, uint64_t begin, uint32_t stack)
{
    __atomic_store_n(
        (uint64_t *)(void *)(t->records - LIVE_CHUNK_HEAD_BYTES + LIVE_CHUNK_OPEN_STACK),
        live_open_stack(begin, stack), __ATOMIC_RELAXED);
}

/*
 * From here on, until it is said again with false, what finds no room is dropped and counted at
 * once: others may wait for what the thread holds. Returns what was so before.
 */
static inline bool thread_hurry(struct thread *t, bool is_hurried)
{
    bool before = t->is_hurried;
    t->is_hurried = is_hurried;
    return before;
}

/* Appends any record, before the open ones. False: dropped and counted. Times are ticks. */
bool thread_append(struct thread *t, const struct record *r);

/* The same of a record of words alone: its first, its begin, its result, and its arguments. */
bool thread_append_slowly(struct thread *t, uint64_t word0, uint64_t begin, int result,
                          const uint64_t *args);

/* The same, in few instructions where no call is open and there is room. */
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

/*
 * An open record, with `before` ones before it, becomes a whole one: it goes before all of them. If
 * it is not that of the newest call, signals are blocked (thread_settle).
 */
void thread_close(struct thread *t, unsigned before);

/* The same, with the number of its stack and its weight. False: it is dropped with its chunk, and
 * counted. */
bool thread_close_with(struct thread *t, unsigned before, uint32_t stack, uint32_t weight);

/*
 * The thread left our own code by longjmp, anywhere but where signals were blocked: what its chunk
 * says holds. A record that belongs to no open call goes; calls may be found to be over.
 */
void thread_settle(struct thread *t);

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "live files are little-endian; the hot path stores words as the processor does"
#endif

#endif
