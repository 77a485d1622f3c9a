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

/* As thread.inside: in our own code for good. The writer; all that it calls passes through. */
#define CALL_FOR_GOOD ((struct call *)(uintptr_t)1)

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

/*
 * From here on a signal handler's calls on this thread pass through. The compiler must not read the
 * cursor before: a handler's call in between would be overwritten.
 */
static inline void call_enter(struct thread *t, struct call *c)
{
    t->inside = c;
    atomic_signal_fence(memory_order_seq_cst);
}

/* Every way into a call but the usual one, and what is to become of it. */
enum call_mode call_begin_slow(struct thread *t, struct call *c, uintptr_t caller);

/* What becomes of a call that call_end does not record by itself. `words` are site->count. */
void call_end_slow(struct thread *t, struct call *c, const struct call_site *site, uint64_t end,
                   int result, const uint64_t *words);

/* Records the name of a kernel that is met for the first time. */
void call_name_kernel(struct thread *t, struct call *c, uint64_t handle);

/* Before the real call. `words` are the arguments known at entry; a kernel is the first of them. */
static inline __attribute__((always_inline)) void
call_begin(struct call *c, const struct call_site *site, const uint64_t *words, uintptr_t caller)
{
    struct thread *t = &this_thread;
    enum call_mode mode = CALL_OWNER;
    if (unlikely(t->epoch != atomic_load_explicit(&gp.page->epoch, memory_order_relaxed)) ||
        unlikely(((uintptr_t)t->open | (uintptr_t)t->inside) != 0))
        mode = call_begin_slow(t, c, caller);
    c->mode = mode;
    if (mode == CALL_PASS)
        return;
    c->canary = call_canary(c);
    if (site->count && site->kinds[0] == API_KERNEL && unlikely(!name_is_known(words[0])))
        call_name_kernel(t, c, words[0]);
    if (mode == CALL_OWNER) {
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

/* The newest of the user's calls has ended. */
static inline void call_close(struct thread *t)
{
    __atomic_store_n((uint64_t *)(void *)(t->chunk + LIVE_CHUNK_OPEN), 0, __ATOMIC_RELAXED);
    t->open = NULL;
}

/* After the real call. `words` are complete. */
static inline __attribute__((always_inline)) void
call_end(struct call *c, const struct call_site *site, int result, const uint64_t *words)
{
    uint64_t end = ticks_now();
    struct thread *t = &this_thread;
    if (unlikely(t->epoch != atomic_load_explicit(&gp.page->epoch, memory_order_relaxed)))
        return; /* passed through, or this is the child of a fork made inside the call */
    if (site->role == CAPTURE_BEGIN || site->role == CAPTURE_FINISH || unlikely(t->open != c) ||
        unlikely(t->below_count != 0) ||
        unlikely(atomic_load_explicit(&gp.attention, memory_order_relaxed) != 0)) {
        struct call_site its_site = *site; /* copies, so that ours need no address and no memory */
        uint64_t its_words[API_ARGS_MAX];
#pragma GCC unroll 16
        for (unsigned i = 0; i < API_ARGS_MAX; i++)
            if (i < site->count)
                its_words[i] = words[i];
        call_end_slow(t, c, &its_site, end, result, its_words);
        return;
    }
    call_enter(t, c);
    call_append(t, c, site, 0, end, result, words);
    call_close(t);
    t->inside = NULL;
}

#endif
