/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To append a record may take a wait for room, as long as --wait says. Another thread that wants a
 * number meanwhile (of NVTX's strings, of places in Python code) gets it: here, from inside that
 * append, and the append ends only when the other has ended.
 */
#include "unit_test.h"

#include <pthread.h>

#include "base/leader.h"
#include "python/python_places.h"
#include "range/labels.h"
#include "record/state.h"
#include "record/thread.h"

struct state gp;
struct fork_page fork_page = {.recording = 2};

static _Atomic uint64_t counters[COUNTER_COUNT];
static struct thread here = {.epoch = 2}, there = {.epoch = 2};
static uint64_t (*meanwhile)(void); /* in the other thread, once */
static uint64_t got;
static bool refuse;
static unsigned appended;

bool leader_has_ended(uint32_t *thread_count)
{
    (void)thread_count;
    return false;
}

static void *run(void *function)
{
    got = (*(uint64_t(**)(void))function)();
    return NULL;
}

bool thread_append(struct thread *t, const struct record *r)
{
    uint64_t (*function)(void) = meanwhile;
    pthread_t other;
    (void)t;
    (void)r;
    meanwhile = NULL;
    if (function) {
        assert_int_equal(pthread_create(&other, NULL, run, &function), 0);
        assert_int_equal(pthread_join(other, NULL), 0);
    }
    if (refuse)
        counter_add(COUNTER_DROPPED, 1);
    else
        appended++;
    return !refuse;
}

static uint64_t name_string(void)
{
    uint64_t number = label_string(0, "other", 5);
    labels_write(&there); /* somebody else does it: no wait */
    return number;
}

static void a_string_is_named_while_labels_wait_for_room(void **state)
{
    (void)state;
    gp.counters = counters;
    assert_int_equal(label_string(0, "first", 5), 1);
    meanwhile = name_string;
    refuse = true;
    labels_write(&here);
    assert_int_equal(got, 2);
    assert_int_equal(appended, 0);
    assert_true(labels_are_due());
    refuse = false;
    labels_write(&here);
    assert_int_equal(appended, 2);
    assert_false(labels_are_due());
    assert_int_equal(atomic_load(&counters[COUNTER_RANGES_DROPPED]), 0);
    assert_int_equal(atomic_load(&counters[COUNTER_DROPPED]), 0);
}

/* In place of the interpreter: a code object is its address, its line the instruction. */
const uint8_t *python_code_head(const struct python_view *v, uint64_t code, uint8_t *copy)
{
    (void)v;
    (void)code;
    return copy;
}

uint64_t python_code_check(const struct python_view *v, const uint8_t *head)
{
    (void)v;
    (void)head;
    return 5;
}

void python_code_place(const struct python_view *v, uint64_t code, const uint8_t *head,
                       uint64_t instruction, struct python_place *place)
{
    (void)v;
    (void)head;
    place->line = (uint32_t)instruction;
    place->file_bytes = place->function_bytes = 1;
    place->file[0] = place->function[0] = (char)code;
}

static uint64_t place_at(struct thread *t, uint64_t code, uint64_t instruction)
{
    static const struct python_layout layout;
    const struct python_frame frame = {.code = code, .instruction = instruction, .check = 5};
    return python_place_number(t, &layout, &frame, NULL, NULL);
}

static uint64_t another_place(void)
{
    return place_at(&there, 'b', 7);
}

static uint64_t the_same_place(void)
{
    return place_at(&there, 'a', 8);
}

static void a_place_is_numbered_while_another_waits_for_room(void **state)
{
    (void)state;
    appended = 0;
    meanwhile = another_place;
    assert_int_equal(place_at(&here, 'a', 7), 1);
    assert_int_equal(got, 2);
    assert_int_equal(appended, 2);
    assert_int_equal(another_place(), 2);
    assert_int_equal(appended, 2);
}

/* Who met it meanwhile has its number; the record is written by who comes next. */
static void a_place_that_found_no_room_is_written_later(void **state)
{
    (void)state;
    appended = 0;
    meanwhile = the_same_place;
    refuse = true;
    assert_int_equal(place_at(&here, 'a', 8), 0);
    assert_int_equal(got, 3);
    refuse = false;
    assert_int_equal(place_at(&here, 'a', 8), 3);
    assert_int_equal(appended, 1);
    assert_int_equal(place_at(&here, 'a', 8), 3);
    assert_int_equal(appended, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_is_named_while_labels_wait_for_room),
        cmocka_unit_test(a_place_is_numbered_while_another_waits_for_room),
        cmocka_unit_test(a_place_that_found_no_room_is_written_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
