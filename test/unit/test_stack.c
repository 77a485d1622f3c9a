/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks get their numbers (inject/stack/stack.c): walks are those that a test says, and a module
 * is a distance between addresses and frames, which an unload may change.
 */
#include "unit_test.h"

#include <errno.h>
#include <pthread.h>

#include "append_double.h"
#include "base/say.h"
#include "frame.h"
#include "python/python.h"
#include "record/thread.h"
#include "stack/modules.h"
#include "stack/splice.h"
#include "stack/stack.h"
#include "stack/unwinder.h"
#include "stack/walk.h"
#include "store/meta.h"

#define STACKS_MAX 65536u
#define ADDRESS    0x7f0000000000u

/* ---- in place of what it calls ---- */

static __thread struct walk next;    /* of this thread */
static __thread unsigned walk_count; /* so far */
static __thread struct thread own;
static _Atomic uint64_t distance; /* from frames to the addresses where they lie now */
static const struct walk *walked; /* where the last walk was left */
static jmp_buf *leaves_to;        /* a signal handler leaves it, to there */
static bool unloads_in_walk;      /* the next check finds that something was unloaded */

static struct python_frame python[PYTHON_FRAMES_MAX + 1];
static unsigned python_count;
static unsigned location_count; /* so far */
static bool python_is_there, python_is_borrowed;

_Atomic uint32_t modules_age;

void walk_stack(struct thread *t, struct walk *w, unsigned max)
{
    (void)t;
    (void)max;
    walk_count++;
    if (leaves_to) { /* only where no other thread is */
        walked = w;
        longjmp(*leaves_to, 1);
    }
    w->count = next.count;
    w->is_cut = next.is_cut;
    w->is_signal = next.is_signal;
    w->is_borrowed = next.is_borrowed;
    for (unsigned i = 0; i < next.count; i++)
        w->frames[i] = next.frames[i] + atomic_load(&distance);
}

void modules_check(bool anyway)
{
    if (anyway && unloads_in_walk) {
        unloads_in_walk = false;
        atomic_fetch_add(&modules_age, 1);
        next.frames[0]++;
    }
}

bool modules_frames(struct thread *t, uint64_t *frames, unsigned count)
{
    (void)t;
    for (unsigned i = 0; i < count; i++)
        frames[i] = frame_at_address(frames[i] - atomic_load(&distance));
    return true;
}

bool modules_reset(void)
{
    return true;
}

bool python_is_here(void)
{
    return python_is_there;
}

unsigned python_frames(struct python_frame *frames, unsigned max, bool *is_cut, bool *is_borrowed)
{
    unsigned count = python_count < max ? python_count : max;
    memcpy(frames, python, count * sizeof *frames);
    *is_cut = count < python_count;
    *is_borrowed = python_is_borrowed;
    return count;
}

unsigned python_frames_of(uint64_t state, struct python_frame *frames, unsigned max, bool *is_cut,
                          bool *is_borrowed)
{
    (void)state;
    return python_frames(frames, max, is_cut, is_borrowed);
}

uint32_t python_location(struct thread *t, const struct python_frame *frame)
{
    (void)t;
    location_count++;
    return (uint32_t)frame->instruction % 1000;
}

int python_frames_running(uint64_t state, struct python_frame *frames, unsigned max, bool *is_cut)
{
    (void)state;
    bool is_borrowed;
    return (int)python_frames(frames, max, is_cut, &is_borrowed);
}

uint32_t python_location_running(struct thread *t, uint64_t state,
                                 const struct python_frame *frames, unsigned count, unsigned which)
{
    (void)state;
    (void)count;
    return python_location(t, &frames[which]);
}

void python_look(void)
{
}

void meta_append_text(struct thread *writer, const char *key, const char *value)
{
    (void)writer;
    (void)key;
    (void)value;
    fail();
}

void splice_python(struct thread *t, struct splice *s, struct walk *w, unsigned max)
{
    (void)t;
    (void)s;
    (void)w;
    (void)max;
    fail();
}

void note(enum say_cause cause, const char *format, ...)
{
    (void)cause;
    (void)format;
    fail();
}

void unwinder_reset(void)
{
}

bool unwinder_is_settled(void)
{
    return true;
}

void unwinder_start(void)
{
}

bool walk_whole(struct thread *t, struct walk *w, unsigned max)
{
    (void)t;
    (void)w;
    (void)max;
    return false;
}

const char *unwinder_state(void)
{
    return UNWINDER_READY;
}

