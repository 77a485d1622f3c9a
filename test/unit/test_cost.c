/* SPDX-License-Identifier: Apache-2.0 */
/* What gpuprof costs, from threads, times and a clock that are made up here. */
#include "unit_test.h"

#include <time.h>

#include "base/futex.h"
#include "cost/cost_sums.h"
#include "record/own_thread.h"
#include "record/pool.h"
#include "record/state.h"
#include "record/thread.h"
#include "record/thread_cost.h"

#define MS          1000000u
#define WINDOW_NS   (100 * MS)
#define CHUNK_COUNT 4
#define CHUNK_BYTES 4096
#define DEAD        0x80000000u /* in tids */

struct state gp;
struct fork_page fork_page;
__thread struct thread this_thread;

static uint64_t now_ns;
static uint64_t own_ns;
static struct record costs[COST_COUNT], cost_sum;
static struct ladder_window window;
static _Alignas(8) uint8_t chunks[LIVE_HEAD_BYTES + CHUNK_COUNT * CHUNK_BYTES];
static struct chunk_owner owners[CHUNK_COUNT];

/* The clock of everything here. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){(time_t)(now_ns / 1000000000u), (long)(now_ns % 1000000000u)};
    return 0;
}

bool thread_exists(uint32_t tid)
{
    return !(tid & DEAD);
}

uint64_t own_thread_ns(enum cost_class class)
{
    return class == COST_WRITER ? own_ns : 0;
}

bool thread_append(struct thread *t, const struct record *r)
{
    (void)t;
    if (r->type == RECORD_COST)
        costs[r->code] = *r;
    else
        cost_sum = *r;
    return true;
}

static unsigned code_of(enum cost_class class)
{
    unsigned code = 0;
    while (code + 1 < API_FUNCTION_COUNT && api_functions[code].cost != class)
        code++;
    return code;
}

static void start(void)
{
    memset(&gp, 0, sizeof gp);
    memset(chunks, 0, sizeof chunks);
    gp.header.scale.mult = 1ull << CLOCK_SCALE_SHIFT; /* a tick is a nanosecond */
    gp.settings.numbers[SETTING_OVERHEAD_MAX] = SETTING_OFF;
    window = (struct ladder_window){.budget = SETTING_OFF};
    memset(owners, 0, sizeof owners);
    gp.pool.base = chunks;
    gp.pool.owners = owners;
    gp.pool.chunk_bytes = CHUNK_BYTES;
    now_ns = 1000 * MS;
    own_ns = 0;
    thread_costs_start();
    assert_non_null(thread_costs);
    cost_sums_start();
}

static struct thread_cost *begin_thread(uint32_t number)
{
    return thread_cost_take(number, 100 + number, false);
}

static void seal(const struct thread_cost *c, enum cost_class class, uint32_t count)
{
    uint32_t index = thread_cost_index(c);
    cost_sums_sealed(index, (uint32_t)RECORD_CALL << 24 | code_of(class), count);
    cost_sums_reached(index, now_ns);
}

static void times(struct thread_cost *c, enum cost_class class, unsigned count, uint64_t each_ns)
{
    for (unsigned i = 0; i < count; i++)
        thread_cost_time(c, class, each_ns);
}

static void look(void)
{
    now_ns += WINDOW_NS;
    cost_sums_look(&window);
}

/* What is known of a class. */
static const uint64_t *cost_of(enum cost_class class)
{
    memset(costs, 0, sizeof costs);
    cost_sums_append(&this_thread);
    return costs[class].args;
}

static void calls_cost_their_number_times_the_mean(void **state)
{
    (void)state;
    start();
    struct thread_cost *c = begin_thread(1);
    times(c, COST_LAUNCH, 24, 100);
    seal(c, COST_LAUNCH, 20000);
    look();
    assert_int_equal(cost_of(COST_LAUNCH)[COST_ARG_TOTAL_NS], 2 * MS);
    assert_int_equal(window.share, 20000);
    assert_int_equal(window.saves[LADDER_TENTH], 0); /* below the budget, which is off */
    window.budget = 10000;
    times(c, COST_LAUNCH, 24, 200); /* this window's own mean */
    seal(c, COST_LAUNCH, 20000);
    look();
    assert_int_equal(cost_of(COST_LAUNCH)[COST_ARG_TOTAL_NS], 6 * MS);
    assert_int_equal(window.share, 40000);
    assert_int_equal(window.saves[LADDER_TENTH], 40000);
    assert_int_equal(window.saves[LADDER_STACKS], 0);
    assert_int_equal(cost_sum.args[COST_SUM_WALL_NS], 2 * WINDOW_NS);
}

