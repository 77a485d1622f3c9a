/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_gpu DIR SCENARIO [NUMBERS]: recordings with GPU work, as the library writes them.
 *
 *   train RANKS STEPS  a training loop: every kind of record, overlapping and touching slices
 *   loss RANKS STEPS   the same with a launch without a kernel, one without an id, and a kernel
 *                      without a launch
 *   pools 1            memory in pools and outside of them
 *   shared 1           two threads on one stream
 *   late RANKS STEPS   ranks that compute and reduce in each step: rank 1 comes 20 ms late to every
 *                      third reduction, from its range "evaluate"
 *   bench CALLS RANKS  launches of one kernel each, in each of 1 or more ranks, for measuring
 *   alone CALLS        the same, but no kernel is recorded
 *
 * Times and numbers are those that test/cases/test_gpu_trace.py computes, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "stream_builder.h"

#define MAIN    1
#define DEVICE  2 /* the thread that stands for the device */
#define WORKER  3
#define STEP_NS 100000u
#define LATE_NS 20000000u
#define DIM(x)  ((x) | 1ull << 32 | 1ull << 48)
#define RECORD(...)                                                                                \
    (const uint64_t[])                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define COUNT(...) (sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))
#define ADD(b, thread, type, begin, duration, id, text, ...)                                       \
    builder_record(b, thread, type, begin, duration, id, COUNT(__VA_ARGS__), RECORD(__VA_ARGS__),  \
                   text)

static void describe(struct stream_builder *b, uint64_t device)
{
    char text[64];
    /* As the writer says it: at the begin of time, perhaps in a block of its own. */
    builder_flush(b);
    ADD(b, 0, RECORD_DEVICE, 0, 0, 0, "Made GPU", device, 9, 0, 132, 2048, 32, 65536, 233472,
        232448, 85899345920u, 3352320000u, 1980000, 0x0123456789abcdefu,
        0xfedcba9876543210u + device, 52428800, 32);
    builder_flush(b);
    ADD(b, DEVICE, RECORD_CONTEXT, 101, 0, 0, NULL, 1, device, 7);
    ADD(b, DEVICE, RECORD_STREAM, 102, 0, 0, NULL, 13, 1, 0, 1);
    ADD(b, MAIN, RECORD_LABEL, 200, 0, 0, "lib", 1, 5, 0);
    ADD(b, MAIN, RECORD_LABEL, 201, 0, 0, "backward", 2, 77, 5);
    ADD(b, MAIN, RECORD_LABEL, 202, 0, 0, "passes", 3, 3, 0);
    snprintf(text, sizeof text, "trainer %u", b->header.pid);
    ADD(b, MAIN, RECORD_LABEL, 203, 0, 0, text, 4, b->header.pid, 0);
}

/* The names stand behind the kernels that have them. */
static void name_kernels(struct stream_builder *b, uint64_t begin)
{
    static const char *const names[] = {"_ZN2at6native13kernel_numberILi1EfEEvPT0_S2_i",
                                        "graph_kernel", "ncclKernel_AllReduce"};
    for (uint64_t i = 0; i < 3; i++)
        ADD(b, DEVICE, RECORD_KERNEL_NAME, begin + i, 0, 0, names[i], i + 1);
}

