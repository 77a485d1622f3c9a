/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_stacks DIR < SCRIPT: a recording of calls with stacks, as the script says, one line each:
 *
 *   process RANK                begins one (its file: rankRANK.gpuprof); ended by the next or the
 *                               end
 *   meta KEY=VALUE
 *   module N BUILD_ID PATH      "-" for no build id
 *   python N LINE FILE<tab>FUNCTION
 *   stack N FLAGS FRAME...      innermost first: MODULE+OFFSET, pN, aADDRESS, or wWORD as it is;
 *                               all numbers of frames but N are hexadecimal
 *   call FUNCTION BEGIN DURATION CORRELATION STACK BYTES [open|nested]
 *   kernel NAME BEGIN DURATION CORRELATION
 *   copy BEGIN DURATION CORRELATION BYTES
 *   name NUMBER TEXT            of kernels
 *   push BEGIN TEXT, pop BEGIN, step BEGIN NUMBER
 *   op BEGIN OBJECT STACK NAME, op_end BEGIN OBJECT
 *   thread N TID NAME           a further one (from 3 on); on N: the next lines are of that one
 *   host RECORD CODE BEGIN DURATION RESULT WEIGHT STACK ARGUMENT,... [TEXT]
 *                               a record of what the host did, by its name in events.def; "-" for
 *                               no arguments
 *
 * make_stacks DIR bench STACKS MODULES PATH CODE BYTES: that many stacks of 30 frames over modules
 * that are copies of PATH, at PATH.0, PATH.1, ...; its code begins at CODE (both hexadecimal).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "bytes.h"
#include "frame.h"
#include "stream_builder.h"

#define MAIN         1
#define DEVICE       2
#define LINE_BYTES   16384
#define BENCH_DEPTH  30
#define BENCH_SHARED 20 /* outer frames that all stacks have alike */

struct script {
    struct stream_builder builder;
    unsigned thread; /* of `host` */
    const char *folder;
    unsigned rank;
    int open;
};

static void add(struct script *s, unsigned type, uint64_t begin, unsigned count,
                const uint64_t *args, const void *bytes, size_t length)
{
    struct record r = {.type = (uint8_t)type,
                       .begin = begin,
                       .arg_count = (uint8_t)count,
                       .bytes = bytes,
                       .byte_count = (uint32_t)length};
    memcpy(r.args, args, count * sizeof *args);
    builder_add(&s->builder, MAIN, &r);
}

static void add_step(struct script *s, const char *rest)
{
    unsigned long long begin;
    uint64_t number[1];
    if (sscanf(rest, "%llu %" SCNu64, &begin, number) != 2)
        exit(2);
    add(s, RECORD_STEP, begin, 1, number, NULL, 0);
}

static void add_op(struct script *s, unsigned type, const char *rest)
{
    unsigned long long begin;
    uint64_t object[2] = {0};
    unsigned stack = 0;
    char name[128] = "";
    int found = sscanf(rest, "%llu %" SCNu64 " %u %127s", &begin, object, &stack, name);
    if (found != (type == RECORD_OP_BEGIN ? 4 : 2))
        exit(2);
    struct record r = {.type = (uint8_t)type,
                       .begin = begin,
                       .stack_id = stack,
                       .arg_count = type == RECORD_OP_BEGIN ? 2 : 1,
                       .bytes = name[0] ? (const uint8_t *)name : NULL,
                       .byte_count = (uint32_t)strlen(name)};
    memcpy(r.args, object, r.arg_count * sizeof *object);
    builder_add(&s->builder, MAIN, &r);
}

static void end_process(struct script *s)
{
    if (!s->open)
        return;
    builder_finish(&s->builder, "%s/rank%u.gpuprof", s->folder, s->rank);
    s->open = 0;
}

static void begin_process(struct script *s, unsigned rank)
{
    char text[64];
    end_process(s);
    s->rank = rank;
    s->thread = MAIN;
    s->open = 1;
    builder_init(&s->builder, rank);
    builder_api(&s->builder);
    builder_meta(&s->builder, "cmdline=python train.py");
    snprintf(text, sizeof text, "env.RANK=%u", rank);
    builder_meta(&s->builder, text);
    builder_thread(&s->builder, MAIN, 50, s->builder.header.pid, "python");
    builder_thread(&s->builder, DEVICE, 50, s->builder.header.pid + 500, "gpuprof-gpu");
}

static void add_thread(struct script *s, const char *rest)
{
    unsigned number, tid;
    char name[64] = "";
    if (sscanf(rest, "%u %u %63s", &number, &tid, name) < 2)
        exit(2);
    builder_thread(&s->builder, number, 50, tid, name);
}

/* "\\n" becomes a newline, as a hostile name may have one; the length. */
static size_t unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        bool newline = from[0] == '\\' && from[1] == 'n';
        *to++ = newline ? '\n' : *from;
        from += newline;
    }
    *to = '\0';
    return (size_t)(to - text);
}

