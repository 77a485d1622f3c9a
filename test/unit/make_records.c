/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_records DIR < SCRIPT: recordings of any records, as the script says, one line each:
 *
 *   process RANK [HOST BOOT MONOTONIC REALTIME]
 *                   begins one, with the threads 1 (python), 2 (the device) and 3 (autograd); ended
 *                   by the next or the end. Where it runs: a byte of the boot's id, and both clocks
 *                   at its begin, in ns
 *   process RANK of RANK
 *                   likewise, as the second one's child
 *   meta KEY=VALUE  what it says of itself
 *   stack NUMBER    the next record's
 *   frames NUMBER|LINE:FILE:FUNCTION|...
 *                   makes that stack of Python's, the innermost first
 *   TYPE THREAD BEGIN DURATION CORRELATION FLAGS CODE WEIGHT ARGUMENT,... TEXT
 *                   a record; TYPE by its number, CODE by its number or the name of a function, "-"
 *                   for no arguments, which are numbers; those of a thread in the order of time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "frame.h"
#include "stream_builder.h"

#define LINE_BYTES 16384

static unsigned code_of(const char *word)
{
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++)
        if (strcmp(api_functions[i].symbol, word) == 0)
            return i;
    return (unsigned)strtoul(word, NULL, 10);
}

static void begin_process(struct stream_builder *b, unsigned rank, const char *where)
{
    char text[32];
    unsigned boot, parent;
    unsigned long long monotonic, realtime;
    builder_init(b, rank);
    if (sscanf(where, " of %u", &parent) == 1) {
        b->header.parent_pid = 1000 + parent; /* as builder_init has it */
    } else if (sscanf(where, "%63s %u %llu %llu", b->header.host, &boot, &monotonic, &realtime) ==
               4) {
        memset(b->header.boot_id, (int)boot, sizeof b->header.boot_id);
        b->header.monotonic_zero_ns = monotonic;
        b->header.realtime_zero_ns = realtime;
    }
    builder_api(b);
    snprintf(text, sizeof text, "env.RANK=%u", rank);
    builder_meta(b, text);
    builder_meta(b, "gpu_rows=from CUPTI");
    builder_meta(b, "pytorch=shapes");
    builder_thread(b, 1, 50, b->header.pid, "python");
    builder_thread(b, 2, 50, b->header.pid + 500, "gpuprof-gpu");
    builder_thread(b, 3, 50, b->header.pid + 600, "autograd");
}

static void add_record(struct stream_builder *b, const char *line, unsigned *stack)
{
    unsigned type, thread, flags;
    unsigned long long begin, duration, correlation, weight;
    char code[128], args[512];
    int at;
    if (sscanf(line, "%u %u %llu %llu %llu %u %127s %llu %511s%n", &type, &thread, &begin,
               &duration, &correlation, &flags, code, &weight, args, &at) != 9) {
        fprintf(stderr, "make_records: %s\n", line);
        exit(2);
    }
    const char *text = line + at + (line[at] == ' ');
    struct record r = {.type = (uint8_t)type,
                       .flags = (uint8_t)flags,
                       .code = (uint16_t)code_of(code),
                       .begin = begin,
                       .duration = duration,
                       .correlation = (uint32_t)correlation,
                       .stack_id = *stack,
                       .weight = (uint32_t)weight,
                       .bytes = *text ? (const uint8_t *)text : NULL,
                       .byte_count = (uint32_t)strlen(text)};
    for (char *word = strtok(args, ",-"); word && r.arg_count < RECORD_ARGS_MAX;
         word = strtok(NULL, ","))
        r.args[r.arg_count++] = strtoull(word, NULL, 10);
    builder_add(b, thread, &r);
    *stack = 0;
}

/* Places have the numbers behind 100 times that of their stack. */
static void add_frames(struct stream_builder *b, char *rest)
{
    uint8_t words[RECORD_BYTES_MAX];
    unsigned number = (unsigned)strtoul(strtok(rest, "|"), NULL, 10), count = 0;
    for (char *word; (word = strtok(NULL, "|")) && count < 100; count++) {
        char *text = strchr(word, ':'), *colon = text ? strchr(text + 1, ':') : NULL;
        if (!colon)
            exit(2);
        *colon = '\0'; /* as it stands in the record */
        struct record place = {RECORD_WITH(PYTHON, [PYTHON_LOCATION] = 100 * number + count,
                                           [PYTHON_LINE] = strtoul(word, NULL, 10)),
                               .begin = 1, .bytes = (const uint8_t *)text + 1,
                               .byte_count = (uint32_t)(colon - text + strlen(colon + 1))};
        builder_add(b, 1, &place);
        store_u64(words + 8 * count, frame_in_python(100 * number + count));
    }
    struct record stack = {RECORD_WITH(STACK, [STACK_STACK] = number), .begin = 1, .bytes = words,
                           .byte_count = 8 * count};
    builder_add(b, 1, &stack);
}

int main(int argc, char **argv)
{
    struct stream_builder b;
    char line[LINE_BYTES];
    unsigned rank = 0, count = 0, stack = 0;
    int where = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: make_records DIR < SCRIPT\n");
        return 2;
    }
    for (bool more = true; more;) {
        more = fgets(line, sizeof line, stdin) != NULL;
        line[strcspn(line, "\n")] = '\0';
        bool begins = more && sscanf(line, "process %u%n", &rank, &where) == 1;
        if (count && (begins || !more))
            builder_finish(&b, "%s/%u.gpuprof", argv[1], count - 1);
        if (begins) {
            begin_process(&b, rank, line + where);
            count++;
        } else if (more && strncmp(line, "meta ", 5) == 0) {
            builder_meta(&b, line + 5);
        } else if (more && strncmp(line, "frames ", 7) == 0) {
            add_frames(&b, line + 7);
        } else if (more && sscanf(line, "stack %u", &stack) != 1) {
            add_record(&b, line, &stack);
        }
    }
    return 0;
}
