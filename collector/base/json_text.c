/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_text.h"

#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>

#define PAIRS(d) d "0" d "1" d "2" d "3" d "4" d "5" d "6" d "7" d "8" d "9"

const char json_digit_pairs[201] = PAIRS("0") PAIRS("1") PAIRS("2") PAIRS("3") PAIRS("4") PAIRS("5")
    PAIRS("6") PAIRS("7") PAIRS("8") PAIRS("9");

/*
 * Length of the UTF-8 sequence at `p` (RFC 3629: shortest form, no surrogates), 0 if it is none.
 * One of U+0080 to U+009F counts as none: a terminal obeys it.
 */
static size_t utf8_length(const uint8_t *p, size_t length)
{
    static const struct {
        uint8_t first_low, first_high, second_low, second_high, length;
    } rows[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xc2, 0xa0, 0xbf, 2}, {0xc3, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
        {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (p[0] < rows[i].first_low || p[0] > rows[i].first_high)
            continue;
        if (rows[i].length > length)
            return 0;
        if (rows[i].length > 1 && (p[1] < rows[i].second_low || p[1] > rows[i].second_high))
            return 0;
        for (size_t k = 2; k < rows[i].length; k++)
            if (p[k] < 0x80 || p[k] > 0xbf)
                return 0;
        return rows[i].length;
    }
    return 0;
}

static char *put_replacement(char *out)
{
    memcpy(out, "\xef\xbf\xbd", 3);
    return out + 3;
}

/* Copies the UTF-8 sequence at p[*at], or what stands for a byte that begins none. */
static char *copy_sequence(char *out, const uint8_t *p, size_t *at, size_t length)
{
    size_t bytes = utf8_length(p + *at, length - *at);
    if (!bytes) {
        ++*at;
        return put_replacement(out);
    }
    memcpy(out, p + *at, bytes);
    *at += bytes;
    return out + bytes;
}

char *json_escape(char *out, const char *text, size_t length)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t *p = (const uint8_t *)text;
    *out++ = '"';
    for (size_t at = 0; at < length;) {
        uint8_t c = p[at];
        if (c >= ' ' && c < 0x7f) {
            if (c == '"' || c == '\\')
                *out++ = '\\';
            *out++ = (char)c;
            at++;
        } else if (c < ' ' || c == 0x7f) {
            memcpy(out, "\\u00", 4);
            out[4] = hex[c >> 4];
            out[5] = hex[c & 15];
            out += 6;
            at++;
        } else {
            out = copy_sequence(out, p, &at, length);
        }
    }
    *out++ = '"';
    return out;
}

char *json_string(const char *text, size_t length)
{
    char *data = malloc(json_escape_bytes_max(length) + 1 + JSON_COPY_BYTES);
    if (!data)
        return NULL;
    char *end = json_escape(data, text, length);
    *end = '\0';
    char *smaller = realloc(data, (size_t)(end - data) + 1 + JSON_COPY_BYTES);
    return smaller ? smaller : data;
}

/* The controls of C1, and the marks that turn the order of what follows around, on a line of ours.
 */
static bool is_obeyed(const uint8_t *p, size_t left)
{
    if (left >= 2 && p[0] == 0xc2)
        return p[1] >= 0x80 && p[1] < 0xa0;
    return left >= 3 && p[0] == 0xe2 &&
           ((p[1] == 0x80 && p[2] >= 0xaa && p[2] <= 0xae) ||
            (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
}

char *json_clean(const char *text, size_t length)
{
    const uint8_t *p = (const uint8_t *)text;
    char *data = malloc(3 * length + 1);
    char *out = data;
    if (!data)
        return NULL;
    for (size_t at = 0; at < length;) {
        if ((p[at] < ' ' && p[at] != '\t' && p[at] != '\n') || p[at] == 0x7f) {
            out = put_replacement(out);
            at++;
        } else if (is_obeyed(p + at, length - at)) {
            out = put_replacement(out);
            at += p[at] == 0xc2 ? 2 : 3;
        } else {
            out = copy_sequence(out, p, &at, length);
        }
    }
    *out = '\0';
    return data;
}

char *json_line(const char *text)
{
    char *line = json_clean(text, strlen(text));
    for (char *p = line; p && *p; p++)
        if (*p == '\t' || *p == '\n')
            *p = ' ';
    return line;
}

/* The number of decimal digits of `value`, at least 1. */
static unsigned decimal_digits(uint64_t value)
{
    static const uint64_t powers[20] = {0,
                                        10,
                                        100,
                                        1000,
                                        10000,
                                        100000,
                                        1000000,
                                        10000000,
                                        100000000,
                                        1000000000,
                                        10000000000,
                                        100000000000,
                                        1000000000000,
                                        10000000000000,
                                        100000000000000,
                                        1000000000000000,
                                        10000000000000000,
                                        100000000000000000,
                                        1000000000000000000,
                                        10000000000000000000u};
    unsigned guess = (unsigned)(64 - __builtin_clzll(value | 1)) * 1233 >> 12;
    return guess + (guess == 0 || value >= powers[guess]);
}

/* Most numbers of an event are small; of the others four digits are made at a time. */
char *json_decimal(char *out, uint64_t value)
{
    if (value < 10) {
        *out = (char)('0' + value);
        return out + 1;
    }
    char *end = out + decimal_digits(value);
    char *p = end;
    for (; value >= 10000; value /= 10000) {
        unsigned four = (unsigned)(value % 10000);
        p -= 4;
        memcpy(p, json_digit_pairs + 2 * (four / 100), 2);
        memcpy(p + 2, json_digit_pairs + 2 * (four % 100), 2);
    }
    unsigned rest = (unsigned)value;
    if (rest >= 100) {
        p -= 2;
        memcpy(p, json_digit_pairs + 2 * (rest % 100), 2);
        rest /= 100;
    }
    if (rest >= 10)
        memcpy(p - 2, json_digit_pairs + 2 * rest, 2);
    else
        p[-1] = (char)('0' + rest);
    return end;
}

/* The 8 hexadecimal digits of `value` as 8 bytes, all at once. */
static void hex_digits(char *out, uint32_t value)
{
    uint64_t x = value;
    x = (x & 0xffff0000u) << 16 | (x & 0xffffu);
    x = (x & 0x0000ff000000ff00u) << 8 | (x & 0x000000ff000000ffu);
    x = (x & 0x00f000f000f000f0u) << 4 | (x & 0x000f000f000f000fu);
    uint64_t letters = (x + 0x0606060606060606u) >> 4 & 0x0101010101010101u; /* 1 from 10 on */
    x += 0x3030303030303030u + letters * ('a' - '0' - 10);
    x = htobe64(x);
    memcpy(out, &x, sizeof x);
}

char *json_hex(char *out, uint64_t value)
{
    unsigned digits = value ? (unsigned)(67 - __builtin_clzll(value)) / 4 : 1;
    char text[32] = {0};
    hex_digits(text, (uint32_t)(value >> 32));
    hex_digits(text + 8, (uint32_t)value);
    memcpy(out, "0x", 2);
    memcpy(out + 2, text + 16 - digits, 16);
    return out + 2 + digits;
}
