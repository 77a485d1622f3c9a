/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include <assert.h>
#include <string.h>

#include "argument_kind.h"
#include "bytes.h"
#include "error.h"

_Static_assert(RECORD_WORDS_MAX < 65536, "a record's word count is 16 bits");

const struct counter_info counter_infos[COUNTER_COUNT] = {
#define COUNTER(NAME, name, loss, meaning) {name, loss, meaning},
#include "counters.def"
#undef COUNTER
};

#define ARG(ENUMERATOR, label, kind, ...) {ARG_##kind, #label},
#define EVENT(NAME, number, name, shows, arguments, ...)                                           \
    static const struct event_arg args_##NAME[] = {arguments{0, NULL}};                            \
    _Static_assert((int)RECORD_##NAME##_ARGS <= RECORD_ARGS_MAX, name ": too many arguments");
#include "events.def"

const uint8_t event_shows[UINT8_MAX + 1] = {
#define EVENT(NAME, number, name, shows, ...) [number] = EVENT_##shows,
#include "events.def"
};

static const struct event_info event_infos[] = {
#define EVENT(NAME, number, name, ...) {number, RECORD_##NAME##_ARGS, name, args_##NAME},
#include "events.def"
};

const struct event_info *event_info(unsigned type)
{
    for (size_t i = 0; i < sizeof event_infos / sizeof event_infos[0]; i++)
        if (event_infos[i].type == type)
            return &event_infos[i];
    return NULL;
}

int record_lay_out(const uint8_t *data, size_t length, uint64_t word0, struct record_layout *l)
{
    uint32_t words = record_word_count(word0), arg_count = word0 >> 48 & 0xff;
    if (words < RECORD_HEAD_WORDS || words > RECORD_WORDS_MAX || !(word0 & 0xff) ||
        arg_count > RECORD_ARGS_MAX)
        return GPUPROF_DAMAGED;
    if (words * 8 > length)
        return GPUPROF_TRUNCATED;
    uint32_t at = RECORD_HEAD_WORDS + !!(word0 >> 8 & RECORD_EXTENDED);
    *l = (struct record_layout){.words = words, .arguments_at = at};
    at += arg_count;
    if (at > words)
        return GPUPROF_DAMAGED;
    if (!(word0 >> 8 & RECORD_BYTES))
        return 0;
    uint64_t count = at < words ? load_u64(data + 8 * at) : UINT64_MAX;
    if (count > RECORD_BYTES_MAX || count > 8 * (words - at - 1))
        return GPUPROF_DAMAGED;
    l->text_at = at;
    l->byte_count = (uint32_t)count;
    return 0;
}

int record_parse(const uint8_t *data, size_t length, struct record *r)
{
    struct record_layout l;
    if (length < RECORD_HEAD_WORDS * 8)
        return GPUPROF_TRUNCATED;
    uint64_t word0 = load_u64(data);
    int error = record_lay_out(data, length, word0, &l);
    if (error < 0)
        return error;
    memset(r, 0, offsetof(struct record, args));
    r->type = (uint8_t)word0;
    r->flags = (uint8_t)(word0 >> 8);
    r->code = (uint16_t)(word0 >> 32);
    r->arg_count = (uint8_t)(word0 >> 48);
    r->begin = load_u64(data + 8);
    r->duration = load_u64(data + 16);
    uint64_t word3 = load_u64(data + 24);
    r->result = (int32_t)(uint32_t)word3;
    r->correlation = (uint32_t)(word3 >> 32);
    if (r->flags & RECORD_EXTENDED) {
        uint64_t word4 = load_u64(data + 8 * RECORD_HEAD_WORDS);
        r->stack_id = (uint32_t)word4;
        r->weight = (uint32_t)(word4 >> 32);
    }
    for (unsigned i = 0; i < r->arg_count; i++)
        r->args[i] = load_u64(data + 8 * (l.arguments_at + i));
    r->bytes = l.text_at ? data + 8 * (l.text_at + 1) : NULL;
    r->byte_count = l.byte_count;
    return (int)(l.words * 8);
}

static unsigned written_flags(const struct record *r)
{
    unsigned flags = r->flags & ~(RECORD_EXTENDED | RECORD_BYTES | RECORD_OPEN);
    if (r->stack_id || r->weight > 1)
        flags |= RECORD_EXTENDED;
    if (r->byte_count)
        flags |= RECORD_BYTES;
    return flags;
}

size_t record_bytes(const struct record *r)
{
    size_t words =
        RECORD_HEAD_WORDS + !!(written_flags(r) & RECORD_EXTENDED) + (size_t)r->arg_count;
    if (r->byte_count)
        words += 1 + (r->byte_count + 7) / 8;
    return 8 * words;
}

int record_write(const struct record *r, uint8_t *data, size_t capacity)
{
    assert(r->arg_count <= RECORD_ARGS_MAX && r->byte_count <= RECORD_BYTES_MAX);
    unsigned flags = written_flags(r);
    size_t words = record_bytes(r) / 8;
    if (words * 8 > capacity)
        return GPUPROF_LIMIT;
    struct byte_writer w = byte_writer(data, words * 8);
    put_u64(&w, record_word0(r->type, flags, (unsigned)words, r->code, r->arg_count));
    put_u64(&w, r->begin);
    put_u64(&w, r->duration);
    put_u64(&w, (uint32_t)r->result | (uint64_t)r->correlation << 32);
    if (flags & RECORD_EXTENDED)
        put_u64(&w, r->stack_id | (uint64_t)r->weight << 32);
    for (unsigned i = 0; i < r->arg_count; i++)
        put_u64(&w, r->args[i]);
    if (r->byte_count) {
        put_u64(&w, r->byte_count);
        put_bytes(&w, r->bytes, r->byte_count);
        while (w.length < words * 8)
            put_u8(&w, 0);
    }
    assert(!w.failed && w.length == words * 8);
    return (int)w.length;
}
