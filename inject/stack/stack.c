/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/stack.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/pages.h"
#include "base/say.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "frame.h"
#include "python/python.h"
#include "record/recorded.h"
#include "record/thread.h"
#include "stack/modules.h"
#include "stack/splice.h"
#include "stack/unwinder.h"
#include "stack/walk.h"
#include "store/meta.h"

#define STACKS_MAX  (1u << 16)
#define SLOTS       (2 * STACKS_MAX) /* at most half full */
#define PROBES_MAX  64
#define RECENTS     STACKS_MAX /* power of two */
#define ROOMS       256        /* of 25 KiB, of which a usual stack touches half */
#define PAGE_BYTES  4096u
#define RETAKES_MAX 4 /* when objects are unloaded meanwhile */

_Static_assert(WALK_FRAMES_MAX <= FRAME_COUNT_MAX, "a stack fits into a record");

/* Claimed by the hash of its frames; has its number when the definition is in the stream. */
struct slot {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint32_t stack;
};

/* Meanings of addresses for one age of the list of modules. A cache: an entry that is missing or
 * inconsistent is looked up again. */
struct recent {
    _Atomic uint64_t check;
    _Atomic uint32_t stack;
};

/* Space for taking a stack: the thread's own stack may be small. */
struct room {
    _Atomic uint32_t is_taken;
    struct walk walk;
    struct splice splice;
} __attribute__((aligned(64)));

struct table {
    struct slot slots[SLOTS];
    struct recent recents[RECENTS];
    struct room rooms[ROOMS];
};

/* The table, and why there is none, are set by the thread that starts a recording, and by the child
 * of a fork; any thread that takes a stack uses the rest. */
static struct table *table;            /* from mmap */
static _Atomic uint32_t stack_count;   /* claimed slots */
static _Atomic uint32_t failure_count; /* for stack_of_failure */
static _Atomic uint32_t last_stack;    /* the newest number */
static const char *missing;            /* why there are none */
static bool of_calls;                  /* stacks of calls are wanted, not only those of operators */

/* Hashes addresses together with the age of their meaning; frames with age 0. */
static uint64_t stack_hash_of(const struct walk *w, uint32_t age)
{
    /* Mixed separately: an age is as small as the difference of two addresses. */
    uint64_t hash = hash_mix(0, age * 4ull + w->is_borrowed * 2u + w->is_cut);
    for (unsigned i = 0; i < w->count; i++)
        hash = hash_mix(hash, w->frames[i]);
    return hash ? hash : 1;
}

static uint64_t check_of(uint64_t key, uint32_t stack)
{
    return key ^ stack * 0x9E3779B97F4A7C15u;
}

/* Each key has two places: 0 and 1. */
static struct recent *recent_of(uint64_t key, unsigned place)
{
    return &table->recents[key % RECENTS ^ place];
}

static uint32_t find_recent(uint64_t key)
{
    for (unsigned place = 0; place < 2; place++) {
        const struct recent *r = recent_of(key, place);
        uint32_t stack = atomic_load_explicit(&r->stack, memory_order_relaxed);
        if (stack && atomic_load_explicit(&r->check, memory_order_relaxed) == check_of(key, stack))
            return stack;
    }
    return 0;
}

static void put_recent(struct recent *r, uint64_t check, uint32_t stack)
{
    atomic_store_explicit(&r->check, check, memory_order_relaxed);
    atomic_store_explicit(&r->stack, stack, memory_order_relaxed);
}

/* Moves the previous entry to the other place. */
static void add_recent(uint64_t key, uint32_t stack)
{
    struct recent *r = recent_of(key, 0);
    put_recent(recent_of(key, 1), atomic_load_explicit(&r->check, memory_order_relaxed),
               atomic_load_explicit(&r->stack, memory_order_relaxed));
    put_recent(r, check_of(key, stack), stack);
}

/* Returns the slot of that key, and claims it if it is new; NULL: there is no space. */
static struct slot *stack_slot_of(uint64_t key)
{
    for (uint64_t i = key; i < key + PROBES_MAX; i++) {
        struct slot *s = &table->slots[i % SLOTS];
        uint64_t found = atomic_load_explicit(&s->key, memory_order_relaxed);
        if (found == key)
            return s;
        if (found)
            continue;
        if (atomic_load_explicit(&stack_count, memory_order_relaxed) >= STACKS_MAX)
            return NULL;
        if (atomic_compare_exchange_strong(&s->key, &found, key)) {
            atomic_fetch_add(&stack_count, 1);
            return s;
        }
        if (found == key)
            return s;
    }
    return NULL;
}

