/* SPDX-License-Identifier: Apache-2.0 */
/* What a copy copies, where that cannot be read, or not all of it. */
#include "hook/content.h"

#include <errno.h>
#include <sys/mman.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unreadable)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
