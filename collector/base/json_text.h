/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON and number text, formatted by hand because traces have millions of events. Only this module
 * escapes strings: control characters become \u00XX, invalid UTF-8 becomes U+FFFD. The rest stays
 * raw UTF-8, since an escaped surrogate makes some readers reject the file. Writers write at `out`
 * and return the end; callers provide the stated room.
 */
#ifndef GPUPROF_COLLECTOR_JSON_TEXT_H
#define GPUPROF_COLLECTOR_JSON_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define JSON_DECIMAL_MAX     20 /* bytes of a u64 */
#define JSON_REAL_MAX        24 /* bytes of a double */
#define XML_ESCAPE_BYTES_MAX 6  /* per byte of text */

/* The three digits of 0 to 999, each followed by its count of leading zeros. */
extern const char json_triples[4 * 1000 + 1];

/* Returns the most bytes that json_escape writes for `length` bytes, quotes included. */
static inline size_t json_escape_bytes_max(size_t length)
{
    return 6 * length + 2;
}

/* Writes a JSON string with its quotes. */
char *json_escape(char *out, const char *text, size_t length);

/* The same in new memory, terminated and with room for json_copy. */
char *json_string(const char *text, size_t length);

/* Print JSON like fprintf, but %s is a JSON string or null (NULL), and a real number that is not
 * finite is null. They know %u, %d, %f and %g, too, with lengths and a precision. The second prints
 * strings by `put`, which gets a text or NULL. */
typedef void json_put_fn(const char *text, FILE *out);
json_put_fn json_put;
void json_printf(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void json_vprintf(FILE *out, json_put_fn *put, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));

/* Returns `text` in new memory as valid UTF-8, without bidirectional marks, control characters
 * other than tab and newline, and what XML forbids. */
char *json_clean(const char *text, size_t length);

/* The same on one line, for people: tabs and newlines become spaces. */
char *json_line(const char *text);
char *line_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Escapes `text` for an element or attribute of XML or HTML, cleaned as by json_clean. Writes at
 * most XML_ESCAPE_BYTES_MAX bytes per byte of `text`. */
char *xml_escape(char *out, const char *text, size_t length);

char *xml_string(const char *text); /* in new memory, terminated */

/* Writes a JSON value as a quoted CSV cell (RFC 4180): a string without its JSON quotes, other
 * values as their JSON. A control character ("\u00XX" in a string) becomes a space. Writes at most
 * 2 * `length` + 2 bytes. */
char *csv_escape(char *out, const char *json, size_t length);

char *csv_string(const char *json); /* in new memory, terminated */

char *json_decimal(char *out, uint64_t value);

/* Writes a number; above JSON_EXACT_MAX as a string, since JavaScript would round it. */
#define JSON_EXACT_MAX (1ull << 53)
char *json_number(char *out, uint64_t value);
char *json_signed(char *out, uint64_t value); /* the low 32 bits, as a C int */

/* Writes the shortest text that reads back as the same finite number, or the same float if
 * `is_single` (for a subnormal number not the shortest), of at most JSON_REAL_MAX bytes. */
char *json_real(char *out, double value, bool is_single);
char *json_hex(char *out, uint64_t value); /* 0x1f */

/* Copies `length` bytes in steps of JSON_COPY_BYTES, faster than memcpy for the short parts of
 * events. Both buffers need that much room after the last byte. */
#define JSON_COPY_BYTES 16
static inline char *json_copy(char *out, const char *text, size_t length)
{
    for (size_t at = 0; at < length; at += JSON_COPY_BYTES)
        memcpy(out + at, text + at, JSON_COPY_BYTES);
    return out + length;
}

/* Sets the highest bit of each `byte` in eight (load_u64). Only the first is reliable. */
static inline uint64_t json_find(uint64_t eight, char byte)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t rest = eight ^ ones * (uint8_t)byte;
    return (rest - ones) & ~rest & 0x80 * ones;
}

/* Writes the three digits of a number below 1000. */
static inline char *json_three(char *out, unsigned value)
{
    memcpy(out, json_triples + 4 * value, 3);
    return out + 3;
}

/* Writes nanoseconds as microseconds with three decimals, the most frequent number of a trace. */
static inline __attribute__((always_inline)) char *json_microseconds(char *out, uint64_t ns)
{
    uint64_t us = ns / 1000;
    out = json_decimal(out, us);
    *out++ = '.';
    return json_three(out, (unsigned)(ns - 1000 * us));
}

/* A reader of JSON text that gpuprof wrote itself: value by value, without a copy. Malformed text
 * ends the iteration; nothing is read beyond `end`. A piece that is a string includes its quotes.
 */
struct json_piece {
    const char *at;
    size_t length;
};

/* Reads the next member of an object, or item of an array, at *at, which starts behind the opening
 * bracket and moves on. Sets its key (empty for an item) and value. Returns false at the end. */
bool json_next(const char **at, const char *end, struct json_piece *key, struct json_piece *value);

/* Returns the value of a member of the object; its length is 0 if there is no such member. */
struct json_piece json_member(struct json_piece object, const char *key);

/* Decodes a string to UTF-8; `out` has room for the string's length. Returns the bytes written. */
size_t json_unescape(struct json_piece string, char *out);

static inline bool json_is(struct json_piece piece, char first)
{
    return piece.length && *piece.at == first;
}

/* Parses a whole number. Returns false if it is none, or too large. */
bool json_whole(struct json_piece piece, int64_t *value);
double json_double(struct json_piece piece);

/* Converts microseconds with at most three decimals to ns. */
uint64_t json_ns(struct json_piece piece);

#endif
