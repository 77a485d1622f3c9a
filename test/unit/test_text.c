/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text and numbers, checksums, the histogram, and texts that are cut. */
#include "unit_test.h"

#include "base/histogram.h"
#include "base/json_text.h"
#include "table/screen.h"

static void assert_json(const char *text, size_t length, const char *expected)
{
    char *json = json_string(text, length);
    assert_string_equal(json, expected);
    free(json);
}

static void test_escape(void **state)
{
    (void)state;
    assert_json("plain", 5, "\"plain\"");
    assert_json("a\"b\\c\n\x01\x7f", 8, "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\"");
    assert_json("\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    assert_json("\xff"
                "a\xc3",
                3,
                "\"\xef\xbf\xbd"
                "a\xef\xbf\xbd\"");
    assert_json("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* a surrogate */
    assert_json("\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* overlong */
    assert_json("a\0b", 3, "\"a\\u0000b\"");
}

/* Each byte at each place of a longer text is written as it is alone. */
static void test_escape_anywhere(void **state)
{
    static const char around[] = "abcdefghijklmnopqrs";
    enum { LENGTH = sizeof around - 1 };
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++)
        for (int at = 0; at < LENGTH; at++) {
            char text[LENGTH], alone[16], expected[64];
            memcpy(text, around, LENGTH);
            text[at] = (char)byte;
            char *end = json_escape(alone, text + at, 1);
            snprintf(expected, sizeof expected, "\"%.*s%.*s%s\"", at, around,
                     (int)(end - alone) - 2, alone + 1, around + at + 1);
            assert_json(text, LENGTH, expected);
        }
}

/* What a terminal would obey, or would turn the line around, is nobody's name. */
static void test_clean(void **state)
{
    static const char *const texts[][2] = {
        {"plain \t\n", "plain \t\n"},
        {"\x1b[2J\x7f", "?[2J?"},
        {"a\xc2\x9b"
         "2J\xc2\x80\xc2\x9f|\xc2\xa0\xc3\xa9",
         "a??2J????|\xc2\xa0\xc3\xa9"},
        {"\xe2\x80\xae|\xe2\x80\xaa|\xe2\x81\xa6|\xe2\x81\xa9|\xe2\x80\xaf",
         "?|?|?|?|\xe2\x80\xaf"},
        {"\xd7\xa9\xd7\x9c", "\xd7\xa9\xd7\x9c"}, /* a name in Hebrew */
        {"\xc2"
         "A\xc2",
         "?A?"},
        {"\xe2\x80", "??"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *clean = json_clean(texts[i][0], strlen(texts[i][0]));
        for (char *p = clean; (p = strstr(p, "\xef\xbf\xbd"));) { /* to be read in a message */
            *p++ = '?';
            memmove(p, p + 2, strlen(p + 2) + 1);
        }
        assert_string_equal(clean, texts[i][1]);
        free(clean);
    }
}

/* What XML does not allow, and what a reader may obey, is replaced, whatever the text is. */
static void test_xml(void **state)
{
    static const char *const texts[][2] = {
        {"a<b> & \"c\" 'd'", "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;"},
        {"\x1b[31mred\x7f", "\xef\xbf\xbd[31mred\xef\xbf\xbd"},
        {"line\n\tnext", "line  next"},
        {"\xff\xc3\xa4\xed\xa0\x80", "\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xef\xbf\xbe\xef\xbf\xbf\xe2\x80\xae", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"cut off \xe2\x82", "cut off \xef\xbf\xbd\xef\xbf\xbd"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *xml = xml_string(texts[i][0]);
        assert_string_equal(xml, texts[i][1]);
        free(xml);
    }
}

static void test_reals(void **state)
{
    static const struct {
        double value;
        bool is_single;
        const char *text;
    } cases[] = {
        {0.1, false, "0.1"},
        {(double)0.1f, true, "0.1"},
        {(double)0.1f, false, "0.10000000149011612"},
        {1.0 / 3, false, "0.3333333333333333"},
        {0.1 + 0.2, false, "0.30000000000000004"},
        {-2.2250738585072014e-308, false, "-2.2250738585072014e-308"},
        {16777216, true, "16777216"},
        {-0.0, false, "-0"},
        {1e300, false, "1e+300"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[JSON_REAL_MAX + 1];
        *json_real(text, cases[i].value, cases[i].is_single) = '\0';
        assert_string_equal(text, cases[i].text);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (unsigned i = 0; i < 60000; i++) {
        uint64_t value = i < 20000 ? i : random_of(&seed) >> (random_of(&seed) % 64);
        char text[64], expected[64];
        *json_decimal(text, value) = '\0';
        snprintf(expected, sizeof expected, "%llu", (unsigned long long)value);
        assert_string_equal(text, expected);
        *json_hex(text, value) = '\0';
        snprintf(expected, sizeof expected, "0x%llx", (unsigned long long)value);
        assert_string_equal(text, expected);
        *json_microseconds(text, value) = '\0';
        snprintf(expected, sizeof expected, "%llu.%03u", (unsigned long long)(value / 1000),
                 (unsigned)(value % 1000));
        assert_string_equal(text, expected);
    }
    char text[64];
    *json_decimal(text, UINT64_MAX) = '\0';
    assert_string_equal(text, "18446744073709551615");
}

static int compare_values(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void test_histogram(void **state)
{
    (void)state;
    static uint64_t values[5000];
    uint64_t seed = 6;
    for (unsigned round = 0; round < 10; round++) {
        struct histogram h = {0};
        uint64_t rows_left = HISTOGRAM_ROWS;
        for (unsigned i = 0; i < 5000; i++) {
            values[i] = random_of(&seed) >> (random_of(&seed) % 64);
            histogram_add(&h, values[i], 1, &rows_left);
        }
        qsort(values, 5000, sizeof values[0], compare_values);
        double fractions[] = {0.0001, 0.25, 0.5, 0.95, 0.999, 1};
        for (unsigned i = 0; i < 6; i++) {
            unsigned rank = (unsigned)(fractions[i] * 5000);
            rank += rank < fractions[i] * 5000;
            double exact = (double)values[rank - 1];
            double got = (double)histogram_quantile(&h, fractions[i], 0, UINT64_MAX);
            assert_true(got >= exact * 0.99 - 0.5 && got <= exact * 1.01 + 0.5);
        }
        histogram_release(&h);
    }
}

/* When no rows are left values go to the nearest one, and none is lost. */
static void test_histogram_without_room(void **state)
{
    (void)state;
    struct histogram first = {0}, second = {0};
    uint64_t rows_left = 1;
    histogram_add(&first, 1000, 1, &rows_left);
    histogram_add(&second, 1000, 1, &rows_left); /* its first is made */
    assert_int_equal(rows_left, 0);
    for (unsigned bit = 0; bit < 64; bit++)
        histogram_add(&first, 1ull << bit, 1, &rows_left);
    assert_int_equal(first.count, 65);
    unsigned rows = 0;
    for (unsigned i = 0; i < HISTOGRAM_ROWS; i++)
        rows += first.rows[i] != NULL;
    assert_int_equal(rows, 1);
    assert_in_range(histogram_quantile(&first, 0.001, 0, UINT64_MAX), 512, 520);
    assert_in_range(histogram_quantile(&first, 1, 0, UINT64_MAX), 1000, 1007);
    assert_int_equal(histogram_quantile(&first, 1, 0, 1000), 1000);
    assert_int_equal(histogram_quantile(&first, 0.001, 700, 1000), 700);
    histogram_release(&first);
    histogram_release(&second);
}

static void assert_cut(const char *text, size_t width, const char *expected)
{
    char *cut = text_cut(text, strlen(text), width);
    assert_string_equal(cut, expected);
    free(cut);
}

/* No letter is cut through, none is counted as a column that it does not take. */
static void test_cut(void **state)
{
    (void)state;
    assert_int_equal(text_width("plain", 5), 5);
    assert_int_equal(text_width("\xe6\xbc\xa2\xe5\xad\x97", 6), 4); /* two wide letters */
    assert_int_equal(text_width("e\xcc\x81", 3), 1);                /* a letter and its accent */
    assert_int_equal(text_width("\xf0\x9f\x98\x80\xc3\xa9", 6), 3);
    assert_cut("", 8, "");
    assert_cut("12345678", 8, "12345678");
    assert_cut("123456789", 8, "123...89");
    assert_cut("1234567890", 9, "123...890");
    assert_cut("\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 8,
               "\xe6\xbc\xa2...\xe6\xbc\xa2");
    /* The accent goes with its letter, at both ends. */
    assert_cut("aae\xcc\x81zzzzze\xcc\x81yx", 8, "aae\xcc\x81...yx");
    for (size_t width = TEXT_WIDTH_MIN; width < 40; width++) {
        static const char mixed[] =
            "a\xe6\xbc\xa2"
            "e\xcc\x81\xf0\x9f\x98\x80 and a good many plain letters \xe6\xbc"
            "\xa2";
        char *cut = text_cut(mixed, sizeof mixed - 1, width);
        size_t shown = text_width(cut, strlen(cut));
        assert_true(shown <= width && shown + 2 >= width);
        free(cut);
    }
}

static void assert_stack_cut(const char *text, size_t width, const char *expected)
{
    char *cut = text_cut_stack(text, strlen(text), width);
    assert_string_equal(cut, expected);
    free(cut);
}

/* What all have alike goes first; a file and line stay. */
static void test_function_cut(void **state)
{
    (void)state;
    static const char kernel[] =
        "void at::(anonymous namespace)::go<at::Half, x::y>(int, at::Tensor&) (by cublasSgemm)";
    assert_stack_cut(kernel, sizeof kernel - 1, kernel);
    assert_stack_cut(kernel, sizeof kernel - 2, "go<Half, y> (by cublasSgemm)");
    assert_stack_cut(kernel, 28, "go<Half, y> (by cublasSgemm)");
    assert_stack_cut(kernel, 27, "go<Half, y>");
    assert_stack_cut(kernel, 10, "go<Hal...>");
    assert_stack_cut("ns::Trainer::step(int) (train.cpp:12)", 28, "Trainer::step (train.cpp:12)");
    assert_stack_cut("std::enable_if<!(false), void>::type in::gemvx::kernel<int, 4>(in::K)", 23,
                     "gemvx::kernel<int, 4>");
    assert_stack_cut("autograd::engine::evaluate_function: MulBackward0", 34,
                     "evaluate_function: MulBackward0");
    assert_stack_cut("aten::native_layer_norm", 20, "native_layer_norm");
    assert_stack_cut("Make(a::B)::{lambda(int)#1}::operator()() const::C", 46,
                     "Make(B)::{lambda(int)#1}::operator()() C");
    assert_stack_cut("::a::b c", 8, "::a::b c");
    assert_stack_cut("::(()::))::", 8, "::((...:");
    assert_stack_cut("void )))))))))", 8, "))))...)");
    assert_stack_cut("Loader.<locals>.next (a.py:17)", 20, "Loader.<l...a.py:17)");
}

/* The line that called stays to the last: all stacks of a program end in the same frames. */
static void test_stack_cut(void **state)
{
    (void)state;
    static const char stack[] = "cudaMalloc | load (a.py:17) | main (a.py:90) | start (b.c:1)";
    assert_stack_cut(stack, sizeof stack - 1, stack);
    assert_stack_cut(stack, sizeof stack - 2, "cudaMalloc | load (a.py:17) | main (a.py:90) | ...");
    assert_stack_cut(stack, 50, "cudaMalloc | load (a.py:17) | main (a.py:90) | ...");
    assert_stack_cut(stack, 49, "cudaMalloc | load (a.py:17) | ...");
    assert_stack_cut(stack, 33, "cudaMalloc | load (a.py:17) | ...");
    assert_stack_cut(stack, 32, "load (a.py:17)");
    assert_stack_cut(stack, 14, "load (a.py:17)");
    assert_stack_cut(stack, 13, "load ...y:17)");
    assert_stack_cut("cudaMalloc | load (a.py:17)", 26, "load (a.py:17)");
    assert_stack_cut("void kernel<float>(int)", 10, "kernel...>");
    assert_stack_cut("1 MiB in 2: cudaMalloc | load (a.py:17)", 30, "1 MiB in 2: load (a.py:17)");
    assert_stack_cut(" |  |  | long enough", 8, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),    cmocka_unit_test(test_escape_anywhere),
        cmocka_unit_test(test_xml),       cmocka_unit_test(test_reals),
        cmocka_unit_test(test_clean),     cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_histogram), cmocka_unit_test(test_histogram_without_room),
        cmocka_unit_test(test_cut),       cmocka_unit_test(test_function_cut),
        cmocka_unit_test(test_stack_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