static void calls_of_step(struct stream_builder *b, uint64_t t, uint32_t id, uint64_t k)
{
    ADD(b, MAIN, RECORD_STEP, t, 0, 0, NULL, k);
    ADD(b, MAIN, RECORD_PUSH, t + 10, 0, 0, "step", 0, 0, 0, 1, k, 0);
    ADD(b, MAIN, RECORD_PUSH, t + 20, 0, 0, "forward", 0, 3, 0xff00ff00u, 0, 0, 0);
    builder_correlated(b, MAIN, API_CODE_cudaMemcpyAsync, t + 1000, 2000, id + 1);
    for (uint32_t i = 0; i < 3; i++)
        builder_correlated(b, MAIN, API_CODE_cudaLaunchKernel, t + 4000 + 1000 * i, 500,
                           id + 2 + i);
    ADD(b, MAIN, RECORD_POP, t + 8000, 0, 0, NULL, 0);
    ADD(b, MAIN, RECORD_PUSH, t + 8100, 0, 0, NULL, 5, 0, 0, 0, 0, 77);
    builder_correlated(b, MAIN, API_CODE_cudaGraphLaunch, t + 9000, 1000, id + 10);
    builder_correlated(b, MAIN, API_CODE_cudaMemsetAsync, t + 10500, 300, id + 11);
    builder_correlated(b, MAIN, API_CODE_cuLaunchKernel, t + 11000, 400, id + 12);
    ADD(b, MAIN, RECORD_POP, t + 11900, 0, 0, NULL, 5);
    builder_correlated(b, MAIN, API_CODE_cudaMemcpyPeerAsync, t + 12000, 300, id + 13);
    builder_correlated(b, MAIN, API_CODE_cudaStreamSynchronize, t + 13000, 45000, id + 14);
    builder_correlated(b, MAIN, API_CODE_cudaMalloc, t + 59000, 500, id + 15);
    struct record captured = {.type = RECORD_CALL,
                              .flags = RECORD_CAPTURED,
                              .code = API_CODE_cudaLaunchKernel,
                              .begin = t + 59600,
                              .duration = 100,
                              .correlation = id + 16};
    builder_add(b, MAIN, &captured);
    ADD(b, MAIN, RECORD_POP, t + 60000, 0, 0, NULL, 0);
    ADD(b, MAIN, RECORD_MARK, t + 60500, 0, 0, "checkpoint", 0, 0, 0, 0, 0, 0);
}

static void kernel(struct stream_builder *b, uint64_t device, uint64_t stream, uint64_t name,
                   uint64_t begin, uint64_t duration, uint32_t id, uint64_t node)
{
    ADD(b, DEVICE, RECORD_KERNEL, begin, duration, id, NULL, device, 1, stream, name, DIM(264),
        DIM(256), 32, 1024, 2048, 4096, 700, 300, node ? 9 : 0, node, 0, 0);
}

static void work_of_step(struct stream_builder *b, uint64_t device, uint64_t t, uint32_t id,
                         unsigned ranks)
{
    ADD(b, DEVICE, RECORD_COPY, t + 5000, 4000, id + 1, NULL, device, 1, 7, 1, 2, 3, 8000);
    for (uint32_t i = 0; i < 3; i++) /* each begins when the one before ends */
        kernel(b, device, 7, 1, t + 10000 + 5000 * i, 5000, id + 2 + i, 0);
    for (uint32_t i = 0; i < 4; i++) /* and these overlap */
        kernel(b, device, 7, 2, t + 30000 + 1000 * i, 5000, id + 10, 70 + i);
    ADD(b, DEVICE, RECORD_SET, t + 40000, 1000, id + 11, NULL, device, 1, 7, 0, 4096, 3);
    kernel(b, device, 13, 3, t + 26000, 20000, id + 12, 0);
    ADD(b, DEVICE, RECORD_COPY, t + 50000, 2000, id + 13, NULL, device, 1, 7, 10, 3, 3, 1000000, 0,
        0, 0, 0, 1 + device, 2, 1 + (device + 1) % ranks, 2);
    ADD(b, DEVICE, RECORD_SYNC, t + 13100, 44800, id + 14, NULL, 3, 1, 7, 0);
    ADD(b, DEVICE, RECORD_SYNC, t + 13200, 100, 0, NULL, 4, 1, 0xffffffffu, 0);
    ADD(b, DEVICE, RECORD_OVERHEAD, t + 4100, 300, 0, NULL, 5 << 16, 2, b->header.pid,
        b->header.pid);
    ADD(b, DEVICE, RECORD_OVERHEAD, t + 70000, 200, 0, NULL, 1 << 16, 1, b->header.pid, 0);
    ADD(b, DEVICE, RECORD_MEMORY, t + 59200, 0, id + 15, NULL, 1, 3, 0x7f0000000000u + t, 1 << 20,
        device, 1, 0, 0, 0, 0);
    ADD(b, DEVICE, RECORD_GRAPH, t + 72000, 3000, id + 10, NULL, device, 1, 7, 9);
    builder_flush(b);
}

