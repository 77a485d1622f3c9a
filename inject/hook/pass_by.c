/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/pass_by.h"

#include "base/ticks.h"

/* Xorshift: the choice of recorded calls must not follow the program's own rhythm. */
static uint32_t pass_by_draw(struct passer *p, uint32_t seed, uint32_t below)
{
    uint32_t x = p->random ? p->random : seed * 0x9E3779B9u | 1;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    p->random = x;
    return (uint32_t)((uint64_t)x * below >> 32);
}

/* Returns whether to pass by this call. If not, it is recorded on behalf of those before it. */
static bool is_its_turn(struct thread *t, struct call *c, const struct call_site *site)
{
    struct passer *p = &t->passer;
    uint32_t of = passing_calls();
    enum passed_class class = site->class == API_COPY ? PASSED_COPY : PASSED_LAUNCH;
    if (site->cost == COST_QUERY)
        return passing_now() & OFF_QUERIES;
    if (!of || (site->class != API_LAUNCH && site->class != API_COPY))
        return false;
    if (p->gaps[class]) {
        p->gaps[class]--;
        p->pending[class]++;
        return true;
    }
    t->weight = p->pending[class] + 1;
    t->weighed_class = (uint8_t) class;
    t->weighed = t->weight > 1 ? c : NULL;
    p->gaps[class] = pass_by_draw(p, t->number, 2 * of - 1); /* one less than `of` on average */
    return false;
}

static void note_passed(struct thread *t)
{
    uint8_t *chunk = t->records - LIVE_CHUNK_HEAD_BYTES;
    uint64_t *passed = (uint64_t *)(void *)(chunk + LIVE_CHUNK_PASSED);
    /* No other thread adds to it; the writer reads it. */
    __atomic_store_n(passed, __atomic_load_n(passed, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Returns whether no call is open, nothing is captured, and the thread's chunk can count. */
static bool can_pass(const struct thread *t)
{
    return !t->open && t->records && thread_takes_part(t) && !attention_captures() &&
           !(recorded_off() & OFF_CALLS);
}

/* Returns whether the newest call is `c` or inside it. Otherwise `c` began on another thread, or a
 * coroutine waits in the newest one. */
static bool has_newest(const struct thread *t, const struct call *c)
{
    return t->passed && (call_is_seen(t, c) || call_is_seen(t, t->passed) ||
                         (uintptr_t)c - (uintptr_t)t->passed < CALL_STACK_BYTES_MAX);
}

void pass_leave(struct thread *t, struct call *c)
{
    if (!has_newest(t, c)) {
        *(volatile uintptr_t *)&c->mark = 0; /* its own thread will see that it is over */
        return;
    }
    t->passed = c->below; /* also removes calls passed by inside it and left by an exception */
    if (!t->passed)
        thread_set_limit(t);
}

void pass_end(struct thread *t, struct call *c, const struct call_site *site, int result)
{
    pass_leave(t, c);
    if (call_has_failed(site, result) && thread_takes_part(t))
        counter_add(COUNTER_PASSED_FAILED, 1);
}

bool pass_by(struct thread *t, struct call *c, const struct call_site *site, uintptr_t caller,
             uint64_t begin)
{
    if (t->weighed == c) /* it was left by longjmp, and this call is at its address now */
        t->weighed = NULL;
    if (!caller || call_thread_is_inside(t))
        return false;
    c->mark = call_mark(c, CALL_PASS);
    if (!can_pass(t))
        return false;
    /* a signal handler's call must not come between reading and storing a count */
    call_enter(t, c);
    bool passes = is_its_turn(t, c, site);
    if (passes) {
        pass_enter(t, c, CALL_PASSED);
        note_passed(t);
    }
    if (thread_is_asked(t))
        thread_follow(t);
    if (passes && begin && t->burst) {
        t->burst--;
        thread_set_limit(t);
        thread_cost_time(t->cost, COST_PASSED, ticks_now() - begin);
    }
    call_leave(t);
    return passes;
}
