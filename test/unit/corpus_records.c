/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are odd: extreme numbers and times, wild references, texts, what makes no sense. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "corpus.h"

static void save_extremes(void)
{
    struct stream_builder b;
    static const uint64_t times[] = {0, 1, 1ull << 61, 1ull << 62, 1ull << 63, UINT64_MAX};
    corpus_begin(&b);
    for (unsigned i = 0; i < 6; i++) {
        for (unsigned k = 0; k < 6; k++) {
            uint64_t args[2] = {times[i], times[k]};
            builder_call(&b, 1 + i, 0, times[i], times[k], (int32_t)(0x80000000u + k), 2, args);
        }
    }
    corpus_save(&b, "extreme-times.gpuprof");
    builder_release(&b);

    builder_init(&b, 0);
    b.header.scale.mult = UINT64_MAX;
    b.header.monotonic_zero_ns = UINT64_MAX;
    b.header.realtime_zero_ns = UINT64_MAX;
    b.header.pid = 0;
    builder_text(&b, RECORD_API, 0, "cudaMalloc|runtime|alloc|address:ptr,bytes:bytes");
    b.header.scale.mult = 1ull << CLOCK_SCALE_SHIFT;
    builder_anchor(&b, UINT64_MAX, 0);
    builder_anchor(&b, 5, UINT64_MAX);
    builder_thread(&b, 1, 0, 0, "");
    corpus_add_calls(&b);
    corpus_save(&b, "extreme-clock.gpuprof");
    builder_release(&b);

    builder_init(&b, 0);
    b.header.monotonic_shift_ns = INT64_MIN;
    memset(b.header.counters, 0xff, sizeof b.header.counters);
    builder_api(&b);
    builder_anchor(&b, 2000000, 1ull << 63);
    corpus_add_calls(&b);
    corpus_save(&b, "extreme-end.gpuprof");
    builder_release(&b);

    /* Slices of a row that overlap or touch, as calls left by longjmp do. */
    corpus_begin(&b);
    static const uint64_t slices[][2] = {{100, 100}, {150, 100}, {200, 10}, {210, 10},
                                         {220, 0},   {220, 0},   {221, 5},  {226, 5}};
    for (unsigned i = 0; i < 8; i++) {
        uint64_t args[2] = {i, 1};
        struct record r = {.type = RECORD_CALL,
                           .flags = i < 2 ? RECORD_STALE : 0,
                           .begin = slices[i][0],
                           .duration = slices[i][1],
                           .arg_count = 2,
                           .args = {args[0], args[1]}};
        builder_add(&b, 1, &r);
    }
    corpus_save(&b, "overlap.gpuprof");
    builder_release(&b);
}