static void add_host(struct script *s, char *rest)
{
    char name[32], args[512], *at = args;
    unsigned code, stack, weight;
    int result, length = 0;
    unsigned long long begin, duration;
    if (sscanf(rest, "%31s %u %llu %llu %d %u %u %511s%n", name, &code, &begin, &duration, &result,
               &weight, &stack, args, &length) != 8)
        exit(2);
    struct record r = {.code = (uint16_t)code,
                       .begin = begin,
                       .duration = duration,
                       .result = result,
                       .weight = weight,
                       .stack_id = stack};
    for (unsigned type = RECORD_SAMPLE; type <= RECORD_GC; type++)
        if (strcmp(event_info((uint8_t)type)->name, name) == 0)
            r.type = (uint8_t)type;
    while (*at && *at != '-' && r.arg_count < RECORD_ARGS_MAX) {
        r.args[r.arg_count++] = strtoull(at, &at, 0);
        at += *at == ',';
    }
    rest += length + (rest[length] == ' ');
    r.byte_count = (uint32_t)unescape(rest);
    r.bytes = *rest ? (const uint8_t *)rest : NULL;
    builder_add(&s->builder, s->thread, &r);
}

static unsigned function_index(const char *name)
{
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++)
        if (strcmp(api_functions[i].symbol, name) == 0)
            return i;
    fprintf(stderr, "make_stacks: no function '%s'\n", name);
    exit(2);
}

static uint64_t frame_word(const char *text)
{
    char *end;
    if (*text == 'p')
        return frame_in_python((uint32_t)strtoul(text + 1, NULL, 16));
    if (*text == 'a')
        return frame_at_address(strtoull(text + 1, NULL, 16));
    if (*text == 'w')
        return strtoull(text + 1, NULL, 16);
    uint32_t module = (uint32_t)strtoul(text, &end, 16);
    return frame_in_module(module, strtoull(end + 1, NULL, 16));
}

static void add_stack(struct script *s, char *rest)
{
    uint8_t bytes[RECORD_BYTES_MAX];
    size_t length = 0;
    uint64_t args[2] = {strtoull(strtok(rest, " "), NULL, 10),
                        strtoull(strtok(NULL, " "), NULL, 10)};
    for (char *word; (word = strtok(NULL, " ")) && length < sizeof bytes; length += 8)
        store_u64(bytes + length, frame_word(word));
    add(s, RECORD_STACK, 300, 2, args, bytes, length);
}

static void add_call(struct script *s, char *rest)
{
    unsigned long long begin, duration, bytes = 0;
    unsigned correlation, stack;
    char name[128], flag[16] = "";
    if (sscanf(rest, "%127s %llu %llu %u %u %llu %15s", name, &begin, &duration, &correlation,
               &stack, &bytes, flag) < 6)
        exit(2);
    struct record r = {.type = RECORD_CALL,
                       .code = (uint16_t)function_index(name),
                       .begin = begin,
                       .duration = duration,
                       .correlation = correlation,
                       .stack_id = stack,
                       .flags = strcmp(flag, "open") == 0     ? RECORD_OPEN
                                : strcmp(flag, "nested") == 0 ? RECORD_NESTED
                                                              : 0};
    const struct api_function *row = &api_functions[r.code];
    r.arg_count = row->arg_count;
    for (unsigned i = 0; i < row->arg_count; i++)
        r.args[i] = row->args[i].kind == ARG_BYTES ? bytes : 0;
    builder_add(&s->builder, MAIN, &r);
}

static void add_kernel(struct script *s, char *rest)
{
    unsigned long long name, begin, duration;
    unsigned correlation;
    if (sscanf(rest, "%llu %llu %llu %u", &name, &begin, &duration, &correlation) != 4)
        exit(2);
    uint64_t args[6] = {0, 1, 7, name, 1, 1};
    builder_record(&s->builder, DEVICE, RECORD_KERNEL, begin, duration, correlation, 6, args, NULL);
}

static void add_copy(struct script *s, char *rest)
{
    unsigned long long begin, duration, bytes;
    unsigned correlation;
    if (sscanf(rest, "%llu %llu %u %llu", &begin, &duration, &correlation, &bytes) != 4)
        exit(2);
    uint64_t args[7] = {0, 1, 7, 1, 2, 3, bytes};
    builder_record(&s->builder, DEVICE, RECORD_COPY, begin, duration, correlation, 7, args, NULL);
}

