/* SPDX-License-Identifier: Apache-2.0 */
/* A status that threads set and copy: nobody ever sees one that nobody has set. */
#include <pthread.h>

#include "unit_test.h"

#include "base/status.h"

#define SETTERS 2
#define SETS    2000

static struct status status;

static void test_news(void **state)
{
    (void)state;
    char text[STATUS_BYTES_MAX];
    char large[2 * STATUS_BYTES_MAX];
    uint32_t seen = 0;
    struct status fresh = {.text = "at first"};
    assert_false(status_copy(&fresh, &seen, false, text));
    assert_true(status_copy(&fresh, &seen, true, text));
    assert_string_equal(text, "at first");
    status_set(&status, "then");
    assert_true(status_copy(&status, &seen, false, text));
    assert_string_equal(text, "then");
    assert_false(status_copy(&status, &seen, false, text));
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = '\0';
    status_set(&status, large);
    assert_true(status_copy(&status, &seen, false, text));
    assert_int_equal(strlen(text), STATUS_BYTES_MAX - 1);
    status_set(&status, "");
    assert_false(status_copy(&status, &seen, true, text));
}

static void *set(void *letter)
{
    char text[STATUS_BYTES_MAX];
    memset(text, *(char *)letter, sizeof text);
    for (unsigned i = 0; i < SETS; i++) {
        text[1000 + i % 300] = '\0';
        status_set(&status, text);
        text[1000 + i % 300] = *(char *)letter;
    }
    return NULL;
}

static void test_in_parallel(void **state)
{
    (void)state;
    pthread_t threads[SETTERS];
    char letters[SETTERS] = {'a', 'b'}, text[STATUS_BYTES_MAX];
    uint32_t seen = 0, copies = 0;
    for (unsigned i = 0; i < SETTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, set, &letters[i]), 0);
    while (seen < SETTERS * SETS) {
        if (!status_copy(&status, &seen, false, text))
            continue;
        size_t length = strlen(text);
        copies++;
        assert_true(length < STATUS_BYTES_MAX);
        assert_true(strspn(text, (char[]){text[0], '\0'}) == length);
    }
    for (unsigned i = 0; i < SETTERS; i++)
        pthread_join(threads[i], NULL);
    assert_true(copies > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_parallel),
        cmocka_unit_test(test_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
