/* SPDX-License-Identifier: Apache-2.0 */
#include "view/http_request.h"

#include <string.h>
#include <strings.h>

enum { BAD = 400, NOT_ALLOWED = 405, TOO_LARGE = 431, OTHER_VERSION = 505 };

bool http_text_is(struct http_text text, const char *expected)
{
    return strlen(expected) == text.length && memcmp(text.at, expected, text.length) == 0;
}

static bool is_name(struct http_text text, const char *name)
{
    return strlen(name) == text.length && strncasecmp(text.at, name, text.length) == 0;
}

/* The line up to its CR LF, which is taken off `rest`; any other control character is refused, but
 * for a tab. */
static bool take_line(struct http_text *rest, struct http_text *line)
{
    *line = *rest;
    for (size_t i = 0; i < rest->length; i++) {
        unsigned char c = (unsigned char)rest->at[i];
        if (c == '\r' && i + 1 < rest->length && rest->at[i + 1] == '\n') {
            line->length = i;
            rest->at += i + 2;
            rest->length -= i + 2;
            return true;
        }
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return false;
}

static bool is_token(struct http_text text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i], letter = (char)(c | 0x20);
        if (!(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9') &&
            !(c && strchr(others, c)))
            return false;
    }
    return text.length > 0;
}

/* The word up to a space, which goes, too. */
static struct http_text take_word(struct http_text *line)
{
    struct http_text word = *line;
    const char *space = memchr(line->at, ' ', line->length);
    word.length = space ? (size_t)(space - line->at) : line->length;
    size_t taken = word.length + (space != NULL);
    line->at += taken;
    line->length -= taken;
    return word;
}

static int read_first_line(struct http_request *r, struct http_text line)
{
    struct http_text method = take_word(&line);
    r->target = take_word(&line);
    if (!is_token(method) || !r->target.length || r->target.at[0] != '/')
        return BAD;
    for (size_t i = 0; i < r->target.length; i++)
        if (r->target.at[i] <= ' ' || r->target.at[i] > '~')
            return BAD;
    r->is_head = http_text_is(method, "HEAD");
    r->keeps_open = http_text_is(line, "HTTP/1.1");
    if (!r->keeps_open && !http_text_is(line, "HTTP/1.0"))
        return line.length == 8 && memcmp(line.at, "HTTP/", 5) == 0 ? OTHER_VERSION : BAD;
    return r->is_head || http_text_is(method, "GET") ? 0 : NOT_ALLOWED;
}

static struct http_text trimmed(struct http_text text)
{
    while (text.length && (*text.at == ' ' || *text.at == '\t')) {
        text.at++;
        text.length--;
    }
    while (text.length && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
        text.length--;
    return text;
}

static int read_header(struct http_request *r, struct http_text line)
{
    const char *colon = memchr(line.at, ':', line.length);
    size_t length = colon ? (size_t)(colon - line.at) : 0;
    struct http_text name = {line.at, length};
    struct http_text value = {line.at + length + 1, line.length - length - 1};
    /* A continued line begins with a space, which is no token either. */
    if (!colon || !is_token(name))
        return BAD;
    value = trimmed(value);
    if (is_name(name, "Host")) {
        if (r->host.at)
            return BAD;
        r->host = value;
    } else if (is_name(name, "Transfer-Encoding") ||
               (is_name(name, "Content-Length") && !http_text_is(value, "0"))) {
        return BAD;
    } else if (is_name(name, "Connection") && is_name(value, "close")) {
        r->keeps_open = false;
    }
    return 0;
}

int http_request_read(struct http_request *r, const char *bytes, size_t length)
{
    struct http_text rest = {bytes, length}, line;
    *r = (struct http_request){0};
    const char *end = memmem(bytes, length, "\r\n\r\n", 4);
    if (!end || (size_t)(end - bytes) + 4 > HTTP_REQUEST_BYTES)
        return length >= HTTP_REQUEST_BYTES ? TOO_LARGE : 0;
    r->bytes = (size_t)(end - bytes) + 4;
    rest.length = r->bytes;
    if (!take_line(&rest, &line))
        return BAD;
    int status = read_first_line(r, line);
    for (unsigned headers = 0; rest.length > 2; headers++) {
        if (headers == HTTP_HEADERS_MAX)
            return TOO_LARGE;
        if (!take_line(&rest, &line) || read_header(r, line) != 0)
            return BAD;
    }
    return status ? status : r->host.at ? 200 : BAD;
}
