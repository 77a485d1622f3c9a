/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "bytes.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* The rows for tens or hundreds digit `d`; `zeros` counts the leading zeros. */
#define ONES(d, zeros)                                                                             \
    d "0" zeros d "1" zeros d "2" zeros d "3" zeros d "4" zeros d "5" zeros d "6" zeros d          \
      "7" zeros d "8" zeros d "9" zeros
#define TENS(d, zeros)                                                                             \
    ONES(d "1", zeros)                                                                             \
    ONES(d "2", zeros)                                                                             \
    ONES(d "3", zeros)                                                                             \
    ONES(d "4", zeros)                                                                             \
    ONES(d "5", zeros) ONES(d "6", zeros) ONES(d "7", zeros) ONES(d "8", zeros) ONES(d "9", zeros)
#define HUNDRED(d) ONES(d "0", "\0") TENS(d, "\0")

const char json_triples[4 * 1000 + 1] = ONES("00", "\2") TENS("0", "\1") HUNDRED("1") HUNDRED("2")
    HUNDRED("3") HUNDRED("4") HUNDRED("5") HUNDRED("6") HUNDRED("7") HUNDRED("8") HUNDRED("9");

/* Returns the length of the UTF-8 sequence at `p` (RFC 3629: shortest form, no surrogates), or 0 if
 * it is invalid. U+0080 to U+009F count as invalid: terminals obey them. */
