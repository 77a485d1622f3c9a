/* SPDX-License-Identifier: Apache-2.0 */
/* What a copy copies, where that cannot be read, or not all of it. */
#include "hook/content.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/memory_read.h"
#include "record/state.h"
#include "unit_test.h"

#define BYTES (1u << 20)

static uint64_t content(const void *source, uint64_t bytes)
{
    const uint64_t words[COPY_PIECE_WORDS] = {0, (uintptr_t)source, bytes, 1};
    errno = 4321;
    uint64_t hash = content_of(words);
    assert_int_equal(errno, 4321);
    return hash;
}

static void test_unreadable(void **state)
{
    (void)state;
    uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    gp.settings.numbers[SETTING_COPY_HASH] = 1;
    content_start();
    uint64_t hash = content(memory, BYTES);
    assert_true(hash && hash == content(memory, BYTES));
    content_start();
    assert_true(content(memory, BYTES) != hash); /* another key */
    assert_int_equal(mprotect(memory + BYTES / 2, 4096 * 8, PROT_NONE), 0);
    assert_int_equal(content(memory, BYTES), 0);
    assert_true(content(memory, BYTES / 2));
    munmap(memory, BYTES);
    assert_int_equal(content(memory, BYTES), 0);
    assert_int_equal(content(NULL, BYTES), 0);
    assert_int_equal(content(memory, UINT64_MAX), 0);
    assert_int_equal(content((void *)(uintptr_t)-4096, BYTES), 0);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The 64 pieces cost what a few reads do: 2.5 times as much as one, and not 17 times. */
static void test_cost(void **state)
{
    (void)state;
    static uint8_t memory[BYTES];
    uint64_t one = UINT64_MAX, all = UINT64_MAX, word;
    gp.settings.numbers[SETTING_COPY_HASH] = 1;
    memset(memory, 1, sizeof memory);
    for (unsigned i = 0; i < 500; i++) {
        uint64_t begin = now_ns();
        assert_true(memory_read((uintptr_t)memory, &word, sizeof word));
        uint64_t middle = now_ns();
        assert_true(content(memory, 256 << 10));
        uint64_t end = now_ns();
        one = middle - begin < one ? middle - begin : one;
        all = end - middle < all ? end - middle : all;
    }
    assert_in_range(all, 1, 12 * one); /* with sanitizers up to 8 */
}

static _Atomic bool is_over;

static void *take_away(void *memory)
{
    while (!atomic_load(&is_over)) {
        assert_int_equal(munmap(memory, BYTES / 4), 0);
        assert_ptr_equal(mmap(memory, BYTES / 4, PROT_READ,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
                         memory);
    }
    return NULL;
}

/* Another thread takes a part of the memory away and puts it back, all the time. */
static void test_taken_away(void **state)
{
    (void)state;
    uint8_t *memory = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t whole = content(memory, BYTES), found[2] = {0};
    pthread_t thread;
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(pthread_create(&thread, NULL, take_away, memory + BYTES / 2), 0);
    for (unsigned i = 0; i < 1000000 && (!found[0] || !found[1]); i++) {
        uint64_t hash = content(memory, BYTES);
        assert_true(!hash || hash == whole);
        found[hash == whole]++;
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    assert_true(found[0] && found[1]);
    munmap(memory, BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unreadable),
                                       cmocka_unit_test(test_cost),
                                       cmocka_unit_test(test_taken_away)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
