/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text and numbers, the histogram, the clock map, names and descriptions. */
#include "unit_test.h"

#include "api/api.h"
#include "api/api_error.h"
#include "base/histogram.h"
#include "base/json_text.h"
#include "base/sha256.h"
#include "error.h"
#include "record/clock_map.h"
#include "record/function_table.h"
#include "record/losses.h"
#include "record/thread_table.h"
#include "symbol/demangle.h"
#include "symbol/kernel_names.h"
#include "symbol/rust_name.h"
#include "table/text_width.h"

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

/* What a terminal would obey, or would turn the line around, is nobody's name. */
static void test_clean(void **state)
{
    static const char *const texts[][2] = {
        {"plain \t\n", "plain \t\n"},
        {"\x1b[2J\x7f", "?[2J?"},
        {"a\xc2\x9b"
         "2J\xc2\x80\xc2\x9f|\xc2\xa0\xc3\xa9",
         "a?2J??|\xc2\xa0\xc3\xa9"},
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

/* What sha256sum says of these. */
static void test_sha256(void **state)
{
    static const struct {
        const char *part;
        unsigned times;
        const char *expected;
    } texts[] = {
        {"", 1, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
        {"abc", 1, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456", 1,
         "cvqW9kvy3Qgqr7CM+A7Rf1s9LGzVJ8SxOLaVBvXlwXM="},
        {"0123456789abcdef", 4, "qK5ubukpq+o6/PxSWMjM1vhSc+DUYm0mxyefMlD3fI4="},
        {"0123456789", 1000, "TCB1mK96INsOMzTdBEOZpA5GfLgbN/e6BaT3bcvY/Vk="},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[SHA256_BASE64_BYTES];
        struct sha256 hash;
        sha256_init(&hash);
        for (unsigned k = 0; k < texts[i].times; k++)
            sha256_add(&hash, texts[i].part, strlen(texts[i].part));
        assert_string_equal(sha256_base64(&hash, text), texts[i].expected);
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
            assert_int_equal(histogram_add(&h, values[i], 1, &rows_left), 0);
        }
        qsort(values, 5000, sizeof values[0], compare_values);
        double fractions[] = {0.0001, 0.25, 0.5, 0.95, 0.999, 1};
        for (unsigned i = 0; i < 6; i++) {
            unsigned rank = (unsigned)(fractions[i] * 5000);
            rank += rank < fractions[i] * 5000;
            double exact = (double)values[rank - 1];
            double got = (double)histogram_quantile(&h, fractions[i]);
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
    assert_int_equal(histogram_add(&first, 1000, 1, &rows_left), 0);
    assert_int_equal(histogram_add(&second, 1000, 1, &rows_left), 0); /* its first is made */
    assert_int_equal(rows_left, 0);
    for (unsigned bit = 0; bit < 64; bit++)
        assert_int_equal(histogram_add(&first, 1ull << bit, 1, &rows_left), 0);
    assert_int_equal(first.count, 65);
    unsigned rows = 0;
    for (unsigned i = 0; i < HISTOGRAM_ROWS; i++)
        rows += first.rows[i] != NULL;
    assert_int_equal(rows, 1);
    assert_in_range(histogram_quantile(&first, 0.001), 512, 520);
    assert_in_range(histogram_quantile(&first, 1), 1016, 1023);
    histogram_release(&first);
    histogram_release(&second);
}

/* In a time namespace CLOCK_MONOTONIC is that of the others, moved. */
static void check_clock_map(int64_t shift_ns)
{
    uint64_t zero_ns = 1000000000 + (uint64_t)shift_ns;
    struct stream_header h = {.monotonic_zero_ns = zero_ns,
                              .realtime_zero_ns = 5000000000,
                              .monotonic_shift_ns = shift_ns};
    struct clock_map m;
    assert_int_equal(clock_map_init(&m, &h), 0);
    /* 20 ppm fast, more anchors than are kept, and some that make no sense. */
    uint64_t seconds = 3 * CLOCK_ANCHORS_MAX;
    for (uint64_t s = 1; s <= seconds; s++) {
        clock_map_add(&m, s * 1000000000, zero_ns + s * 1000020000);
        if (s % 100 == 0)
            clock_map_add(&m, s * 1000000000 + 500000000, 77);
    }
    clock_map_finish(&m);
    assert_true(m.count <= CLOCK_ANCHORS_MAX + 1);
    uint64_t seed = 7;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t ns = random_of(&seed) % ((seconds + 10) * 1000000000);
        uint64_t exact = 5000000000 + ns + ns / 1000000 * 20;
        uint64_t got = clock_map_ns(&m, ns);
        assert_true(got + 50 >= exact && got <= exact + 50);
    }
    uint64_t before = 0;
    for (uint64_t ns = 999999000; ns < 1000001000; ns++) {
        uint64_t now = clock_map_ns(&m, ns);
        assert_true(now >= before);
        before = now;
    }
    assert_true(clock_map_ns(&m, UINT64_MAX) >= before);
    assert_int_equal(m.anchors[0].shared_ns, 1000000000);
    clock_map_release(&m);
}

static void test_clock_map(void **state)
{
    (void)state;
    static const int64_t shifts_ns[] = {0, 100000000000000, -900000000};
    for (unsigned i = 0; i < 3; i++)
        check_clock_map(shifts_ns[i]);
}

/* What functions do, and what they are called, stands in rows and not in their names. */
/* What there is no room for is one function, which nobody knows, and no lack of memory. */
static void test_function_limit(void **state)
{
    struct function_table t = {0};
    struct function_codes codes = {0};
    int error = 0;
    (void)state;
    for (unsigned i = 0; i <= FUNCTIONS_MAX && error == 0; i++) {
        char text[64];
        snprintf(text, sizeof text, "f%u|driver|launch|", i);
        error = function_describe(&t, &codes, 1, (const uint8_t *)text, strlen(text));
    }
    assert_int_equal(error, GPUPROF_LIMIT);
    const struct function *f = function_of(&t, &codes, 7);
    assert_non_null(f);
    assert_string_equal(f->name, "other_functions");
    assert_int_equal(f->domain, FUNCTION_DOMAIN_ANY);
    assert_ptr_equal(function_of(&t, &codes, 8), f);
    assert_int_equal(t.count, FUNCTIONS_MAX);
    assert_string_equal(function_of(&t, &codes, 1)->symbol, "f65534");
    function_codes_release(&codes);
    function_table_release(&t);
}

static void test_roles(void **state)
{
    static const struct {
        unsigned code;
        const char *name;
        unsigned does;
        bool for_own_stream;
    } known[] = {
        {API_CODE___cudaLaunchKernel_ptsz, "cudaLaunchKernel", API_DOES_LAUNCH, true},
        {API_CODE_cuLaunchHostFunc, "cuLaunchHostFunc", API_DOES_HOST_LAUNCH, false},
        {API_CODE_cudaMemcpy_ptds, "cudaMemcpy", API_DOES_COPY_PIECE, true},
        {API_CODE_cuFabricCpyBatchAsync, "cuFabricCpyBatchAsync", API_DOES_COPY, false},
        {API_CODE_cuMemPrefetchAsync_v2_ptsz, "cuMemPrefetchAsync_v2", API_DOES_HINT, true},
        {API_CODE_cudaStreamBeginRecaptureToGraph, "cudaStreamBeginRecaptureToGraph",
         API_DOES_CAPTURE_BEGIN, false},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct api_function *f = &api_functions[known[i].code];
        assert_string_equal(f->name, known[i].name);
        assert_int_equal(f->does, known[i].does);
        assert_int_equal(f->for_own_stream, known[i].for_own_stream);
    }
    static const struct api_arg piece[] = {
        {ARG_ADDRESS, "dst"}, {ARG_ADDRESS, "src"}, {ARG_BYTES, "bytes"}, {ARG_KIND, "kind"}};
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++)
        for (unsigned a = 0; api_functions[i].does == API_DOES_COPY_PIECE && a < 4; a++) {
            assert_int_equal(api_functions[i].args[a].kind, piece[a].kind);
            assert_string_equal(api_functions[i].args[a].label, piece[a].label);
        }
    assert_int_equal(api_functions[API_CODE_cudaEventQuery].cost, COST_QUERY);
    assert_int_equal(api_functions[API_CODE_cudaEventQuery].class, API_SYNC);
    assert_int_equal(api_functions[API_CODE_cuMemCreate].memory, API_MEMORY_GET_PHYSICAL);
    assert_int_equal(api_functions[API_CODE_cuMemMap].memory, API_MEMORY_MAP);
    assert_true(api_gets_memory(API_MEMORY_GET_DEVICE) && api_gets_memory(API_MEMORY_GET_HOST));
    assert_false(api_gets_memory(API_MEMORY_NONE) || api_gets_memory(API_MEMORY_REGISTER_HOST));
    assert_int_equal(api_domain_of("__cudaLaunchKernel"), API_RUNTIME);
    assert_int_equal(api_domain_of("cuptiFinalize"), API_CUPTI);
    assert_int_equal(api_domain_of("cuInit"), API_DRIVER);
    assert_int_equal(api_domain_of("strlen"), API_DOMAIN_COUNT);
    assert_true(api_has_failed(API_DRIVER, 1) && !api_has_failed(API_DRIVER, 600));
    assert_true(api_has_failed(API_CUPTI, 600) && !api_has_failed(API_CUPTI, 0));
}

static void test_functions(void **state)
{
    (void)state;
    struct function_table t = {0};
    struct function_codes a = {0}, b = {0};
    const char *launch = "__cudaLaunchKernel_ptsz|runtime|launch|kernel:kernel,dim3:grid";
    assert_int_equal(function_describe(&t, &a, 700, (const uint8_t *)launch, strlen(launch)), 0);
    assert_int_equal(function_describe(&t, &b, 3, (const uint8_t *)launch, strlen(launch)), 0);
    const struct function *f = function_of(&t, &a, 700);
    assert_ptr_equal(f, function_of(&t, &b, 3));
    assert_string_equal(f->symbol, "__cudaLaunchKernel_ptsz");
    assert_string_equal(f->name, "cudaLaunchKernel");
    assert_int_equal(f->arg_count, 2);
    assert_int_equal(f->args[0].kind, ARG_KERNEL);
    assert_string_equal(f->args[1].label, "grid");
    assert_string_equal(function_of(&t, &a, 9999)->name, "function_9999");
    assert_int_equal(function_of(&t, &a, 5)->domain, FUNCTION_DOMAIN_ANY);
    /* Of a recording without them: a reader knows by its own table what functions do to memory. */
    const char *got = "cuMemCreate|driver|alloc|bytes:bytes", *other = "cuMemCreate|driver|sync|";
    assert_int_equal(function_describe(&t, &a, 9, (const uint8_t *)got, strlen(got)), 0);
    assert_int_equal(function_of(&t, &a, 9)->memory, API_MEMORY_GET_PHYSICAL);
    assert_int_equal(function_describe(&t, &a, 9, (const uint8_t *)other, strlen(other)), 0);
    assert_int_equal(function_of(&t, &a, 9)->memory, API_MEMORY_NONE);
    const char *two = "f|runtime|launch|dim3_xy:grid,dim3_z:grid_z,dim3_z:z,dim3_xy:a,dim3_xy:xy";
    const uint64_t words[] = {7 | 70000ull << 32, 9, 5, 6, 8};
    const unsigned kinds[] = {ARG_DIM3, 0, ARG_COUNT, ARG_COUNT, ARG_COUNT};
    assert_int_equal(function_describe(&t, &a, 8, (const uint8_t *)two, strlen(two)), 0);
    for (unsigned i = 0; i < 5; i++) {
        unsigned kind = function_of(&t, &a, 8)->args[i].kind;
        uint64_t value;
        assert_int_equal(function_value(words, 5, i, &kind, &value), i != 1);
        assert_true(i == 1 || kind == kinds[i]);
        assert_true(i == 1 || value == (i ? words[i] : 7 | 65535ull << 32 | 9ull << 48));
    }
    unsigned kind = ARG_DIM3_XY; /* of a record that was written with fewer words */
    uint64_t value;
    assert_true(function_value(words, 1, 0, &kind, &value) && value >> 48 == 0);
    const char *bad[] = {
        "", "x", "x|runtime", "|runtime|launch|", "x|y|z|nokind", "x|runtime|launch|kernel:"};
    for (unsigned i = 0; i < 6; i++)
        assert_true(function_describe(&t, &a, 1, (const uint8_t *)bad[i], strlen(bad[i])) < 0);
    assert_int_equal(
        function_describe(&t, &a, FUNCTION_CODES_MAX, (const uint8_t *)launch, strlen(launch)),
        GPUPROF_LIMIT);
    function_codes_release(&a);
    function_codes_release(&b);
    assert_int_equal(function_builtin(&t, &a), 0);
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++) {
        f = function_of(&t, &a, i);
        assert_string_equal(f->symbol, api_functions[i].symbol);
        assert_int_equal(f->arg_count, api_functions[i].arg_count);
        assert_int_equal(f->domain, api_functions[i].domain);
        assert_int_equal(f->class, api_functions[i].class);
        assert_int_equal(f->memory, api_functions[i].memory);
        for (unsigned k = 0; k < f->arg_count; k++)
            assert_int_equal(f->args[k].kind, api_functions[i].args[k].kind);
    }
    function_codes_release(&a);
    function_table_release(&t);
}

/* Members of a call's args in the trace are its labels and these words; they must not collide. */
static void test_labels(void **state)
{
    (void)state;
    static const char *const taken[] = {"result", "error", "correlation", "weight", "captured",
                                        "nested", "stale", "open",        "symbol", "thread",
                                        "tid",    "begin", "dur"};
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++) {
        for (unsigned k = 0; k < api_functions[i].arg_count; k++) {
            const char *label = api_functions[i].args[k].label;
            for (unsigned j = 0; j < sizeof taken / sizeof taken[0]; j++)
                assert_string_not_equal(label, taken[j]);
            for (unsigned j = 0; j < k; j++)
                assert_string_not_equal(label, api_functions[i].args[j].label);
        }
    }
}

