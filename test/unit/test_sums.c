/* SPDX-License-Identifier: Apache-2.0 */
/* A table of sums with all kinds of keys that a part has: rows meet again over two parts, with what
 * comes along with the least and the most; one row has what finds no room. */
#include "unit_test.h"

#include "query/sums.h"

enum { TEXT, NUMBER, PROCESS };
enum { COUNT, LEAST, WHO, MOST, WHAT, TIMES, OWN };

static void join(uint64_t *values, const uint64_t *from)
{
    values[OWN] |= from[OWN];
}

static const struct sums_info info = {
    .keys = {KEY_TEXT, KEY_NUMBER, KEY_PROCESS},
    .values = {JOIN_ADD, JOIN_LEAST, JOIN_WITH, JOIN_MOST, JOIN_WITH, JOIN_ADD, JOIN_OWN},
    .is = {[WHO] = KEY_PROCESS, [WHAT] = KEY_TEXT},
    .rows_max = 4,
    .has_durations = true,
    .order = COUNT,
    .join = join,
};

/* A walk of `count` processes, which are in the list in the other order if `is_turned`. */
struct made {
    struct process processes[2], *list[2], *loaded[2];
    struct recording rec;
    struct walk walk;
    uint64_t histogram_rows;
    struct sums sums;
};

static void make(struct made *m, bool is_turned)
{
    *m = (struct made){.walk = {.rec = &m->rec, .texts = {.plain = true}}, .histogram_rows = 1000};
    for (uint32_t i = 0; i < 2; i++) {
        m->processes[i].index = i ^ is_turned;
        m->loaded[i] = &m->processes[i];
        m->list[i ^ is_turned] = &m->processes[i];
    }
    m->rec.processes = m->list;
    m->rec.count = 2;
    sums_init(&m->sums, &info, &m->walk, &m->histogram_rows);
}

static void release(struct made *m)
{
    sums_release(&m->sums);
    kernel_names_release(&m->walk.kernels);
    kernel_names_release(&m->walk.texts);
}

static void add(struct made *m, uint64_t text, uint64_t number, uint64_t process, uint64_t ns,
                const char *what)
{
    struct sums_row *row = sums_row(&m->sums, text, number, process);
    assert_non_null(row);
    uint64_t *v = row->values;
    v[COUNT]++;
    if (ns < v[LEAST])
        v[WHO] = process == SUMS_OTHERS ? 0 : process;
    v[LEAST] = ns < v[LEAST] ? ns : v[LEAST];
    if (ns > v[MOST])
        v[WHAT] = sums_text(&m->sums, what);
    v[MOST] = ns > v[MOST] ? ns : v[MOST];
    v[OWN] |= ns;
    sums_took(&m->sums, row, ns, 1);
}

/* What both of them have, in `to`. */
static void combine(struct made *a, struct made *b, struct made *to)
{
    struct made *from[] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        struct part part = {.is_written = true};
        sums_finish(&from[i]->sums);
        sums_put(&from[i]->sums, &part);
        release(from[i]);
        part.is_written = false;
        part.processes = to->loaded;
        part.process_count = 2;
        sums_add(&to->sums, &part);
        assert_false(part.has_failed);
        assert_int_equal(part.at, part.length);
        for (size_t cut = 0; cut < part.length; cut++) { /* what is short is no part */
            struct made torn;
            struct part less = {.data = part.data, .length = cut, .process_count = 2};
            make(&torn, false);
            less.processes = torn.loaded;
            sums_add(&torn.sums, &less);
            assert_true(less.has_failed);
            release(&torn);
        }
        part_release(&part);
    }
    sums_finish(&to->sums);
}

static const char *text_of(uint64_t key)
{
    return ((const struct kernel_name *)(uintptr_t)key)->shown;
}

