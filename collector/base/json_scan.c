/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_scan.h"

#include <errno.h>
#include <stdlib.h>
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
            const char digits[] = {p[2], p[3], p[4], p[5], '\0'};
            unsigned long code = strtoul(digits, NULL, 16);
            *out++ = code < 0x80 ? (char)code : '?'; /* gpuprof escapes only control characters */
            p += 6;
        } else {
            *out++ = known && *known ? to[known - from] : p[1];
            p += 2;
        }
    }
    return (size_t)(out - begin);
}

#define NUMBER_BYTES 32 /* of a number's text and its terminator; longer ones are cut */

static char *number_text(struct json_piece piece, char text[static NUMBER_BYTES])
{
    size_t length = piece.length < NUMBER_BYTES ? piece.length : NUMBER_BYTES - 1;
    memcpy(text, piece.at, length);
    text[length] = '\0';
    return text;
}

bool json_whole(struct json_piece piece, int64_t *value)
{
    char text[NUMBER_BYTES], *end;
    errno = 0;
    *value = strtoll(number_text(piece, text), &end, 10);
    return end > text && !*end && !errno;
}

double json_double(struct json_piece piece)
{
    char text[NUMBER_BYTES];
    return strtod(number_text(piece, text), NULL);
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
