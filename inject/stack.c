/* SPDX-License-Identifier: Apache-2.0 */
#include "stack.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "frame.h"
#include "modules.h"
#include "pages.h"
#include "python.h"
#include "say.h"
#include "splice.h"
#include "thread.h"
#include "ticks.h"
#include "unwinder.h"
#include "walk.h"

#define STACKS_MAX  (1u << 16)
#define SLOTS       (2 * STACKS_MAX) /* never more than half full */
#define PROBES_MAX  64
#define RETAKES_MAX 4 /* because objects were unloaded meanwhile */

_Static_assert(WALK_FRAMES_MAX <= FRAME_COUNT_MAX, "a stack fits into a record");

/* Claimed by its key; has its number when the definition is in the stream. */
struct slot {
    _Atomic uint64_t key; /* 0 = free */
    _Atomic uint32_t stack;
};

static struct slot *slots;           /* mmap'ed */
static _Atomic uint32_t stack_count; /* slots claimed */
static _Atomic uint32_t last_stack;  /* the newest number */
static const char *absent;           /* why there are none */

static uint64_t hash_of(const struct walk *w, uint32_t age)
{
    uint64_t hash = age * 4ull + w->is_borrowed * 2u + w->is_cut;
    for (unsigned i = 0; i < w->count; i++) {
        hash = (hash ^ w->frames[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash ? hash : 1;
}

/* The slot of that key, now claimed if it was not; NULL if there is no room. */
static struct slot *slot_of(uint64_t key)
{
    for (uint64_t i = key; i < key + PROBES_MAX; i++) {
        struct slot *s = &slots[i % SLOTS];
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

/* Writes what a stack is. Its addresses are frames then. */
static bool define(struct thread *t, uint32_t stack, struct walk *w)
{
    if (!modules_frames(t, w->frames, w->count))
        return false;
    struct record r = {
        .type = RECORD_STACK,
        .begin = ticks_now(),
        .arg_count = 2,
        .args = {stack, (w->is_cut ? STACK_CUT : 0) | (w->is_borrowed ? STACK_BORROWED : 0)},
        .bytes = (const uint8_t *)w->frames,
        .byte_count = 8 * w->count};
    if (thread_append(t, &r))
        return true;
    counter_add(COUNTER_DROPPED, (uint64_t)-1); /* not an event; tried again at its next call */
    return false;
}

static uint32_t take(struct thread *t, struct walk *w)
{
    struct slot *s = NULL;
    for (unsigned tries = 0; tries < RETAKES_MAX; tries++) {
        modules_check(tries > 0);
        uint32_t age = atomic_load(&modules_age);
        unsigned max = (unsigned)gp.settings.numbers[SETTING_BACKTRACE_DEPTH];
        walk_stack(t, w, python_is_here() ? WALK_FRAMES_MAX : max);
        if (!w->is_signal && w->has_ends && python_is_here())
            splice_python(t, w, max);
        if (w->is_signal || w->count == 0) {
            counter_add(COUNTER_STACKLESS, 1);
            return 0;
        }
        s = slot_of(hash_of(w, age));
        uint32_t stack = s ? atomic_load_explicit(&s->stack, memory_order_acquire) : 0;
        if (stack)
            return stack;
        /* A new one: is it one, or was a rule of something used that is not there any more? */
        modules_check(true);
        if (age == atomic_load(&modules_age))
            break;
    }
    uint32_t stack = s ? 1 + atomic_fetch_add(&last_stack, 1) : 0;
    if (!stack || !define(t, stack, w)) {
        counter_add(COUNTER_STACKS_DROPPED, 1);
        return 0;
    }
    atomic_store_explicit(&s->stack, stack, memory_order_release);
    return stack;
}

uint32_t stack_take(struct thread *t)
{
    struct walk w;
    int saved = errno;
    uint32_t stack = take(t, &w);
    errno = saved;
    return stack;
}

static void set_slow(uint64_t ticks, uint64_t always)
{
    for (unsigned i = 0; i < API_CLASS_COUNT; i++)
        atomic_store(&fork_page.slow_ticks[i], always >> i & 1 ? 0 : ticks);
}

void stacks_start(void)
{
    uint64_t ns = gp.settings.numbers[SETTING_BACKTRACE_THRESHOLD];
    uint64_t always = gp.settings.numbers[SETTING_BACKTRACE] & ((1u << API_CLASS_COUNT) - 1);
    if (!absent && !slots && (always || ns != SETTING_OFF)) {
        slots = pages_map(SLOTS * sizeof *slots);
        if (!slots) {
            absent = "absent: no memory";
            say(SAY_STACKS, "stacks are not recorded: no memory for them: %s", error_text(errno));
        }
    }
    if (slots)
        unwinder_start();
    if (absent || !slots)
        set_slow(UINT64_MAX, 0);
    else
        set_slow(ns == SETTING_OFF
                     ? UINT64_MAX
                     : (uint64_t)(((unsigned __int128)ns << 32) / gp.header.scale.mult),
                 always);
}

void stacks_stop(void)
{
    set_slow(UINT64_MAX, 0);
}

void stacks_reset(void)
{
    if (!modules_reset()) {
        absent = "absent: the loader was busy when the process was forked";
        say(SAY_STACKS, "stacks are not recorded in this child: the loader was busy at its fork");
    }
    unwinder_reset();
    if (slots)
        munmap(slots, SLOTS * sizeof *slots);
    slots = NULL;
    atomic_store(&stack_count, 0);
    atomic_store(&last_stack, 0);
}

bool stacks_are_on(void)
{
    return !absent && slots;
}

const char *stacks_source(char *text, size_t bytes)
{
    const char *state = unwinder_state();
    if (absent || !slots)
        return absent ? absent : "absent: switched off";
    if (python_is_here())
        return "call frame information (Python's frames want it)";
    if (strcmp(state, "libunwind") == 0)
        return state;
    snprintf(text, bytes, "call frame information (libunwind: %s)", state);
    return text;
}