static void rows_meet_again(void **state)
{
    (void)state;
    struct made a, b, both;
    char text[SUMS_NAME_BYTES];
    make(&a, false);
    make(&b, false);
    make(&both, true);
    add(&a, sums_text(&a.sums, "one"), 7, 1, 50, "a");
    add(&b, sums_text(&b.sums, "one"), 7, 1, 30, "b");
    add(&b, sums_text(&b.sums, "one"), 7, 1, 90, "c");
    add(&b, sums_text(&b.sums, "one"), 8, 1, 1, "d");
    const struct kernel_name *kernel = kernel_name_intern(&a.walk.kernels, "_Z4fillv", 8);
    add(&a, sums_name_key(kernel), 7, 0, 20, "e");
    add(&a, sums_name_key(kernel), 7, 0, 10, "e");
    add(&b, 0, 7, 0, 20, "f");
    combine(&a, &b, &both);
    assert_int_equal(both.sums.count, 4);
    const struct sums_row *r = both.sums.rows;
    assert_string_equal(sums_name(&both.sums, &r[0], TEXT, text), "one");
    assert_int_equal(r[0].keys[NUMBER], 7);
    assert_int_equal(r[0].keys[PROCESS], 0); /* which was 1 there */
    assert_int_equal(r[0].values[COUNT], 3);
    assert_int_equal(r[0].values[LEAST], 30);
    assert_int_equal(r[0].values[WHO], 0);
    assert_int_equal(r[0].values[MOST], 90);
    assert_string_equal(text_of(r[0].values[WHAT]), "c");
    assert_int_equal(r[0].values[OWN], 50 | 30 | 90);
    assert_int_equal(histogram_quantile(r[0].durations, 0.5, 30, 90), 50);
    assert_string_equal(sums_name(&both.sums, &r[1], TEXT, text), "fill()");
    assert_string_equal(((const struct kernel_name *)(uintptr_t)r[1].keys[TEXT])->raw, "_Z4fillv");
    assert_int_equal(r[1].keys[PROCESS], 1);
    assert_null(sums_name(&both.sums, &r[2], TEXT, text)); /* none is before any */
    assert_int_equal(r[3].keys[NUMBER], 8);
    release(&both);
}

static void one_row_has_the_rest(void **state)
{
    (void)state;
    struct made a, b, both;
    char text[SUMS_NAME_BYTES];
    make(&a, false);
    make(&b, false);
    make(&both, false);
    for (uint64_t i = 0; i < 10; i++)
        add(&a, sums_text(&a.sums, "x"), i, 0, 10 + i, "a");
    for (uint64_t i = 0; i < 2; i++)
        add(&b, sums_text(&b.sums, "x"), 6 + 3 * i, 1, 5, "b");
    combine(&a, &b, &both);
    assert_int_equal(both.sums.count, 4);               /* the row of others counts, too */
    const struct sums_row *others = &both.sums.rows[0]; /* it has most */
    assert_string_equal(sums_name(&both.sums, others, TEXT, text), "(others)");
    assert_null(sums_name(&both.sums, others, NUMBER, text));
    assert_int_equal(others->values[COUNT], 9);
    assert_int_equal(others->values[LEAST], 5);
    assert_int_equal(others->values[WHO], 1);
    assert_int_equal(others->values[MOST], 19);
    release(&both);
}

/* A name that came late: what its row had is in that of the name. */
static void rows_join(void **state)
{
    (void)state;
    struct made m;
    make(&m, false);
    add(&m, sums_text(&m.sums, "one"), 1, 0, 5, "a");
    add(&m, sums_text(&m.sums, "two"), 1, 0, 3, "b");
    sums_join(&m.sums, &m.sums.rows[1], &m.sums.rows[0]);
    sums_finish(&m.sums);
    assert_int_equal(m.sums.count, 1);
    assert_string_equal(text_of(m.sums.rows[0].keys[TEXT]), "two");
    assert_int_equal(m.sums.rows[0].values[COUNT], 2);
    assert_int_equal(m.sums.rows[0].values[LEAST], 3);
    assert_int_equal(m.sums.rows[0].values[MOST], 5);
    assert_int_equal(m.sums.rows[0].durations->count, 2);
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_meet_again),
        cmocka_unit_test(one_row_has_the_rest),
        cmocka_unit_test(rows_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
