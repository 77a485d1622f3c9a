/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_ops DIR PROCESSES EVENTS SEED [tidy]: recordings with operators and labels at random, on two
 * threads: nested, crossing, moved to the other thread, traced, begun and not ended or the other
 * way round; calls in and between them, and work of those, in PyTorch's way and in none. Names and
 * inputs stand before and behind their use. No two events of a process have one time. A tidy one
 * has ranges, too; all nest, and the device does its work one after another.
 *
 * make_ops DIR hostile KIND COUNT: one that is to take a reader's memory: operators that are open
 * for ever (on a thread, "deep", or on many, "open"), of which each has a "name", "inputs" or
 * numbers ("numbers") of its own, or that cross ("crossing").
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "stream_builder.h"

#define DEVICE    2 /* the thread that stands for the device */
#define OPEN_MAX  40
#define NAMES     9
#define INPUTS    12
#define LABEL     7
#define NO_INPUTS (INPUTS + 1) /* a number that no record explains */
#define RANGE     1            /* in place of an object, which is a multiple of 8 */

struct maker {
    struct stream_builder b;
    uint64_t seed;
    uint64_t now;
    uint64_t objects;
    uint64_t open[2][OPEN_MAX]; /* by thread */
    uint32_t count[2];
    uint32_t calls;
    bool is_tidy;
    uint64_t free_ns; /* then: when the device has done its work */
};

static const uint32_t threads[2] = {1, 3};
static const char *const names[NAMES] = {"aten::linear",   "aten::mm",         "aten::add_",
                                         "AddmmBackward0", "aten::\"quoted\"", "aten::copy_",
                                         "ProfilerStep#1", "Optimizer.step",   "late\xc3\xa4 name"};
static const struct {
    uint8_t bytes[64];
    uint32_t count;
} inputs[INPUTS] = {
    {{1, 6, 2, 4, 16, 1, 6, 2, 16, 32}, 10},                /* float[4,16] float[16,32] */
    {{1, 5, 2, 4, 16, 1, 15, 2, 16, 32}, 10},               /* the same sizes */
    {{1, 6, 1, 0xac, 2, 2, 0, 3, 9, 6, 2, 3, 2, 3, 2}, 15}, /* float[300] undefined none 5 (1 1) */
    {{6, 2, 1, 6, 1, 3, 1, 6, 0, 3, 2, 5, 1}, 13},          /* (float[3] float[]) 1 true */
    {{6, 2, 0, 1, 6, 1, 3}, 7},                             /* (none float[3]) */
    {{6, 0, 8, 9, 7}, 5},                                   /* () unread number other */
    {{6, 3, 1, 6, 1, 3, 10}, 7},                            /* (float[3] ... */
    {{4, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, 9},                 /* 1.5 */
    /* (1 -2), (-300 ... */
    {{6, 2, 3, 2, 3, 3, 6, 2, 3, 0xd7, 4, 10}, 12},
    /* (true false), (1 number), (0.1 -0.0), 2e9, 1e10 */
    {{6,    2,    5,    1,    5,    0,    6, 2, 3, 2, 9,    6,    2,    4,    0x9a, 0x99, 0x99,
      0x99, 0x99, 0x99, 0xb9, 0x3f, 4,    0, 0, 0, 0, 0,    0,    0,    0x80, 4,    0,    0,
      0,    0,    0x65, 0xcd, 0xdd, 0x41, 4, 0, 0, 0, 0x20, 0x5f, 0xa0, 2,    0x42},
     49},
    /* infinity, one below nought, not a number */
    {{4, 0, 0,    0,    0, 0, 0, 0xf0, 0x7f, 4, 0, 0,    0,   0,
      0, 0, 0xf0, 0xff, 4, 0, 0, 0,    0,    0, 0, 0xf8, 0x7f},
     27},
    /* the smallest of all integers and of numbers */
    {{3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 4, 1, 0, 0, 0, 0, 0, 0, 0x80},
     20},
};

static uint64_t at_random(struct maker *m, uint64_t below)
{
    m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
    return (m->seed >> 33) % below;
}

static uint64_t tick(struct maker *m)
{
    return m->now += 1 + at_random(m, 50);
}

static void add(struct maker *m, unsigned thread, unsigned type, uint64_t a, const char *text)
{
    builder_record(&m->b, thread, type, tick(m), 0, 0, 1, &a, text);
}

static void explain_inputs(struct maker *m, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        struct record r = {.type = RECORD_OP_INPUTS,
                           .begin = tick(m),
                           .arg_count = 1,
                           .args = {i + 1},
                           .bytes = inputs[i].bytes,
                           .byte_count = inputs[i].count};
        builder_add(&m->b, threads[1], &r);
    }
}