static void test_kernel_names(void **state)
{
    (void)state;
    struct kernel_names names = {0};
    struct kernel_handles a = {0}, b = {0};
    for (uint64_t i = 1; i <= 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "_Z6kernelILi%lluEEvv", (unsigned long long)(i % 100));
        assert_int_equal(kernel_name_set(&names, &a, 64 * i, (const uint8_t *)name, strlen(name)),
                         0);
        assert_int_equal(kernel_name_set(&names, &b, i, (const uint8_t *)name, strlen(name)), 0);
    }
    assert_int_equal(names.count, 100);
    assert_string_equal(kernel_name_of(&a, 64 * 107)->shown, "void kernel<7>()");
    assert_string_equal(kernel_name_of(&a, 64 * 107)->json, "\"void kernel<7>()\"");
    assert_ptr_equal(kernel_name_of(&a, 64 * 7), kernel_name_of(&b, 7));
    assert_null(kernel_name_of(&a, 63));
    assert_int_equal(kernel_name_set(&names, &a, 64, (const uint8_t *)"plain", 5), 0);
    assert_string_equal(kernel_name_of(&a, 64)->shown, "plain");
    kernel_handles_release(&names, &a);
    assert_int_equal(names.handle_count, 3000);
    kernel_handles_release(&names, &b);
    kernel_names_release(&names);
}

