/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One user-visible call: the outermost hook on a thread's stack owns the event; calls that CUDA
 * itself makes inside it pass through (or add nested events, if wanted). The owner is known by
 * where its struct lies on the stack. siglongjmp, exceptions and cancellation leave calls by other
 * doors: an owner that is not on the stack above the caller any more is stale, and is closed as
 * such when the next call finds it. One that only seems to be there, because the stack was not
 * written to since, looks like one that a signal handler has interrupted: a call from the user's
 * own code is an event in either case, and what was open waits below it.
 */
#ifndef GPUPROF_INJECT_CALL_H
#define GPUPROF_INJECT_CALL_H

#include "api.h"
#include "capture.h"
#include "names.h"
#include "thread.h"
#include "ticks.h"

enum call_mode { CALL_PASS, CALL_OWNER, CALL_NESTED };

struct call {
    uint64_t canary; /* tells a live struct from what the stack was used for since */
    uint64_t begin;
    enum call_mode mode;
};

/* What a wrapper knows of its function when it is compiled, so that none of it costs at run time.
 */
struct call_site {
    unsigned code; /* enum api_index */
    enum capture_role role;
    unsigned count;       /* of argument words */
    const uint8_t *kinds; /* of the arguments, enum api_arg_kind */
};

/* CUDA's own frames between an outer and an inner call stay far below this. */
#define CALL_STACK_BYTES_MAX (256u << 10)
#define CALL_CANARY          0x67707566A5C3F00Dull

static inline uint64_t call_canary(const struct call *c)
{
    return (uint64_t)(uintptr_t)c ^ CALL_CANARY;
}

/*
 * Is `outer`, a call found open, still on the stack above `inner`? Reads memory at `outer` only
 * where the stack that `inner` stands on must be mapped.
 */
static inline bool call_is_live(const struct call *outer, const struct call *inner)
{
    uintptr_t distance = (uintptr_t)outer - (uintptr_t)inner;
    return distance - 1 < CALL_STACK_BYTES_MAX &&
           *(const volatile uint64_t *)&outer->canary == call_canary(outer);
}

/* The rare ways into a call; true if it is to be recorded (mode is set). */
bool call_begin_slow(struct thread *t, struct call *c, uintptr_t caller);

/* At its end: `c` is not the newest open call. True if it waits below, and is the newest now. */
bool call_find_below(struct thread *t, struct call *c);

/* The newest call has ended: the one below it is the newest again. */
void call_uncover(struct thread *t);

/* Follows stream captures after a call that means something for them. */
void call_note_capture(unsigned code, enum capture_role role, int result, uint64_t stream,
                       uint64_t event);

/* Records the name of a kernel that is met for the first time. */
void call_name_kernel(struct thread *t, struct call *c, uint64_t handle);

/* After the library's destructor: has the event stored before the call returns. */
void call_store_late(void);

/* The position of the first argument of this kind, or `count`; known when it is compiled. */
static inline __attribute__((always_inline)) unsigned call_arg_at(const struct call_site *site,
                                                                  enum api_arg_kind kind)
{
    unsigned at = site->count;
#pragma GCC unroll 16
    for (unsigned i = API_ARGS_MAX; i > 0; i--)
        if (i <= site->count && site->kinds[i - 1] == kind)
            at = i - 1;
    return at;
}

/* Before the real call. `words` are the arguments known at entry; a kernel is the first of them. */
static inline __attribute__((always_inline)) void
call_begin(struct call *c, const struct call_site *site, const uint64_t *words, uintptr_t caller)
{
    struct thread *t = &this_thread;
    c->mode = CALL_OWNER;
    if (unlikely(t->epoch != atomic_load_explicit(&gp.page->epoch, memory_order_relaxed)) ||
        unlikely(t->open != NULL) || unlikely(t->inside != NULL)) {
        if (!call_begin_slow(t, c, caller)) {
            c->mode = CALL_PASS;
            return;
        }
    }
    c->canary = call_canary(c);
    if (call_arg_at(site, API_KERNEL) == 0 && site->count && unlikely(!name_is_known(words[0])))
        call_name_kernel(t, c, words[0]);
    if (c->mode == CALL_OWNER) {
        uint64_t *open = (uint64_t *)(void *)(t->chunk + LIVE_CHUNK_OPEN);
        t->open = c;
#pragma GCC unroll 16
        for (unsigned i = 0; i < LIVE_OPEN_ARGS; i++)
            if (i < site->count)
                open[2 + i] = words[i];
        c->begin = ticks_now();
        open[1] = c->begin;
        __atomic_store_n(open, (uint64_t)1 << 32 | (uint64_t)site->count << 16 | site->code,
                         __ATOMIC_RELEASE);
    } else {
        c->begin = ticks_now();
    }
}

/* Appends the CALL record. */
static inline __attribute__((always_inline)) void
call_append(struct thread *t, const struct call *c, const struct call_site *site, unsigned flags,
            uint64_t end, int result, const uint64_t *words)
{
    size_t bytes = 8 * (size_t)(RECORD_HEAD_WORDS + site->count);
    uint64_t *room = (uint64_t *)(void *)thread_room(t, bytes);
    if (unlikely(!room))
        return;
    room[0] =
        record_word0(RECORD_CALL, flags, RECORD_HEAD_WORDS + site->count, site->code, site->count);
    room[1] = c->begin;
    room[2] = end - c->begin;
    room[3] = (uint32_t)result;
#pragma GCC unroll 16
    for (unsigned i = 0; i < API_ARGS_MAX; i++)
        if (i < site->count)
            room[RECORD_HEAD_WORDS + i] = words[i];
    thread_commit(t, (uint8_t *)room, bytes);
}

/* After it; only if c->mode is not CALL_PASS. `words` are complete. */
static inline __attribute__((always_inline)) void
call_end(struct call *c, const struct call_site *site, int result, const uint64_t *words)
{
    uint64_t end = ticks_now();
    struct thread *t = &this_thread;
    if (unlikely(t->epoch != atomic_load_explicit(&gp.page->epoch, memory_order_relaxed)))
        return; /* this is the child of a fork made inside the call */
    unsigned flags = 0;
    if (unlikely(c->mode == CALL_NESTED))
        flags = RECORD_NESTED;
    else if (unlikely(t->open != c) && !call_find_below(t, c))
        return; /* found stale by a call on another stack, and recorded then */
    t->inside = c;
    unsigned stream = call_arg_at(site, API_STREAM), event = call_arg_at(site, API_EVENT);
    if (site->role != CAPTURE_NONE && stream < site->count)
        call_note_capture(site->code, site->role, result, words[stream],
                          event < site->count ? words[event] : 0);
    /* After that: the wait that draws a stream into a capture goes into the graph itself. */
    if (stream < site->count && site->role != CAPTURE_BEGIN && site->role != CAPTURE_FINISH &&
        unlikely(atomic_load_explicit(&gp.capture_count, memory_order_relaxed) != 0) &&
        result == 0 && capture_has_stream(site->code, words[stream]))
        flags |= RECORD_CAPTURED;
    call_append(t, c, site, flags, end, result, words);
    if (likely(c->mode == CALL_OWNER)) {
        __atomic_store_n((uint64_t *)(void *)(t->chunk + LIVE_CHUNK_OPEN), 0, __ATOMIC_RELAXED);
        t->open = NULL;
        if (unlikely(t->below_count != 0))
            call_uncover(t);
    }
    if (unlikely(atomic_load_explicit(&gp.late, memory_order_relaxed) != 0))
        call_store_late();
    t->inside = NULL;
}

#endif
