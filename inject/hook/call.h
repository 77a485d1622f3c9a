/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call that the program makes: the outermost hook on a thread's stack owns the event. Calls
 * that CUDA makes inside it pass through, or add nested events if requested. The owner is
 * identified by the address of its struct on the stack. siglongjmp, exceptions and cancellation
 * leave a call without its end. An owner that is no longer on the stack above the caller is
 * abandoned, and the next call closes it. An abandoned owner looks like one that a signal handler
 * interrupted, if the stack was not overwritten since. In both cases a call from the user's code is
 * an event, and open calls stay open below it. A call on another stack (a coroutine's, or the one
 * that a signal handler interrupted) also stays open: it may return before newer calls or after
 * them.
 */
#ifndef GPUPROF_INJECT_CALL_H
#define GPUPROF_INJECT_CALL_H

#include "api/api.h"
#include "base/ticks.h"
#include "cuda/capture.h"
#include "cuda/names.h"
#include "hook/calls_open.h"
#include "hook/content.h"
#include "hook/pass_by.h"
#include "record/synced.h"
#include "record/thread.h"
#include "stack/stack.h"

extern const struct call_site *const call_sites[API_FUNCTION_COUNT]; /* hooks.c */

/* While calls are off, calls that later ones depend on are still followed: memory, and the begin
 * and end of captures. */
static inline bool call_always_goes_on(const struct call_site *site)
{
    return site->class == API_ALLOC || api_bounds_capture(site->capture);
}

/* call_enter for `c`; returns false if another call is open. A thread must announce itself before
 * it checks, and on one processor a single instruction does both in the same word. */
static inline __attribute__((always_inline)) bool call_enter_only(struct thread *t, struct call *c)
{
#if defined(__x86_64__)
    __asm__ volatile("orq %1, %0" : "+m"(t->open) : "i"(CALL_INSIDE) : "cc");
    atomic_signal_fence(memory_order_seq_cst);
    return t->open == call_with(c, CALL_INSIDE);
#else
    t->inside = c;
    atomic_signal_fence(memory_order_seq_cst);
    return t->open == c;
#endif
}

/* call_leave, if no call remains open. */
static inline __attribute__((always_inline)) void call_leave_none(struct thread *t)
{
    atomic_signal_fence(memory_order_seq_cst);
    t->open = NULL;
#if !defined(__x86_64__)
    t->inside = NULL;
#endif
}

/* Like call_enter, for record-keeping that belongs to no call. Returns false if it is not possible
 * now; then do not call call_leave. */
static inline bool call_enter_own(struct thread *t, struct call *c)
{
    c->mark = call_mark(c, CALL_PASS);
    if (unlikely(call_thread_is_inside(t)) && call_is_inside(t, c, 0))
        return false;
    call_enter(t, c);
    return true;
}

/*
 * The same for calls that we make ourselves, without counting: CUPTI reads files while it starts.
 */
static inline bool call_enter_quietly(struct thread *t, struct call *c)
{
    c->mark = call_mark(c, CALL_PASS);
    if (unlikely(call_thread_is_inside(t)) && call_is_inside_quietly(t, c, 0))
        return false;
    call_enter(t, c);
    return true;
}

/* Makes the thread take part in the recording, and starts the recording, if needed. Returns false
 * if it cannot, which is counted. Call it between call_enter and call_leave. */
bool call_attach(struct thread *t, uintptr_t caller);

/* Returns whether CUDA makes this call inside the newest open one, and it only passes through. That
 * is usual: then only the real function must be called. False: call call_begin. */
bool call_is_inner(const struct call *c, uintptr_t caller);

/* Called before the real function; `words` are the arguments known at entry, the kernel first.
 * Called after it with the words known then; it reads only those. */
void call_begin(struct call *c, const struct call_site *site, const uint64_t *words,
                uintptr_t caller);
int call_end(struct call *c, const struct call_site *site, int result, const uint64_t *words);

/*
 * Called before a function that frees memory or resets a device, recorded or not. Afterwards it
 * would be too late: handles may have been reused by another thread, and an error may be an earlier
 * call's.
 */
void call_resets(const struct call_site *site, const uint64_t *words);

/* Called before cudaProfilerStart (`opens`) or cudaProfilerStop, recorded or not. */
void call_door(bool opens);

/* call_end at time `end`, for a call that call_open began; returns `result`. */
int call_close_slow(struct call *c, const struct call_site *site, uint64_t end, int result,
                    const uint64_t *words);

/*
 * Begins a call that no hook saw, between two of CUPTI's callbacks. Other calls are open below it
 * only if a signal handler calls CUDA. Returns NULL if nothing is needed until its end.
 * call_abandon_seen: its end will not be reported.
 */
struct seen_call *call_begin_seen(struct thread *t, const struct call_site *site,
                                  const uint64_t *words);
void call_end_seen(struct seen_call *s, const struct call_site *site, int result,
                   const uint64_t *words);
void call_abandon_seen(struct thread *t, struct seen_call *s);

/* Writes the record of a call that begins now, with the arguments known at entry. */
static inline __attribute__((always_inline)) void call_write(uint64_t *record,
                                                             const struct call_site *site,
                                                             unsigned flags, const uint64_t *words,
                                                             bool is_raw)
{
#pragma GCC unroll 16
    for (unsigned i = 0; i < API_ARGS_MAX; i++)
        if (i < site->count)
            record[RECORD_HEAD_WORDS + i] = words[i];
    record[0] =
        record_word0(RECORD_CALL, flags, RECORD_HEAD_WORDS + site->count, site->code, site->count);
    record[3] = 0; /* a callback may store the correlation id there; gpu_callback.c */
    record[1] = is_raw ? ticks_raw() : ticks_now();
}

