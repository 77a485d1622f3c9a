/* SPDX-License-Identifier: Apache-2.0 */
#include "record/recorded.h"

#include <string.h>

#include "base/signals.h"
#include "base/ticks.h"
#include "record/feature.h"
#include "record/start.h"
#include "record/thread.h"

#define CHANGE (1ull << 32) /* in an asker's word: a number of changes above its bits */

/* When the recording began, for what was asked for before; by the thread that begins it. */
static uint64_t begin_ticks;

/*
 * No call is recorded while CUPTI makes no records: what its kinds wait for (its locks, the
 * device) takes long enough for others to launch. So calls go off first, and on last.
 */
static void apply(void)
{
    uint32_t off;
    do {
        off = recorded_asked();
        atomic_fetch_or(&fork_page.off, off);
        if (off & OFF_CALLS)
            atomic_fetch_or(&fork_page.recording, EPOCH_PAUSED);
        FEATURES_DO(turn, ());
        atomic_store(&fork_page.off, off);
        if (!(off & OFF_CALLS))
            atomic_fetch_and(&fork_page.recording, ~(uint64_t)EPOCH_PAUSED);
    } while (off != recorded_asked()); /* somebody else has asked, and may have been overtaken */
}

/* How the stream usually says that the asker leaves something out, or does not any more. */
static void append_usual(struct thread *t, enum asker asker, bool is_off, uint64_t ticks)
{
    struct record r = {.type = RECORD_NOTE, .begin = ticks};
    if (asker == ASKER_PROGRAM) {
        r = (struct record){RECORD_WITH(PAUSE, [PAUSE_PAUSED] = is_off), .begin = ticks};
    } else {
        r.bytes = (const uint8_t *)(is_off ? "another client of CUPTI's has the GPU's records from "
                                             "here on"
                                           : "the GPU's records are gpuprof's again");
        r.byte_count = (uint32_t)strlen((const char *)r.bytes);
    }
    thread_append(t, &r);
}

static void tell_untold(struct thread *t)
{
    uint32_t untold = atomic_load(&fork_page.untold) ? atomic_exchange(&fork_page.untold, 0) : 0;
    for (unsigned i = 0; i < ASKER_COUNT; i++)
        if (untold >> i & 1 && (uint32_t)atomic_load(recorded_word((enum asker)i)))
            append_usual(t, (enum asker)i, true, begin_ticks);
}

static void tell(struct thread *t, enum asker asker, bool is_off, uint64_t ticks,
                 const struct record *says)
{
    if (!t) {
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
 * The times that two threads state follow each other as their changes do: the one that turns
 * something off takes its time after all that was stated before, or its exchange fails; the one
 * that turns something on states nothing if it was asked anew by the time that all is on.
 */
bool recorded_ask(struct thread *t, enum asker asker, uint32_t off, const struct record *says)
{
    _Atomic uint64_t *word = recorded_word(asker);
    uint64_t before = atomic_load(word), after, ticks;
    uint64_t mask = block_signals();
    bool changes, states = true;
    if (t)
        tell_untold(t);
    do {
        changes = (uint32_t)before != off;
        after = ((before & ~(CHANGE - 1)) + CHANGE) | off;
        ticks = ticks_now();
    } while (changes && !atomic_compare_exchange_weak(word, &before, after));
    if (changes) {
        apply();
        if (!(off & ~(uint32_t)before)) {
            ticks = ticks_now();
            states = atomic_compare_exchange_strong(word, &after, after + CHANGE);
        }
        if (states)
            tell(t, asker, off, ticks, says);
    }
    restore_signals(mask);
    return changes;
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
    tell_untold(writer);
}
