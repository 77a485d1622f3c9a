/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings: what is taken, what is refused and why. */
#include "unit_test.h"

#include "error.h"
#include "settings.h"

static struct settings settings;
static char reason[200];

static int set(enum setting_index index, const char *text)
{
    reason[0] = '\0';
    return settings_set(&settings, index, text, reason, sizeof reason);
}

static void refused(enum setting_index index, const char *text, const char *why)
{
    uint64_t before = settings.numbers[index];
    assert_int_equal(set(index, text), GPUPROF_USAGE);
    assert_string_equal(reason, why);
    assert_true(settings.numbers[index] == before);
}

static void times_that_can_be_off(void **state)
{
    (void)state;
    settings_init(&settings);
    assert_int_equal(settings.numbers[SETTING_BACKTRACE_THRESHOLD], 80000);
    assert_int_equal(set(SETTING_BACKTRACE_THRESHOLD, "off"), 0);
    assert_true(settings.numbers[SETTING_BACKTRACE_THRESHOLD] == SETTING_OFF);
    assert_int_equal(set(SETTING_BACKTRACE_THRESHOLD, "0"), 0);
    assert_int_equal(settings.numbers[SETTING_BACKTRACE_THRESHOLD], 0);
    assert_int_equal(set(SETTING_BACKTRACE_THRESHOLD, "60s"), 0);
    assert_int_equal(settings.numbers[SETTING_BACKTRACE_THRESHOLD], 60000000000);
    refused(SETTING_BACKTRACE_THRESHOLD, "61s", "'61s' is out of range (0 to 60s)");
    refused(SETTING_BACKTRACE_THRESHOLD, "of",
            "'of' is not a time such as 80us, 200ms or 3s (0 to 60s), or off");
    refused(SETTING_BACKTRACE_THRESHOLD, "offs",
            "'offs' is not a time such as 80us, 200ms or 3s (0 to 60s), or off");
    refused(SETTING_BACKTRACE_THRESHOLD, "",
            "'' is not a time such as 80us, 200ms or 3s (0 to 60s), or off");
    /* The number that means it is no way to say it. */
    refused(SETTING_BACKTRACE_THRESHOLD, "18446744073709551615",
            "'18446744073709551615' is not a time such as 80us, 200ms or 3s (0 to 60s), or off");
}

static void times_that_cannot(void **state)
{
    (void)state;
    settings_init(&settings);
    refused(SETTING_WAIT, "off", "'off' is not a time such as 80us, 200ms or 3s (0 to 60s)");
    refused(SETTING_SEAL, "off", "'off' is not a time such as 80us, 200ms or 3s (10ms to 60s)");
}

/* However a user writes a unit: one of 1024 of the one before it. */
static void units_of_sizes(void **state)
{
    static const char *const good[] = {"1M",   "1m",   "1MB",   "1mb",     "1MiB",
                                       "1mib", "1MIB", "1024k", "1024KiB", "1048576"};
    static const char *const bad[] = {"1MBB",   "1Mi", "1 M", "1.5", "1.M", ".M",
                                      "1.2.3M", "1bM", "1P",  "M",   "1Mx"};
    char why[120];
    (void)state;
    settings_init(&settings);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(set(SETTING_BUFFER, good[i]), 0);
        assert_int_equal(settings.numbers[SETTING_BUFFER], 1 << 20);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(why, sizeof why, "'%s' is not a size such as 512K, 64M or 1G (1M to 4G)", bad[i]);
        refused(SETTING_BUFFER, bad[i], why);
    }
    assert_int_equal(set(SETTING_DUMP_BYTES, "2tb"), 0);
    assert_true(settings.numbers[SETTING_DUMP_BYTES] == 2ull << 40);
    refused(SETTING_DUMP_BYTES, "17T", "'17T' is out of range (1M to 16T)");
    assert_int_equal(set(SETTING_BUFFER, "1.5g"), 0);
    assert_true(settings.numbers[SETTING_BUFFER] == 3ull << 29);
    assert_int_equal(set(SETTING_BUFFER, "1025.0009765625K"), 0); /* billionths of it */
    assert_true(settings.numbers[SETTING_BUFFER] == 1025 * 1024);
    refused(SETTING_BUFFER, "4.000001G", "'4.000001G' is out of range (1M to 4G)");
    assert_int_equal(set(SETTING_WAIT, "0.25ms"), 0);
    assert_int_equal(settings.numbers[SETTING_WAIT], 250000);
    refused(SETTING_BACKTRACE_DEPTH, "1.5", "'1.5' is not a number (1 to 512)");
    assert_int_equal(set(SETTING_DURATION, "2min"), 0);
    assert_true(settings.numbers[SETTING_DURATION] == 120000000000);
    assert_int_equal(set(SETTING_FLIGHT, "64mb,1m"), 0);
    assert_int_equal(set(SETTING_FLIGHT, "64"), GPUPROF_USAGE);
    assert_int_equal(set(SETTING_FLIGHT, "1.5m,64.5M"), 0);
    assert_int_equal(set(SETTING_FLIGHT, "63.9M"), GPUPROF_USAGE);
}