static void save_texts(void)
{
    struct stream_builder b;
    char name[1024] = "_Z1f4pairIiiE";
    uint64_t args[16] = {0x1000, 1, 2, 3, 0x1000, 0x1000, 0x1000};
    corpus_begin(&b);
    builder_text(&b, RECORD_API, 2, "odd\"\\\x01\xff|runtime|launch|kernel:a\"\\\x02\xc3,bytes:b");
    builder_text(&b, RECORD_API, 3,
                 "k16|driver|launch|kernel:a,kernel:b,kernel:c,kernel:d,kernel:e,kernel:f,"
                 "kernel:g,kernel:h,kernel:i,kernel:j,kernel:k,kernel:l,kernel:m,kernel:n");
    builder_text(&b, RECORD_META, 0, "cmdline=a\"b\\c\x01\xed\xa0\x80 \xf0\x9f\x98\x80");
    builder_text(&b, RECORD_META, 0, "library=one");
    builder_text(&b, RECORD_META, 0, "library=two");
    builder_text(&b, RECORD_META, 0, "=empty key");
    builder_text(&b, RECORD_META, 0, "no equals sign");
    builder_text(&b, RECORD_NOTE, 0, "a note \x02\xff");
    builder_thread(&b, 1, 0, 77, "\xffname\"\n");
    builder_name(&b, 1, 0, 0x1000, "kernel\"\\\n\xc3(");
    for (unsigned i = 1; i < 4; i++)
        builder_call(&b, 1, i, 1000 * i, 5, 0, i == 3 ? 14 : 2, args);
    corpus_save(&b, "texts.gpuprof");
    builder_release(&b);

    for (unsigned i = 0; i < 60; i++) {
        char more[32];
        char digits[3] = {i < 36 ? 0 : '1', 0, 0};
        digits[i < 36 ? 0 : 1] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36];
        snprintf(more, sizeof more, "S_IS%s_S%s_E", digits, digits);
        strcat(name, more);
    }
    corpus_begin(&b);
    builder_name(&b, 1, 0, 0x1000, name);
    builder_call(&b, 1, 1, 1000, 5, 0, 2, args);
    corpus_save(&b, "demangle-bomb.gpuprof");
    builder_release(&b);

    corpus_begin(&b);
    builder_text(&b, RECORD_API, 5, "no bars");
    builder_text(&b, RECORD_API, 65535, "far|runtime|alloc|");
    builder_text(&b, RECORD_API, 6, "x|new domain|new class|new kind:a,bytes:b");
    for (unsigned i = 4; i < 9; i++) {
        struct record r = {.type = RECORD_CALLBACK,
                           .code = (uint16_t)(i == 8 ? 65535 : i),
                           .arg_count = i != 5,
                           .args = {i == 6 ? UINT32_MAX : 1ull << 63}};
        builder_add(&b, 0, &r);
    }
    for (unsigned i = 4; i < 8; i++)
        builder_call(&b, 1, i, 1000 * i, 5, 0, 3, args);
    corpus_save(&b, "api-unknown.gpuprof");
    builder_release(&b);
}

static void save_records(void)
{
    struct stream_builder b;
    corpus_begin(&b);
    corpus_add_calls(&b);
    for (unsigned type = 10; type < 256; type += 35) {
        struct record r = {.type = (uint8_t)type,
                           .flags = 0xe0,
                           .code = 999,
                           .begin = 1000 + type,
                           .arg_count = 16,
                           .correlation = 7,
                           .bytes = (const uint8_t *)"later",
                           .byte_count = 5};
        builder_add(&b, 1, &r);
    }
    /* Known types with arguments and texts missing. */
    for (unsigned type = 2; type < 10; type++) {
        struct record r = {.type = (uint8_t)type, .code = 60000, .begin = 5};
        builder_add(&b, 0, &r);
        builder_add(&b, 2, &r);
    }
    corpus_save(&b, "unknown-records.gpuprof");
    builder_release(&b);
}

/* Work of a device with every argument at its limits, in records that are short of arguments. */
static void add_extreme_work(struct stream_builder *b)
{
    static const uint64_t values[] = {0, 1, 1ull << 31, UINT32_MAX, 1ull << 63, UINT64_MAX};
    for (unsigned v = 0; v < 6; v++) {
        for (unsigned type = RECORD_KERNEL; type <= RECORD_LINK; type++) {
            uint64_t args[16];
            for (unsigned i = 0; i < 16; i++)
                args[i] = values[(v + (i > 6)) % 6];
            for (unsigned k = 0; k < 3; k++)
                builder_record(b, 2, type, 1000 * v + 10 * k, v == 5 ? UINT64_MAX : 15 * k,
                               (uint32_t)values[(v + k) % 6], 16 - 7 * k, args,
                               k ? "name\x01\"\\\n\xff" : NULL);
        }
        builder_record(b, 2, RECORD_KERNEL, UINT64_MAX - v, values[v], 3, 0, NULL, NULL);
    }
}