/* ---- */

static int start(void **state)
{
    (void)state;
    append_reset();
    gp.settings.numbers[SETTING_BACKTRACE_DEPTH] = 64;
    stacks_reset();
    own = (struct thread){0};
    stacks_start();
    assert_true(stacks_are_on());
    memset(&next, 0, sizeof next);
    walk_count = 0;
    return 0;
}

static uint32_t take(void)
{
    return stack_take(&own);
}

/* A stack of `count` frames, of which each number makes another one. */
static void set_next(uint64_t number, unsigned count)
{
    next.count = count;
    for (unsigned i = 0; i < count; i++)
        next.frames[i] = ADDRESS + 16 * (i ? number / (i + 1) + 7 * i : number);
}

static uint32_t take_number(uint64_t number, unsigned count)
{
    set_next(number, count);
    return take();
}

/* Its record says what was taken. */
static void check_defined(uint32_t stack, uint64_t number, unsigned count, unsigned flags)
{
    const struct record *r = append_find(RECORD_STACK, stack);
    assert_non_null(r);
    assert_int_equal(r->byte_count, 8 * count);
    assert_int_equal(r->args[1], flags);
    set_next(number, count);
    for (unsigned i = 0; i < count; i++) {
        uint64_t frame;
        memcpy(&frame, r->bytes + 8 * (size_t)i, sizeof frame);
        assert_int_equal(frame, frame_at_address(next.frames[i]));
    }
}

static void one_number_each(void **state)
{
    (void)state;
    uint32_t first = take_number(1, 10);
    assert_int_equal(first, 1);
    assert_int_equal(take_number(1, 10), first);
    assert_int_equal(append_count(RECORD_STACK), 1);
    check_defined(first, 1, 10, 0);
    /* Its inner part, a longer one, another order, other marks. */
    assert_int_equal(take_number(1, 9), 2);
    assert_int_equal(take_number(1, 11), 3);
    set_next(1, 10);
    next.frames[3] ^= next.frames[4], next.frames[4] ^= next.frames[3],
        next.frames[3] ^= next.frames[4];
    assert_int_equal(take(), 4);
    next.is_cut = true;
    assert_int_equal(take_number(1, 10), 5);
    next.is_borrowed = true;
    assert_int_equal(take_number(1, 10), 6);
    next.is_cut = false;
    assert_int_equal(take_number(1, 10), 7);
    next.is_borrowed = false;
    assert_int_equal(take_number(1, 10), first);
    assert_int_equal(append_count(RECORD_STACK), 7);
    check_defined(5, 1, 10, STACK_CUT);
    check_defined(6, 1, 10, STACK_CUT | STACK_BORROWED);
    check_defined(7, 1, 10, STACK_BORROWED);
    assert_int_equal(append_counter(COUNTER_STACKS_DROPPED), 0);
}

static void none_from_a_handler(void **state)
{
    (void)state;
    assert_int_equal(take_number(1, 0), 0);
    next.is_signal = true;
    assert_int_equal(take_number(1, 10), 0);
    assert_int_equal(append_counter(COUNTER_STACKLESS), 2);
    assert_int_equal(append_count(RECORD_STACK), 0);
}

/* An unload changes what addresses mean, and a stack is what they mean. */
static void meanings(void **state)
{
    (void)state;
    uint32_t first = take_number(1, 10), other = take_number(2, 10);
    for (unsigned i = 0; i < 1000; i++) {
        atomic_fetch_add(&modules_age, 1);
        atomic_store(&distance, 4096 * i);
        assert_int_equal(take_number(1, 10), first);
        assert_int_equal(take_number(2, 10), other);
    }
    assert_int_equal(append_count(RECORD_STACK), 2);
    /* The addresses of before, which now are something else. */
    set_next(1, 10);
    for (unsigned i = 0; i < 10; i++)
        next.frames[i] -= 4096;
    assert_int_equal(take(), 3);
    atomic_store(&distance, 0);
}

/* Small numbers both, an age and what two addresses differ by: none makes up for the other. */
static void ages(void **state)
{
    (void)state;
    for (unsigned number = 0; number < 64; number++)
        assert_int_equal(take_number(number, 1), number + 1);
    for (unsigned i = 0; i < 4000; i++) {
        atomic_fetch_add(&modules_age, 1);
        assert_int_equal(take_number(i * 7 % 64, 1), i * 7 % 64 + 1);
    }
}