/* The code's names for them are in the same order as the words that one writes. */
static void choices_have_their_names(void **state)
{
    static const struct {
        enum setting_index index;
        const char *text;
        uint64_t number;
    } words[] = {
        {SETTING_ON_FULL, "drop", ON_FULL_DROP},
        {SETTING_GPU, "on", GPU_SETTING_ON},
        {SETTING_GRAPHS, "whole", GRAPHS_WHOLE},
        {SETTING_FRONT, "runtime", FRONT_RUNTIME},
        {SETTING_UNWINDER, "own", UNWINDER_OWN},
        {SETTING_KINDS, "info", KINDS_INFO},
        {SETTING_KINDS, "copy,latency", KINDS_COPY | KINDS_LATENCY},
    };
    (void)state;
    settings_init(&settings);
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_int_equal(set(words[i].index, words[i].text), 0);
        assert_int_equal(settings.numbers[words[i].index], words[i].number);
    }
}

static void classes_of_calls(void **state)
{
    (void)state;
    settings_init(&settings);
    assert_int_equal(settings.numbers[SETTING_UNWINDER], UNWINDER_LIBUNWIND);
    assert_int_equal(set(SETTING_UNWINDER, "own"), 0);
    assert_int_equal(settings.numbers[SETTING_UNWINDER], UNWINDER_OWN);
    refused(SETTING_UNWINDER, "ow", "'ow' is not one of libunwind|own-first|own");
    assert_int_equal(set(SETTING_BACKTRACE, "launch,copy"), 0);
    assert_int_equal(settings.numbers[SETTING_BACKTRACE], 1 | 4);
    refused(SETTING_BACKTRACE, "launch,off,copy",
            "'off' is not a comma-separated list of "
            "launch|alloc|copy|sync|graph_launch|graph|library|none");
}

static void shares(void **state)
{
    (void)state;
    settings_init(&settings);
    assert_true(settings.numbers[SETTING_OVERHEAD_MAX] == SETTING_OFF);
    const struct {
        const char *text;
        uint64_t number;
    } good[] = {{".5%", 5000},     {"2%", 20000},      {"2", 20000},
                {"0.5%", 5000},    {"12.25%", 122500}, {"0.0001%", 1},
                {"100%", 1000000}, {"007%", 70000},    {"1.5000%", 15000}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(set(SETTING_OVERHEAD_MAX, good[i].text), 0);
        assert_int_equal(settings.numbers[SETTING_OVERHEAD_MAX], good[i].number);
    }
    assert_int_equal(set(SETTING_OVERHEAD_MAX, "off"), 0);
    assert_true(settings.numbers[SETTING_OVERHEAD_MAX] == SETTING_OFF);
    static const char *const bad[] = {
        "",    "%",   "2 %",  ".%",       "5.%", "1.2.3", "-1%",
        "two", "2%%", "1e1%", "0.00001%", "+1",  " 2%",   "999999999999999999999"};
    char why[100];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(why, sizeof why,
                 "'%s' is not a share such as 2%% or 0.5%% (0.0001%% to 100%%), or off", bad[i]);
        refused(SETTING_OVERHEAD_MAX, bad[i], why);
    }
    refused(SETTING_OVERHEAD_MAX, "0%", "'0%' is out of range (0.0001% to 100%)");
    refused(SETTING_OVERHEAD_MAX, "100.1%", "'100.1%' is out of range (0.0001% to 100%)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_that_can_be_off), cmocka_unit_test(times_that_cannot),
        cmocka_unit_test(units_of_sizes),        cmocka_unit_test(choices_have_their_names),
        cmocka_unit_test(classes_of_calls),      cmocka_unit_test(shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