/* Ranges that do not match, too deep a nest, and texts that are none. */
static void add_odd_ranges(struct stream_builder *b)
{
    uint64_t args[16] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 3, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (unsigned type = RECORD_POP; type <= RECORD_PAUSE; type++)
        for (unsigned count = 0; count <= 16; count += 4)
            builder_record(b, 1, type, 400 + count, 0, 0, count, args, count ? "\x01\xff\"" : NULL);
    for (unsigned i = 0; i < 600; i++)
        builder_record(b, 1, RECORD_PUSH, 500 + i / 7, 0, 0, 0, NULL, i % 3 ? "deep" : NULL);
    for (unsigned i = 0; i < 300; i++)
        builder_record(b, 1, RECORD_POP, 5000 + i / 9, 0, 0, 0, NULL, NULL);
    for (unsigned i = 0; i < 20; i++) { /* domains that do not nest in each other */
        args[0] = i % 2;
        builder_record(b, 3, RECORD_PUSH, 600 + 10 * i, 0, 0, 1, args, "first in, first out");
        builder_record(b, 3, RECORD_POP, 605 + 10 * i + 10 * (i % 2), 0, 0, 1, args, NULL);
    }
}

/* What copies copied, of none, of several, and of the same again; and hashes that are none. */
static void save_contents(void)
{
    struct stream_builder b;
    corpus_begin(&b);
    builder_thread(&b, 1, 0, 5, "main");
    builder_thread(&b, 2, 0, 6, "gpuprof-gpu");
    for (uint32_t i = 1; i <= 60; i++) {
        uint32_t call = i % 7 ? i : UINT32_MAX - i / 2;
        const uint64_t content[] = {i % 5 ? i % 3 * UINT64_MAX : i, i % 2 ? 1 << 18 : UINT64_MAX};
        const uint64_t copy[] = {i % 2 ? 0 : UINT32_MAX, 1, 7, 1, 2, 3, i % 2 ? 1 << 18 : 0, i % 2};
        builder_correlated(&b, 1, 0, 10000 * i, 50, call);
        for (unsigned k = 0; k <= i % 4; k++)
            builder_record(&b, 1, RECORD_CONTENT, 10000 * i, 0, call, k, content, NULL);
        for (unsigned k = 0; k < i % 3; k++)
            builder_record(&b, 2, RECORD_COPY, 10000 * i + 100 - 60 * k, 5000, call, 8, copy, NULL);
    }
    corpus_save(&b, "contents-wild.gpuprof");
    builder_release(&b);
}

static void save_gpu(void)
{
    struct stream_builder b;
    corpus_begin(&b);
    builder_thread(&b, 1, 0, 5, "main");
    builder_thread(&b, 2, 0, 6, "gpuprof-gpu");
    for (uint32_t i = 0; i < 12; i++)
        builder_correlated(&b, 1, 0, 100 * i, 50, i < 6 ? i : UINT32_MAX - i);
    add_extreme_work(&b);
    add_odd_ranges(&b);
    corpus_save(&b, "gpu-extreme.gpuprof");
    builder_release(&b);

    /* Slices on one stream that overlap, touch, have no length, or begin together; many streams. */
    corpus_begin(&b);
    builder_thread(&b, 2, 0, 6, "gpuprof-gpu");
    for (uint32_t i = 0; i < 400; i++) {
        uint64_t args[16] = {i % 3, 1, i < 300 ? 7 : i, 1, 5, 5};
        builder_record(&b, 2, RECORD_KERNEL + i % 3, 100 + 7 * (i % 90), i % 5 ? 7 * (i % 4) : 300,
                       0, 16, args, NULL);
    }
    corpus_add_calls(&b);
    corpus_save(&b, "gpu-overlap.gpuprof");
    builder_release(&b);
}

