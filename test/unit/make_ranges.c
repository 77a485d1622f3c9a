/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_ranges DIR < SCRIPT: a recording of ranges, operators and work, as the script says, one line
 * each; times are in nanoseconds, and the lines of one thread in their order:
 *
 *   meta KEY=VALUE            before all others
 *   thread 1|3                that what follows is of
 *   domain NUMBER AT NAME
 *   push AT DOMAIN TEXT       the text is the rest of the line, whatever it is
 *   data SCHEMA BYTES WORD... of the payload of the next push; words are hexadecimal
 *   pop AT DOMAIN
 *   op AT OBJECT NAME         of gpuprof's own records
 *   end AT OBJECT
 *   call AT DURATION ID
 *   kernel AT DURATION ID
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "stream_builder.h"

#define DEVICE     2
#define LINE_BYTES 16384

struct script {
    struct stream_builder b;
    uint32_t thread;
    unsigned data_count;
    uint64_t data[6]; /* what push has behind all else */
};

/* What is said by a number or two and perhaps a text. */
static void add(struct script *s, unsigned type, uint64_t at, unsigned count, const uint64_t *args,
                const char *text, size_t length)
{
    struct record r = {.type = (uint8_t)type,
                       .begin = at,
                       .arg_count = (uint8_t)count,
                       .bytes = (const uint8_t *)text,
                       .byte_count = (uint32_t)length};
    memcpy(r.args, args, count * sizeof *args);
    builder_add(&s->b, s->thread, &r);
}

static void take_line(struct script *s, char *line, size_t length)
{
    char word[16];
    uint64_t a = 0, b = 0, c = 0;
    int rest = 0, begin = 0;
    sscanf(line, "%15s %n%" SCNu64 " %" SCNu64 "%n", word, &begin, &a, &b, &rest);
    const char *text = rest ? line + rest + (line[rest] == ' ') : "";
    length = rest ? (size_t)(line + length - text) : 0;
    if (strcmp(word, "meta") == 0) {
        builder_meta(&s->b, line + begin);
    } else if (strcmp(word, "thread") == 0) {
        s->thread = (uint32_t)a;
    } else if (strcmp(word, "domain") == 0) {
        add(s, RECORD_LABEL, b, 3, (uint64_t[]){LABEL_OF_DOMAIN, a, 0}, text, length);
    } else if (strcmp(word, "push") == 0) {
        uint64_t args[RECORD_PUSH_ARGS] = {b};
        memcpy(args + PUSH_SCHEMA, s->data, sizeof s->data);
        add(s, RECORD_PUSH, a, PUSH_SCHEMA + s->data_count, args, text, length);
        s->data_count = 0;
    } else if (strcmp(word, "data") == 0) {
        s->data[0] = a;
        s->data[1] = b;
        for (s->data_count = 2; *text && s->data_count < 6; s->data_count++)
            s->data[s->data_count] = strtoull(text, (char **)&text, 16);
    } else if (strcmp(word, "pop") == 0) {
        add(s, RECORD_POP, a, 1, &b, NULL, 0);
    } else if (strcmp(word, "op") == 0) {
        add(s, RECORD_OP_BEGIN, a, 5, (uint64_t[]){b, 0, 0, 0, 0}, text, length);
    } else if (strcmp(word, "end") == 0) {
        add(s, RECORD_OP_END, a, 1, &b, NULL, 0);
    } else if (sscanf(text, "%" SCNu64, &c) == 1 && strcmp(word, "call") == 0) {
        builder_correlated(&s->b, s->thread, API_CODE_cudaLaunchKernel, a, b, (uint32_t)c);
    } else if (c && strcmp(word, "kernel") == 0) {
        builder_record(&s->b, DEVICE, RECORD_KERNEL, a, b, (uint32_t)c, 13,
                       (uint64_t[13]){0, 1, 7, 1, 1, 1}, NULL);
    } else {
        fprintf(stderr, "make_ranges: %s\n", line);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    struct script s = {.thread = 1};
    bool has_threads = false;
    if (argc != 2) {
        fprintf(stderr, "usage: make_ranges DIR < SCRIPT\n");
        return 2;
    }
    builder_init(&s.b, 0);
    builder_api(&s.b);
    while (fgets(line, sizeof line, stdin)) {
        size_t length = strcspn(line, "\n");
        line[length] = '\0';
        if (!has_threads && strncmp(line, "meta ", 5) != 0) {
            has_threads = true;
            builder_thread(&s.b, 1, 50, s.b.header.pid, "python");
            builder_thread(&s.b, DEVICE, 50, s.b.header.pid + 500, "gpuprof-gpu");
            builder_thread(&s.b, 3, 50, s.b.header.pid + 600, "autograd");
        }
        take_line(&s, line, length);
    }
    builder_finish(&s.b, "%s/0.gpuprof", argv[1]);
    return 0;
}
