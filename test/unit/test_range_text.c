/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of ranges: the forms that are known, what is almost of one, and texts at random. */
#include "unit_test.h"

#include "record.h"
#include "resolve/range_text.h"

#define ROUNDS 20000

/* The text alone in its memory, so that a sanitizer sees who reads behind it. */
static char *exact(const char *text, size_t length)
{
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    return copy;
}

static bool parse(const char *text, struct range_op *op)
{
    char *copy = exact(text, strlen(text));
    bool is_op = range_text_op(copy, (uint32_t)strlen(text), op);
    free(copy);
    return is_op;
}

static void check(const char *text, const char *name, uint64_t sequence, uint64_t id, bool is_label)
{
    struct range_op op;
    assert_true(parse(text, &op));
    assert_int_equal(op.name_bytes, strlen(name));
    assert_memory_equal(text, name, op.name_bytes);
    assert_int_equal(op.sequence, sequence);
    assert_int_equal(op.id, id);
    assert_int_equal(op.is_label, is_label);
}

static void test_operators(void **state)
{
    struct range_op op;
    (void)state;
    check("aten::addmm, seq = 1, op_id = 41, sizes = [[32], [4, 16], [16, 32], [], []], "
          "input_op_ids = [(0,-1), (28,0), (38,0), (0,-1), (0,-1)]",
          "aten::addmm", 2, 41, false);
    check("aten::empty, op_id = 1", "aten::empty", 0, 1, false);
    check("aten::linear, seq = 0, op_id = 37", "aten::linear", 1, 37, false);
    check("AddmmBackward0, seq = 4, op_id = 79, sizes = [[4, 4]]", "AddmmBackward0", 5, 79, false);
    check(RANGE_OP_EVALUATES "AddmmBackward0, op_id = 78", RANGE_OP_EVALUATES "AddmmBackward0", 0,
          78, false);
    check("torch::autograd::AccumulateGrad, op_id = 94", "torch::autograd::AccumulateGrad", 0, 94,
          false);
    check("Optimizer.step#AdamW.step, op_id = 133", "Optimizer.step#AdamW.step", 0, 133, true);
    check("a, op_id = 3, b, op_id = 7, sizes = []", "a, op_id = 3, b", 0, 7, true);
    check("a, seq = x, seq = 3, op_id = 7", "a, seq = x", 4, 7, false);
    check("::, op_id = 18446744073709551615", "::", 0, UINT64_MAX, false);
    /* No sequence number: it has no place for one more than the largest. */
    check("x, seq = 18446744073709551615, op_id = 1", "x, seq = 18446744073709551615", 0, 1, true);
    assert_false(parse("x, op_id = 18446744073709551616", &op));
    assert_false(parse("", &op));
}

static void test_traces(void **state)
{
    static const char *const begin[] = {"compile (dynamo_timed)", "(dynamo_timed)"};
    static const char *const do_not[] = {"PythonDispatchMode", "PythonSubclass", "(dynamo_timed) ",
                                         ""};
    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_true(range_op_begins_trace(begin[i], (uint32_t)strlen(begin[i])));
    for (size_t i = 0; i < 4; i++)
        assert_false(range_op_begins_trace(do_not[i], (uint32_t)strlen(do_not[i])));
}

static void make_text(uint64_t *seed, char *text, uint32_t *length, uint32_t most)
{
    static const char *const parts[] = {", op_id = ",
                                        ", seq = ",
                                        ", sizes = [",
                                        "[",
                                        "]",
                                        ", ",
                                        "12",
                                        "0",
                                        "99999999999999999999",
                                        ", input_op_ids = [",
                                        "(3,-1)",
                                        "aten::mm",
                                        "Thunk:#",
                                        "XlaModule:#",
                                        "hlo_module=",
                                        "name=",
                                        ",hlo_op=",
                                        "#",
                                        "{'Module': ",
                                        "'",
                                        "\"",
                                        "\\",
                                        "}",
                                        ".",
                                        "layer1",
                                        "*",
                                        "\xc3",
                                        "7",
                                        "x",
                                        " "};
    uint32_t count = (uint32_t)(random_of(seed) % 24);
    *length = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *part = parts[random_of(seed) % (sizeof parts / sizeof parts[0])];
        for (uint64_t n = random_of(seed) % 16 ? 1 : random_of(seed) % 900; n > 0; n--)
            for (const char *p = part; *p && *length < most; p++)
                text[(*length)++] = *p;
    }
}

/* Whatever the text: nothing outside of it is read, nothing beyond the bounds is written, and what
 * has been replaced is not replaced again. */
static void test_at_random(void **state)
{
    static char made[RECORD_BYTES_MAX];
    struct range_op op;
    unsigned ops = 0, names = 0, patterns = 0;
    uint64_t seed = 20261122;
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t length;
        make_text(&seed, made, &length, round % 8 ? 200 : sizeof made);
        char *text = exact(made, length), *name = exact(made, 0), *pattern = exact(made, length);
        name = realloc(name, RANGE_NAME_BYTES(length));
        assert_non_null(name);
        if (range_text_op(text, length, &op)) {
            assert_in_range(op.name_bytes, 1, length - sizeof ", op_id = ");
            ops++;
        }
        uint32_t bytes = range_text_name(text, length, name);
        assert_in_range(bytes, 0, RANGE_NAME_BYTES(length));
        names += bytes > 0;
        for (unsigned which = 0; which < 2; which++) {
            bytes = range_text_pattern(text, length, (enum range_numbers)which, pattern);
            assert_in_range(bytes, 0, length);
            patterns += bytes > 0;
            assert_int_equal(range_text_pattern(pattern, bytes, (enum range_numbers)which, name),
                             0);
            for (uint32_t i = 0; which == NUMBERS_ALL && i < bytes; i++)
                assert_true(pattern[i] < '0' || pattern[i] > '9');
        }
        free(text);
        free(name);
        free(pattern);
    }
    assert_true(ops > 20 && names > ops && patterns > ROUNDS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