/* Stacks of frames that lead nowhere, as deep as a record may be, and calls that name none. */
static void save_stacks(void)
{
    static const uint64_t wild[] = {0,          UINT64_MAX,       1ull << 60,
                                    2ull << 60, (2ull << 60) + 1, (2ull << 60) + UINT32_MAX,
                                    3ull << 60, (1ull << 60) - 1, 15ull << 60,
                                    1ull << 40};
    uint8_t bytes[RECORD_BYTES_MAX];
    struct stream_builder b;
    corpus_begin(&b);
    builder_meta(&b, "stacks=made up");
    builder_meta(&b, "python=3.11");
    for (uint64_t i = 0; i < 12; i++) {
        uint64_t count = i == 11 ? RECORD_BYTES_MAX / 8 : i + 1;
        for (uint64_t k = 0; k < count; k++)
            store_u64(bytes + 8 * k, wild[(i + k) % (sizeof wild / sizeof wild[0])]);
        struct record r = {.type = RECORD_STACK,
                           .begin = 900 + 7 * i,
                           .arg_count = i % 3 ? 2 : 1,
                           .args = {i ? i : UINT32_MAX, i * 0x5555555555555555u},
                           .bytes = bytes,
                           .byte_count = (uint32_t)(8 * count)};
        builder_add(&b, i % 2, &r);
    }
    struct record place = {.type = RECORD_PYTHON,
                           .begin = 950,
                           .arg_count = 2,
                           .args = {1, UINT64_MAX},
                           .bytes = (const uint8_t *)"",
                           .byte_count = 1};
    builder_add(&b, 1, &place);
    for (uint64_t i = 0; i < 14; i++) {
        struct record r = {.type = RECORD_CALL,
                           .begin = 1000 + 100 * i,
                           .duration = 50,
                           .stack_id = i < 13 ? (uint32_t)i : UINT32_MAX,
                           .arg_count = 2,
                           .args = {i, 64}};
        builder_add(&b, 1, &r);
        uint64_t object = 0x7000 + i;
        r.type = RECORD_OP_BEGIN;
        r.begin += 60;
        r.duration = r.code = 0;
        r.arg_count = 1;
        r.args[0] = object;
        builder_add(&b, 1, &r);
        if (i % 4)
            builder_record(&b, 1, RECORD_OP_END, r.begin + 20, 0, 0, 1, &object, NULL);
    }
    corpus_save(&b, "stacks-wild.gpuprof");
    builder_release(&b);
}

