/* SPDX-License-Identifier: Apache-2.0 */
#include "control_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_HEAD   "gpuprof-control 1\n"
#define STATUS_HEAD "gpuprof-status 1\n"
#define END         "end\n" /* without it the file is not whole */
#define ID_DIGITS   16

static const char *const words[] = {[CONTROL_START] = "start\n",
                                    [CONTROL_STOP] = "stop\n",
                                    [CONTROL_STATUS] = "status\n",
                                    [CONTROL_DUMP] = "dump\n"};
enum { WORDS = sizeof words / sizeof words[0] };

/* What is left of a file; nothing is read beyond `end`. */
struct rest {
    const char *at, *end;
};

static bool take(struct rest *r, const char *text)
{
    size_t length = strlen(text);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, text, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool take_hex(struct rest *r, uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    if ((size_t)(r->end - r->at) < 2 * count)
        return false;
    for (size_t i = 0; i < 2 * count; i++) {
        const char *digit = memchr(digits, r->at[i], 16);
        if (!digit)
            return false;
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (digit - digits));
    }
    r->at += 2 * count;
    return true;
}

static bool take_id(struct rest *r, uint64_t *id)
{
    uint8_t bytes[ID_DIGITS / 2] = {0};
    if (!take_hex(r, bytes, sizeof bytes))
        return false;
    *id = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        *id = *id << 8 | bytes[i];
    return true;
}

static bool take_command(struct rest *r, struct control_command *c)
{
    memset(c, 0, sizeof *c);
    if (!take_id(r, &c->id) || !take(r, " "))
        return false;
    c->is_for_all = take(r, "all");
    if ((!c->is_for_all && !take_hex(r, c->process_id, sizeof c->process_id)) || !take(r, " "))
        return false;
    for (unsigned i = 0; i < WORDS; i++)
        if (take(r, words[i])) {
            c->what = (enum control_what)i;
            return true;
        }
    return false;
}

bool control_text_parse(struct control_text *text, const char *data, size_t bytes)
{
    struct rest r = {data, data + bytes};
    text->count = 0;
    if (bytes > CONTROL_BYTES_MAX || !take(&r, TEXT_HEAD))
        return false;
    while (!take(&r, END))
        if (text->count == CONTROL_COMMANDS_MAX ||
            !take_command(&r, &text->commands[text->count++]))
            return false;
    return r.at == r.end;
}

bool control_status_parse(struct control_status *s, const char *data, size_t bytes)
{
    struct rest r = {data, data + bytes};
    memset(s, 0, sizeof *s);
    if (bytes > CONTROL_BYTES_MAX || !take(&r, STATUS_HEAD) || !take(&r, "process ") ||
        !take_hex(&r, s->process_id, sizeof s->process_id) || !take(&r, "\nstopped ") ||
        r.at == r.end || *r.at < '0' || *r.at > '7')
        return false;
    s->stopped = (uint32_t)(*r.at++ - '0');
    if (!take(&r, "\n"))
        return false;
    s->has_flight = take(&r, "dumps ");
    if (s->has_flight && (!take_id(&r, &s->dumps) || !take(&r, "\n")))
        return false;
    while (!take(&r, END))
        if (s->count == CONTROL_COMMANDS_MAX || !take(&r, "answered ") ||
            !take_id(&r, &s->answered[s->count++]) || !take(&r, "\n"))
            return false;
    return r.at == r.end;
}

__attribute__((format(printf, 3, 4))) static void put(char *out, size_t *at, const char *format,
                                                      ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(out + *at, CONTROL_BYTES_MAX - *at, format, list);
    va_end(list);
    *at += length > 0 ? (size_t)length : 0; /* there is room: 32 lines of less than 60 bytes */
}

static void put_process(char *out, size_t *at, const uint8_t id[16])
{
    for (unsigned i = 0; i < 16; i++)
        put(out, at, "%02x", id[i]);
}

size_t control_text_write(const struct control_text *text, char *out)
{
    size_t at = 0;
    put(out, &at, TEXT_HEAD);
    for (unsigned i = 0; i < text->count; i++) {
        const struct control_command *c = &text->commands[i];
        put(out, &at, "%016llx ", (unsigned long long)c->id);
        if (c->is_for_all)
            put(out, &at, "all");
        else
            put_process(out, &at, c->process_id);
        put(out, &at, " %s", words[c->what]);
    }
    put(out, &at, END);
    return at;
}

size_t control_status_write(const struct control_status *s, char *out)
{
    size_t at = 0;
    put(out, &at, STATUS_HEAD "process ");
    put_process(out, &at, s->process_id);
    put(out, &at, "\nstopped %u\n", s->stopped & 7);
    if (s->has_flight)
        put(out, &at, "dumps %016llx\n", (unsigned long long)s->dumps);
    for (unsigned i = 0; i < s->count; i++)
        put(out, &at, "answered %016llx\n", (unsigned long long)s->answered[i]);
    put(out, &at, END);
    return at;
}

void control_text_add(struct control_text *text, const struct control_command *command)
{
    unsigned lasting = CONTROL_COMMANDS_MAX, oldest = 0;
    for (unsigned i = 0; i < text->count; i++)
        if (text->commands[i].is_for_all && control_lasts(text->commands[i].what))
            lasting = i;
    if (text->count == CONTROL_COMMANDS_MAX) {
        oldest = lasting == 0;
        memmove(&text->commands[oldest], &text->commands[oldest + 1],
                (--text->count - oldest) * sizeof text->commands[0]);
    }
    text->commands[text->count++] = *command;
}

bool control_text_has(const struct control_text *text, uint64_t id)
{
    for (unsigned i = 0; i < text->count; i++)
        if (text->commands[i].id == id)
            return true;
    return false;
}
