/* SPDX-License-Identifier: Apache-2.0 */
#include "record/recorded.h"

#include <string.h>

#include "base/futex.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "client_note.h"
#include "record/feature.h"
#include "record/start.h"
#include "record/thread.h"
#include "record/wake.h"

#define PUBLISH_NS 1000000000u

#define CHANGE (1ull << 32) /* in an asker's word: counts changes above its bits */

/* When the recording began, for requests made before; set by the thread that starts it. */
static uint64_t begin_ticks;

/* Held for a moment by the thread that writes what is off. */
static struct lock lock;

/* From here on everything requested is off, and `more`, which is about to be requested. */
static void state_off(uint32_t more)
{
    if (!lock_take(&lock, PUBLISH_NS))
        return; /* its holder was stopped; it checks again */
    uint32_t off = recorded_asked() | (more & atomic_load(&fork_page.off));
    atomic_store(&fork_page.off, off);
    if (off & OFF_CALLS)
        atomic_fetch_or(&fork_page.recording, EPOCH_PAUSED);
    else
        atomic_fetch_and(&fork_page.recording, ~(uint64_t)EPOCH_PAUSED);
    lock_drop(&lock);
}

void recorded_publish(void)
{
    if (!calls_are_off())
        state_off(UINT32_MAX);
}

/* Counts changes, also those undone since, which the current requests do not show. */
static uint64_t change_count(void)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < ASKER_COUNT; i++)
        count += atomic_load(recorded_word((enum asker)i)) / CHANGE;
    return count;
}

/* No call is recorded while CUPTI makes no records: changing its kinds waits (for locks, for the
 * device) long enough for other threads to launch. So calls go off first, and on last. */
static void apply(void)
{
    uint64_t count;
    do {
        count = change_count();
        state_off(UINT32_MAX);
        FEATURES_DO(turn, ());
        state_off(0);
    } while (count !=
             change_count()); /* another thread has made a request, and may have been overtaken */
}

/* For requests that need not wait: they ensure that calls have to wait for nothing. */
static void apply_soon(void)
{
    state_off(~(uint32_t)OFF_CALLS);
    atomic_store(&fork_page.turn_due, 1);
    writer_wake();
}

/* Appends the asker's usual record: it turns something off, or on again. */
static void append_usual(struct thread *t, enum asker asker, bool is_off, uint64_t ticks)
{
    struct record r = {.type = RECORD_NOTE, .begin = ticks};
    if (asker == ASKER_PROGRAM || asker == ASKER_CONTROL) {
        r = (struct record){
            RECORD_WITH(PAUSE, [PAUSE_PAUSED] = is_off, [PAUSE_BY] = asker == ASKER_CONTROL),
            .begin = ticks};
    } else {
        r.bytes = (const uint8_t *)(is_off ? CLIENT_NOTE_HAS : CLIENT_NOTE_HAD);
        r.byte_count = (uint32_t)strlen((const char *)r.bytes);
    }
    thread_append(t, &r);
}

static void report_unreported(struct thread *t)
{
    uint32_t untold = atomic_load(&fork_page.untold) ? atomic_exchange(&fork_page.untold, 0) : 0;
    for (unsigned i = 0; i < ASKER_COUNT; i++)
        if (untold >> i & 1 && (uint32_t)atomic_load(recorded_word((enum asker)i)))
            append_usual(t, (enum asker)i, true, begin_ticks);
}

static void recorded_report(struct thread *t, enum asker asker, bool is_off, uint64_t ticks,
                            const struct record *says)
{
    if (!t && asker == ASKER_WINDOW) { /* which writes its own record */
    } else if (!t) {
        atomic_fetch_or(&fork_page.untold, 1u << asker);
    } else if (says) {
        struct record r = *says;
        r.begin = ticks;
        thread_append(t, &r);
    } else {
        append_usual(t, asker, is_off, ticks);
    }
}

/*
 * Records of different threads are in the order of their changes. A thread that turns something off
 * takes its time after everything that was recorded before, or its exchange fails. A thread that
 * turns something on writes nothing if there was a new request before everything is on.
 */
static bool recorded_own_ask(struct thread *t, enum asker asker, uint32_t off,
                             const struct record *says, void (*apply_it)(void))
{
    _Atomic uint64_t *word = recorded_word(asker);
    uint64_t before = atomic_load(word), after, ticks;
    uint64_t mask = block_signals();
    bool changes, states = true;
    if (t)
        report_unreported(t);
    do {
        changes = (uint32_t)before != off;
        after = ((before & ~(CHANGE - 1)) + CHANGE) | off;
        ticks = ticks_now();
    } while (changes && !atomic_compare_exchange_weak(word, &before, after));
    if (changes) {
        apply_it();
        if (!(off & ~(uint32_t)before)) {
            ticks = ticks_now();
            states = atomic_compare_exchange_strong(word, &after, after + CHANGE);
        }
        if (states)
            recorded_report(t, asker, off, ticks, says);
    }
    restore_signals(mask);
    return changes;
}

bool recorded_ask(struct thread *t, enum asker asker, uint32_t off, const struct record *says)
{
    return recorded_own_ask(t, asker, off, says, apply);
}

bool recorded_ask_soon(struct thread *t, enum asker asker, uint32_t off, const struct record *says)
{
    return recorded_own_ask(t, asker, off, says, apply_soon);
}

void recorded_load(void)
{
    if (start_is_switched_on(SETTING_START_PAUSED))
        atomic_store(&gp.asked[ASKER_PROGRAM], OFF_PROGRAM);
}

void recorded_start(void)
{
    begin_ticks = ticks_now();
    for (unsigned i = 0; i < ASKER_LASTING_COUNT; i++)
        if ((uint32_t)atomic_load(&gp.asked[i]))
            atomic_fetch_or(&fork_page.untold, 1u << i);
    apply();
}

void recorded_describe(struct thread *writer, bool is_last)
{
    (void)is_last;
    if (atomic_exchange(&fork_page.turn_due, 0))
        apply();
    report_unreported(writer);
}
