/* SPDX-License-Identifier: Apache-2.0 */
/* The sort of a block's records: as an insertion sort has it, in a bounded number of moves. */
#include "unit_test.h"

#include <stdbool.h>

#include "run_sort.h"

#define COUNT_MAX 8192

static uint64_t first[COUNT_MAX + 1], second[COUNT_MAX + 1];
static uint16_t order[COUNT_MAX + 2], room[COUNT_MAX + 2], wanted[COUNT_MAX];

static bool is_before(uint32_t a, uint32_t b)
{
    return first[a] != first[b] ? first[a] < first[b] : second[a] < second[b];
}

static void sort_by_insertion(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && is_before(i, wanted[at - 1]); at--)
            wanted[at] = wanted[at - 1];
        wanted[at] = (uint16_t)i;
    }
}

/* Sorts `count` items and checks the order, what lies behind it, and the bound. */
static void check(uint32_t count)
{
    uint64_t most = 0;
    while (1ull << most < 4ull * count)
        most++;
    order[count] = room[count] = 0xabcd;
    uint64_t moves = run_sort(first, second, count, order, room);
    sort_by_insertion(count);
    bool is_sorted = true;
    for (uint32_t i = 0; i < count; i++)
        is_sorted = is_sorted && wanted[i] == i;
    assert_int_equal(moves == 0, is_sorted);
    assert_true(moves <= count * most);
    if (!is_sorted)
        assert_memory_equal(order, wanted, count * sizeof *order);
    assert_int_equal(order[count], 0xabcd);
    assert_int_equal(room[count], 0xabcd);
}

/* Of the kinds of order below, the i-th item's first key. */
static uint64_t key_of(unsigned kind, uint32_t count, uint32_t i, uint64_t *seed)
{
    uint32_t parts = 1u << (kind / 16 % 5), part = count / parts + 1; /* 1, 2, 4, 8, 16 */
    switch (kind % 16) {
    case 0: return i;
    case 1: return count - i;
    case 2: return 7;
    case 3: return random_of(seed);
    case 4: return random_of(seed) % 5;
    case 5: return i % part * parts + random_of(seed) % 3; /* batches */
    case 6: return i % 2 ? i + 1000 : i;                   /* one stream is behind */
    case 7: return i % parts * 1000 + i;                   /* several are */
    case 8: return i % 4 == 3 ? i - 3 : i;                 /* a call with nested ones */
    case 9: return i % 100 == 99 ? i - 99 : i;
    case 10: return i % 2 ? count + i : count - i; /* ever outwards */
    case 11: return i < count / 2 ? i : count - i; /* an organ pipe */
    case 12: return i & -i;                        /* a ruler */
    case 13: return i ^ (i >> 1) ^ (i << 3);
    case 14: return i + 1 == count ? 0 : i; /* the last comes first */
    default: return i % 65 * 10000 - i;     /* a pile too many */
    }
}

static void test_orders(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 3, 5, 63, 64, 65, 200, 1023, 1024};
    uint64_t seed = 1;
    for (unsigned kind = 0; kind < 5 * 16; kind++)
        for (unsigned c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            for (uint32_t i = 0; i < counts[c]; i++) {
                first[i] = key_of(kind, counts[c], i, &seed);
                second[i] = random_of(&seed) % 3;
            }
            check(counts[c]);
        }
}

/* Sequences of random lengths, behind each other or interleaved at random, with equal keys. */
static void test_random_interleavings(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (unsigned round = 0; round < 1000; round++) {
        uint64_t nows[80] = {0};
        uint32_t sequences = 1 + (uint32_t)(random_of(&seed) % 80), its = 0;
        uint32_t count = (uint32_t)(random_of(&seed) % 300);
        uint64_t turn = 1 + random_of(&seed) % 60, step = 1 + random_of(&seed) % 9;
        for (uint32_t i = 0; i < count; i++) {
            if (random_of(&seed) % turn == 0)
                its = (uint32_t)(random_of(&seed) % sequences);
            nows[its] += random_of(&seed) % step;
            first[i] = nows[its];
            second[i] = random_of(&seed) % 2 ? 0 : random_of(&seed) % 4;
        }
        check(count);
    }
}

/* The most moves for a full block: any order at all takes no more than the bound. */
static void test_whole_blocks(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (unsigned kind = 0; kind < 16; kind++) {
        for (uint32_t i = 0; i < COUNT_MAX; i++) {
            first[i] = key_of(kind, COUNT_MAX, i, &seed);
            second[i] = 0;
        }
        check(COUNT_MAX);
    }
}

/* What is in order but for little costs little. */
static void test_moves_few(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT_MAX; i++) {
        first[i] = i;
        second[i] = 0;
    }
    first[COUNT_MAX - 1] = COUNT_MAX - 11;
    second[COUNT_MAX - 1] = 1;
    assert_int_equal(run_sort(first, second, COUNT_MAX, order, room), 10);
    for (uint32_t i = 0; i < COUNT_MAX; i++) /* two devices, a batch each */
        first[i] = i % (COUNT_MAX / 2);
    assert_true(run_sort(first, second, COUNT_MAX, order, room) <= COUNT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_random_interleavings),
        cmocka_unit_test(test_whole_blocks),
        cmocka_unit_test(test_moves_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