/* What was walked while something was unloaded is walked again. */
static void unloads(void **state)
{
    (void)state;
    unloads_in_walk = true;
    uint32_t stack = take_number(1, 10);
    assert_int_equal(walk_count, 2);
    assert_int_equal(append_count(RECORD_STACK), 1);
    assert_int_equal(take_number(1, 10), stack + 1); /* the first walk's was not kept */
}

static void full(void **state)
{
    uint64_t random = 4711, *numbers = malloc((STACKS_MAX + 1) * sizeof *numbers);
    (void)state;
    for (uint32_t i = 0; i <= STACKS_MAX; i++)
        numbers[i] = random_of(&random) >> 20;
    for (uint32_t i = 0; i < STACKS_MAX; i++)
        assert_int_equal(take_number(numbers[i], 3), i + 1);
    assert_int_equal(append_count(RECORD_STACK), STACKS_MAX);
    assert_int_equal(take_number(numbers[STACKS_MAX], 3), 0);
    assert_int_equal(take_number(numbers[STACKS_MAX], 3), 0);
    assert_int_equal(append_counter(COUNTER_STACKS_DROPPED), 2);
    /* Slots are hashes of 17 bits, so that thousands met another one's. None is taken for it. */
    for (uint32_t i = STACKS_MAX; i-- > 0;)
        assert_int_equal(take_number(numbers[i], 3), i + 1);
    atomic_fetch_add(&modules_age, 1);
    for (uint32_t i = 0; i < STACKS_MAX; i++)
        assert_int_equal(take_number(numbers[i], 3), i + 1);
    assert_int_equal(append_count(RECORD_STACK), STACKS_MAX);
    for (uint32_t i = 0; i < STACKS_MAX; i += 4099)
        check_defined(i + 1, numbers[i], 3, 0);
    free(numbers);
}

/* A stack whose record found no room has none, and is tried again. */
static void refused(void **state)
{
    (void)state;
    append_refuse(true);
    assert_int_equal(take_number(1, 10), 0);
    assert_int_equal(take_number(1, 10), 0);
    assert_int_equal(append_counter(COUNTER_STACKS_DROPPED), 2);
    assert_int_equal(append_counter(COUNTER_DROPPED), 0); /* no event was */
    append_refuse(false);
    uint32_t stack = take_number(1, 10);
    assert_int_not_equal(stack, 0);
    check_defined(stack, 1, 10, 0);
    assert_int_equal(take_number(1, 10), stack);
}

/* The child of a fork begins with the first number. */
static void forked(void **state)
{
    (void)state;
    assert_int_equal(take_number(1, 10), 1);
    assert_int_equal(take_number(2, 10), 2);
    stacks_reset();
    assert_false(stacks_are_on());
    stacks_start();
    assert_int_equal(take_number(2, 10), 1);
    assert_int_equal(take_number(1, 10), 2);
    assert_int_equal(append_count(RECORD_STACK), 4);
}

#define ROOMS 256u

/* Threads that left while a stack was taken keep their rooms; whoever finds none does without. */
static void left(void **state)
{
    static struct thread threads[ROOMS];
    const struct walk *rooms[ROOMS];
    (void)state;
    set_next(1, 10);
    for (volatile unsigned i = 0; i < ROOMS; i++) {
        jmp_buf here;
        threads[i] = (struct thread){.number = i / 2};
        leaves_to = &here;
        if (!setjmp(here))
            stack_take(&threads[i]);
        rooms[i] = walked;
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(rooms[k], rooms[i]);
    }
    leaves_to = NULL;
    assert_int_equal(take_number(1, 10), 1); /* of one thread more */
    assert_null(own.room);
    assert_int_equal(stack_take(&threads[77]), 1);
    assert_null(threads[77].room);
    assert_int_equal(take_number(2, 10), 2); /* it is free again */
    assert_int_equal(append_counter(COUNTER_STACKS_DROPPED), 0);
}

static void errno_stays(void **state)
{
    (void)state;
    errno = 4242;
    take_number(1, 10);
    assert_int_equal(errno, 4242);
}

/* ---- Python's alone ---- */

/* Frames at the places number, number + 1, ... */
static uint32_t take_python(uint64_t number, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        python[i] = (struct python_frame){
            .code = ADDRESS + number + i, .instruction = 1000 * i + number + i, .check = 1};
    python_count = count;
    return stack_take_python(&own);
}