static void add_rank(const char *folder, unsigned rank, unsigned ranks, unsigned steps, bool loss)
{
    struct stream_builder b;
    char text[4096];
    builder_init(&b, rank);
    builder_api(&b);
    builder_meta(&b, "cmdline=python train.py");
    snprintf(text, sizeof text, "env.RANK=%u", ranks - 1 - rank); /* not in the order of starts */
    builder_meta(&b, text);
    builder_thread(&b, MAIN, 50, b.header.pid, "python");
    builder_thread(&b, DEVICE, 50, b.header.pid + 500, "gpuprof-gpu");
    builder_thread(&b, WORKER, 50, b.header.pid + 600, "loader");
    uint64_t device = ranks - 1 - rank;
    describe(&b, device);
    ADD(&b, MAIN, RECORD_RANGE_START, 300, 0, 0, "epoch", 4242, 0, 0, 0, 0, 0, 0);
    for (unsigned k = 0; k < steps; k++)
        calls_of_step(&b, STEP_NS * (k + 1ull), 100 * (k + 1), k);
    for (unsigned k = 0; k < steps; k++)
        work_of_step(&b, device, STEP_NS * (k + 1ull), 100 * (k + 1), ranks);
    uint64_t end = STEP_NS * (steps + 1ull);
    name_kernels(&b, end);
    ADD(&b, WORKER, RECORD_RANGE_END, end, 0, 0, NULL, 4242, 0);
    ADD(&b, WORKER, RECORD_PAUSE, end + 1, 0, 0, NULL, 1);
    builder_correlated(&b, MAIN, API_CODE_cudaFree, end + 10, 100, 90000);
    ADD(&b, DEVICE, RECORD_MEMORY, end + 50, 0, 90000, NULL, 2, 3, 0x7f0000000000u + STEP_NS,
        1 << 20, device, 1, 0, 0, 0, 0);
    if (loss) {
        ADD(&b, WORKER, RECORD_PAUSE, end + 199, 0, 0, NULL, 0);
        builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, end + 200, 100, 90001);
        builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, end + 350, 10, 0);
        kernel(&b, device, 7, 1, end + 400, 100, 90002, 0);
    }
    builder_finish(&b, "%s/rank%u.gpuprof", folder, rank);
}

/* What a recording of one process with one device begins with. */
static void begin_single(struct stream_builder *b, unsigned number, unsigned device)
{
    builder_init(b, number);
    b->header.start_time = 500; /* when its clock began */
    builder_api(b);
    builder_thread(b, MAIN, 50, b->header.pid, "python");
    builder_thread(b, DEVICE, 50, b->header.pid + 500, "gpuprof-gpu");
    describe(b, device);
}

/* What MEMORY says of block `number`: of `pool` (0: none) with `size` bytes after it (UINT64_MAX:
 * not known). */
static void memory(struct stream_builder *b, uint64_t begin, uint64_t operation, uint64_t kind,
                   uint64_t number, uint64_t bytes, uint64_t pool, uint64_t size)
{
    ADD(b, DEVICE, RECORD_MEMORY, begin, 0, 0, NULL, operation, kind,
        0x7f0000000000u + (number << 16), bytes, 0, 1, 7, 0, pool != 0, pool, size + 1);
}

static void pool(struct stream_builder *b, uint64_t begin, uint64_t operation, uint64_t kind,
                 uint64_t number, uint64_t bytes)
{
    ADD(b, DEVICE, RECORD_POOL, begin, 0, 0, NULL, operation, kind, number, 0, 0, bytes, 0);
}

