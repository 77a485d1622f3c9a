/* SPDX-License-Identifier: Apache-2.0 */
/* What handles and CUPTI's pointers mean, where they are used again, and where there is no room. */
#include "unit_test.h"

#include <stdlib.h>

#include "cuda/name_texts.h"
#include "cuda/names.h"
#include "cupti/gpu_names.h"
#include "record/thread.h"

#define LONG_BYTES 4000
#define FULL       20000 /* names of LONG_BYTES are more than is kept */

static struct {
    uint64_t handle;
    char text[NAME_BYTES_MAX + 1];
    unsigned count; /* of records so far */
} last;

/* Instead of the library's: a record that is appended is looked at here. */
bool thread_append(struct thread *t, const struct record *r)
{
    (void)t;
    last.handle = r->args[0];
    snprintf(last.text, sizeof last.text, "%.*s", (int)r->byte_count, (const char *)r->bytes);
    last.count++;
    return true;
}

static struct thread me;

/* What the reader takes the handle for, which is launched now. `known` is what it did before. */
static const char *launched(uint64_t handle, const char *known)
{
    unsigned count = last.count;
    if (!name_is_known(handle))
        name_first_use(&me, handle);
    if (last.count != count)
        assert_int_equal(last.handle, handle);
    return last.count == count ? known : last.text;
}

static char *long_name(unsigned number)
{
    static char text[LONG_BYTES + 1];
    memset(text, 'n', LONG_BYTES);
    text[snprintf(text, 16, "f%u", number)] = 'n';
    return text;
}

static void a_module_goes_with_its_names(void **state)
{
    (void)state;
    name_define(0x10, "first", true, 0xA0);
    name_alias(0x11, 0x10);
    name_define(0x12, "of another", true, 0xB0);
    assert_string_equal(launched(0x10, ""), "first");
    assert_string_equal(launched(0x11, ""), "first");
    assert_string_equal(launched(0x12, ""), "of another");
    names_drop_module(0xA0);
    assert_string_equal(launched(0x10, "first"), "");
    assert_string_equal(launched(0x11, "first"), "");
    assert_string_equal(launched(0x12, "of another"), "of another");
    name_define(0x10, "second", true, 0xB0);
    assert_string_equal(launched(0x10, ""), "second");
    name_alias(0x10, 0x11); /* of which nothing is known */
    assert_string_equal(launched(0x10, "second"), "");
    name_define(0x12, "moved", true, 0xC0);
    names_drop_module(0xB0);
    assert_string_equal(launched(0x12, "of another"), "moved");
    names_drop_module(0xC0);
}

static void room_comes_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3 * FULL; i++) {
        uint64_t handle = 0x1000 + 16 * (i % 100);
        name_define(handle, long_name(i), true, 0xD0);
        if (i % 100 == 99)
            names_drop_module(0xD0);
        else if (i % 100 == 50)
            assert_string_equal(launched(handle, ""), long_name(i));
    }
}

static void no_room_is_no_name(void **state)
{
    (void)state;
    name_define(0x20, "short", true, 0xA1);
    name_define(0x21, "and so", true, 0xA1); /* beside it, so that no long one gets that room */
    assert_string_equal(launched(0x20, ""), "short");
    for (unsigned i = 0; i < FULL; i++)
        name_define(0x100000 + 16 * i, long_name(i), true, 0xE0);
    assert_string_equal(launched(0x100000, ""), long_name(0));
    name_define(0x20, long_name(FULL), true, 0xA2);
    assert_string_equal(launched(0x20, "short"), "");
    names_drop_module(0xE0);
    name_define(0x20, long_name(FULL), true, 0xA2);
    assert_string_equal(launched(0x20, ""), long_name(FULL));
}

static void names_that_are_cut_stay_apart(void **state)
{
    (void)state;
    char text[6][NAME_BYTES_MAX + 1], *name = malloc(3 * NAME_BYTES_MAX);
    memset(name, 'm', 3 * NAME_BYTES_MAX);
    name[3 * NAME_BYTES_MAX - 1] = '\0';
    gpu_names_next_buffer();
    for (unsigned i = 0; i < 6; i++) {
        name[2 * NAME_BYTES_MAX] = (char)('0' + i);
        name_define(0x30, name, true, 0);
        strcpy(text[i], launched(0x30, "as before"));
        assert_int_equal(strlen(text[i]), NAME_BYTES_MAX);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(text[i], text[k]);
        gpu_names_next_buffer();
        gpu_name(&me, name, 1);
        assert_string_equal(last.text, text[i]); /* one kernel has one name */
    }
    free(name);
}

static void a_pointer_is_used_again(void **state)
{
    (void)state;
    char text[16] = "one";
    gpu_names_next_buffer();
    uint64_t one = gpu_name(&me, text, 1);
    assert_int_equal(gpu_name(&me, text, 1), one);
    strcpy(text, "two");
    gpu_names_next_buffer();
    uint64_t two = gpu_name(&me, text, 1);
    assert_int_not_equal(one, two);
    assert_string_equal(last.text, "two");
    strcpy(text, "one");
    gpu_names_next_buffer();
    assert_int_equal(gpu_name(&me, text, 1), one);
    assert_int_equal(gpu_name(&me, "one", 1), one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_goes_with_its_names),
        cmocka_unit_test(room_comes_back),
        cmocka_unit_test(no_room_is_no_name),
        cmocka_unit_test(names_that_are_cut_stay_apart),
        cmocka_unit_test(a_pointer_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
