/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels, functions of C++ and Rust, and errors. */
#include "unit_test.h"

#include "api/api.h"
#include "api/api_error.h"
#include "symbol/kernel_names.h"

static void test_kernel_names(void **state)
{
    (void)state;
    struct kernel_names names = {0};
    struct kernel_handles a = {0}, b = {0};
    for (uint64_t i = 1; i <= 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "_Z6kernelILi%lluEEvv", (unsigned long long)(i % 100));
        kernel_name_set(&names, &a, 64 * i, name, strlen(name));
        kernel_name_set(&names, &b, i, name, strlen(name));
    }
    assert_int_equal(names.count, 100);
    assert_string_equal(kernel_name_of(&a, 64 * 107)->shown, "void kernel<7>()");
    assert_string_equal(kernel_name_of(&a, 64 * 107)->json, "\"void kernel<7>()\"");
    assert_ptr_equal(kernel_name_of(&a, 64 * 7), kernel_name_of(&b, 7));
    assert_null(kernel_name_of(&a, 63));
    kernel_name_set(&names, &a, 64, "plain", 5);
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
    struct kernel_handles maps[2] = {{{0}}, {{0}}};
    static uint8_t text[8192];
    kernel_names_limit(&names, 4000);
    for (uint64_t i = 0; i < 2 * KERNEL_HANDLES_FREE; i++)
        kernel_name_set(&names, &maps[i % 2], i, "k", 1);
    assert_int_equal(names.handle_count, KERNEL_HANDLES_FREE + 1000);
    assert_int_equal(names.dropped, KERNEL_HANDLES_FREE - 1000);
    assert_null(kernel_name_of(&maps[1], 2 * KERNEL_HANDLES_FREE - 1));
    assert_string_equal(kernel_name_of(&maps[1], KERNEL_HANDLES_FREE + 1)->shown, "k");
    const struct kernel_name *name = NULL;
    memset(text, 'k', sizeof text);
    for (unsigned i = 0; i < 1000; i++) {
        text[0] = (uint8_t)('a' + i / 26 % 26), text[1] = (uint8_t)('a' + i % 26);
        text[2] = (uint8_t)('a' + i / 676);
        name = kernel_name_intern(&names, text, sizeof text);
    }
    assert_null(name);
    assert_in_range(names.text_bytes, KERNEL_NAME_TEXT_FREE, /* and the last one as it is shown */
                    KERNEL_NAME_TEXT_FREE + 4000 * 64 + 3 * sizeof text);
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
    {"_RINvC1a1fINtB2_1VReEL_E", "a::f::<a::V<&str>, '_>"},
    {"_RINvC1a1fFG_RL0_eEuE", "a::f::<for<'a> fn(&'a str)>"},
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
    assert_int_equal(failures, 1);
    assert_null(demangle("_RINvC1a1fFGzzzzzzzz_EuE", KERNEL_NAME_BYTES_MAX, &failures));
    assert_int_equal(failures, 2); /* 2^47 lifetimes */
    assert_null(demangle("_RNvMINvC1a1bFGzzzzzzzz_EuEEu1f", KERNEL_NAME_BYTES_MAX, &failures));
    assert_int_equal(failures, 3); /* where none is shown */
    memset(name, 'R', sizeof name - 1);
    memcpy(name, "_RINvC1a1f", 10);
    assert_null(demangle(name, KERNEL_NAME_BYTES_MAX, &failures));
    uint64_t seed = 7;
    failures = DEMANGLE_FAILURES_MAX; /* in this process only: none may be harmful here */
    for (unsigned i = 0; i < 60000; i++) {
        strcpy(name, rust_names[i % (sizeof rust_names / sizeof rust_names[0])][0]);
        size_t length = strlen(name);
        for (unsigned k = 0; k <= random_of(&seed) % 4; k++)
            name[2 + random_of(&seed) % (length - 2)] =
                "0129_aBbCDeEFfhIKLMNnOpPQRsSTtuUvXYzG$."[random_of(&seed) % 40];
        char *shown = demangle(name, KERNEL_NAME_BYTES_MAX, &failures);
        assert_true(!shown || strlen(shown) <= KERNEL_NAME_BYTES_MAX);
        free(shown);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_names),     cmocka_unit_test(test_kernel_name_limits),
        cmocka_unit_test(test_demangle_limits),  cmocka_unit_test(test_rust_names),
        cmocka_unit_test(test_rust_name_limits), cmocka_unit_test(test_error_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
