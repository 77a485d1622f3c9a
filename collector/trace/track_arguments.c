/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/track_packets.h"

#include <string.h>

#define TRACK_ARGUMENTS_VERSION "1"

#define NAME_FILE    "gpuprof/arguments" TRACK_ARGUMENTS_VERSION ".proto"
#define NAME_PACKAGE "gpuprof"
#define NAME_MESSAGE "Arguments" TRACK_ARGUMENTS_VERSION

enum argument_kind { ARGUMENT_WHOLE, ARGUMENT_WHOLES, ARGUMENT_FRACTION };

static const struct argument {
    const char *key; /* with quotes */
    enum argument_kind kind;
} arguments[] = {
#define TRACK_ARGUMENT(key, kind) {"\"" key "\"", kind},
#include "trace/track_arguments.def"
#undef TRACK_ARGUMENT
};

#define ARGUMENTS (sizeof arguments / sizeof *arguments)

bool track_arguments_number(struct text_numbers *keys)
{
    bool is_new = true;
    for (size_t i = 0; is_new && i < ARGUMENTS; i++)
        (void)text_number(keys, arguments[i].key, strlen(arguments[i].key), &is_new);
    return is_new;
}

bool track_argument_is(uint32_t number)
{
    return number && number <= ARGUMENTS;
}

static void track_arguments_put_string(struct packet *p, unsigned field, const char *text)
{
    packet_bytes(p, field, text, strlen(text));
}

/* Writes a key in the form of trace_processor's annotation keys. */
static void track_arguments_put_key(struct packet *p, const char *key)
{
    char text[64];
    size_t length = 0;
    for (key++; *key != '"'; key++)
        text[length++] = strchr(".[]", *key) ? '_' : *key;
    packet_bytes(p, FIELD_NAME, text, length);
}

void track_arguments_describe(struct packet *p)
{
    size_t extension = packet_open(p, PACKET_EXTENSION);
    size_t set = packet_open(p, EXTENSION_SET);
    size_t file = packet_open(p, SET_FILE);
    track_arguments_put_string(p, FILE_NAME, NAME_FILE);
    track_arguments_put_string(p, FILE_PACKAGE, NAME_PACKAGE);
    size_t message = packet_open(p, FILE_MESSAGE);
    track_arguments_put_string(p, MESSAGE_NAME, NAME_MESSAGE);
    for (unsigned i = 0; i < ARGUMENTS; i++) {
        enum argument_kind kind = arguments[i].kind;
        size_t field = packet_open(p, MESSAGE_FIELD);
        track_arguments_put_key(p, arguments[i].key);
        packet_number(p, FIELD_NUMBER, i + 1);
        packet_number(p, FIELD_LABEL, kind == ARGUMENT_WHOLES ? LABEL_REPEATED : LABEL_OPTIONAL);
        packet_number(p, FIELD_TYPE, kind == ARGUMENT_FRACTION ? FIELD_DOUBLE : FIELD_INT64);
        packet_close(p, field);
    }
    packet_close(p, message);
    size_t debug = packet_open(p, FILE_EXTENSION);
    track_arguments_put_string(p, FIELD_NAME, "debug");
    track_arguments_put_string(p, FIELD_EXTENDEE, ".perfetto.protos.TrackEvent");
    packet_number(p, FIELD_NUMBER, EVENT_ARGUMENTS);
    packet_number(p, FIELD_LABEL, LABEL_OPTIONAL);
    packet_number(p, FIELD_TYPE, FIELD_MESSAGE);
    track_arguments_put_string(p, FIELD_TYPE_NAME, "." NAME_PACKAGE "." NAME_MESSAGE);
    packet_close(p, debug);
    packet_close(p, file);
    packet_close(p, set);
    packet_close(p, extension);
}

/* Adds the items of an array. Returns false, adding nothing, unless all are whole numbers and there
 * are some. */
static bool put_wholes(struct packet *p, uint32_t field, struct json_piece array)
{
    const char *at = array.at + 1, *end = array.at + array.length;
    struct json_piece key, item;
    size_t before = p->used;
    int64_t number;
    while (json_is(array, '[') && json_next(&at, end, &key, &item)) {
        if (!json_whole(item, &number)) {
            p->used = before;
            return false;
        }
        packet_number(p, field, (uint64_t)number);
    }
    return p->used > before;
}

bool track_argument_put(struct packet *p, uint32_t number, struct json_piece value)
{
    int64_t whole;
    if (!track_argument_is(number))
        return false;
    enum argument_kind kind = arguments[number - 1].kind;
    if (kind == ARGUMENT_WHOLES)
        return put_wholes(p, number, value);
    bool is_whole = json_whole(value, &whole);
    bool is_number = value.length && (*value.at == '-' || (*value.at >= '0' && *value.at <= '9'));
    if (!is_number || is_whole != (kind == ARGUMENT_WHOLE))
        return false;
    if (is_whole)
        packet_number(p, number, (uint64_t)whole);
    else
        packet_double(p, number, json_double(value));
    return true;
}