/* Writes the definition of a stack: its frames. */
static bool stack_define(struct thread *t, uint32_t stack, const struct walk *w)
{
    struct record r = {RECORD_WITH(STACK, [STACK_STACK] = stack,
                                   [STACK_FLAGS] = (w->is_cut ? STACK_CUT : 0) |
                                                   (w->is_borrowed ? STACK_BORROWED : 0)),
                       .begin = ticks_now(), .bytes = (const uint8_t *)w->frames,
                       .byte_count = 8 * w->count};
    if (thread_append(t, &r))
        return true;
    /* not an event; it is tried again at its next call */
    counter_add(COUNTER_DROPPED, (uint64_t)-1);
    return false;
}

/* Returns 0 if there is no space. */
static uint32_t stack_number_of(struct thread *t, const struct walk *w)
{
    struct slot *s = stack_slot_of(stack_hash_of(w, 0));
    uint32_t stack = s ? atomic_load_explicit(&s->stack, memory_order_acquire) : 0;
    if (stack || !s)
        return stack;
    stack = 1 + atomic_fetch_add(&last_stack, 1);
    if (!stack_define(t, stack, w))
        return 0;
    atomic_store_explicit(&s->stack, stack, memory_order_release);
    return stack;
}

/* Caches the number of frames that were looked up, under `key`. */
static uint32_t keep_stack(uint64_t key, uint32_t stack)
{
    if (stack)
        add_recent(key, stack);
    else
        counter_add(COUNTER_STACKS_DROPPED, 1);
    return stack;
}

static uint32_t take_walk(struct thread *t, struct walk *w, struct splice *s)
{
    uint64_t key = 0;
    for (unsigned tries = 0; tries < RETAKES_MAX; tries++) {
        modules_check(tries > 0);
        uint32_t age = atomic_load(&modules_age);
        unsigned max = (unsigned)gp.settings.numbers[SETTING_BACKTRACE_DEPTH];
        uint64_t whole = walk_whole(t, w, max) ? stack_hash_of(w, age) : 0;
        uint32_t stack = whole ? find_recent(whole) : 0;
        if (likely(stack))
            return stack;
        walk_stack(t, w, python_is_here() ? WALK_FRAMES_MAX : max);
        if (!w->is_signal && w->has_ends && python_is_here())
            splice_python(t, s, w, max);
        if (w->is_signal || w->count == 0) {
            counter_add(COUNTER_STACKLESS, 1);
            return 0;
        }
        key = whole ? whole : stack_hash_of(w, age);
        stack = whole ? 0 : find_recent(key);
        if (likely(stack))
            return stack;
        /* A new stack: is it real, or was the rule of an unloaded object used? */
        modules_check(true);
        if (age == atomic_load(&modules_age))
            break;
    }
    return keep_stack(key, modules_frames(t, w->frames, w->count) ? stack_number_of(t, w) : 0);
}

/* Something was unloaded meanwhile: the native frames' meaning is no longer known. */
static void keep_python(struct walk *w)
{
    unsigned count = 0;
    for (unsigned i = 0; i < w->count; i++)
        if (frame_kind(w->frames[i]) == FRAME_PYTHON)
            w->frames[count++] = w->frames[i];
    w->is_cut |= count < w->count;
    w->count = count;
}

uint32_t stack_number(struct thread *t, struct walk *w, uint32_t age)
{
    uint64_t key = stack_hash_of(w, age);
    uint32_t stack = table ? find_recent(key) : 0;
    if (stack || !table)
        return stack;
    modules_check(true);
    bool is_old = age != atomic_load(&modules_age);
    if (is_old)
        keep_python(w);
    if (!w->count || !modules_frames(t, w->frames, w->count))
        return 0;
    if (is_old)
        return stack_number_of(t, w);
    return keep_stack(key, stack_number_of(t, w));
}

/* Hashes what the frames offer directly: a known place needs no look-up of names. */
static uint64_t hash_of_python(const struct walk *w, const struct splice *s)
{
    uint64_t hash = hash_mix(1, w->is_borrowed * 2u + w->is_cut);
    for (unsigned i = 0; i < s->count; i++)
        hash = hash_mix(hash_mix(hash_mix(hash, s->frames[i].code), s->frames[i].instruction),
                        s->frames[i].check);
    return hash;
}