static void of_python(void **state)
{
    (void)state;
    assert_int_equal(take_python(7, 3), 0); /* no interpreter */
    python_is_there = true;
    assert_int_equal(take_python(7, 0), 0);
    location_count = 0;
    assert_int_equal(take_python(7, 3), 1);
    assert_int_equal(take_python(9, 2), 2);
    assert_int_equal(location_count, 5);
    assert_int_equal(take_python(7, 3), 1); /* known, and not looked up */
    assert_int_equal(location_count, 5);
    python[0].check = 2; /* another code object, at the address of one, with the same places */
    assert_int_equal(stack_take_python(&own), 1);
    assert_int_equal(location_count, 8);
    const struct record *r = append_find(RECORD_STACK, 1);
    assert_int_equal(r->byte_count, 3 * 8);
    assert_int_equal(r->args[STACK_FLAGS], 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(((const uint64_t *)(const void *)r->bytes)[i], frame_in_python(7 + i));
    python_is_borrowed = true;
    assert_int_equal(take_python(7, 3), 3);
    assert_int_equal(append_find(RECORD_STACK, 3)->args[STACK_FLAGS], STACK_BORROWED);
    python_is_borrowed = false;
    assert_int_equal(take_python(1, PYTHON_FRAMES_MAX), 4); /* 64 are kept */
    assert_int_equal(append_find(RECORD_STACK, 4)->args[STACK_FLAGS], STACK_CUT);
    assert_int_equal(append_find(RECORD_STACK, 4)->byte_count, 64 * 8);
    assert_int_equal(append_counter(COUNTER_STACKS_DROPPED), 0);
    assert_int_equal(take_python(999, 3), 0); /* its second place finds no room */
    assert_int_equal(append_counter(COUNTER_STACKS_DROPPED), 1);
    python_is_there = false;
}

/* Wanted for operators only. */
static void of_operators(void **state)
{
    (void)state;
    stacks_reset();
    gp.settings.numbers[SETTING_BACKTRACE_THRESHOLD] = SETTING_OFF;
    gp.settings.numbers[SETTING_PYTORCH] = PYTORCH_STACKS;
    stacks_start();
    python_is_there = true;
    assert_false(stacks_are_on());
    assert_int_equal(take_python(7, 3), 1);
    python_is_there = false;
    gp.settings.numbers[SETTING_PYTORCH] = PYTORCH_SHAPES;
    gp.settings.numbers[SETTING_BACKTRACE_THRESHOLD] = 0;
}

/* ---- threads ---- */

#define THREADS 8
#define SHARED  3000u
#define TAKES   40000u

static uint32_t seen[THREADS][SHARED]; /* the last number of each */

static void *take_many(void *data)
{
    unsigned self = (unsigned)(uintptr_t)data;
    uint64_t random = 99 + self;
    for (unsigned i = 0; i < TAKES; i++) {
        unsigned number = random_of(&random) % SHARED;
        if (self == 0 && i % 256 == 0)
            atomic_fetch_add(&modules_age, 1);
        seen[self][number] = take_number(number, 1 + number % 60);
    }
    return NULL;
}

static void in_parallel(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(append_counter(COUNTER_STACKS_DROPPED), 0);
    assert_in_range(append_count(RECORD_STACK), SHARED, SHARED * THREADS);
    for (unsigned number = 0; number < SHARED; number++) {
        uint32_t stack = take_number(number, 1 + number % 60);
        check_defined(stack, number, 1 + number % 60, 0);
        for (unsigned i = 0; i < THREADS; i++) /* two that met it at a time may both have one */
            if (seen[i][number] && seen[i][number] != stack)
                check_defined(seen[i][number], number, 1 + number % 60, 0);
    }
    unsigned count = append_count(RECORD_STACK);
    for (unsigned number = 0; number < SHARED; number++)
        take_number(number, 1 + number % 60);
    assert_int_equal(append_count(RECORD_STACK), count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_number_each, start),
        cmocka_unit_test_setup(none_from_a_handler, start),
        cmocka_unit_test_setup(meanings, start),
        cmocka_unit_test_setup(ages, start),
        cmocka_unit_test_setup(unloads, start),
        cmocka_unit_test_setup(full, start),
        cmocka_unit_test_setup(refused, start),
        cmocka_unit_test_setup(forked, start),
        cmocka_unit_test_setup(left, start),
        cmocka_unit_test_setup(errno_stays, start),
        cmocka_unit_test_setup(of_python, start),
        cmocka_unit_test_setup(of_operators, start),
        cmocka_unit_test_setup(in_parallel, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