/* Inputs that end too early, lead nowhere or have no end, and operators that name none. */
static void save_operators(void)
{
    static const struct {
        uint8_t bytes[16];
        uint32_t count;
    } wild[] = {{{1, 6, 2, 4, 16, 3, 14, 5, 1, 0, 2, 7, 8, 9}, 14}, /* good */
                {{1, 6, 65, 1, 1}, 5},
                {{1, 6, 3, 0x80}, 4},
                {{3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 127}, 11},
                {{4, 1, 2, 3}, 4},
                {{6, 255, 255, 255, 255, 15, 0}, 7},
                {{6, 2, 6, 1, 0, 0}, 6},
                {{6, 3, 0}, 3},
                {{200}, 1},
                {{6, 9, 3, 2, 10, 200}, 6},
                {{1, 255, 0, 6, 0, 10}, 6}};
    static const uint64_t begins[][5] = {{0x7000, 1, 1, 5, 1},
                                         {0x7000, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
                                         {0, 0, 2, 0, 0}};
    struct stream_builder b;
    corpus_begin(&b);
    builder_meta(&b, "pytorch=shapes");
    for (uint32_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        struct record r = {.type = RECORD_OP_INPUTS,
                           .begin = 900 + i,
                           .arg_count = 1,
                           .args = {i + 1},
                           .bytes = wild[i].bytes,
                           .byte_count = wild[i].count};
        builder_add(&b, i % 2, &r);
    }
    builder_record(&b, 1, RECORD_OP_NAME, 950, 0, 0, 1, begins[0] + 1, "aten::\xff\"\n");
    builder_record(&b, 1, RECORD_OP_END, 960, 0, 0, 1, begins[0], NULL);
    for (uint32_t i = 0; i < 9; i++) {
        struct record r = {.type = RECORD_OP_BEGIN,
                           .flags = i & 1 ? RECORD_TRACED : 0,
                           .code = (uint16_t)(i % 3 == 1 ? 65535 : i),
                           .begin = 1000 + 10 * i,
                           .arg_count = (uint8_t)(i % 6)};
        memcpy(r.args, begins[i % 3], sizeof begins[0]);
        builder_add(&b, 1, &r);
    }
    builder_record(&b, 2, RECORD_OP_END, 1100, 0, 0, 1, begins[0], NULL);
    builder_record(&b, 2, RECORD_OP_END, 1101, 0, 0, 0, NULL, NULL);
    builder_record(&b, 2, RECORD_OP_THREAD, 1102, 0, 0, 0, NULL, NULL);
    corpus_add_calls(&b);
    corpus_save(&b, "operators-wild.gpuprof");
    builder_release(&b);
}

/* Calls of libraries whose ends belong to none, sizes beyond all numbers, plans that are none or
 * another text's, communicators of more ranks than there are. */
static void save_libraries(void)
{
    static const char *const plans[] = {
        "convolution_forward x=8,64,56,56:f16 w=64,64,3,3:f16 y=8,64,56,56:f16 stride=1,1",
        "convolution_forward x=9223372036854775807,9,9:f16 w=-1,9,9:f16 "
        "y=9,99999999999999999999,1:",
        "matmul a=4,4 b= c=:f16:virtual:virtual:=; =; ;; ; sdpa_fwd q=0,0,0,0:? k v=1 o=,,,:f16",
        "convolution_forward x=1:f16 w=1:f16 y=1:f16; ...",
        "\xff\xfe\x01 \"=\n<b>:f16",
        ""};
    static const uint64_t wild[] = {1, 0, UINT64_MAX, 4096, 1ull << 63, 2, 14, 77};
    struct stream_builder b;
    corpus_begin(&b);
    builder_text(&b, RECORD_API, 2,
                 "cublasGemmEx|cublas|library|handle:handle,cublasOperation_t:trans_a,"
                 "cublasOperation_t:trans_b,count:m,count:n,count:k,cudaDataType:a_type,"
                 "cudaDataType:b_type,cudaDataType:c_type,cublasComputeType_t:compute");
    builder_text(&b, RECORD_API, 3, "cudnnBackendExecute|cudnn|library|count:plan,handle:handle");
    builder_text(&b, RECORD_API, 4, "ofNobody|none|library|count:plan,wild:count");
    for (uint64_t i = 0; i < 9; i++) {
        const uint64_t number = i % 7;
        const uint64_t comm[] = {0x10, 0x77, i, i == 8 ? UINT64_MAX : 4, i};
        builder_record(&b, 3, RECORD_LIBRARY_PLAN, 900 + i, 0, 0, i == 5 ? 0 : 1, &number,
                       plans[i % 6]);
        builder_record(&b, 3, RECORD_COMMUNICATOR, 920 + i, 0, 0, (unsigned)i % 6, comm, NULL);
    }
    for (uint32_t i = 0; i < 90; i++) {
        struct record r = {.type = i % 5 < 3 ? RECORD_LIBRARY_BEGIN : RECORD_LIBRARY_END,
                           .code = (uint16_t)(i % 7 ? 2 + i % 3 : 65535),
                           .result = i % 4 ? 0 : -1,
                           .begin = 1000 + 10 * i,
                           .arg_count = (uint8_t)(i % 11)};
        for (unsigned k = 0; k < 11; k++)
            r.args[k] = r.code == 3 && !k ? i % 8 : wild[(i + k) % 8];
        builder_add(&b, 3 + i % 2, &r);
    }
    corpus_add_calls(&b);
    corpus_save(&b, "libraries-wild.gpuprof");
    builder_release(&b);
}

/* Blocks that were never got, are got twice, end beyond all addresses, or are of no device. */
static void save_tensors(void)
{
    static const uint64_t wild[][8] = {
        {1, 0x7000, 512, 512, 1 << 20, 0, 1, 1 << 20},
        {1, 0x7000, UINT64_MAX, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX},
        {2, 0x9000, 512, 0, 0, 1, 1, 0},
        {2, 0x7000, 1, 0, 0, 0, 1, 0},
        {UINT64_MAX, UINT64_MAX, 0, 0, 0, 0, 0, 0}};
    struct stream_builder b;
    corpus_begin(&b);
    builder_meta(&b, "memory_stacks=99999999999999999999");
    for (uint32_t i = 0; i < 30; i++) {
        struct record r = {.type = i % 7 == 6 ? RECORD_TENSOR_OOM : RECORD_TENSOR,
                           .begin = 900 + 10 * i,
                           .stack_id = i % 3 ? 0 : i,
                           .arg_count = (uint8_t)(i < 15 ? 8 : i % 8)};
        memcpy(r.args, wild[i % 5], sizeof wild[0]);
        builder_add(&b, 1 + i % 2, &r);
    }
    corpus_add_calls(&b);
    corpus_save(&b, "tensors-wild.gpuprof");
    builder_release(&b);
}

/* What NVML is said to have told: of devices that there are not, in numbers beyond all. */
static void save_devices(void)
{
    struct stream_builder b;
    corpus_begin(&b);
    builder_thread(&b, 2, 0, 6, "gpuprof-device");
    for (uint32_t i = 0; i < 140; i++) {
        uint64_t args[RECORD_ARGS_MAX] = {i % 5};
        for (unsigned k = 1; k < RECORD_ARGS_MAX; k++)
            args[k] = (i + k) % 4 == 0 ? UINT64_MAX : (i + k) % 4 == 1 ? 0 : 1000 * i / k;
        builder_record(&b, 2, RECORD_DEVICE_SOURCE + i % 7, 900 + 10 * (i % 50),
                       i % 9 ? i : UINT32_MAX, 0, i % (RECORD_ARGS_MAX + 1), args,
                       i % 7 < 2 ? "wild\xff \"<device>" : NULL);
    }
    corpus_add_calls(&b);
    corpus_save(&b, "devices-wild.gpuprof");
    builder_release(&b);
}

/* Windows that end before they begin, with numbers beyond all, in states that there are none of,
 * around steps, pauses, ranges and work without a call. */
static void save_windows(void)
{
    static const uint64_t wild[][4] = {{0, 0, 0, 0}, {UINT64_MAX, 1, UINT64_MAX, UINT64_MAX},
                                       {1, 1, 3, 0}, {1, 2, 1, 9},
                                       {2, 0, 4, 0}, {3, UINT64_MAX, 0, 0},
                                       {1, 1, 1, 1}};
    struct stream_builder b;
    corpus_begin(&b);
    builder_meta(&b, "schedule_steps=\xff 99999999999999999999 steps seen");
    for (uint32_t i = 0; i < 60; i++) {
        const uint64_t number = i % 9, work[] = {i % 3, 1, 7, 0, i, 0, 0};
        builder_record(&b, 1 + i % 2, RECORD_WINDOW, 900 + 10 * (i % 40), 0, 0, i % 5, wild[i % 7],
                       NULL);
        builder_record(&b, 1, RECORD_STEP, 902 + 10 * i, 0, 0, 1, &number, NULL);
        builder_record(&b, 2, RECORD_PAUSE, 903 + 10 * i, 0, 0, 1, &(uint64_t){i % 3 == 1}, NULL);
        builder_record(&b, 0, RECORD_SET, 904 + 10 * i, 5, i % 4, 7, work, NULL);
        builder_record(&b, 2, i % 2 ? RECORD_POP : RECORD_PUSH, 905 + 10 * i, 0, 0, 1,
                       &(uint64_t){0}, "range");
    }
    corpus_add_calls(&b);
    corpus_save(&b, "windows-wild.gpuprof");
    builder_release(&b);
}

/* Dumps of a flight recorder for reasons and with numbers that there are none of, in blocks whose
 * flags say that gaps are meant; and windows around them that do not fit. */
static void save_dumps(void)
{
    static const uint64_t wild[][7] = {
        {1, 1, 0, 0, 0, 0, 0},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX},
        {0, 8, 5, 1, 0, 9999, 1},
        {2, 6, UINT64_MAX, 1, 1, 0, 0},
        {3, 9, 0, UINT64_MAX, UINT64_MAX, 1, 0}};
    struct stream_builder b;
    corpus_begin(&b);
    for (uint32_t i = 0; i < 40; i++) {
        builder_record(&b, i % 3, RECORD_DUMP, 900 + 10 * (i % 30), i % 4 ? 0 : UINT64_MAX / 4, 0,
                       i % 8, wild[i % 5], i % 2 ? "cudaMemcpy" : "\xff\n");
        builder_record(&b, i % 2, RECORD_WINDOW, 905 + 10 * i, 0, 0, 2, wild[i % 5], NULL);
    }
    corpus_add_calls(&b);
    corpus_save(&b, "dumps-wild.gpuprof");
    builder_release(&b);
}

