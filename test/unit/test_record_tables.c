/* SPDX-License-Identifier: Apache-2.0 */
/* The clock map, and the tables of functions, threads and losses. */
#include "unit_test.h"

#include "api/api.h"
#include "error.h"
#include "record/clock_map.h"
#include "record/function_table.h"
#include "record/losses.h"
#include "record/thread_table.h"

/* In a time namespace CLOCK_MONOTONIC is that of the others, moved. */
static void check_clock_map(int64_t shift_ns)
{
    uint64_t zero_ns = 1000000000 + (uint64_t)shift_ns;
    struct stream_header h = {.monotonic_zero_ns = zero_ns,
                              .realtime_zero_ns = 5000000000,
                              .monotonic_shift_ns = shift_ns};
    struct clock_map m;
    clock_map_init(&m, &h);
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
    assert_string_equal(function_of(&t, &codes, 1)->symbol, "f65533");
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
    const struct function *shown = function_of(&t, &a, 8);
    struct shown_arg arg;
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(function_show(shown, words, 5, i, &arg), i != 1);
        assert_true(i == 1 || arg.kind == kinds[i]);
        assert_true(i == 1 || arg.value == (i ? words[i] : 7 | 65535ull << 32 | 9ull << 48));
        assert_string_equal(arg.label, shown->args[i].label);
    }
    /* Of a record that was written with fewer words, and of a function that is not described. */
    assert_true(function_show(shown, words, 1, 0, &arg) && arg.value >> 48 == 0);
    assert_true(function_show(NULL, words, 5, 4, &arg) && arg.kind == ARG_HANDLE);
    assert_string_equal(arg.label, "arg4");
    const char *bad[] = {
        "", "x", "x|runtime", "|runtime|launch|", "x|y|z|nokind", "x|runtime|launch|kernel:"};
    for (unsigned i = 0; i < 6; i++)
        assert_true(function_describe(&t, &a, 1, (const uint8_t *)bad[i], strlen(bad[i])) < 0);
    assert_int_equal(
        function_describe(&t, &a, FUNCTION_CODES_MAX, (const uint8_t *)launch, strlen(launch)),
        GPUPROF_LIMIT);
    function_codes_release(&a);
    function_codes_release(&b);
    a.is_own = true;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_map),      cmocka_unit_test(test_functions),
        cmocka_unit_test(test_function_limit), cmocka_unit_test(test_roles),
        cmocka_unit_test(test_labels),         cmocka_unit_test(test_threads),
        cmocka_unit_test(test_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
