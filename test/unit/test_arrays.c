/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that grow: by themselves, by a map of keys, by a set of what is in them. */
#include "unit_test.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/key_map.h"

#define COUNT 1000u

struct item {
    uint32_t key, other;
};

static uint32_t hash(const void *item)
{
    return ((const struct item *)item)->key * 7;
}

static bool same(const void *a, const void *b)
{
    return ((const struct item *)a)->key == ((const struct item *)b)->key;
}

static void test_push(void **state)
{
    uint64_t *list = NULL;
    uint32_t count = 0;
    (void)state;
    for (uint64_t i = 0; i < COUNT; i++)
        ARRAY_PUSH(list, count, i % 3 ? &i : NULL);
    assert_int_equal(count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(list[i], i % 3 ? i : 0);
    count = 5; /* what is taken off may come again */
    for (uint64_t i = 5; i < COUNT; i++)
        ARRAY_PUSH(list, count, &i);
    assert_int_equal(list[4], 4);
    assert_int_equal(list[COUNT - 1], COUNT - 1);
    free(list);
}

static void test_key_map_item(void **state)
{
    struct key_map map = {0};
    struct item *list = NULL;
    uint32_t count = 0;
    (void)state;
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        const struct item new = {i % COUNT, i};
        struct key key = {1, i % COUNT, 2};
        assert_int_equal(KEY_MAP_ITEM(&map, key, list, count, COUNT, &new), i % COUNT + 1);
    }
    assert_int_equal(KEY_MAP_ITEM(&map, ((struct key){2, 0, 0}), list, count, COUNT, NULL), 0);
    assert_int_equal(count, COUNT);
    assert_int_equal(list[COUNT - 1].other, COUNT - 1);
    map.count_max = COUNT; /* a map that is full takes no more either */
    assert_int_equal(KEY_MAP_ITEM(&map, ((struct key){2, 0, 0}), list, count, 2 * COUNT, NULL), 0);
    assert_int_equal(count, COUNT);
    key_map_release(&map);
    free(list);
}

static void test_number_set_item(void **state)
{
    static const struct number_kind kind = {
        .item_bytes = sizeof(struct item), .hash = hash, .same = same};
    struct number_set set = {0};
    struct item *list = NULL;
    uint32_t count = 0;
    (void)state;
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        const struct item item = {i % COUNT, i};
        assert_int_equal(NUMBER_ADD(&set, &kind, list, count, COUNT, &item), i % COUNT + 1);
    }
    assert_int_equal(NUMBER_ADD(&set, &kind, list, count, COUNT, (&(struct item){COUNT, 0})), 0);
    assert_int_equal(count, COUNT);
    assert_int_equal(list[COUNT - 1].other, COUNT - 1);
    number_set_release(&set);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_key_map_item),
        cmocka_unit_test(test_number_set_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