static void what_nobody_has_timed_is_priced_later(void **state)
{
    (void)state;
    start();
    struct thread_cost *c = begin_thread(1);
    seal(c, COST_COPY, 1000);
    look();
    const uint64_t *copy = cost_of(COST_COPY);
    assert_int_equal(copy[COST_ARG_COUNT], 1000);
    assert_int_equal(copy[COST_ARG_TIMED], 0);
    assert_int_equal(copy[COST_ARG_TOTAL_NS], 0);
    times(c, COST_COPY, 24, 50);
    seal(c, COST_COPY, 10);
    look();
    assert_int_equal(cost_of(COST_COPY)[COST_ARG_TOTAL_NS], 1010 * 50);
    assert_int_equal(cost_sum.args[COST_SUM_COST_NS], 1010 * 50);
    assert_int_equal(window.share, 5); /* what came before is not this window's */
}

/* The thread that it came from is gone by then. */
static void what_the_dead_have_left_is_priced_too(void **state)
{
    (void)state;
    start();
    struct thread_cost *first = begin_thread(1);
    seal(first, COST_COPY, 1000);
    atomic_fetch_or(&first->tid, DEAD);
    look();
    assert_int_equal(first->tid, 0);
    struct thread_cost *second = begin_thread(2);
    times(second, COST_COPY, 24, 50);
    look();
    assert_int_equal(cost_of(COST_COPY)[COST_ARG_TOTAL_NS], 1000 * 50);
    assert_int_equal(cost_sum.args[COST_SUM_THREADS], 2);
}

static void a_class_without_times_costs_what_the_others_do(void **state)
{
    (void)state;
    start();
    struct thread_cost *c = begin_thread(1);
    times(c, COST_QUERY, 24, 70);
    seal(c, COST_ALLOC, 10);
    look();
    assert_int_equal(cost_of(COST_ALLOC)[COST_ARG_TOTAL_NS], 700);
    assert_int_equal(cost_of(COST_ALLOC)[COST_ARG_TIMED], 0);
}

static void cold_calls_count_where_there_are_no_others(void **state)
{
    (void)state;
    start();
    struct thread_cost *c = begin_thread(1);
    for (unsigned i = 0; i < 5; i++)
        thread_cost_time_cold(c, COST_COPY, 300);
    seal(c, COST_COPY, 10);
    look();
    assert_int_equal(cost_of(COST_COPY)[COST_ARG_TOTAL_NS], 3000);
    assert_int_equal(cost_of(COST_COPY)[COST_ARG_TIMED], 5);
    times(c, COST_COPY, 1, 100); /* even one is better than all of them */
    seal(c, COST_COPY, 10);
    look();
    assert_int_equal(cost_of(COST_COPY)[COST_ARG_TOTAL_NS], 4000);
    assert_int_equal(cost_of(COST_COPY)[COST_ARG_TIMED], 1);
}

/* Its load and its store had a handler's call between them, and the look was then. */
static void a_sum_that_goes_back_is_no_cost(void **state)
{
    (void)state;
    start();
    struct thread_cost *c = begin_thread(1);
    times(c, COST_STACK, 10, 1000);
    look();
    atomic_store(&c->timed[COST_STACK], 8);
    atomic_store(&c->ticks[COST_STACK], 8000);
    look();
    assert_int_equal(cost_of(COST_STACK)[COST_ARG_TOTAL_NS], 10000);
    times(c, COST_STACK, 4, 1000);
    look();
    assert_int_equal(cost_of(COST_STACK)[COST_ARG_TOTAL_NS], 12000);
    assert_int_equal(cost_of(COST_STACK)[COST_ARG_COUNT], 12);
}

static void starts_are_no_part_of_a_share(void **state)
{
    (void)state;
    start();
    struct thread_cost *c = begin_thread(1);
    times(c, COST_START, 1, 50 * MS);
    look();
    assert_int_equal(window.share, 0);
    assert_int_equal(cost_of(COST_START)[COST_ARG_TOTAL_NS], 50 * MS);
    assert_int_equal(cost_sum.args[COST_SUM_COST_NS], 0);
}