static size_t utf8_length(const uint8_t *p, size_t length)
{
    static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
    unsigned bytes = p[0] < 0x80   ? 1
                     : p[0] < 0xc2 ? 0
                     : p[0] < 0xe0 ? 2
                     : p[0] < 0xf0 ? 3
                     : p[0] < 0xf5 ? 4
                                   : 0;
    uint32_t code = p[0] & (0x7fu >> bytes);
    for (unsigned i = 1; i < bytes; i++) {
        if (i == length || (p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3fu);
    }
    return code < least[bytes] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff ? 0 : bytes;
}

/* Copies the UTF-8 sequence at p[*at], or U+FFFD for an invalid byte. */
static char *copy_sequence(char *out, const uint8_t *p, size_t *at, size_t length)
{
    size_t bytes = utf8_length(p + *at, length - *at);
    if (!bytes) {
        ++*at;
        return stpcpy(out, REPLACEMENT);
    }
    memcpy(out, p + *at, bytes);
    *at += bytes;
    return out + bytes;
}

/* Returns true if eight bytes surely need no escape; false may be too careful. */
static bool is_plain(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t controls = (eight - ' ' * ones) | eight;
    return !((controls & 0x80 * ones) | json_find(eight, '"') | json_find(eight, '\\') |
             json_find(eight, 0x7f));
}

char *json_escape(char *out, const char *text, size_t length)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t *p = (const uint8_t *)text;
    *out++ = '"';
    for (size_t at = 0; at < length;) {
        uint8_t c = p[at];
        if (length - at >= 8 && is_plain(load_u64(p + at))) {
            memcpy(out, p + at, 8);
            out += 8;
            at += 8;
        } else if (c >= ' ' && c < 0x7f) {
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
    char *data = memory_new(1, json_escape_bytes_max(length) + 1 + JSON_COPY_BYTES);
    char *end = json_escape(data, text, length);
    *end = '\0';
    return memory_resize(data, 1, (size_t)(end - data) + 1 + JSON_COPY_BYTES);
}

void json_put(const char *text, FILE *out)
{
    char *string = text ? json_string(text, strlen(text)) : NULL;
    fputs(string ? string : "null", out);
    free(string);
}

void json_vprintf(FILE *out, json_put_fn *put, const char *format, va_list list)
{
    for (const char *at = format; *(at += fwrite(at, 1, strcspn(at, "%"), out)); at++) {
        int precision = -1;
        bool is_long = false;
        for (at++; strchr(".0123456789l", *at); at++) {
            is_long |= *at == 'l';
            if (*at == '.')
                precision = 0;
            else if (*at != 'l')
                precision = 10 * precision + *at - '0';
        }
        double real = strchr("fg", *at) ? va_arg(list, double) : 0;
        if (*at == 's')
            put(va_arg(list, const char *), out);
        else if (!isfinite(real))
            fputs("null", out);
        else if (*at == 'f')
            fprintf(out, "%.*f", precision, real);
        else if (*at == 'g')
            fprintf(out, "%.*g", precision, real);
        else if (*at == 'd')
            fprintf(out, "%lld", is_long ? va_arg(list, long long) : va_arg(list, int));
        else
            fprintf(out, "%llu",
                    is_long ? va_arg(list, unsigned long long) : va_arg(list, unsigned));
    }
}

void json_printf(FILE *out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    json_vprintf(out, json_put, format, list);
    va_end(list);
}

/* Likewise, but also replaces what a terminal may obey (controls and bidirectional marks), and what
 * XML forbids (U+FFFE and U+FFFF). */
static char *copy_clean(char *out, const uint8_t *p, size_t *at, size_t length)
{
    const uint8_t *c = p + *at;
    bool is_control = (c[0] < ' ' && c[0] != '\t' && c[0] != '\n') || c[0] == 0x7f;
    bool is_mark =
        length - *at >= 3 && ((c[0] == 0xe2 && c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) ||
                              (c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9) ||
                              (c[0] == 0xef && c[1] == 0xbf && c[2] >= 0xbe));
    if (!is_control && !is_mark)
        return copy_sequence(out, p, at, length);
    *at += is_mark ? 3 : 1;
    return stpcpy(out, REPLACEMENT);
}

char *json_clean(const char *text, size_t length)
{
    char *data = memory_new(3 * length + 1, 1), *out = data;
    for (size_t at = 0; at < length;)
        out = copy_clean(out, (const uint8_t *)text, &at, length);
    *out = '\0';
    return data;
}

char *xml_escape(char *out, const char *text, size_t length)
{
    static const char *const entities[128] = {
        ['&'] = "&amp;",  ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;",
        ['\''] = "&#39;", ['\n'] = " ",   ['\t'] = " "};
    const uint8_t *p = (const uint8_t *)text;
    for (size_t at = 0; at < length;) {
        if (p[at] < 128 && entities[p[at]]) {
            out = stpcpy(out, entities[p[at++]]);
            continue;
        }
        out = copy_clean(out, p, &at, length);
    }
    return out;
}

char *xml_string(const char *text)
{
    size_t length = strlen(text);
    char *data = memory_new(XML_ESCAPE_BYTES_MAX * length + 1, 1);
    *xml_escape(data, text, length) = '\0';
    return data;
}

/* Doubles the quotes, the only escape that a JSON value other than a string needs. */
static char *csv_quote(char *out, const char *next, const char *end)
{
    for (const char *quote; (quote = memchr(next, '"', (size_t)(end - next))); next = quote + 1) {
        out = mempcpy(out, next, (size_t)(quote + 1 - next));
        *out++ = '"';
    }
    return mempcpy(out, next, (size_t)(end - next));
}

char *csv_escape(char *out, const char *json, size_t length)
{
    bool is_string = *json == '"';
    *out++ = '"';
    if (!is_string)
        out = csv_quote(out, json, json + length);
    for (size_t i = 1; is_string && i + 1 < length; i++) {
        char byte = json[i];
        if (byte == '\\') {
            byte = json[++i];
            i += byte == 'u' ? 4 : 0;
            byte = byte == 'u' ? ' ' : byte;
        }
        if (byte == '"')
            *out++ = '"';
        *out++ = byte;
    }
    *out++ = '"';
    return out;
}

char *csv_string(const char *json)
{
    size_t length = strlen(json);
    char *text = memory_new(2 * length + 3, 1);
    *csv_escape(text, json, length) = '\0';
    return text;
}

char *json_real(char *out, double value, bool is_single)
{
    char text[32];
    int digits = is_single ? 6 : 15, most = is_single ? 9 : 17;
    int length;
    do
        length = snprintf(text, sizeof text, "%.*g", digits, value);
    while (digits++ < most &&
           (is_single ? strtof(text, NULL) != (float)value : strtod(text, NULL) != value));
    memcpy(out, text, (size_t)length);
    return out + length;
}

char *json_line(const char *text)
{
    char *line = json_clean(text, strlen(text));
    for (char *p = line; *p; p++)
        if (*p == '\t' || *p == '\n')
            *p = ' ';
    return line;
}

char *line_printf(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = text_vprintf(format, list);
    va_end(list);
    char *line = json_line(text);
    free(text);
    return line;
}

/* Numbers below 1000 copy four bytes of the table; the next digits overwrite the excess ones. */
char *json_decimal(char *out, uint64_t value)
{
    if (value >= 1000) {
        uint64_t thousands = value / 1000;
        out = json_decimal(out, thousands);
        return json_three(out, (unsigned)(value - 1000 * thousands));
    }
    uint32_t text = load_u32((const uint8_t *)json_triples + 4 * value);
    unsigned zeros = text >> 24;
    store_u32((uint8_t *)out, text >> 8 * zeros);
    return out + 3 - zeros;
}

char *json_hex(char *out, uint64_t value)
{
    unsigned digits = value ? (unsigned)(67 - __builtin_clzll(value)) / 4 : 1;
    memcpy(out, "0x", 2);
    for (unsigned i = digits; i > 0; i--, value >>= 4)
        out[1 + i] = "0123456789abcdef"[value & 15];
    return out + 2 + digits;
}

char *json_number(char *out, uint64_t value)
{
    if (value <= JSON_EXACT_MAX)
        return json_decimal(out, value);
    *out++ = '"';
    out = json_decimal(out, value);
    *out++ = '"';
    return out;
}

char *json_signed(char *out, uint64_t value)
{
    int64_t number = (int32_t)(uint32_t)value;
    if (number < 0)
        *out++ = '-';
    return json_decimal(out, (uint64_t)(number < 0 ? -number : number));
}

/* ---- reading --------------------------------------------------------------------------------- */

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
    if (length)
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
