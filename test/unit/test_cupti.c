/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of CUPTI: records as data, callback ids, parameters. No libcupti is needed. */
#include "unit_test.h"

#include "api/api.h"
#include "cuda/cuda_abi.h"
#include "cupti/cupti_callback_map.h"
#include "cupti/cupti_params.h"
#include "cupti/cupti_record.h"

/* ---- records ---- */

/* Of a libcupti that knows two kinds. */
static const struct cupti_sizes small_sizes = {
    .bytes = {[CUPTI_ACTIVITY_KIND_MEMCPY] = 88, [CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = 200}};

/* Walks as libcupti does: by the kind found in memory, and without any state of its own. */
static CUptiResult next_record(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record)
{
    uint8_t *at = buffer;
    uint32_t kind;
    if (*record) {
        memcpy(&kind, *record, sizeof kind);
        at = (uint8_t *)*record + small_sizes.bytes[kind];
    }
    if (at + 8 > buffer + valid_bytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    memcpy(&kind, at, sizeof kind);
    if (kind >= CUPTI_KIND_MAX || !small_sizes.bytes[kind])
        return CUPTI_ERROR_INVALID_KIND;
    if (at + small_sizes.bytes[kind] > buffer + valid_bytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)at;
    return CUPTI_SUCCESS;
}

static void sizes_are_measured(void **state)
{
    struct cupti_sizes sizes;
    (void)state;
    memset(&sizes, 0xff, sizeof sizes);
    assert_int_equal(cupti_sizes_measure(&sizes, next_record), 2);
    assert_memory_equal(&sizes, &small_sizes, sizeof sizes);
}

static void put(uint8_t *record, size_t offset, uint64_t value, size_t width)
{
    memcpy(record + offset, &value, width);
}

static void fields_are_read_where_they_are(void **state)
{
    uint64_t words[32];
    uint8_t *r = (uint8_t *)words;
    uint64_t value;
    (void)state;
    memset(words, 0xee, sizeof words);
    put(r, 6, 255, 2);
    put(r, 16, 0x1122334455667788, 8);
    put(r, 52, 0x80000001, 4);
    put(r, 92, 77, 4);
    assert_true(cupti_field(FIELD_KERNEL_REGISTERS, r, 200, &value));
    assert_int_equal(value, 255);
    assert_true(cupti_field(FIELD_KERNEL_START, r, 200, &value));
    assert_int_equal(value, 0x1122334455667788);
    assert_true(cupti_field(FIELD_KERNEL_GRID_X, r, 200, &value));
    assert_int_equal(value, 0x80000001); /* zero-extended */
    assert_true(cupti_field(FIELD_KERNEL_CORRELATION, r, 200, &value));
    assert_int_equal(value, 77);
    put(r, 4, 10, 1);
    assert_true(cupti_field(FIELD_MEMCPY_COPY_KIND, r, 88, &value));
    assert_int_equal(value, 10);
}

static void a_field_beyond_the_record_is_not_read(void **state)
{
    uint64_t words[32] = {0};
    uint64_t value = 5;
    (void)state;
    words[24] = 9; /* localMemoryTotal_v2, at 192 */
    assert_true(cupti_field(FIELD_KERNEL_LOCAL_TOTAL_V2, words, 200, &value));
    assert_int_equal(value, 9);
    assert_false(cupti_field(FIELD_KERNEL_LOCAL_TOTAL_V2, words, 199, &value));
    assert_int_equal(value, 0);
    assert_false(cupti_field(FIELD_KERNEL_DEVICE_LAUNCHED, words, 208, &value));
    assert_true(cupti_field(FIELD_KERNEL_DEVICE_LAUNCHED, words, 209, &value));
    assert_false(cupti_field(FIELD_OVERHEAD_DATA, words, 40, &value)); /* 11.8's */
    assert_true(cupti_field(FIELD_OVERHEAD_DATA, words, 56, &value));
    assert_false(cupti_field(FIELD_MEMCPY_START, words, 0, &value));
}

static void a_walk_sees_each_record(void **state)
{
    uint64_t words[(88 + 200 + 88 + 16) / 8] = {0};
    uint8_t *buffer = (uint8_t *)words;
    struct cupti_walk walk;
    struct cupti_view view;
    (void)state;
    put(buffer, 0, CUPTI_ACTIVITY_KIND_MEMCPY, 4);
    put(buffer, 88, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 4);
    put(buffer, 288, CUPTI_ACTIVITY_KIND_MEMCPY, 4);
    put(buffer, 376, CUPTI_ACTIVITY_KIND_MEMCPY, 4); /* half of it is missing */
    cupti_walk_init(&walk, &small_sizes, next_record, buffer, sizeof words);
    const size_t expected[][2] = {{0, 88}, {88, 200}, {288, 88}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(cupti_walk_next(&walk, &view), 1);
        assert_ptr_equal(view.record, buffer + expected[i][0]);
        assert_int_equal(view.bytes, expected[i][1]);
    }
    assert_int_equal(view.kind, CUPTI_ACTIVITY_KIND_MEMCPY);
    assert_int_equal(cupti_walk_next(&walk, &view), 0);
    assert_int_equal(cupti_walk_next(&walk, &view), 0);
    cupti_walk_init(&walk, &small_sizes, next_record, buffer, 0);
    assert_int_equal(cupti_walk_next(&walk, &view), 0);
}

static void a_walk_ends_at_what_is_no_record(void **state)
{
    uint64_t words[200 / 8] = {0};
    struct cupti_walk walk;
    struct cupti_view view;
    (void)state;
    put((uint8_t *)words, 0, CUPTI_ACTIVITY_KIND_MEMCPY, 4);
    cupti_walk_init(&walk, &small_sizes, next_record, words, sizeof words);
    assert_int_equal(cupti_walk_next(&walk, &view), 1);
    assert_int_equal(cupti_walk_next(&walk, &view), GPUPROF_DAMAGED);
    assert_int_equal(walk.result, CUPTI_ERROR_INVALID_KIND);
}

/* A library that walks over a kind that its sizes do not name, and past what a record may be. */
static CUptiResult wild_next(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record)
{
    *record = (CUpti_Activity *)(void *)(*record ? buffer + valid_bytes - 8 : buffer);
    return CUPTI_SUCCESS;
}

static void a_view_stays_inside_the_buffer(void **state)
{
    uint64_t words[16] = {0};
    struct cupti_walk walk;
    struct cupti_view view;
    (void)state;
    words[0] = 1000;
    words[15] = CUPTI_ACTIVITY_KIND_MEMCPY;
    cupti_walk_init(&walk, &small_sizes, wild_next, words, sizeof words);
    assert_int_equal(cupti_walk_next(&walk, &view), 1);
    assert_int_equal(view.bytes, 0);
    assert_int_equal(cupti_walk_next(&walk, &view), 1);
    assert_int_equal(view.bytes, 8);
}

/* ---- callbacks ---- */

/* Names as libcupti 12 or 13 has them, but for what `renamed` is. */
static unsigned names_major;
static uint32_t renamed_driver_id;

static const struct {
    CUpti_CallbackDomain domain;
    uint32_t cbid;
    unsigned major; /* that has it so; 0: both */
    const char *name;
    int api;
} names[] = {
    {CUPTI_CB_DOMAIN_RUNTIME_API, 20, 0, "cudaMalloc_v3020", API_CODE_cudaMalloc},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 211, 0, "cudaLaunchKernel_v7000", API_CODE_cudaLaunchKernel},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 506, 0, "__cudaLaunchKernel_ptsz_v13000",
     API_CODE___cudaLaunchKernel_ptsz},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 252, 0, "cudaMemPrefetchAsync_v8000",
     API_CODE_cudaMemPrefetchAsync_v11},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 449, 12, "cudaMemPrefetchAsync_v2_v12020",
     API_CODE_cudaMemPrefetchAsync_v2},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 449, 13, "cudaMemPrefetchAsync_v12020",
     API_CODE_cudaMemPrefetchAsync_v13},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 310, 0, "cudaGraphInstantiate_v10000",
     API_CODE_cudaGraphInstantiate_v11},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 443, 0, "cudaGraphInstantiate_v12000",
     API_CODE_cudaGraphInstantiate_v12},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 483, 0, "cudaMemcpyBatchAsync_ptsz_v12080",
     API_CODE_cudaMemcpyBatchAsync_ptsz_v12},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 510, 0, "cudaMemcpyBatchAsync_ptsz_v13000",
     API_CODE_cudaMemcpyBatchAsync_ptsz_v13},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 1, 0, "cudaDriverGetVersion_v3020", -1}, /* not recorded */
    {CUPTI_CB_DOMAIN_RUNTIME_API, 2, 0, "cuLaunchKernel_v4000", -1}, /* of the other library */
    {CUPTI_CB_DOMAIN_DRIVER_API, 1, 0, "cuInit", -1},
    {CUPTI_CB_DOMAIN_DRIVER_API, 307, 0, "cuLaunchKernel", API_CODE_cuLaunchKernel},
    {CUPTI_CB_DOMAIN_DRIVER_API, 243, 0, "cuMemAlloc_v2", API_CODE_cuMemAlloc_v2},
    {CUPTI_CB_DOMAIN_DRIVER_API, 514, 0, "cuGraphLaunch", API_CODE_cuGraphLaunch},
    {CUPTI_CB_DOMAIN_DRIVER_API, 515, 0, "cuGraphLaunch_ptsz", API_CODE_cuGraphLaunch_ptsz},
    {CUPTI_CB_DOMAIN_DRIVER_API, 783, 0, "cuStreamBeginCaptureToGraph", -1}, /* renamed below */
};
#define NAMES (sizeof names / sizeof names[0])

