/* SPDX-License-Identifier: Apache-2.0 */
/* The way from a correlation id to its call: in any order, in memory and through the spool. */
#include "unit_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "base/spool.h"
#include "resolve/correlation.h"

#define CALLS          6000
#define PROCESSES      3
#define MANY_CALLS     20
#define MANY_PROCESSES 8000

static struct correlated_call call_of(uint32_t process, uint32_t id)
{
    return (struct correlated_call){.process = process,
                                    .id = id,
                                    .begin_ns = 1000ull * id + process,
                                    .end_ns = 1000ull * id + 500,
                                    .thread = id % 7,
                                    .function = id % 11,
                                    .flags = CORRELATION_LAUNCH | CORRELATION_WORKS};
}

static void add(struct correlation *c, const struct correlated_call *call)
{
    struct correlated_call *to = correlation_add(c, call->process, call->id);
    if (to)
        *to = *call;
}

static void assert_found(struct correlation *c, uint32_t process, uint32_t id)
{
    struct correlated_call found;
    struct correlated_call wanted = call_of(process, id);
    assert_int_equal(correlation_find(c, process, id, CORRELATION_MATCHED, &found), 1);
    assert_int_equal(found.process, process);
    assert_int_equal(found.id, id);
    assert_true(found.begin_ns == wanted.begin_ns && found.end_ns == wanted.end_ns);
    assert_int_equal(found.thread, wanted.thread);
}

/* Counts a process's launches without work outside of the first gaps. */
static uint64_t missing_of(struct correlation *c, uint32_t process, uint32_t gap_count)
{
    static struct correlation_gap gaps[] = {
        {2500, 2900}, {3600, 3900}, {5499, 5501}, {7900, UINT64_MAX}};
    static const struct correlation_thread threads[7];
    struct correlation_losses losses[PROCESSES] = {{0}};
    losses[process] = (struct correlation_losses){
        .kinds = CORRELATION_LAUNCH, .gaps = gaps, .gap_count = gap_count};
    correlation_missing(c, losses, threads);
    return losses[process].count;
}