static unsigned python_frames_max(void)
{
    uint64_t max = gp.settings.numbers[SETTING_BACKTRACE_DEPTH];
    return max < PYTHON_FRAMES_MAX ? (unsigned)max : PYTHON_FRAMES_MAX;
}

/* Returns the number of the Python frames in `s`. `running`: the state of their thread, if it may
 * be running; otherwise 0. */
static uint32_t number_python(struct thread *t, struct walk *w, struct splice *s, uint64_t running)
{
    uint64_t key = hash_of_python(w, s);
    uint32_t stack = s->count ? find_recent(key) : 0;
    if (likely(stack) || !s->count)
        return stack;
    w->count = 0;
    for (unsigned i = 0; i < s->count; i++) {
        uint32_t location = running ? python_location_running(t, running, s->frames, s->count, i)
                                    : python_location(t, &s->frames[i]);
        if (!location)
            return running ? 0 : keep_stack(key, 0); /* it may have gone on, and will come again */
        w->frames[w->count++] = frame_in_python(location);
    }
    return keep_stack(key, stack_number_of(t, w));
}

static uint32_t take_python(struct thread *t, struct walk *w, struct splice *s)
{
    s->count = python_frames(s->frames, python_frames_max(), &w->is_cut, &w->is_borrowed);
    return number_python(t, w, s, 0);
}

/* A room that the thread left by longjmp still belongs to it. NULL: all are taken. */
static struct room *take_room(struct thread *t)
{
    for (unsigned i = 0; i < ROOMS && !t->room; i++) {
        struct room *r = &table->rooms[(t->number + i) % ROOMS];
        if (!atomic_load_explicit(&r->is_taken, memory_order_relaxed) &&
            !atomic_exchange_explicit(&r->is_taken, 1, memory_order_acquire))
            t->room = r;
    }
    return t->room;
}

static void leave_room(struct thread *t, struct room *r)
{
    t->room = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&r->is_taken, 0, memory_order_release);
}

typedef uint32_t (*take_fn)(struct thread *t, struct walk *w, struct splice *s);

/* Used when more threads take stacks than there are rooms. */
static __attribute__((noinline)) uint32_t take_here(struct thread *t, take_fn how)
{
    struct walk w;
    struct splice s;
    return how(t, &w, &s);
}

static uint32_t take_by(struct thread *t, take_fn how)
{
    int saved = errno;
    struct room *r = take_room(t);
    uint32_t stack = r ? how(t, &r->walk, &r->splice) : take_here(t, how);
    if (r)
        leave_room(t, r);
    errno = saved;
    return stack;
}

/* Is the thread on a stack for signal handlers? No stack is taken there, since space may be short.
 * The kernel is asked once for the calls of a page. */
static bool is_in_handler(struct thread *t)
{
    uint32_t page = (uint32_t)((uintptr_t)__builtin_frame_address(0) / PAGE_BYTES);
    if (likely(page == t->own_page))
        return false;
    if (signal_stack_bytes())
        return true;
    t->own_page = page;
    return false;
}

uint32_t stack_take(struct thread *t)
{
    if (unlikely(is_in_handler(t))) {
        counter_add(COUNTER_STACKLESS, 1);
        return 0;
    }
    return take_by(t, take_walk);
}

uint32_t stack_take_python(struct thread *t)
{
    return table && python_is_here() && !is_in_handler(t) ? take_by(t, take_python) : 0;
}

uint32_t stack_take_python_of(struct thread *t, uint64_t state, bool (*is_still_there)(void *),
                              void *context)
{
    uint32_t stack = 0;
    struct room *r = table ? take_room(t) : NULL;
    if (!r)
        return 0;
    r->splice.count = python_frames_of(state, r->splice.frames, python_frames_max(),
                                       &r->walk.is_cut, &r->walk.is_borrowed);
    if (is_still_there(context))
        stack = number_python(t, &r->walk, &r->splice, 0);
    leave_room(t, r);
    return stack;
}

uint32_t stack_take_python_running(struct thread *t, uint64_t state, bool *is_torn)
{
    struct room *r = table ? take_room(t) : NULL;
    *is_torn = false;
    if (!r)
        return 0;
    int count =
        python_frames_running(state, r->splice.frames, python_frames_max(), &r->walk.is_cut);
    r->splice.count = count > 0 ? (unsigned)count : 0;
    r->walk.is_borrowed = false;
    *is_torn = count < 0;
    uint32_t stack = number_python(t, &r->walk, &r->splice, state);
    leave_room(t, r);
    return stack;
}

