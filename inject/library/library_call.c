/* SPDX-License-Identifier: Apache-2.0 */
#include "library/library_call.h"

#include <string.h>

#include "base/ticks.h"
#include "hook/call.h"
#include "library/communicators.h"
#include "library/cublas_looks.h"
#include "record/recorded.h"
#include "record/thread.h"
#include "record/wake.h"
#include "stack/stack.h"
#include "store/identity.h"

/* The newest open call of each library family. */
static __thread struct call *open_calls[API_DOMAIN_COUNT];

/*
 * Functions that were called, and whether the stream describes them. Any thread sets CALLED, the
 * writer the other states. After a kill before its next pass, a function of an unknown version may
 * lack its description.
 */
enum { NOT_CALLED, CALLED, DESCRIBED };
static _Atomic uint8_t called[API_FUNCTION_COUNT];
static _Atomic bool any_called;

static inline void note_function(unsigned code)
{
    if (likely(atomic_load_explicit(&called[code], memory_order_relaxed)))
        return;
    uint8_t not_called = NOT_CALLED;
    atomic_compare_exchange_strong(&called[code], &not_called, CALLED);
    atomic_store(&any_called, true);
}

void library_describe(struct thread *writer, bool is_last)
{
    (void)is_last;
    if (!atomic_exchange(&any_called, false))
        return;
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++)
        if (atomic_load(&called[i]) == CALLED) {
            identity_append_function(writer, i);
            atomic_store(&called[i], DESCRIBED);
        }
}

void library_reset(void)
{
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++)
        atomic_store(&called[i], NOT_CALLED);
}

/* Called between call_enter_own and call_leave. Returns false if nothing of it is recorded. The
 * settings are read when a recording begins. */
static __attribute__((noinline)) bool library_call_takes_part(struct thread *t, uintptr_t caller,
                                                              bool begins)
{
    if (recorded_off() & OFF_CALLS && begins)
        return false;
    if (atomic_load(&fork_page.phase) == START_FAILED) {
        if (atomic_load(&gp.counters[COUNTER_ENDED]))
            counter_add(COUNTER_UNRECORDED, 1);
        return false;
    }
    if (!call_attach(t, caller))
        return false;
    if (thread_is_asked(t))
        thread_follow(t);
    return true;
}

/* Has --overhead-max turned this class off? Never NCCL's: a rank without its calls would look like
 * one that others wait for, and the calls are few. */
static inline bool is_given_up(const struct library_site *site, uint32_t bit)
{
    return unlikely(recorded_off() & bit) && site->family != API_NCCL;
}

static inline bool is_recorded(struct thread *t, const struct library_site *site, uintptr_t caller,
                               bool begins)
{
    if (unlikely(t->epoch != atomic_load_explicit(&fork_page.recording, memory_order_relaxed)) &&
        !library_call_takes_part(t, caller, begins))
        return false;
    return gp.settings.numbers[SETTING_LIBRARIES] != LIBRARIES_OFF &&
           !(begins && is_given_up(site, OFF_LIBRARIES));
}

static __attribute__((noinline)) void append_with_stack(struct thread *t,
                                                        const struct library_site *site,
                                                        const uint64_t *words, unsigned count)
{
    struct record r = {.type = RECORD_LIBRARY_BEGIN,
                       .code = site->code,
                       .arg_count = (uint8_t)count,
                       .stack_id = stack_take(t)};
    if (count)
        memcpy(r.args, words, count * sizeof *words);
    r.begin = ticks_now();
    thread_append(t, &r);
}

/*
 * `words` NULL: no arguments. Arguments not known now are 0, and left out after the last known one.
 */
static inline __attribute__((always_inline)) void
library_call_append(struct thread *t, uint8_t type, const struct library_site *site, int result,
                    const uint64_t *words)
{
    const bool is_end = type == RECORD_LIBRARY_END;
    unsigned count = words ? site->count : 0;
    while (count && site->late[count - 1] != is_end)
        count--;
    if (!is_end && unlikely(atomic_load_explicit(&fork_page.slow_ticks[API_LIBRARY],
                                                 memory_order_relaxed) == 0)) {
        append_with_stack(t, site, words, count);
        return;
    }
    uint64_t word0 = record_word0(type, 0, RECORD_HEAD_WORDS + count, site->code, count);
    thread_append_words(t, word0, ticks_now(), result, words);
}

static __attribute__((noinline)) void leave_slowly(struct thread *t, uint64_t begin)
{
    if (begin && thread_takes_part(t) && t->burst) {
        t->burst--;
        thread_set_limit(t);
        thread_cost_time(t->cost, COST_LIBRARY, ticks_now() - begin);
    }
    if (attention_now() >= ATTENTION_LATE && thread_takes_part(t))
        writer_flush(0, gp.settings.numbers[SETTING_EXIT_WAIT]);
}

static inline void library_call_leave(struct thread *t, uint64_t begin)
{
    if (unlikely(begin) || unlikely(attention_now() >= ATTENTION_LATE))
        leave_slowly(t, begin);
    call_leave(t);
}

