/* SPDX-License-Identifier: Apache-2.0 */
/* Where Python's frames stand in a native stack, if only the loops' code tells: up to 3.10. */
#include "unit_test.h"

#include "frame.h"
#include "record/thread.h"
#include "stack/splice.h"

struct state gp;

#define LOOP_LOW  0x1000u
#define LOOP_HIGH 0x2000u

bool python_loop(uint64_t *low, uint64_t *high)
{
    *low = LOOP_LOW;
    *high = LOOP_HIGH;
    return true;
}

unsigned python_frames(struct python_frame *frames, unsigned max, bool *is_cut, bool *is_borrowed)
{
    (void)frames, (void)max;
    *is_cut = *is_borrowed = false;
    return 0;
}

uint32_t python_location(struct thread *t, const struct python_frame *frame)
{
    (void)t;
    return (uint32_t)frame->code;
}

uint32_t python_location_now(const struct python_frame *frame, struct python_place *text,
                             python_keep_fn keep)
{
    (void)frame, (void)text, (void)keep;
    fail();
    return 0;
}

/* A stack of these addresses, innermost first, and of `count` Python frames 1, 2, ... */
static void splice(struct walk *w, const uint64_t *addresses, unsigned native, unsigned count)
{
    static struct splice s;
    memset(&s, 0, sizeof s);
    memset(w, 0, sizeof *w);
    w->count = native;
    w->begin = 100;
    for (unsigned i = 0; i < native; i++) {
        w->frames[i] = addresses[i];
        w->ends[i] = 200 + 100 * i;
    }
    s.count = count;
    for (unsigned i = 0; i < count; i++)
        s.frames[i] = (struct python_frame){.code = i + 1};
    splice_frames(NULL, &s, w, WALK_FRAMES_MAX);
}

static void expect(const struct walk *w, const uint64_t *wanted, unsigned count)
{
    assert_int_equal(w->count, count);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(w->frames[i],
                         wanted[i] < LOOP_LOW ? frame_in_python((uint32_t)wanted[i]) : wanted[i]);
}

#define LOOP   0x1800
#define FAR    0x9000 /* the loop's, too, but outside of what its symbol covers */
#define CALL   0x3000 /* enters loops */
#define CALL_2 0x3100
#define OTHER  0x4000

static void check(const uint64_t *addresses, unsigned native, unsigned python,
                  const uint64_t *wanted, unsigned count)
{
    struct walk w;
    splice(&w, addresses, native, python);
    expect(&w, wanted, count);
}

#define CHECK(python, addresses, wanted)                                                           \
    check((const uint64_t[])addresses, sizeof((uint64_t[])addresses) / 8, python,                  \
          (const uint64_t[])wanted, sizeof((uint64_t[])wanted) / 8)
#define LIST(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void test_in_place_of_loops(void **state)
{
    (void)state;
    /* Far away, and nothing known of who enters loops yet: behind all. */
    CHECK(2, LIST(OTHER, FAR, CALL, LOOP, CALL, OTHER),
          LIST(OTHER, FAR, CALL, LOOP, CALL, OTHER, 1, 2));
    CHECK(2, LIST(OTHER, LOOP, CALL, LOOP, CALL_2, OTHER), LIST(OTHER, 1, CALL, 2, CALL_2, OTHER));
    CHECK(2, LIST(OTHER, FAR, CALL, LOOP, CALL, OTHER), LIST(OTHER, 1, CALL, 2, CALL, OTHER));
    /* One has just been entered, and has no frame yet. */
    CHECK(1, LIST(LOOP, CALL, LOOP, CALL, OTHER), LIST(LOOP, CALL, 1, CALL, OTHER));
    /* More loops than that, or fewer: nobody knows which is whose. */
    CHECK(1, LIST(LOOP, LOOP, LOOP, OTHER), LIST(LOOP, LOOP, LOOP, OTHER, 1));
    CHECK(2, LIST(OTHER, LOOP, OTHER), LIST(OTHER, LOOP, OTHER, 1, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_place_of_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