/* What a file of some size may make of names and handles, in the maps of all processes. */
static void test_kernel_name_limits(void **state)
{
    (void)state;
    struct kernel_names names = {0};
    struct kernel_handles maps[2] = {{0}, {0}};
    static uint8_t text[8192];
    kernel_names_limit(&names, 4000);
    for (uint64_t i = 0; i < 2 * KERNEL_HANDLES_FREE; i++)
        assert_int_equal(kernel_name_set(&names, &maps[i % 2], i, (const uint8_t *)"k", 1), 0);
    assert_int_equal(names.handle_count, KERNEL_HANDLES_FREE + 1000);
    assert_int_equal(names.dropped, KERNEL_HANDLES_FREE - 1000);
    assert_null(kernel_name_of(&maps[1], 2 * KERNEL_HANDLES_FREE - 1));
    assert_string_equal(kernel_name_of(&maps[1], KERNEL_HANDLES_FREE + 1)->shown, "k");
    const struct kernel_name *name = NULL;
    memset(text, 'k', sizeof text);
    for (unsigned i = 0; i < 1000; i++) {
        text[0] = (uint8_t)('a' + i / 26 % 26), text[1] = (uint8_t)('a' + i % 26);
        text[2] = (uint8_t)('a' + i / 676);
        assert_int_equal(kernel_name_intern(&names, text, sizeof text, &name), 0);
    }
    assert_null(name);
    assert_in_range(names.text_bytes, KERNEL_NAME_TEXT_FREE, KERNEL_NAME_TEXT_FREE + 4000 * 64);
    kernel_handles_release(&names, &maps[0]);
    kernel_handles_release(&names, &maps[1]);
    assert_int_equal(names.handle_count, 0);
    kernel_names_release(&names);
    kernel_names_limit(&names, UINT64_MAX);
    assert_int_equal(names.handles_max, KERNEL_HANDLES_MAX);
    assert_int_equal(names.text_max, KERNEL_NAME_TEXT_MAX);
}