static CUptiResult get_name(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
    *name = domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid == renamed_driver_id ? "cuElse" : NULL;
    for (size_t i = 0; i < NAMES && !*name; i++)
        if (names[i].domain == domain && names[i].cbid == cbid &&
            (!names[i].major || names[i].major == names_major))
            *name = names[i].name;
    return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

static void callbacks_are_mapped_by_name(void **state)
{
    static struct cupti_callback_map map;
    (void)state;
    renamed_driver_id = 783;
    for (names_major = 12; names_major <= 13; names_major++) {
        assert_int_equal(cupti_callback_map_fill(&map, get_name), 13);
        for (size_t i = 0; i < NAMES; i++)
            if (!names[i].major || names[i].major == names_major)
                assert_int_equal(cupti_callback_code(&map, names[i].domain, names[i].cbid),
                                 names[i].api);
    }
#define API_OF(domain, cbid) cupti_callback_code(&map, CUPTI_CB_DOMAIN_##domain, cbid)
    assert_int_equal(API_OF(DRIVER_API, 0), -1);
    assert_int_equal(API_OF(DRIVER_API, CUPTI_CBID_MAX), -1);
    assert_int_equal(API_OF(DRIVER_API, UINT32_MAX), -1);
    assert_int_equal(API_OF(RESOURCE, 307), -1);
}

/* ---- parameters ---- */

static void words_of_a_kernel_launch(void **state)
{
    struct {
        CUfunction f;
        unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
        CUstream stream;
        void **kernel_params;
        void **extra;
    } params = {(CUfunction)0x1000, 1, 2, 3, 4, 5, 6, 7, (CUstream)0x2000, NULL, NULL};
    uint64_t words[API_ARGS_MAX];
    (void)state;
    assert_int_equal(cupti_params_words(API_CODE_cuLaunchKernel, &params, false, words), 5);
    assert_int_equal(words[0], 0x1000);
    assert_int_equal(words[1], 1 | 2ull << 32 | 3ull << 48);
    assert_int_equal(words[2], 4 | 5ull << 32 | 6ull << 48);
    assert_int_equal(words[3], 7);
    assert_int_equal(words[4], 0x2000);
}

/* Structures by value lie where the C ABI puts members, not one a word. */
static void words_of_a_runtime_launch(void **state)
{
    struct {
        const void *func;
        dim3 grid, block;
        void **args;
        size_t shared_bytes;
        cudaStream_t stream;
    } params = {(void *)0x10, {9, 8, 7}, {6, 5, 4}, NULL, 3, (cudaStream_t)2};
    uint64_t words[API_ARGS_MAX];
    (void)state;
    assert_int_equal(cupti_params_words(API_CODE_cudaLaunchKernel, &params, true, words), 7);
    assert_int_equal(words[0], 0x10);
    assert_int_equal(words[1], 9 | 8ull << 32);
    assert_int_equal(words[2], 7);
    assert_int_equal(words[3], 6 | 5ull << 32);
    assert_int_equal(words[4], 4);
    assert_int_equal(words[5], 3);
    assert_int_equal(words[6], 2);
}

static void a_result_is_read_only_after_success(void **state)
{
    void *memory = (void *)0x7000;
    struct {
        void **pointer;
        size_t size;
    } params = {&memory, 4096};
    uint64_t words[API_ARGS_MAX];
    (void)state;
    assert_int_equal(cupti_params_words(API_CODE_cudaMalloc, &params, false, words), 3);
    assert_int_equal(words[0], 0);
    assert_int_equal(words[1], 4096);
    assert_int_equal(words[2], 0); /* the thread's device, whatever the call's structure has */
    assert_int_equal(cupti_params_words(API_CODE_cudaMalloc, &params, true, words), 3);
    assert_int_equal(words[0], 0x7000);
    params.pointer = NULL; /* legal: the call fails, or does not need it */
    assert_int_equal(cupti_params_words(API_CODE_cudaMalloc, &params, true, words), 3);
    assert_int_equal(words[0], 0);
}

/* Each row gives as many words as its table entry says, whatever it is called with. */
static void every_row_gives_its_words(void **state)
{
    static const uint64_t nothing[64];
    (void)state;
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++)
        for (int succeeded = 0; api_libraries[api_functions[i].domain].layer == API_OWNER &&
                                succeeded < 2; /* of the others CUPTI does not tell */
             succeeded++) {
            uint64_t words[API_ARGS_MAX + 1];
            memset(words, 0xab, sizeof words);
            unsigned count = cupti_params_words((enum api_code)i, nothing, succeeded, words);
            if (count != api_functions[i].arg_count)
                fail_msg("%s: %u words", api_functions[i].symbol, count);
            assert_int_equal(words[count], 0xabababababababab);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_measured),
        cmocka_unit_test(fields_are_read_where_they_are),
        cmocka_unit_test(a_field_beyond_the_record_is_not_read),
        cmocka_unit_test(a_walk_sees_each_record),
        cmocka_unit_test(a_walk_ends_at_what_is_no_record),
        cmocka_unit_test(a_view_stays_inside_the_buffer),
        cmocka_unit_test(callbacks_are_mapped_by_name),
        cmocka_unit_test(words_of_a_kernel_launch),
        cmocka_unit_test(words_of_a_runtime_launch),
        cmocka_unit_test(a_result_is_read_only_after_success),
        cmocka_unit_test(every_row_gives_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
