/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_raw FILE [RANK]: a recording of the records that the lines of its input name, in order:
 *   meta TEXT
 *   THREAD WHAT FLAGS CODE BEGIN DURATION RESULT CORRELATION ARGUMENTS BYTES
 * WHAT is a record's number, or a function's symbol for a call of it; CODE is the stack of a call
 * and of a tensor; ARGUMENTS have commas between or are "-", BYTES are hexadecimal or "-".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "stream_builder.h"

#define LINE_BYTES 20000

static unsigned function_of(const char *symbol)
{
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++)
        if (strcmp(api_functions[i].symbol, symbol) == 0)
            return i;
    fprintf(stderr, "make_raw: no function %s\n", symbol);
    exit(2);
}

static uint8_t count_args(char *words, uint64_t *args)
{
    uint8_t count = 0;
    for (char *word = strtok(words, ","); *words != '-' && word; word = strtok(NULL, ","))
        args[count++] = strtoull(word, NULL, 0);
    return count;
}

static void add(struct stream_builder *b, const char *line)
{
    static char what[128], words[LINE_BYTES], hex[LINE_BYTES];
    static uint8_t bytes[LINE_BYTES / 2];
    unsigned thread, flags, code, correlation;
    unsigned long long begin, duration;
    int result;
    if (sscanf(line, "%u %127s %u %u %llu %llu %d %u %s %s", &thread, what, &flags, &code, &begin,
               &duration, &result, &correlation, words, hex) != 10) {
        fprintf(stderr, "make_raw: %s", line);
        exit(2);
    }
    unsigned type = (unsigned)atoi(what);
    struct record r = {.type = (uint8_t)(type ? type : RECORD_CALL),
                       .flags = (uint8_t)flags,
                       .code = (uint16_t)(type ? code : function_of(what)),
                       .stack_id = !type || type >= RECORD_TENSOR ? code : 0,
                       .begin = begin,
                       .duration = duration,
                       .result = result,
                       .correlation = correlation,
                       .bytes = bytes};
    r.arg_count = count_args(words, r.args);
    for (const char *p = hex; *p != '-' && p[0] && p[1]; p += 2) {
        char digits[3] = {p[0], p[1]};
        bytes[r.byte_count++] = (uint8_t)strtoul(digits, NULL, 16);
    }
    builder_add(b, thread, &r);
}

int main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    struct stream_builder b;
    if (argc < 2)
        return 2;
    builder_init(&b, argc > 2 ? (unsigned)atoi(argv[2]) : 0);
    builder_api(&b);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "meta ", 5) == 0)
            builder_meta(&b, line + 5);
        else
            add(&b, line);
    }
    builder_finish(&b, "%s", argv[1]);
    return 0;
}