bool stack_of_failure(unsigned class)
{
    return atomic_load(&fork_page.slow_ticks[class]) != UINT64_MAX &&
           atomic_load(&failure_count) < STACK_FAILURES_MAX &&
           atomic_fetch_add(&failure_count, 1) < STACK_FAILURES_MAX;
}

static void set_slow(uint64_t ticks, uint64_t always)
{
    for (unsigned i = 0; i < API_CLASS_COUNT; i++)
        atomic_store(&fork_page.slow_ticks[i], always >> i & 1 ? 0 : ticks);
}

void stacks_turn(void)
{
    uint64_t ns = gp.settings.numbers[SETTING_BACKTRACE_THRESHOLD];
    uint64_t always = gp.settings.numbers[SETTING_BACKTRACE];
    uint64_t bytes = gp.settings.numbers[SETTING_MEMORY_STACKS];
    bool is_off = !stacks_are_on() || recorded_asked() & OFF_STACKS;
    atomic_store(&fork_page.memory_bytes, is_off || bytes == SETTING_OFF ? 0 : bytes);
    if (is_off)
        set_slow(UINT64_MAX, 0);
    else if (ns == SETTING_OFF)
        set_slow(UINT64_MAX, always);
    else
        set_slow((uint64_t)(((unsigned __int128)ns << 32) / gp.header.scale.mult), always);
}

static void look_for_python(void)
{
    if (table)
        python_look();
}

void stacks_start(void)
{
    uint64_t ns = gp.settings.numbers[SETTING_BACKTRACE_THRESHOLD];
    uint64_t always = gp.settings.numbers[SETTING_BACKTRACE] & ((1u << API_CLASS_COUNT) - 1);
    of_calls = always || ns != SETTING_OFF;
    bool of_operators = gp.settings.numbers[SETTING_PYTORCH] & PYTORCH_STACKS;
    bool of_samples = gp.settings.numbers[SETTING_SAMPLE] != SETTING_OFF;
    if (!missing && !table && (of_calls || of_operators || of_samples)) {
        table = pages_map(sizeof *table);
        if (!table) {
            missing = "absent: no memory";
            note(SAY_STACKS, "stacks are not recorded: cannot allocate memory: %s",
                 error_text(errno));
        }
    }
    stacks_turn();
    look_for_python();
}

void stacks_load(void)
{
    if (stacks_are_on())
        unwinder_start();
}

void stacks_reset(void)
{
    unwinder_reset();
    if (!modules_reset()) {
        missing = "absent: the process was forked while the loader was busy";
        note(SAY_STACKS, "stacks are not recorded in this child process: it was forked while the "
                         "loader was busy");
    }
    if (table)
        munmap(table, sizeof *table);
    table = NULL;
    atomic_store(&stack_count, 0);
    atomic_store(&last_stack, 0);
    atomic_store(&failure_count, 0);
}

bool stacks_are_on(void)
{
    return !missing && table && of_calls;
}

void stacks_look(struct thread *writer)
{
    (void)writer;
    look_for_python();
}

/* Returns the text for the META record, or "absent: " and the reason. Uses `text` if a constant
 * does not suffice. */
static const char *source(char *text, size_t bytes)
{
    const char *state = unwinder_state();
    if (missing || !table)
        return missing ? missing : "absent: switched off";
    if (!of_calls)
        return "Python frames, for operators only";
    if (python_is_here())
        return "call frame information (needed for Python frames)";
    if (strcmp(state, UNWINDER_READY) == 0) {
        if (gp.settings.numbers[SETTING_UNWINDER] == UNWINDER_LIBUNWIND)
            return state;
        state = "where call frame information fails";
    }
    snprintf(text, bytes, "call frame information (libunwind: %s)", state);
    return text;
}

void stacks_describe(struct thread *writer, bool is_last)
{
    static uint64_t reported_epoch; /* the writer's: the recording for which it was written */
    char text[256];
    bool is_settled = !stacks_are_on() || unwinder_is_settled();
    if (reported_epoch == writer->epoch || !(is_last || is_settled))
        return;
    reported_epoch = writer->epoch;
    meta_append_text(writer, "stacks", source(text, sizeof text));
    if (stacks_are_on() && gp.settings.numbers[SETTING_MEMORY_STACKS] != SETTING_OFF) {
        snprintf(text, sizeof text, "%llu",
                 (unsigned long long)gp.settings.numbers[SETTING_MEMORY_STACKS]);
        meta_append_text(writer, "memory_stacks", text);
    }
}