/* Stops and starts of steps beyond all, in states that there are none of, by nobody. */
static void save_pauses(void)
{
    static const uint64_t wild[][3] = {
        {1, 1, 5}, {2, 1, 6}, {0, 1, UINT64_MAX}, {3, 2, 0}, {UINT64_MAX, UINT64_MAX, 1},
        {0, 0, 0}, {2, 0, 9}};
    struct stream_builder b;
    corpus_begin(&b);
    builder_meta(&b, "windows=99999999999999999999");
    for (uint32_t i = 0; i < 50; i++) {
        const uint64_t number = i % 11, work[] = {i % 3, 1, 7, 0, i, 0, 0};
        builder_record(&b, i % 3, RECORD_PAUSE, 900 + 10 * (i % 40), 0, 0, i % 4, wild[i % 7],
                       NULL);
        builder_record(&b, 1, RECORD_STEP, 902 + 10 * i, 0, 0, 1, &number, NULL);
        builder_record(&b, 0, RECORD_SET, 904 + 10 * i, 5, i % 4, 7, work, NULL);
    }
    corpus_add_calls(&b);
    corpus_save(&b, "pauses-wild.gpuprof");
    builder_release(&b);
}

/* What threads are said to have done in silences that began before time, lasted for ever or not at
 * all, or took more than the whole; launches of whole graphs behind them whose work is not there;
 * and notes that are hostile, empty, the same again, and more than are told. */