/* A number, a second one if `numbers` is 2, and the text behind them. */
static void add_text(struct script *s, unsigned type, char *rest, unsigned numbers)
{
    uint64_t args[6] = {0};
    char *text = rest;
    for (unsigned i = 0; i < numbers; i++)
        args[i] = strtoull(text, &text, 10);
    text += *text == ' ';
    size_t length = unescape(text);
    char *tab = strchr(text, '\t');
    if (type == RECORD_PYTHON && tab)
        *tab = '\0';
    if (type == RECORD_PUSH || type == RECORD_POP) {
        uint64_t begin = args[0];
        args[0] = 0;
        add(s, type, begin, type == RECORD_PUSH ? 6 : 1, args, length ? text : NULL, length);
        return;
    }
    if (type == RECORD_MODULE)
        args[1] = 0x7f0000000000u, args[2] = args[1], args[3] = args[1] + 0x100000;
    add(s, type, 200, type == RECORD_MODULE ? 4 : numbers, args, text, length);
}

static void take_line(struct script *s, char *line)
{
    char *rest = line + strcspn(line, " ");
    if (*rest)
        *rest++ = '\0';
    if (strcmp(line, "process") == 0)
        begin_process(s, (unsigned)strtoul(rest, NULL, 10));
    else if (strcmp(line, "meta") == 0)
        builder_meta(&s->builder, rest);
    else if (strcmp(line, "module") == 0)
        add_text(s, RECORD_MODULE, rest, 1);
    else if (strcmp(line, "python") == 0)
        add_text(s, RECORD_PYTHON, rest, 2);
    else if (strcmp(line, "name") == 0)
        add_text(s, RECORD_KERNEL_NAME, rest, 1);
    else if (strcmp(line, "push") == 0)
        add_text(s, RECORD_PUSH, rest, 1);
    else if (strcmp(line, "pop") == 0)
        add_text(s, RECORD_POP, rest, 1);
    else if (strcmp(line, "stack") == 0)
        add_stack(s, rest);
    else if (strcmp(line, "call") == 0)
        add_call(s, rest);
    else if (strcmp(line, "kernel") == 0)
        add_kernel(s, rest);
    else if (strcmp(line, "step") == 0)
        add_step(s, rest);
    else if (strcmp(line, "op") == 0)
        add_op(s, RECORD_OP_BEGIN, rest);
    else if (strcmp(line, "op_end") == 0)
        add_op(s, RECORD_OP_END, rest);
    else if (strcmp(line, "copy") == 0)
        add_copy(s, rest);
    else if (strcmp(line, "thread") == 0)
        add_thread(s, rest);
    else if (strcmp(line, "on") == 0)
        s->thread = (unsigned)strtoul(rest, NULL, 10);
    else if (strcmp(line, "host") == 0)
        add_host(s, rest);
    else if (*line)
        exit(2);
}

/* Offsets all over the file's code, some million of them, so that hardly two are alike. */
static void make_bench(struct script *s, unsigned stacks, unsigned modules, const char *path,
                       uint64_t code_begin, uint64_t code_bytes)
{
    char text[4096];
    uint64_t seed = 1;
    begin_process(s, 0);
    builder_meta(&s->builder, "stacks=made up");
    for (uint64_t m = 0; m < modules; m++) {
        int length = snprintf(text, sizeof text, "- %s.%llu", path, (unsigned long long)m);
        uint64_t args[4] = {m + 1, 0x7f0000000000u, 0x7f0000000000u, 0x7f0010000000u};
        add(s, RECORD_MODULE, 200, 4, args, text, (size_t)length);
    }
    for (uint64_t i = 0; i < stacks; i++) {
        uint8_t bytes[8 * BENCH_DEPTH];
        for (unsigned k = 0; k < BENCH_DEPTH; k++) {
            uint64_t number = k < BENCH_DEPTH - BENCH_SHARED ? i / (1u << 2 * k) * 7919 + k : k;
            seed = number * 0x9E3779B97F4A7C15u;
            uint64_t offset = code_begin + (seed >> 20) % code_bytes;
            store_u64(bytes + 8 * k, frame_in_module(1 + (uint32_t)(number % modules), offset));
        }
        uint64_t args[2] = {i + 1, 0};
        add(s, RECORD_STACK, 300 + 1000 * i, 2, args, bytes, sizeof bytes);
        struct record r = {.type = RECORD_CALL,
                           .code = API_CODE_cudaFree,
                           .begin = 1000 * (i + 1),
                           .duration = 500,
                           .stack_id = (uint32_t)i + 1};
        builder_add(&s->builder, MAIN, &r);
    }
    end_process(s);
}

int main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    struct script s = {.folder = argc > 1 ? argv[1] : "."};
    if (argc == 8 && strcmp(argv[2], "bench") == 0) {
        make_bench(&s, (unsigned)strtoul(argv[3], NULL, 10), (unsigned)strtoul(argv[4], NULL, 10),
                   argv[5], strtoull(argv[6], NULL, 16), strtoull(argv[7], NULL, 16));
        return 0;
    }
    if (argc != 2) {
        fprintf(stderr, "usage: make_stacks DIR < SCRIPT\n"
                        "       make_stacks DIR bench STACKS MODULES PATH CODE BYTES\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        take_line(&s, line);
    }
    end_process(&s);
    return 0;
}
