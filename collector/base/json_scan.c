/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_scan.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == ':';
}

/* Returns the end of the string that begins at `at`. */
static const char *skip_string(const char *at, const char *end)
{
    const char *quote = ++at < end ? memchr(at, '"', (size_t)(end - at)) : NULL;
    if (quote && quote[-1] != '\\')
        return quote + 1;
    for (; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

/* Returns the end of the value that begins at `at`. */
static const char *skip_value(const char *at, const char *end)
{
    unsigned depth = 0;
    if (*at == '"')
        return skip_string(at, end);
    while (at < end) {
        char c = *at;
        if (c == '"') {
            at = skip_string(at, end);
            continue;
        }
        if (!depth && (c == ',' || c == '}' || c == ']'))
            return at;
        depth += c == '{' || c == '[';
        at++;
        if ((c == '}' || c == ']') && !--depth)
            return at;
    }
    return end;
}

bool json_next(const char **at, const char *end, struct json_piece *key, struct json_piece *value)
{
    const char *p = *at;
    while (p < end && is_space(*p))
        p++;
    *key = (struct json_piece){p, 0};
    if (p >= end || *p == '}' || *p == ']')
        return false;
    const char *behind = skip_value(p, end);
    if (*p == '"' && behind < end && *behind == ':') {
        key->length = (size_t)(behind - p);
        for (p = behind; p < end && is_space(*p);)
            p++;
        if (p >= end)
            return false;
        behind = skip_value(p, end);
    }
    *at = behind;
    bool is_any = behind > p;
    while (behind > p && is_space(behind[-1])) /* spaces after a number from another program */
        behind--;
    *value = (struct json_piece){p, (size_t)(behind - p)};
    return is_any;
}

struct json_piece json_member(struct json_piece object, const char *key)
{
    const char *at = object.at + 1;
    size_t length = strlen(key);
    struct json_piece k, value;
    while (object.length && json_next(&at, object.at + object.length, &k, &value))
        if (k.length == length + 2 && memcmp(k.at + 1, key, length) == 0)
            return value;
    return (struct json_piece){NULL, 0};
}

static unsigned hex_digit(char c)
{
    return c >= 'a'   ? (unsigned)(c - 'a') + 10
           : c >= 'A' ? (unsigned)(c - 'A') + 10
                      : (unsigned)(c - '0');
}

/* gpuprof escapes only control characters like this; this writes at most three bytes. */
static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    if (code >= 0x800)
        *out++ = (char)(0xE0 | code >> 12);
    *out++ = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 63) : 0xC0 | code >> 6);
    *out++ = (char)(0x80 | (code & 63));
    return out;
}

size_t json_unescape(struct json_piece string, char *out)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *p = string.at + 1, *end = string.at + string.length - 1;
    char *begin = out;
    if (string.length < 2)
        return 0;
    while (p < end) {
        const char *plain = memchr(p, '\\', (size_t)(end - p));
        size_t length = (size_t)((plain ? plain : end) - p);
        memcpy(out, p, length);
        out += length;
        p += length;
        if (p + 1 >= end)
            break;
        const char *known = strchr(from, p[1]);
        if (p[1] == 'u' && end - p >= 6) {
            unsigned code = 0;
            for (unsigned i = 2; i < 6; i++)
                code = code << 4 | (hex_digit(p[i]) & 15);
            out = put_utf8(out, code);
            p += 6;
        } else {
            *out++ = known && *known ? to[known - from] : p[1];
            p += 2;
        }
    }
    return (size_t)(out - begin);
}

bool json_whole(struct json_piece piece, int64_t *value)
{
    size_t at = json_is(piece, '-');
    uint64_t sum = 0;
    if (at == piece.length || piece.length - at > 19)
        return false;
    for (size_t i = at; i < piece.length; i++) {
        if (piece.at[i] < '0' || piece.at[i] > '9')
            return false;
        sum = 10 * sum + (uint64_t)(piece.at[i] - '0');
    }
    if (sum > INT64_MAX)
        return false;
    *value = at ? -(int64_t)sum : (int64_t)sum;
    return true;
}

double json_double(struct json_piece piece)
{
    double sum = 0, scale = 1;
    int exponent = 0;
    bool behind = false, negative = json_is(piece, '-'), shrinks = false;
    size_t i = negative;
    for (; i < piece.length && (piece.at[i] | 32) != 'e'; i++) {
        if (piece.at[i] == '.') {
            behind = true;
            continue;
        }
        sum = 10 * sum + (piece.at[i] - '0');
        scale *= behind ? 10 : 1;
    }
    for (i++; i < piece.length; i++) {
        shrinks |= piece.at[i] == '-';
        if (piece.at[i] >= '0' && piece.at[i] <= '9' && exponent < 400)
            exponent = 10 * exponent + (piece.at[i] - '0');
    }
    for (; exponent > 0; exponent--)
        sum = shrinks ? sum / 10 : sum * 10;
    return (negative ? -sum : sum) / scale;
}

uint64_t json_ns(struct json_piece piece)
{
    uint64_t sum = 0;
    unsigned behind = 0;
    for (size_t i = 0; i < piece.length && behind < 4; i++) {
        if (piece.at[i] == '.') {
            behind = 1;
            continue;
        }
        sum = 10 * sum + (uint64_t)(piece.at[i] - '0');
        behind += behind > 0;
    }
    for (behind = behind ? behind : 1; behind < 4; behind++)
        sum *= 10;
    return sum;
}