static void save_silences(void)
{
    static const uint64_t wild[][4] = {{1900000, 3000000, 90000, 2},
                                       {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
                                       {UINT64_MAX, UINT64_MAX, 0, 1},
                                       {2000000, 1ull << 63, 1, UINT64_MAX},
                                       {0, 5, 1, 1},
                                       {9, 8, 2, 1},
                                       {7, 9, 0, 0}};
    struct stream_builder b;
    corpus_begin(&b);
    builder_add(
        &b, 0,
        &(struct record){
            .type = RECORD_COUNTER, .code = COUNTER_GPU_UNFLUSHED, .arg_count = 1, .args = {1}});
    builder_text(&b, RECORD_API, 2, "cudaGraphLaunch|runtime|launch|address:graph,stream:stream");
    builder_meta(&b, "gpu_graphs=\xff\"");
    builder_meta(&b, "gpu_graphs=whole");
    for (uint32_t i = 0; i < 12; i++)
        builder_meta(&b, i % 3 ? i % 2 ? "said=" : "said=the same" : "said=\x1b[2J<b>\xff\"\n");
    builder_meta(&b, "said");
    builder_thread(&b, 2, 0, 6, "gpuprof-gpu");
    for (uint32_t i = 0; i < 60; i++) {
        const uint64_t graph[] = {i % 4, 0}, kernel[] = {i % 3, 1, 7, 1, 2, 3};
        const uint64_t begin = 2000000 * (i % 50);
        struct record call = {.type = RECORD_CALL,
                              .code = 1 + i % 2,
                              .begin = begin,
                              .duration = 5,
                              .correlation = i,
                              .arg_count = 2,
                              .args = {graph[0]}};
        builder_record(&b, 1 + 2 * (i % 3 == 0), RECORD_SILENCE, begin, 0, 0, i % 9 ? 4 : i % 4,
                       wild[i % 7], NULL);
        builder_add(&b, 1 + 2 * (i % 4 == 0), &call);
        if (i % 5)
            builder_record(&b, 2, i % 2 ? RECORD_KERNEL : RECORD_GRAPH, begin + 9, i % 9, i, 6,
                           kernel, NULL);
    }
    corpus_add_calls(&b);
    corpus_save(&b, "silences-wild.gpuprof");
    builder_release(&b);
}

void corpus_save_records(void)
{
    save_extremes();
    save_texts();
    save_records();
    save_gpu();
    save_contents();
    save_stacks();
    save_operators();
    save_tensors();
    save_devices();
    save_windows();
    save_dumps();
    save_pauses();
    save_silences();
    corpus_save_host();
    save_libraries();
}
