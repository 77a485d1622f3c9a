/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON and number text, formatted by hand because there is one of each for millions of events. The
 * only place that escapes strings: control characters become \u00XX, what is not UTF-8 becomes
 * U+FFFD, all else stays raw UTF-8 (an escaped surrogate makes some readers reject a whole file).
 * The writers write at `out` and return the place behind; callers provide the room stated.
 */
#ifndef GPUPROF_COLLECTOR_JSON_TEXT_H
#define GPUPROF_COLLECTOR_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define JSON_DECIMAL_MAX     20 /* bytes of a u64 */
#define JSON_REAL_MAX        24 /* bytes of a double */
#define XML_ESCAPE_BYTES_MAX 6  /* of each byte of a text */

/* Of 0 to 999 the three digits, and how many zeros they begin with that the number has not. */
extern const char json_triples[4 * 1000 + 1];

/* The most bytes that json_escape writes for `length` bytes, quotes included. */
static inline size_t json_escape_bytes_max(size_t length)
{
    return 6 * length + 2;
}

/* A JSON string, with its quotes. */
char *json_escape(char *out, const char *text, size_t length);

/* The same as new memory, terminated and with room for json_copy; NULL: no memory. */
char *json_string(const char *text, size_t length);

/* Writes `before`, then the text as a JSON string: null where it is NULL, or there is no memory. */
void json_put(const char *before, const char *text, FILE *out);

/*
 * `text` as valid UTF-8 without control characters other than tab and newline, and without the
 * marks that turn the direction of what follows around, in new memory. NULL: no memory.
 */
char *json_clean(const char *text, size_t length);

/* The same on one line, for people: spaces stand for tabs and newlines. */
char *json_line(const char *text);
char *line_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * `text` as the text of an element or attribute of XML or HTML, valid UTF-8 whatever it is: U+FFFD
 * stands for what XML does not allow and for what json_clean replaces. Writes at most
 * XML_ESCAPE_BYTES_MAX bytes for each byte of `text`.
 */
char *xml_escape(char *out, const char *text, size_t length);

/* The same as new memory, terminated; NULL: no memory. */
char *xml_string(const char *text);

/* A JSON value as a cell of csv, in quotes as RFC 4180 has them: a string without its own, all else
 * as its JSON. A control character, which is "\u00XX" in a string, becomes a space. Writes at most
 * 2 * `length` + 2 bytes. */
char *csv_escape(char *out, const char *json, size_t length);

/* The same as new memory, terminated; NULL: no memory. */
char *csv_string(const char *json);

char *json_decimal(char *out, uint64_t value);

/* A number; above JSON_EXACT_MAX, where JavaScript would round it, as a string. */
#define JSON_EXACT_MAX (1ull << 53)
char *json_number(char *out, uint64_t value);
char *json_signed(char *out, uint64_t value); /* the low 32 bits, as a C int */

/* The shortest text that reads back as the same number, or as the same float if it is a single
 * (of a subnormal number not the shortest one); of infinity and NaN no JSON. Writes at most
 * JSON_REAL_MAX bytes. */
char *json_real(char *out, double value, bool is_single);
char *json_hex(char *out, uint64_t value); /* 0x1f */

/*
 * Copies `length` bytes in steps of JSON_COPY_BYTES, faster than memcpy for the short pieces that
 * events are made of: both places must have that much room behind the last byte.
 */
#define JSON_COPY_BYTES 16
static inline char *json_copy(char *out, const char *text, size_t length)
{
    for (size_t at = 0; at < length; at += JSON_COPY_BYTES)
        memcpy(out + at, text + at, JSON_COPY_BYTES);
    return out + length;
}

/* Which of eight bytes, as load_u64 has them, are `byte`: the highest bit of each such byte is set.
 * Of those behind the first one others may have it, too. */
static inline uint64_t json_find(uint64_t eight, char byte)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t rest = eight ^ ones * (uint8_t)byte;
    return (rest - ones) & ~rest & 0x80 * ones;
}

/* The three digits of a number below 1000. */
static inline char *json_three(char *out, unsigned value)
{
    memcpy(out, json_triples + 4 * value, 3);
    return out + 3;
}

/* Nanoseconds as microseconds with three decimals: most of what a trace has. */
static inline __attribute__((always_inline)) char *json_microseconds(char *out, uint64_t ns)
{
    uint64_t us = ns / 1000;
    out = json_decimal(out, us);
    *out++ = '.';
    return json_three(out, (unsigned)(ns - 1000 * us));
}

#endif