static void begin_op(struct maker *m, unsigned t)
{
    uint64_t kind = at_random(m, m->is_tidy ? 8 : 20), name = 1 + at_random(m, NAMES);
    bool is_label = kind < 3, is_backward = kind == 3, is_own = kind == 4;
    if (m->count[t] == OPEN_MAX)
        return;
    uint64_t sequence = at_random(m, 3) ? 1 + at_random(m, 30) : 0;
    struct record r = {.type = RECORD_OP_BEGIN,
                       .flags = at_random(m, 12) ? 0 : RECORD_TRACED,
                       .code = is_label      ? LABEL
                               : is_backward ? 1
                                             : 0,
                       .begin = tick(m),
                       .arg_count = 5,
                       .args = {0x7f0000000000u + 16 * ++m->objects, is_own ? 0 : name,
                                is_label ? 0 : at_random(m, NO_INPUTS + 1), is_label ? 0 : sequence,
                                is_backward ? 1 + at_random(m, 2) : 0}};
    if (is_own)
        r.bytes = (const uint8_t *)"its own name", r.byte_count = 12;
    builder_add(&m->b, threads[t], &r);
    m->open[t][m->count[t]++] = r.args[0];
}

static void push_range(struct maker *m, unsigned t)
{
    if (m->count[t] == OPEN_MAX)
        return;
    add(m, threads[t], RECORD_PUSH, 0, at_random(m, 2) ? "forward" : "backward");
    m->open[t][m->count[t]++] = RANGE;
}

/* Usually the innermost, where it began. */
static void end_op(struct maker *m, unsigned t)
{
    if (!m->count[t])
        return;
    bool is_last = m->is_tidy || at_random(m, 8);
    uint32_t at = is_last ? m->count[t] - 1 : (uint32_t)at_random(m, m->count[t]);
    uint64_t object = m->open[t][at];
    memmove(&m->open[t][at], &m->open[t][at + 1], (--m->count[t] - at) * sizeof object);
    if (m->is_tidy) {
        add(m, threads[t], object == RANGE ? RECORD_POP : RECORD_OP_END,
            object == RANGE ? 0 : object, NULL);
        return;
    }
    if (at_random(m, 40) == 0) /* lost */
        object += 8;
    add(m, threads[at_random(m, 25) ? t : !t], RECORD_OP_END, object, NULL);
}

static void work(struct maker *m, uint32_t id, uint64_t begin)
{
    uint64_t kernel[13] = {0, 1, 7, 1, 1, 1};
    uint64_t set[6] = {0, 1, 7, 64, 0, 1};
    bool is_kernel = at_random(m, 4);
    uint64_t duration = 5 + at_random(m, is_kernel ? 300 : 30);
    if (m->is_tidy)
        begin = m->now + 40 > m->free_ns ? m->now + 40 : m->free_ns + at_random(m, 300);
    m->free_ns = begin + duration + 100; /* and a place for the ends of all ranges */
    builder_record(&m->b, DEVICE, is_kernel ? RECORD_KERNEL : RECORD_SET, begin, duration, id,
                   is_kernel ? 13 : 6, is_kernel ? kernel : set, NULL);
}

static void call(struct maker *m, unsigned t)
{
    uint64_t begin = tick(m);
    builder_correlated(&m->b, threads[t], API_CODE_cudaLaunchKernel, begin, 1 + at_random(m, 20),
                       ++m->calls);
    m->now += 20;
    for (uint64_t n = at_random(m, 3); n > 0; n--)
        work(m, m->calls, begin + 40 + at_random(m, 5000));
}