/* f(pair<int, int>, pair<S, S>, ...): each argument names the one before twice. */
static void test_demangle_limits(void **state)
{
    (void)state;
    char name[2048] = "_Z1f4pairIiiE";
    unsigned failures = 0;
    for (unsigned i = 0; i < 60; i++) {
        char more[32];
        char digit[3] = "";
        unsigned seq = i + 0;
        if (seq < 36)
            digit[0] = (char)(seq < 10 ? '0' + (int)seq : 'A' + (int)seq - 10);
        else
            snprintf(digit, sizeof digit, "1%c", (char)('0' + (int)(seq - 36) % 10));
        snprintf(more, sizeof more, "S_IS%s_S%s_E", digit, digit);
        strcat(name, more);
    }
    char *shown = demangle(name, KERNEL_NAME_BYTES_MAX, &failures);
    assert_null(shown);
    assert_int_equal(failures, 1);
    shown = demangle("_Z3foov", KERNEL_NAME_BYTES_MAX, &failures);
    assert_string_equal(shown, "foo()");
    free(shown);
    assert_null(demangle("main", KERNEL_NAME_BYTES_MAX, &failures));
}

static const char *const rust_names[][2] = {
    {"_RNvC1a4main", "a::main"},
    {"_RNvCs9ltgdHTiPiY_1a4main", "a::main"},
    {"_RNvC1a4main.llvm.123", "a::main"},
    {"_RNCNvC1a4main0", "a::main::{closure#0}"},
    {"_RNCNvC1a4mains0_0C1b", "a::main::{closure#2}"},
    {"_RNSNvC1a1f6vtable", "a::f::{shim:vtable#0}"},
    {"_RNvMC1aNtB2_1S1f", "<a::S>::f"},
    {"_RNvXs_C1aNtB4_1SNtB4_1T1f", "<a::S as a::T>::f"},
    {"_RNvYNtC1a1SNtB4_1T1f", "<a::S as a::T>::f"},
    {"_RINvC1a1fmNtB2_1SE", "a::f::<u32, a::S>"},
    {"_RINvC1a1fINtB2_1VReEL_E", "a::f::<a::V<&str>>"},
    {"_RINvC1a1fTuETmhERShQbPoOzE",
     "a::f::<((),), (u32, u8), &[u8], &mut bool, *const u128, *mut !>"},
    {"_RINvC1a1fAhj10_E", "a::f::<[u8; 16]>"},
    {"_RINvC1a1fFUKCPhEjFEuE", "a::f::<unsafe extern \"C\" fn(*const u8) -> usize, fn()>"},
    {"_RINvC1a1fDNtB2_1TNtB2_1UEL_E", "a::f::<dyn a::T + a::U>"},
    {"_RINvC1a1fDINtB2_2FnTmEEp6OutputbEL_E", "a::f::<dyn a::Fn<(u32,), Output = bool>>"},
    {"_RINvC1a1fKb1_Kc61_Kin2a_KpE", "a::f::<true, 'a', -42, _>"},
    {"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
    {"_ZN44_$LT$a..S$u20$as$u20$b..T$LT$$RF$str$GT$$GT$1f17h0123456789abcdefE",
     "<a::S as b::T<&str>>::f"},
    {"_ZN1a4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "a::main::{{closure}}"},
    {"_ZN1a17h0123456789abcdeE", NULL}, /* not a hash: as C++ has it */
};

/* None of them is one, or one whose form is known. */
static const char *const no_rust_names[] = {
    "_R",
    "_RN",
    "_RNvC1a",
    "_RNvC9a1f",
    "_RZZ",
    "_RNvC1a4mainX",
    "_RINvC1a1fB5_E",
    "_RB_",
    "_RNvB_1f",
    "_RINvC1a1f",
    "_R1",
    "_RNvC1a1fC",
    "_RINvC1a1fKRe616263_E",
    "_RNvC99999999999999999999a1f",
    "_RNvCu1a",
};

static void test_rust_names(void **state)
{
    unsigned failures = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rust_names / sizeof rust_names[0]; i++) {
        char *shown = demangle(rust_names[i][0], KERNEL_NAME_BYTES_MAX, &failures);
        if (rust_names[i][1])
            assert_string_equal(shown, rust_names[i][1]);
        free(shown);
        assert_null(demangle(rust_names[i][0], 2, &failures)); /* longer than it may be */
    }
    for (size_t i = 0; i < sizeof no_rust_names / sizeof no_rust_names[0]; i++)
        assert_null(demangle(no_rust_names[i], KERNEL_NAME_BYTES_MAX, &failures));
    assert_int_equal(failures, 0);
}

/* Each argument names the one before twice; a type in a type in a type; and damage. */
static void test_rust_name_limits(void **state)
{
    static char name[100000];
    unsigned failures = 0;
    (void)state;
    strcpy(name, "_RINvC1a1fTuuE");
    for (size_t i = 0, target = 8, length = strlen(name); i < 40; i++, length = strlen(name)) {
        static const char digits[] =
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        char at[4] = {digits[(target - 1) % 62], '_'};
        if (target > 62)
            snprintf(at, sizeof at, "%c%c_", digits[(target - 1) / 62], digits[(target - 1) % 62]);
        target = length - 2;
        snprintf(name + length, sizeof name - length, "TB%sB%sE", at, at);
    }
    strcat(name, "E");
    assert_null(demangle(name, KERNEL_NAME_BYTES_MAX, &failures));
    memset(name, 'R', sizeof name - 1);
    memcpy(name, "_RINvC1a1f", 10);
    assert_null(demangle(name, KERNEL_NAME_BYTES_MAX, &failures));
    uint64_t seed = 7;
    for (unsigned i = 0; i < 60000; i++) {
        strcpy(name, rust_names[i % (sizeof rust_names / sizeof rust_names[0])][0]);
        size_t length = strlen(name);
        for (unsigned k = 0; k <= random_of(&seed) % 4; k++)
            name[2 + random_of(&seed) % (length - 2)] =
                "0129_aBbCDeEFfhIKLMNnOpPQRsSTtuUvXYzG$."[random_of(&seed) % 40];
        char *shown = rust_name(name, KERNEL_NAME_BYTES_MAX);
        assert_true(!shown || strlen(shown) <= KERNEL_NAME_BYTES_MAX);
        free(shown);
        if (rust_name_is_old(name))
            rust_name_tidy(name);
    }
}

static void test_threads(void **state)
{
    (void)state;
    struct thread_table t = {0};
    for (uint32_t i = 0; i < 30000; i++)
        assert_int_equal(thread_get(&t, i * 7919)->number, i * 7919);
    for (uint32_t i = 0; i < 30000; i++)
        assert_ptr_equal(thread_find(&t, i * 7919), t.threads[i]);
    assert_null(thread_find(&t, 5));
    assert_int_equal(t.count, 30000);
    thread_table_release(&t);
}

static void test_losses(void **state)
{
    (void)state;
    struct losses l = {0}, sum = {0};
    char text[512];
    assert_int_equal(losses_weight(&l), LOSS_NONE);
    assert_string_equal(losses_text(&l, text, sizeof text), "");
    l.live_records = 5;
    l.counters[COUNTER_WAITS] = 5;
    assert_int_equal(losses_weight(&l), LOSS_NONE);
    l.counters[COUNTER_DROPPED] = 3;
    assert_int_equal(losses_weight(&l), LOSS_COUNTED);
    l.damaged_blocks = 2;
    assert_int_equal(losses_weight(&l), LOSS_DAMAGE);
    losses_add(&sum, &l);
    losses_add(&sum, &l);
    assert_true(sum.damaged_blocks == 4 && sum.counters[COUNTER_DROPPED] == 6);
    assert_string_equal(losses_text(&sum, text, sizeof text),
                        "blocks damaged: 4, events dropped because every buffer was full: 6");
}

static void test_error_names(void **state)
{
    (void)state;
    assert_string_equal(api_error_name(API_RUNTIME, 2), "cudaErrorMemoryAllocation");
    assert_string_equal(api_error_name(API_DRIVER, 2), "CUDA_ERROR_OUT_OF_MEMORY");
    assert_string_equal(api_error_name(API_DRIVER, 999), "CUDA_ERROR_UNKNOWN");
    assert_null(api_error_name(API_DRIVER, 0));
    assert_null(api_error_name(API_RUNTIME, -4));
    assert_null(api_error_name(API_RUNTIME, 123456));
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
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_histogram_without_room),
        cmocka_unit_test(test_clock_map),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_function_limit),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_kernel_names),
        cmocka_unit_test(test_kernel_name_limits),
        cmocka_unit_test(test_demangle_limits),
        cmocka_unit_test(test_rust_names),
        cmocka_unit_test(test_rust_name_limits),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_error_names),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_function_cut),
        cmocka_unit_test(test_stack_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