static bool library_call_is_counted(const struct library_site *site)
{
    return site->role == API_DOES_COLLECTIVE || site->role == API_DOES_P2P ||
           site->role == API_DOES_P2P_RECEIVE;
}

static bool makes_communicators(const struct library_site *site)
{
    return site->role == API_DOES_COMM_MAKE || site->role == API_DOES_COMM_MAKE_ALL ||
           site->role == API_DOES_COMM_SPLIT;
}

/* Follows communicators, recorded or not, by the rows of api_nccl.def. */
static void note_begin(struct library_call *c, const struct library_site *site, uint64_t *words)
{
    if (site->role == API_DOES_COMM_END)
        communicator_ends(words[0]);
    if (makes_communicators(site))
        memcpy(c->made, words, (site->count < 4 ? site->count : 4) * sizeof *words);
    if (library_call_is_counted(site))
        words[1] = communicator_next(words[1]);
    if (site->role == API_DOES_COMM_SPLIT)
        words[4] = communicator_splits(words[1]) + 1;
}

static void note_end(const struct library_call *c, const struct library_site *site, int result,
                     uint64_t handle)
{
    const uint64_t *made = c->made;
    if (site->role == API_DOES_COMM_MAKE && handle)
        communicator_made(handle, made[1], (uint32_t)made[2], (uint32_t)made[3]);
    else if (site->role == API_DOES_COMM_MAKE_ALL && result == 0)
        communicators_made((const uint64_t *)(uintptr_t)made[0], (uint32_t)made[1],
                           (const int *)(uintptr_t)made[2]);
    else if (site->role == API_DOES_COMM_SPLIT && (result == 0 || handle))
        communicator_split(made[1], handle, made[2]);
}

static bool has_arguments(const struct library_site *site)
{
    return gp.settings.numbers[SETTING_LIBRARIES] == LIBRARIES_ON &&
           !is_given_up(site, OFF_ARGUMENTS);
}

static __attribute__((noinline)) const struct binding *
library_call_bind(const struct library_site *site, uintptr_t caller, struct binding *unbound)
{
    const struct api_function *f = &api_functions[site->code];
    uintptr_t stand_in = this_thread.stand_in;
    const struct binding *b = resolve_slow(site->code, f->domain, f->symbol, caller, unbound);
    this_thread.stand_in = stand_in; /* only CUDA's calls use that */
    return b;
}

void *library_begin(struct library_call *c, const struct library_site *site, uint64_t *words,
                    uintptr_t caller)
{
    struct thread *t = &this_thread;
    struct call own;
    struct call **open = &open_calls[site->family];
    struct binding unbound;
    const struct binding *to = resolve_known(site->code, caller);
    if (unlikely(!to) && !(to = library_call_bind(site, caller, &unbound)))
        return NULL;
    c->outer = *open;
    c->epoch = EPOCH_NONE;
    c->is_open = false;
    if (!call_enter_own(t, &own))
        return to->real;
    uint64_t begin = unlikely(t->burst) ? ticks_now() : 0;
    if (!to->is_own || !c->outer || !call_is_live(c->outer, &c->call)) {
        c->call.mark = call_mark(&c->call, CALL_OWNER);
        c->is_open = true;
        *open = &c->call;
        note_begin(c, site, words);
        if (is_recorded(t, site, caller, true)) {
            if (library_call_is_counted(site) && has_arguments(site))
                communicator_reported(t, words[0], caller);
            if (site->role == API_DOES_LIBRARY_PLAN && has_arguments(site)) {
                struct library_plan *plan = (struct library_plan *)(uintptr_t)words[0];
                plan->real = (uintptr_t)to->real;
                words[0] = plan->number(plan, t);
            }
            bool are_known =
                has_arguments(site) && (!site->looks || cublas_look(site->code, words, to->real));
            note_function(site->code);
            library_call_append(t, RECORD_LIBRARY_BEGIN, site, 0, are_known ? words : NULL);
            c->epoch = t->epoch & EPOCH_MASK;
        }
    }
    library_call_leave(t, begin);
    return to->real;
}

void library_end(struct library_call *c, const struct library_site *site, int result,
                 const uint64_t *words)
{
    struct thread *t = &this_thread;
    struct call own;
    if (!c->is_open)
        return;
    open_calls[site->family] = c->outer;
    c->call.mark = 0;
    if (unlikely(makes_communicators(site)))
        note_end(c, site, result, words ? words[0] : 0);
    if (c->epoch == EPOCH_NONE || !call_enter_own(t, &own))
        return;
    uint64_t begin = unlikely(t->burst) ? ticks_now() : 0;
    if (c->epoch == epoch_now() && is_recorded(t, site, 0, false))
        library_call_append(t, RECORD_LIBRARY_END, site, result,
                            has_arguments(site) ? words : NULL);
    if (unlikely(makes_communicators(site)) && site->role != API_DOES_COMM_MAKE_ALL && words &&
        words[0] && c->epoch == epoch_now() && has_arguments(site))
        communicator_reported(t, words[0], 0);
    library_call_leave(t, begin);
}