static void add_pools(const char *folder)
{
    struct stream_builder b;
    begin_single(&b, 0, 0);
    memory(&b, 1000, 1, 3, 1, 1000, 0, UINT64_MAX);
    memory(&b, 1100, 1, 2, 2, 64, 0, UINT64_MAX); /* the host's */
    pool(&b, 1200, 1, 1, 0xa0, 0);
    memory(&b, 1300, 1, 3, 3, 4096, 0xa0, 8192);
    memory(&b, 1400, 1, 3, 4, 4096, 0xa0, 8192);
    memory(&b, 1500, 1, 3, 5, 300, 0xb0, 2048);  /* a pool that was there before */
    memory(&b, 1600, 2, 3, 3, 4096, 0xa0, 8192); /* stays with the pool */
    pool(&b, 1700, 3, 1, 0xa0, 5000);
    pool(&b, 1750, 3, 2, 0xc0, 123456); /* another process's: no size */
    memory(&b, 1800, 1, 3, 6, 10, 0xc0, UINT64_MAX);
    memory(&b, 1900, 2, 3, 4, 4096, 0xa0, 5000);
    pool(&b, 2000, 2, 1, 0xa0, 5000);
    memory(&b, 2100, 2, 3, 1, 1000, 0, UINT64_MAX);
    memory(&b, 2200, 2, 3, 5, 300, 0xb0, 0);              /* a size of 0 is one */
    memory(&b, 2300, 2, 3, 7, 1ull << 62, 0, UINT64_MAX); /* nobody allocated that */
    builder_finish(&b, "%s/pools.gpuprof", folder);
}

/* Two threads whose launches, in ranges of their own, come to one stream by turns. */
static void add_shared(const char *folder)
{
    struct stream_builder b;
    begin_single(&b, 0, 0);
    builder_thread(&b, WORKER, 50, b.header.pid + 600, "backward");
    name_kernels(&b, 300);
    ADD(&b, MAIN, RECORD_PUSH, 1000, 0, 0, "step", 0, 0, 0, 0, 0, 0);
    ADD(&b, MAIN, RECORD_PUSH, 1100, 0, 0, "inner", 0, 0, 0, 0, 0, 0);
    ADD(&b, WORKER, RECORD_PUSH, 1500, 0, 0, "backward", 0, 0, 0, 0, 0, 0);
    for (uint32_t i = 0; i < 6; i++)
        builder_correlated(&b, i % 2 ? WORKER : MAIN, API_CODE_cudaLaunchKernel, 2000 + 1000 * i,
                           500, 1 + i);
    ADD(&b, WORKER, RECORD_POP, 8000, 0, 0, NULL, 0);
    ADD(&b, MAIN, RECORD_POP, 8100, 0, 0, NULL, 0);
    builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, 8200, 500, 7);
    builder_correlated(&b, WORKER, API_CODE_cudaLaunchKernel, 8400, 500, 8);
    ADD(&b, MAIN, RECORD_POP, 9000, 0, 0, NULL, 0);
    for (uint32_t i = 0; i < 8; i++)
        kernel(&b, 0, 7, 1, 20000 + 2000 * i, 1000, 1 + i, 0);
    kernel(&b, 0, 0, 1, 40000, 1000, 99, 0); /* of no known call: in no range */
    builder_finish(&b, "%s/shared.gpuprof", folder);
}

/* A step of `late` that begins at `t`, and when it ends: the reduction lasts until 1 ms after the
 * last rank has come to it. */
static uint64_t add_late_step(struct stream_builder *b, uint64_t device, uint64_t t, uint64_t k)
{
    uint64_t computed = t + 8020000, reduced = computed + 1000000 + (k % 3 == 2 ? LATE_NS : 0);
    uint64_t comes = device == 1 ? reduced - 1000000 : computed;
    uint32_t id = 3 * (uint32_t)k + 1;
    ADD(b, MAIN, RECORD_STEP, t, 0, 0, NULL, k);
    builder_correlated(b, MAIN, API_CODE_cudaLaunchKernel, t + 10000, 5000, id);
    kernel(b, device, 7, 1, t + 20000, computed - t - 20000, id, 0);
    if (comes > computed) {
        ADD(b, MAIN, RECORD_PUSH, computed, 0, 0, "evaluate", 0, 0, 0, 0, 0, 0);
        ADD(b, MAIN, RECORD_POP, comes - 20000, 0, 0, NULL, 0);
    }
    builder_correlated(b, MAIN, API_CODE_cudaLaunchKernel, comes - 10000, 5000, id + 1);
    kernel(b, device, 7, 3, comes, reduced - comes, id + 1, 0);
    builder_correlated(b, MAIN, API_CODE_cudaStreamSynchronize, comes, reduced + 1000 - comes,
                       id + 2);
    return reduced + 10000;
}