/* Ten, one after another, of which each costs a tenth of its own time. */
static void threads_of_a_moment_count_together(void **state)
{
    (void)state;
    start();
    struct thread_cost *main_thread = begin_thread(1);
    for (uint32_t i = 0; i < 10; i++) {
        struct thread_cost *c = begin_thread(2 + i);
        times(c, COST_LAUNCH, 24, 100);
        now_ns += 10 * MS;
        seal(c, COST_LAUNCH, 10000);
        atomic_fetch_or(&c->tid, DEAD);
    }
    now_ns -= WINDOW_NS;
    look();
    assert_in_range(window.share, 99000, 101000);
    cost_of(COST_LAUNCH);
    assert_int_equal(cost_sum.args[COST_SUM_THREADS], 11);
    /* Each was there until its last record, and the first until now. */
    assert_int_equal(cost_sum.args[COST_SUM_WALL_NS], 2 * WINDOW_NS);
    assert_int_equal(cost_sum.args[COST_SUM_WORST_WALL_NS], 10 * MS);
    assert_int_equal(main_thread->tid, 101);
}

static void a_thread_of_a_moment_is_compared_with_half_a_window(void **state)
{
    (void)state;
    start();
    now_ns += WINDOW_NS - MS;
    struct thread_cost *c = begin_thread(1);
    times(c, COST_LAUNCH, 24, 100);
    seal(c, COST_LAUNCH, 5000);
    now_ns -= WINDOW_NS - MS;
    look();
    assert_int_equal(window.share, 10000); /* 0.5 ms of 50, not of 1 */
}

static void put_chunk(unsigned i, uint32_t number, uint32_t tid, uint32_t cost)
{
    uint8_t *chunk = pool_chunk(&gp.pool, i);
    atomic_store(chunk_state(chunk), LIVE_OWNED);
    chunk_set_u32(chunk, LIVE_CHUNK_THREAD, number);
    chunk_set_u32(chunk, LIVE_CHUNK_TID, tid);
    atomic_store(&gp.pool.owners[i].cost, cost);
    atomic_store(&gp.pool.allocated, i + 1);
}

static void threads_that_share_a_sum_have_the_mean_of_the_busy(void **state)
{
    (void)state;
    start();
    for (uint32_t i = 0; i < THREAD_COSTS_MAX; i++)
        assert_ptr_not_equal(begin_thread(1 + i), &thread_cost_shared);
    assert_ptr_equal(begin_thread(2000), &thread_cost_shared);
    put_chunk(0, 2000, 7, 0);
    put_chunk(1, 2001, 8, 0);
    put_chunk(2, 2002, 9, THREAD_COST_OWN);
    put_chunk(3, 2003, 10 | DEAD, 0);
    for (unsigned i = 0; i < CHUNK_COUNT; i++)
        if (i != 1)
            cost_sums_active(&gp.pool.owners[i]);
    times(&thread_cost_shared, COST_LAUNCH, 24, 100);
    seal(&thread_cost_shared, COST_LAUNCH, 20000);
    look();
    assert_int_equal(window.share, 20000); /* one of them did something and is there */
    cost_of(COST_LAUNCH);
    assert_int_equal(cost_sum.args[COST_SUM_WORST_THREAD], 2000);
    assert_int_equal(cost_sum.args[COST_SUM_THREADS], THREAD_COSTS_MAX + 1);
    cost_sums_active(&gp.pool.owners[0]);
    cost_sums_active(&gp.pool.owners[1]);
    seal(&thread_cost_shared, COST_LAUNCH, 20000);
    look();
    assert_int_equal(window.share, 10000);
}

static void a_free_place_is_found(void **state)
{
    (void)state;
    start();
    struct thread_cost *c = begin_thread(1);
    assert_int_equal(thread_cost_index(c), (uint32_t)(c - thread_costs) + 1);
    assert_ptr_equal(thread_cost_take(5, 5, true), &thread_cost_shared);
    assert_int_equal(thread_cost_sharer_count, 0);
    atomic_store(&c->tid, UINT32_MAX); /* being filled */
    assert_int_equal(thread_cost_owner(c), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_cost_their_number_times_the_mean),
        cmocka_unit_test(what_nobody_has_timed_is_priced_later),
        cmocka_unit_test(what_the_dead_have_left_is_priced_too),
        cmocka_unit_test(a_class_without_times_costs_what_the_others_do),
        cmocka_unit_test(cold_calls_count_where_there_are_no_others),
        cmocka_unit_test(a_sum_that_goes_back_is_no_cost),
        cmocka_unit_test(starts_are_no_part_of_a_share),
        cmocka_unit_test(threads_of_a_moment_count_together),
        cmocka_unit_test(a_thread_of_a_moment_is_compared_with_half_a_window),
        cmocka_unit_test(threads_that_share_a_sum_have_the_mean_of_the_busy),
        cmocka_unit_test(a_free_place_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
