/* SPDX-License-Identifier: Apache-2.0 */
/* Occupancies worked out by hand for an H100, and numbers that no device has. */
#include "unit_test.h"

#include "record/gpu_record.h"
#include "resolve/occupancy.h"

static const struct device_limits h100 = {.major = 9,
                                          .multiprocessors = 132,
                                          .threads_max = 2048,
                                          .blocks_max = 32,
                                          .registers_max = 65536,
                                          .shared_max = 233472,
                                          .warp = 32};

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        struct launch_shape shape;
        unsigned resident;
        unsigned percent;
        unsigned limited;
        unsigned blocks_milli;
        unsigned warps_milli;
    } cases[] = {
        {{1320, 256, 32, 3072}, 8, 100, 100, 10000, 80000}, /* threads: 2048 / 256 */
        {{132, 256, 32, 3072}, 8, 13, 100, 1000, 8000},     /* a grid of one block each */
        {{1320, 256, 64, 0}, 4, 50, 50, 10000, 80000},      /* 64 * 32 registers: 32 warps */
        {{1320, 1024, 40, 0}, 1, 50, 50, 10000, 320000},    /* 51 warps, in groups of 4: 48 */
        {{1320, 256, 16, 102400}, 2, 25, 25, 10000, 80000}, /* 101 KiB of 228 */
        {{1320, 32, 16, 0}, 32, 16, 50, 10000, 10000},    /* 32 blocks, no more; the grid has 10 */
        {{66, 33, 0, 0}, 32, 1, 100, 500, 515},           /* 33 threads take two warps */
        {{1320, 256, 16, 300000}, 0, 0, 0, 10000, 80000}, /* does not fit at all */
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct occupancy o = occupancy_of(&h100, &cases[i].shape);
        assert_true(o.spread && o.limited);
        assert_int_equal(o.resident, cases[i].resident);
        assert_int_equal(o.percent, cases[i].percent);
        assert_int_equal(o.percent_limited, cases[i].limited);
        assert_int_equal(o.blocks_milli, cases[i].blocks_milli);
        assert_int_equal(o.warps_milli, cases[i].warps_milli);
    }
}

static void test_unknown(void **state)
{
    (void)state;
    struct launch_shape shape = {100, 64, 32, 0};
    struct device_limits some = {.multiprocessors = 10, .warp = 32};
    assert_false(occupancy_of(NULL, &shape).spread);
    struct occupancy o = occupancy_of(&some, &shape);
    assert_true(o.spread && !o.limited && o.blocks_milli == 10000);
    shape.threads = 0;
    assert_false(occupancy_of(&h100, &shape).spread);
}

/* Every mixture of numbers at their limits ends with percentages. */
static void test_extremes(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 255, 1ull << 28, UINT32_MAX, 1ull << 63, UINT64_MAX};
    uint64_t seed = 4711;
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t v[12];
        for (unsigned k = 0; k < 12; k++)
            v[k] = values[random_of(&seed) % 7];
        struct device_limits device = {.major = v[0],
                                       .multiprocessors = v[1],
                                       .threads_max = v[2],
                                       .blocks_max = v[3],
                                       .registers_max = v[4],
                                       .shared_max = v[5],
                                       .warp = v[6]};
        struct launch_shape shape = {dim3_volume(v[7]), dim3_volume(v[8]), v[9], v[10]};
        struct occupancy o = occupancy_of(&device, &shape);
        assert_true(o.percent <= 100 && o.percent_limited <= 100);
        assert_true(o.blocks_milli <= 1ull << 50 && o.warps_milli <= 1ull << 50);
    }
    assert_true(dim3_volume(UINT64_MAX) == 1ull << 62);
    assert_true(dim3_volume(6 | 5ull << 32 | 4ull << 48) == 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
