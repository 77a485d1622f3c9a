/* SPDX-License-Identifier: Apache-2.0 */
#include "control/orders.h"

#include <stdio.h>
#include <string.h>

#include "base/futex.h"
#include "base/ticks.h"
#include "range/step_count.h"
#include "range/windows.h"
#include "record/recorded.h"
#include "store/flight_sink.h"
#include "store/flight_watch.h"

#define LOCK_NS   20000000u
#define LINGER_NS 1000000000u
#define WARM      2u /* value of PAUSE_PAUSED: device records are on already */

static struct lock lock; /* protects the variables below */

static struct {
    struct control_command all[CONTROL_WAITS_MAX];
    unsigned count;
    /* CLOCK_MONOTONIC time at which a step stopped the calls; 0: device records are stopped, too */
    uint64_t stopped_ns;
} waiting;

/* Makes the record. A step that a label marks is written as such. */
static struct record pause_record(uint32_t paused, const struct step_snapshot *step)
{
    uint64_t number = step->source == STEPS_OF_PROGRAM ? step->number + 1 : 0;
    return (struct record){
        RECORD_WITH(PAUSE, [PAUSE_PAUSED] = paused, [PAUSE_BY] = 1, [PAUSE_STEP] = number)};
}

/* Removes a waiting order. The lock must be held. */
static void orders_take_out(unsigned index)
{
    memmove(&waiting.all[index], &waiting.all[index + 1],
            (--waiting.count - index) * sizeof waiting.all[0]);
}

static bool turns(enum control_what what)
{
    return what == CONTROL_START || what == CONTROL_STOP;
}

/* ---- at a step --------------------------------------------------------------------------------
 */

/* What `gpuprof ctl` has turned off now. */
static uint32_t off_now(void)
{
    return (uint32_t)atomic_load(recorded_word(ASKER_CONTROL));
}

static void start_at(struct thread *t, const struct step_snapshot *step, bool may_wait)
{
    struct record says = pause_record(0, step);
    bool is_ready = !(off_now() & OFF_WORK);
    waiting.stopped_ns = 0;
    (may_wait && !is_ready ? recorded_ask : recorded_ask_soon)(t, ASKER_CONTROL, 0, &says);
}

static void stop_at(struct thread *t, const struct step_snapshot *step)
{
    struct record says = pause_record(1, step);
    if (off_now())
        return;
    waiting.stopped_ns = clock_ns(CLOCK_MONOTONIC);
    recorded_ask_soon(t, ASKER_CONTROL, OFF_CALLS, &says);
}

static void warm_up(struct thread *t, const struct step_snapshot *step)
{
    struct record says = pause_record(WARM, step);
    waiting.stopped_ns = 0;
    recorded_ask_soon(t, ASKER_CONTROL, OFF_CALLS, &says);
}

static void dump_at(uint64_t step)
{
    char text[40];
    snprintf(text, sizeof text, "step %llu", (unsigned long long)step);
    flight_watch_ask(DUMP_CONTROL, text);
}

/* Called when a step begins; see step_count.h. */
static bool follow_step(struct thread *t, const struct step_snapshot *step, bool may_wait)
{
    uint64_t number = step->number;
    if (!lock_take(&lock, LOCK_NS))
        return false; /* the next step does it */
    for (unsigned i = 0; i < waiting.count;) {
        struct control_command c = waiting.all[i];
        bool is_next = c.when == CONTROL_AT_STEP && c.at == number + 1;
        if (c.when != CONTROL_AT_STEP || c.at > number) {
            if (is_next && c.what == CONTROL_START && off_now() & OFF_WORK)
                warm_up(t, step);
            i++;
            continue;
        }
        orders_take_out(i);
        if (c.what == CONTROL_START)
            start_at(t, step, may_wait);
        else if (c.what == CONTROL_STOP)
            stop_at(t, step);
        else
            dump_at(number);
    }
    lock_drop(&lock);
    return false;
}

/* ---- at once, and at a time -------------------------------------------------------------------
 */

/* Carries out a command at once. The lock must be held. */
static void do_now(struct thread *t, enum control_what what)
{
    if (what == CONTROL_DUMP && t) /* nothing was recorded before the recording started */
        flight_watch_ask(DUMP_CONTROL, "");
    if (!turns(what))
        return;
    waiting.stopped_ns = 0;
    recorded_ask(t, ASKER_CONTROL, what == CONTROL_STOP ? OFF_PROGRAM : 0, NULL);
}

static void forget_turns(void)
{
    for (unsigned i = waiting.count; i-- > 0;)
        if (turns(waiting.all[i].what))
            orders_take_out(i);
}

void orders_reset(void)
{
    if (!lock_take(&lock, LOCK_NS))
        return;
    memset(&waiting, 0, sizeof waiting);
    lock_drop(&lock);
    step_count_follow(STEP_PLACE_ORDERS, follow_step);
}

/* Takes a schedule: from its step on, or from the next one, only its windows are recorded, even if
 * recording was stopped. */
static enum control_answer take_schedule(struct thread *t, const struct control_command *c)
{
    bool is_late = windows_schedule(t, c->schedule.active ? &c->schedule : NULL,
                                    c->when == CONTROL_AT_STEP ? c->at : STEP_NEXT);
    if (c->schedule.active)
        recorded_ask(t, ASKER_CONTROL, 0, NULL);
    return is_late ? ANSWER_LATE : ANSWER_DONE;
}

enum control_answer orders_take(struct thread *t, const struct control_command *c)
{
    struct step_snapshot steps = step_count_now();
    enum control_answer answer = ANSWER_REFUSED;
    bool needs_flight = c->what == CONTROL_DUMP && t;
    if ((needs_flight && !flight_is_on()) || (c->what == CONTROL_SCHEDULE && flight_is_on()) ||
        !lock_take(&lock, LOCK_NS))
        return ANSWER_REFUSED;
    if (c->when == CONTROL_AT_ONCE || c->what == CONTROL_SCHEDULE) {
        if (turns(c->what) || c->what == CONTROL_SCHEDULE)
            forget_turns();
        answer = ANSWER_DONE;
        if (c->what == CONTROL_SCHEDULE)
            answer = take_schedule(t, c);
        else
            do_now(t, c->what);
    } else if (waiting.count < CONTROL_WAITS_MAX) {
        waiting.all[waiting.count++] = *c;
        answer = c->when == CONTROL_AT_STEP && steps.count && steps.number >= c->at ? ANSWER_LATE
                                                                                    : ANSWER_DONE;
    }
    lock_drop(&lock);
    return answer;
}

void orders_time(struct thread *writer)
{
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    if (!lock_take(&lock, LOCK_NS))
        return;
    for (unsigned i = 0; i < waiting.count;) {
        struct control_command c = waiting.all[i];
        if (c.when != CONTROL_AT_TIME || c.at > now_ns) {
            i++;
            continue;
        }
        orders_take_out(i);
        do_now(writer, c.what);
    }
    if (waiting.stopped_ns && clock_ns(CLOCK_MONOTONIC) - waiting.stopped_ns >= LINGER_NS)
        do_now(writer, CONTROL_STOP);
    lock_drop(&lock);
}

unsigned orders_waiting(struct control_wait *waits)
{
    if (!lock_take(&lock, LOCK_NS))
        return 0;
    unsigned count = waiting.count;
    for (unsigned i = 0; i < count; i++)
        waits[i] =
            (struct control_wait){waiting.all[i].what, waiting.all[i].when, waiting.all[i].at};
    lock_drop(&lock);
    return count;
}