static void add_late(const char *folder, unsigned rank, unsigned steps)
{
    struct stream_builder b;
    char text[32];
    begin_single(&b, rank, rank);
    snprintf(text, sizeof text, "env.RANK=%u", rank);
    builder_meta(&b, text);
    uint64_t t = STEP_NS;
    for (unsigned k = 0; k < steps; k++)
        t = add_late_step(&b, rank, t, k);
    name_kernels(&b, t);
    builder_finish(&b, "%s/rank%u.gpuprof", folder, rank);
}

static void add_bench(const char *folder, uint64_t calls, unsigned rank, unsigned ranks,
                      bool has_kernels)
{
    struct stream_builder b;
    char text[32];
    begin_single(&b, rank, 0);
    snprintf(text, sizeof text, "env.RANK=%u", rank);
    if (ranks > 1)
        builder_meta(&b, text);
    name_kernels(&b, 300);
    for (uint64_t done = 0; done < calls;) {
        uint64_t part = calls - done < 4096 ? calls - done : 4096;
        for (uint64_t i = done; i < done + part; i++) {
            uint64_t args[5] = {0x5000, DIM(264), DIM(256), 0, 0x7f0000001000u};
            struct record r = {.type = RECORD_CALL,
                               .code = API_CODE_cudaLaunchKernel,
                               .begin = 5000 * (i + 1),
                               .duration = 1500 + i % 700,
                               .correlation = (uint32_t)i + 1,
                               .arg_count = 5};
            memcpy(r.args, args, sizeof args);
            builder_add(&b, MAIN, &r);
        }
        for (uint64_t i = done; has_kernels && i < done + part; i++)
            kernel(&b, 0, 7, 1 + i % 3, 5000 * (i + 1) + 40000, 4000 + i % 900, (uint32_t)i + 1, 0);
        done += part;
    }
    if (ranks > 1)
        builder_finish(&b, "%s/bench-%u.gpuprof", folder, rank);
    else
        builder_finish(&b, "%s/bench.gpuprof", folder);
}

int main(int argc, char **argv)
{
    unsigned first = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    bool loss = argc > 2 && strcmp(argv[2], "loss") == 0;
    bool late = argc > 2 && strcmp(argv[2], "late") == 0;
    unsigned steps = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : late ? 12 : 1;
    bool bench = argc > 2 && strcmp(argv[2], "bench") == 0;
    if (first && (bench || strcmp(argv[2], "alone") == 0)) {
        for (unsigned rank = 0; rank < steps; rank++)
            add_bench(argv[1], first, rank, steps, bench);
        return 0;
    }
    if (first && strcmp(argv[2], "pools") == 0) {
        add_pools(argv[1]);
        return 0;
    }
    if (first && strcmp(argv[2], "shared") == 0) {
        add_shared(argv[1]);
        return 0;
    }
    if (!first || (!loss && !late && strcmp(argv[2], "train") != 0)) {
        fprintf(stderr, "usage: make_gpu DIR train|loss|late RANKS [STEPS] | DIR pools|shared 1 | "
                        "DIR bench|alone CALLS [RANKS]\n");
        return 2;
    }
    for (unsigned rank = 0; rank < first; rank++)
        if (late)
            add_late(argv[1], rank, steps);
        else
            add_rank(argv[1], rank, first, steps, loss);
    return 0;
}
