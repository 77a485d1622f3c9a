/* SPDX-License-Identifier: Apache-2.0 */
/* What is given up, and when: from windows that are made up here. */
#include "unit_test.h"

#include "cost/ladder.h"

#define ALL       ((1u << LADDER_STEP_COUNT) - 1)
#define LIBRARIES (1u << LADDER_ARGUMENTS | 1u << LADDER_LIBRARIES)
#define OPERATORS (1u << LADDER_SHAPES | 1u << LADDER_OPERATORS | 1u << LADDER_OP_STACKS)

static struct ladder ladder;
static struct ladder_window window;

static void start(uint32_t possible, uint64_t share)
{
    ladder = (struct ladder){0};
    window = (struct ladder_window){.share = share, .budget = 20000, .possible = possible};
    for (unsigned i = 0; i < LADDER_CODE_COUNT; i++)
        window.saves[i] = 1000;
}

/* What comes of so many windows like the one set up, as a text of digits; "." is nothing. */
static const char *looks(unsigned count)
{
    static char text[64];
    for (unsigned i = 0; i < count; i++) {
        int step = ladder_look(&ladder, &window);
        text[i] = step == LADDER_NONE ? '.' : (char)('0' + step);
    }
    text[count] = '\0';
    return text;
}

static void every_second_window_is_a_step(void **state)
{
    (void)state;
    start(ALL, 20001);
    assert_string_equal(looks(20), ".0.1.2.3.4.5.6......");
    assert_int_equal(ladder.taken, ALL);
}

static void operators_have_their_place(void **state)
{
    (void)state;
    start(ALL | OPERATORS, 20001);
    assert_string_equal(looks(22), ".9.0.7.1.8.2.3.4.5.6..");
    assert_int_equal(ladder.taken, ALL | OPERATORS);
    start(OPERATORS, 20001);
    assert_string_equal(looks(10), ".9.7.8.6..");
    window.saves[LADDER_OP_STACKS] = 0; /* threads without Python have none */
    ladder = (struct ladder){0};
    assert_string_equal(looks(4), ".7.8");
}

static void libraries_have_their_place(void **state)
{
    (void)state;
    start(ALL | OPERATORS | LIBRARIES, 20001); /* the digits go on with : and ; */
    assert_string_equal(looks(26), ".9.0.7.:.1.8.;.2.3.4.5.6..");
    start(ALL | LIBRARIES, 20001);
    window.saves[LADDER_ARGUMENTS] = window.saves[LADDER_LIBRARIES] = 0; /* none are called */
    assert_string_equal(looks(12), ".0.1.2.3.4.5");
}

static void within_the_budget_nothing_is(void **state)
{
    (void)state;
    start(ALL, 20000);
    assert_string_equal(looks(20), "....................");
    window.share = 0;
    assert_string_equal(looks(20), "....................");
    assert_int_equal(ladder.taken, 0);
}

static void one_window_is_not_enough(void **state)
{
    (void)state;
    start(ALL, 0);
    for (unsigned i = 0; i < 50; i++) {
        window.share = i % 2 ? 1000000 : 20000;
        assert_int_equal(ladder_look(&ladder, &window), LADDER_NONE);
    }
    window.share = 20001;
    assert_string_equal(looks(3), "0.1"); /* the last of the fifty was over it, too */
}

static void a_step_that_helps_is_the_last(void **state)
{
    (void)state;
    start(ALL, 50000);
    assert_string_equal(looks(4), ".0.1");
    window.share = 15000;
    assert_string_equal(looks(10), "..........");
    window.share = 50000; /* it goes on where it was */
    assert_string_equal(looks(4), ".2.3");
}

static void what_changes_nothing_is_left_out(void **state)
{
    (void)state;
    start(ALL & ~(1u << LADDER_STACKS | 1u << LADDER_CALLBACKS | 1u << LADDER_CUPTI), 50000);
    assert_string_equal(looks(10), ".1.3.4.6..");
}

static void what_saves_nothing_waits(void **state)
{
    (void)state;
    start(ALL, 50000);
    window.saves[LADDER_STACKS] = 0;
    window.saves[LADDER_CALLBACKS] = 0;
    assert_string_equal(looks(4), ".1.3");
    window.saves[LADDER_STACKS] = 1;
    assert_string_equal(looks(18), ".0.4.5.........6..");
    window.saves[LADDER_CALLBACKS] = 1; /* even after it was said that nothing is left */
    assert_string_equal(looks(6), "2.....");
}

static void what_is_left_may_help_yet(void **state)
{
    (void)state;
    start(1u << LADDER_QUERIES, 50000);
    window.saves[LADDER_QUERIES] = 0;
    assert_string_equal(looks(9), ".........");
    window.saves[LADDER_QUERIES] = 1;
    assert_string_equal(looks(5), "1.6..");
}

static void a_hundredth_comes_after_a_tenth(void **state)
{
    (void)state;
    start(1u << LADDER_HUNDREDTH, 50000);
    assert_string_equal(looks(12), ".........6..");
    start(1u << LADDER_TENTH | 1u << LADDER_HUNDREDTH, 50000);
    window.saves[LADDER_TENTH] = 0; /* both save the same, or nothing */
    window.saves[LADDER_HUNDREDTH] = 0;
    assert_string_equal(looks(12), ".........6..");
}

static void nothing_is_possible(void **state)
{
    (void)state;
    start(0, 1000000);
    assert_string_equal(looks(8), ".6......");
}

static void texts(void **state)
{
    (void)state;
    for (unsigned step = 0; step < LADDER_CODE_COUNT; step++)
        assert_non_null(ladder_step_text(step));
    assert_null(ladder_step_text(LADDER_CODE_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_second_window_is_a_step),
        cmocka_unit_test(operators_have_their_place),
        cmocka_unit_test(libraries_have_their_place),
        cmocka_unit_test(within_the_budget_nothing_is),
        cmocka_unit_test(one_window_is_not_enough),
        cmocka_unit_test(a_step_that_helps_is_the_last),
        cmocka_unit_test(what_changes_nothing_is_left_out),
        cmocka_unit_test(what_saves_nothing_waits),
        cmocka_unit_test(what_is_left_may_help_yet),
        cmocka_unit_test(a_hundredth_comes_after_a_tenth),
        cmocka_unit_test(nothing_is_possible),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