static void make(const char *folder, unsigned process, unsigned events, uint64_t seed, bool is_tidy)
{
    struct maker *m = calloc(1, sizeof *m);
    char text[32];
    if (!m)
        abort();
    m->seed = seed + 77 * process;
    m->is_tidy = is_tidy;
    builder_init(&m->b, process);
    builder_api(&m->b);
    snprintf(text, sizeof text, "env.RANK=%u", process);
    builder_meta(&m->b, text);
    builder_meta(&m->b, "gpu_rows=from CUPTI 130001, /libcupti.so.13");
    builder_meta(&m->b, "cuda_driver=13000");
    builder_meta(&m->b, "pytorch=shapes");
    builder_thread(&m->b, threads[0], 50, m->b.header.pid, "python");
    builder_thread(&m->b, DEVICE, 50, m->b.header.pid + 500, "gpuprof-gpu");
    builder_thread(&m->b, threads[1], 50, m->b.header.pid + 600, "autograd");
    m->now = 1000;
    for (unsigned i = 0; i < 2; i++)
        add(m, threads[i], RECORD_OP_THREAD, 1 + i, NULL);
    for (unsigned i = 0; i < NAMES - 1; i++)
        add(m, threads[0], RECORD_OP_NAME, i + 1, names[i]);
    explain_inputs(m, 0, INPUTS / 2);
    for (unsigned i = 0; i < events; i++) {
        unsigned t = at_random(m, 3) == 0;
        switch (at_random(m, 9)) {
        case 0:
        case 1:
        case 2: begin_op(m, t); break;
        case 3:
        case 4:
        case 5: end_op(m, t); break;
        case 6:
            if (is_tidy)
                push_range(m, t);
            else
                add(m, threads[t], RECORD_OP_END, 0x10 + i, NULL);
            break;
        default: call(m, t); break;
        }
    }
    work(m, 1u << 30, m->now); /* of no call that is known */
    add(m, threads[0], RECORD_OP_NAME, NAMES, names[NAMES - 1]);
    explain_inputs(m, INPUTS / 2, INPUTS);
    builder_finish(&m->b, "%s/%u.gpuprof", folder, process);
    free(m);
}

#define OPEN_THREADS 4000
#define CROSSING     500

static void hostile_op(struct maker *m, unsigned thread, const uint64_t *args, const char *text)
{
    builder_record(&m->b, thread, RECORD_OP_BEGIN, ++m->now, 0, 0, 3, args, text);
}

static void explain_hostile(struct maker *m, uint64_t number)
{
    uint8_t bytes[4000]; /* undefined tensors, then a number that tells them from all others */
    memset(bytes, 2, sizeof bytes);
    memcpy(bytes + sizeof bytes - 9, (uint8_t[]){4}, 1);
    memcpy(bytes + sizeof bytes - 8, &number, 8);
    struct record r = {.type = RECORD_OP_INPUTS,
                       .begin = ++m->now,
                       .arg_count = 1,
                       .args = {number},
                       .bytes = bytes,
                       .byte_count = sizeof bytes};
    builder_add(&m->b, 1, &r);
}

static void make_hostile(const char *folder, const char *kind, uint64_t count)
{
    struct maker *m = calloc(1, sizeof *m);
    char text[32];
    if (!m)
        abort();
    builder_init(&m->b, 0);
    builder_api(&m->b);
    builder_meta(&m->b, "pytorch=shapes");
    bool is_open = strcmp(kind, "open") == 0, is_deep = strcmp(kind, "deep") == 0;
    bool is_crossing = strcmp(kind, "crossing") == 0, has_name = strcmp(kind, "names") == 0;
    bool has_inputs = strcmp(kind, "inputs") == 0, has_numbers = strcmp(kind, "numbers") == 0;
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t args[3] = {i,
                            has_name      ? 0
                            : has_numbers ? i
                                          : 1,
                            has_inputs || has_numbers ? i : 0};
        unsigned thread = is_open ? 1 + (unsigned)(i * OPEN_THREADS / (count + 1)) : 1;
        snprintf(text, sizeof text, "%llx", (unsigned long long)(i * 0x9E3779B97F4A7C15u));
        if (has_inputs)
            explain_hostile(m, i);
        hostile_op(m, thread, args, has_name ? text : NULL);
        if (is_crossing && i > CROSSING)
            args[0] = i - CROSSING;
        if (!is_open && !is_deep && (!is_crossing || i > CROSSING))
            builder_record(&m->b, thread, RECORD_OP_END, ++m->now, 0, 0, 1, args, NULL);
    }
    builder_finish(&m->b, "%s/0.gpuprof", folder);
    free(m);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[2], "hostile") == 0) {
        make_hostile(argv[1], argv[3], strtoull(argv[4], NULL, 10));
        return 0;
    }
    if (argc != 5 && (argc != 6 || strcmp(argv[5], "tidy") != 0)) {
        fprintf(stderr, "usage: make_ops DIR PROCESSES EVENTS SEED [tidy], "
                        "or DIR hostile KIND COUNT\n");
        return 2;
    }
    for (unsigned i = 0; i < (unsigned)atoi(argv[2]); i++)
        make(argv[1], i, (unsigned)atoi(argv[3]), (uint64_t)atoi(argv[4]), argc == 6);
    return 0;
}