/* Shuffled ids 1, 3, 5, ... of two processes. */
static void fill(struct correlation *c, uint64_t seed)
{
    static uint32_t order[CALLS];
    for (uint32_t i = 0; i < CALLS; i++)
        order[i] = i;
    for (uint32_t i = CALLS - 1; seed && i > 0; i--) {
        uint32_t k = (uint32_t)(random_of(&seed) % (i + 1));
        uint32_t kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    for (uint32_t i = 0; i < CALLS; i++) {
        struct correlated_call call = call_of(order[i] % 2, 2 * order[i] + 1);
        add(c, &call);
    }
}

static void check_all(struct correlation *c, uint64_t seed)
{
    struct correlated_call found;
    for (uint32_t i = 0; i < CALLS; i++) {
        uint32_t n = (uint32_t)(random_of(&seed) % CALLS);
        assert_found(c, n % 2, 2 * n + 1);
        assert_int_equal(correlation_find(c, n % 2, 2 * n, CORRELATION_MATCHED, &found), 0);
        assert_int_equal(correlation_find(c, 1 - n % 2, 2 * n + 1, CORRELATION_MATCHED, &found), 0);
    }
    for (uint32_t n = 0; n < CALLS; n++)
        assert_found(c, n % 2, 2 * n + 1);
    for (uint32_t n = CALLS; n-- > 0;)
        assert_found(c, n % 2, 2 * n + 1);
    assert_int_equal(correlation_find(c, 2, 1, CORRELATION_MATCHED, &found), 0);
    assert_int_equal(correlation_find(c, 0, UINT32_MAX, CORRELATION_MATCHED, &found), 0);
    assert_int_equal(correlation_find(c, 0, 0, CORRELATION_MATCHED, &found), 0);
}

static void test_orders(void **state)
{
    (void)state;
    /* One run in memory; runs that overlap and runs that follow each other, in a file. */
    static const struct {
        uint32_t run_max;
        uint64_t seed;
        uint32_t slots;
    } cases[] = {{CORRELATION_RUN, 5, 64},
                 {CORRELATION_RUN, 0, 64},
                 {700, 0, 3},
                 {700, 9, 2},
                 {1000, 11, 2},
                 {1901, 0, 1}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct correlation c;
        correlation_init(&c, 1);
        c.run_max = cases[i].run_max;
        c.spool.usable = cases[i].slots;
        fill(&c, cases[i].seed);
        assert_int_equal(c.spool.count > 0, cases[i].run_max < CALLS / 2);
        check_all(&c, 77 + i);
        correlation_forget(&c); /* the next walk's are others */
        fill(&c, cases[i].seed);
        check_all(&c, 77 + i);
        correlation_release(&c);
    }
}

/* A launch is not used up by its first kernel, and one that nothing was found for is known. */
static void test_many_and_none(void **state)
{
    (void)state;
    for (uint32_t run_max = 4; run_max <= CORRELATION_RUN; run_max += CORRELATION_RUN - 4) {
        struct correlation c;
        correlation_init(&c, 1);
        c.run_max = run_max;
        for (uint32_t id = 1; id <= 10; id++) {
            struct correlated_call call = call_of(0, id);
            if (id == 4)
                call.flags = 0; /* captured: it makes no work itself */
            add(&c, &call);
        }
        struct correlated_call other = call_of(1, 3);
        add(&c, &other);
        for (unsigned kernel = 0; kernel < 100; kernel++)
            assert_found(&c, 0, 7);
        struct correlated_call found;
        assert_int_equal(correlation_find(&c, 1, 3, 0, &found), 1); /* that is no work of its */
        assert_found(&c, 0, 2);
        correlation_finish(&c);
        assert_int_equal(missing_of(&c, 0, 0), 7);
        assert_int_equal(missing_of(&c, 1, 0), 1);
        assert_int_equal(missing_of(&c, 2, 0), 0);
        correlation_release(&c);
    }
}

/* Each of many processes is as far ahead of its devices as a queue allows. */
static void test_many_ahead(void **state)
{
    const uint32_t processes = 150;
    struct correlation c;
    struct correlated_call found;
    (void)state;
    correlation_init(&c, 1);
    assert_int_equal(c.run_max, CORRELATION_RUN);
    correlation_init(&c, processes);
    for (uint32_t id = 1; id <= CORRELATION_AHEAD; id++)
        for (uint32_t i = 0; i < processes; i++) {
            struct correlated_call call = {
                .process = i, .id = id, .begin_ns = 1000 * id + i, .end_ns = 1000 * id + 500};
            add(&c, &call);
        }
    for (uint32_t i = 0; i < processes; i++) {
        assert_int_equal(correlation_find(&c, i, 1, 0, &found), 1);
        assert_int_equal(found.begin_ns, 1000 + i);
    }
    correlation_release(&c);
    correlation_init(&c, UINT32_MAX);
    assert_int_equal(c.run_max, CORRELATION_RUN_MAX);
    correlation_release(&c);
}

/* The last launch of a thread that hangs cannot have ended; of those before it nobody knows. */
static void test_hang(void **state)
{
    (void)state;
    for (uint32_t matched = 0; matched <= 4; matched++) {
        struct correlation c;
        struct correlated_call found;
        const struct correlation_thread threads[2] = {{800, false}, {700, true}};
        struct correlation_losses l = {.kinds = CORRELATION_LAUNCH};
        correlation_init(&c, 1);
        for (uint32_t id = 1; id <= 8; id++) {
            struct correlated_call call = call_of(0, id);
            call.thread = id % 2;
            call.begin_ns = 100 * id;
            add(&c, &call);
        }
        for (uint32_t id = 1; id < 2 * matched; id += 2)
            assert_int_equal(correlation_find(&c, 0, id, CORRELATION_MATCHED, &found), 1);
        correlation_finish(&c);
        correlation_missing(&c, &l, threads);
        assert_int_equal(l.pending, matched < 4);
        assert_int_equal(l.count + l.pending, 8 - matched);
        correlation_release(&c);
    }
}

/* Further ids of a call; a driver call inside a runtime call; links that lead nowhere or round. */
static void test_links(void **state)
{
    (void)state;
    for (uint32_t run_max = 3; run_max <= CORRELATION_RUN; run_max += CORRELATION_RUN - 3) {
        struct correlation c;
        struct correlated_call found;
        correlation_init(&c, 1);
        c.run_max = run_max;
        struct correlated_call nested = call_of(0, 5);
        nested.flags |= CORRELATION_NESTED;
        nested.begin_ns = 1; /* even if it were first */
        add(&c, &nested);
        struct correlated_call outer = call_of(0, 5);
        correlation_link(&c, 0, 9, 10, 5000);
        correlation_link(&c, 0, 10, 11, 5000);
        correlation_link(&c, 0, 20, 21, 5000);
        correlation_link(&c, 0, 21, 20, 5000);
        correlation_link(&c, 0, 30, 31, 5000);
        correlation_link(&c, 0, 40, 40, 5000);
        correlation_link(&c, 0, 5, 9, 5000);
        add(&c, &outer);
        assert_found(&c, 0, 5);
        for (uint32_t id = 9; id <= 11; id++) {
            assert_int_equal(correlation_find(&c, 0, id, CORRELATION_MATCHED, &found), 1);
            assert_int_equal(found.id, 5);
            assert_int_equal(found.flags & CORRELATION_NESTED, 0);
        }
        assert_int_equal(correlation_find(&c, 0, 20, CORRELATION_MATCHED, &found), 0);
        assert_int_equal(correlation_find(&c, 0, 31, CORRELATION_MATCHED, &found), 0);
        assert_int_equal(correlation_find(&c, 0, 40, CORRELATION_MATCHED, &found), 0);
        correlation_release(&c);
    }
}

/* Work that comes long behind its call finds it where more work is expected of it: the launch of a
 * graph, or one that had none so far. What has its work, or makes none, is forgotten. */
static void test_forgets(void **state)
{
    struct correlation c;
    struct correlated_call found;
    (void)state;
    correlation_init(&c, 1);
    c.run_max = 4;
    for (uint32_t id = 1; id <= 400; id++) {
        struct correlated_call call = call_of(0, id);
        if (id % 4 == 1)
            call.flags = CORRELATION_GRAPH | CORRELATION_WORKS;
        if (id % 4 == 2)
            call.flags = 0;
        add(&c, &call);
        if (id % 4 != 3)
            assert_found(&c, 0, id);
    }
    for (uint32_t id = 1; id <= 390; id++)
        assert_int_equal(correlation_find(&c, 0, id, CORRELATION_MATCHED, &found), id % 2);
    assert_true(c.spool.count <= 200);
    correlation_release(&c);
}

/* Ids come again after 2^32 calls: the newest is meant. */
static void test_reuse(void **state)
{
    (void)state;
    for (uint32_t run_max = 2; run_max <= CORRELATION_RUN; run_max += CORRELATION_RUN - 2) {
        struct correlation c;
        struct correlated_call found;
        correlation_init(&c, 1);
        c.run_max = run_max;
        for (uint32_t i = 0; i < 3; i++) {
            struct correlated_call outer = call_of(0, 5), nested = outer;
            outer.thread = nested.thread = i;
            nested.begin_ns = outer.begin_ns + 100;
            nested.flags |= CORRELATION_NESTED;
            add(&c, &outer);
            add(&c, &nested);
            correlation_link(&c, 0, 5, 99, outer.begin_ns + 50);
            for (uint32_t id = 5; id <= 99; id += 94) {
                assert_int_equal(correlation_find(&c, 0, id, CORRELATION_MATCHED, &found), 1);
                assert_int_equal(found.thread, i);
                assert_int_equal(found.flags & CORRELATION_NESTED, 0);
            }
            for (uint32_t other = 0; other < 2 * CORRELATION_RUN; other++) {
                struct correlated_call call = {.process = 1, .id = 1 + other};
                add(&c, &call);
            }
        }
        correlation_release(&c);
    }
}

/* What was written is read again, changed and unchanged, with one place for all blocks. */
static void test_spool(void **state)
{
    (void)state;
    struct spool s;
    spool_init(&s, sizeof(uint64_t));
    s.usable = 1;
    for (uint64_t i = 0; i < 100000; i++)
        spool_append(&s, &i);
    assert_true(s.fd >= 0 && s.count == 100000);
    for (uint64_t i = 0; i < 100000; i += 9973) {
        uint64_t *item = spool_at(&s, i, true);
        assert_true(item && *item == i);
        *item = ~i;
    }
    for (uint64_t i = 0; i < 100000; i++) {
        const uint64_t *item = spool_at(&s, i, false);
        assert_true(item && *item == (i % 9973 ? i : ~i));
    }
    spool_release(&s);
}

/* Blocks that are asked for by turns have places of their own, however far they are apart. */
static void test_spool_turns(void **state)
{
    (void)state;
    struct spool s;
    uint64_t apart = SPOOL_SLOTS * (SPOOL_BLOCK_BYTES / sizeof(uint64_t));
    spool_init(&s, sizeof(uint64_t));
    for (uint64_t i = 0; i <= 2 * apart; i++)
        spool_append(&s, &i);
    uint64_t *first = spool_at(&s, 0, false), *second = spool_at(&s, apart, false);
    assert_ptr_not_equal(first, second);
    assert_true(*first == 0 && *second == apart);
    assert_ptr_equal(spool_at(&s, 0, false), first);
    assert_ptr_equal(spool_at(&s, 2 * apart, false), second); /* the older one's */
    assert_true(*first == 0 && *second == 2 * apart);
    spool_release(&s);
}

/* Calls n last from 1000 n to 1000 n + 500. */
static void test_gaps(void **state)
{
    struct correlation c;
    (void)state;
    correlation_init(&c, 1);
    for (uint32_t id = 1; id <= 9; id++) {
        struct correlated_call call = call_of(0, id);
        add(&c, &call);
    }
    correlation_finish(&c);
    assert_int_equal(missing_of(&c, 0, 0), 9);
    /* 2 was open when the first began, 5 at the third, 8 and 9 lie in the last. */
    assert_int_equal(missing_of(&c, 0, 4), 5);
    correlation_release(&c);
}

static void test_no_room(void **state)
{
    (void)state;
    struct spool s;
    char *kept = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    setenv("TMPDIR", "/proc/no/such/folder", 1);
    spool_init(&s, 8);
    s.usable = 1;
    assert_non_null(spool_at(&s, 0, true));
    pid_t child = fork();
    if (child == 0) {
        spool_at(&s, 100000, true); /* ends the program */
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_ENVIRONMENT);
    spool_release(&s);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
}

/* Counts the calls of all processes at once. */
static void test_many_processes(void **state)
{
    static const struct correlation_thread threads[7];
    static struct correlation_losses losses[MANY_PROCESSES];
    (void)state;
    struct correlation c;
    uint64_t all = 0;
    correlation_init(&c, 1);
    for (uint32_t id = 1; id <= MANY_CALLS; id++) {
        for (uint32_t process = 0; process < MANY_PROCESSES; process++) {
            struct correlated_call call = call_of(process, id);
            add(&c, &call);
        }
    }
    assert_found(&c, MANY_PROCESSES / 2, 1);
    correlation_finish(&c);
    for (uint32_t i = 0; i < MANY_PROCESSES; i++)
        losses[i].kinds = CORRELATION_LAUNCH;
    correlation_missing(&c, losses, threads);
    for (uint32_t i = 0; i < MANY_PROCESSES; i++)
        all += losses[i].count;
    assert_int_equal(all, MANY_CALLS * MANY_PROCESSES - 1);
    correlation_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),  cmocka_unit_test(test_many_and_none),
        cmocka_unit_test(test_links),   cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_spool),   cmocka_unit_test(test_spool_turns),
        cmocka_unit_test(test_forgets), cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_gaps),    cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_hang),    cmocka_unit_test(test_many_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