/*
 * The fast path: this thread takes part, no other call is open, there is space, and the clock is
 * the processor's counter. The call then consists of call_open, the real function and call_close,
 * without another function call, so that the arguments stay in their registers.
 *
 * All conditions are checked from inside our own code: otherwise a signal handler's calls in
 * between could leave the thread with another chunk, with none, or with other open calls.
 */
static inline __attribute__((always_inline)) bool
call_open(struct call *c, const struct call_site *site, const uint64_t *words)
{
    struct thread *t = &this_thread;
    if (unlikely(t->open) || unlikely(content_is_due(site, words)))
        return false;
    c->mark = call_mark(c, CALL_OWNER);
    t->open = call_with(c, CALL_INSIDE);
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t used = t->used;
    if (unlikely((uint32_t)t->epoch !=
                 (uint32_t)atomic_load_explicit(&fork_page.recording, memory_order_relaxed)) ||
        unlikely(used >= t->limit) ||
        (site->count && site->kinds[0] == ARG_KERNEL && unlikely(!name_is_known(words[0])))) {
        atomic_signal_fence(memory_order_seq_cst);
        t->open = NULL;
        return false;
    }
    /* read once: the compiler must assume that the stores below change it */
    uint8_t *records = t->records;
    uint64_t *record = (uint64_t *)(void *)(records + used);
    call_write(record, site, 0, words, true);
    if (unlikely(record[1] - t->ended >=
                 atomic_load_explicit(&fork_page.silent_ticks, memory_order_relaxed))) {
        atomic_signal_fence(memory_order_seq_cst);
        t->open = NULL;
        return false; /* the thread is being observed; silence.h */
    }
    chunk_commit(records, used + 1);
    atomic_signal_fence(memory_order_seq_cst);
    t->open = c;
    return true;
}

/*
 * The fast path while calls are off, for functions that nothing later depends on. It only prevents
 * calls that CUDA makes inside from becoming events, in case recording resumes meanwhile; inside
 * such a call it does nothing. Returns false if the call cannot take this path. After true, call
 * the real function and call_was_off.
 */
static inline __attribute__((always_inline)) bool call_is_off(struct call *c,
                                                              const struct call_site *site)
{
    struct thread *t = &this_thread;
    if (likely(!calls_are_off()) || site->class == API_ALLOC || site->capture || unlikely(t->open))
        return false;
    c->mark = 0;
    if (!t->passed)
        pass_enter(t, c, CALL_LEFT_OUT);
    return true;
}

static inline __attribute__((always_inline)) void call_was_off(struct call *c)
{
    if (this_thread.passed == c)
        pass_leave(&this_thread, c);
}

/* Returns whether a call of this class lasted long enough for a stack. */
static inline __attribute__((always_inline)) bool call_is_slow(const struct call_site *site,
                                                               uint64_t ticks)
{
    return ticks >= atomic_load_explicit(&fork_page.slow_ticks[site->class], memory_order_relaxed);
}

/* Returns whether a successful call allocated memory whose stack is wanted, from all its words. */
static inline __attribute__((always_inline)) bool
call_is_sampled(struct thread *t, const struct call_site *site, const uint64_t *words)
{
    if (api_gets_memory(site->memory))
#pragma GCC unroll 16
        for (unsigned i = 0; i < API_ARGS_MAX; i++)
            if (i < site->count && site->kinds[i] == ARG_BYTES)
                return stack_of_memory(t, words[i]);
    return false;
}

/* Returns whether the call has waited for the device: most copies without a stream have. */
static inline __attribute__((always_inline)) bool call_waits(const struct call_site *site)
{
    bool has_stream = false;
#pragma GCC unroll 16
    for (unsigned i = 0; i < API_ARGS_MAX; i++)
        has_stream |= i < site->count && site->kinds[i] == ARG_STREAM;
    return site->waits || (site->class == API_COPY && !has_stream);
}

/* Ends a call on the fast path at time `end`, or leaves it to call_close_slow. Returns `result`. */
static inline __attribute__((always_inline)) int call_close_at(struct call *c,
                                                               const struct call_site *site,
                                                               uint64_t end, int result,
                                                               const uint64_t *words)
{
    struct thread *t = &this_thread;
    bool is_sampled = call_is_sampled(t, site, words);
    if (call_waits(site))
        synced_note();
    if (unlikely(is_sampled))
        t->sampled = c;
    if (unlikely(!call_enter_only(t, c)) || unlikely(call_has_failed(site, result)) ||
        unlikely(is_sampled) ||
        unlikely(t->epoch != atomic_load_explicit(&fork_page.recording, memory_order_relaxed)) ||
        unlikely(call_is_slow(site, end - ((uint64_t *)(void *)(t->records + t->used))[1]))) {
        uint64_t its_words[API_ARGS_MAX]; /* a copy, so that `words` can stay in registers */
#pragma GCC unroll 16
        for (unsigned i = 0; i < API_ARGS_MAX; i++)
            if (i < site->count)
                its_words[i] = site->late[i] ? words[i] : 0;
        return call_close_slow(c, site, end, result, its_words);
    }
    uint8_t *records = t->records;
    uint64_t used = t->used;
    call_complete((uint64_t *)(void *)(records + used), site, end, result, words);
    chunk_fetch_ahead(records + used);
    used += 8 * (uint64_t)(RECORD_HEAD_WORDS + site->count);
    t->used = used;
    t->ended = end;
    chunk_commit(records, used);
    call_leave_none(t);
    return result;
}

static inline __attribute__((always_inline)) int
call_close(struct call *c, const struct call_site *site, int result, const uint64_t *words)
{
    return call_close_at(c, site, ticks_raw(), result, words);
}

#endif
