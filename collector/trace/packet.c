/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/packet.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"

#define VARINT_BYTES_MAX 10
#define FIRST_BYTES      4096

enum wire { WIRE_VARINT, WIRE_64, WIRE_BYTES };

void packet_release(struct packet *p)
{
    free(p->bytes);
    *p = (struct packet){0};
}

void *packet_room(struct packet *p, size_t bytes)
{
    size_t capacity = p->capacity ? p->capacity : FIRST_BYTES;
    while (capacity < p->used + bytes)
        capacity *= 2;
    if (capacity > p->capacity)
        p->bytes = memory_resize(p->bytes, capacity, 1);
    p->capacity = capacity;
    return p->bytes + p->used;
}

void packet_append(struct packet *p, const void *data, size_t length)
{
    if (!length || !packet_room(p, length))
        return;
    memcpy(p->bytes + p->used, data, length);
    p->used += length;
}

static size_t put_varint(uint8_t *out, uint64_t value)
{
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        out[length++] = (uint8_t)(value | 0x80);
    out[length++] = (uint8_t)value;
    return length;
}

/* Writes a tag and makes room for `bytes` after it. */
static bool put_tag(struct packet *p, unsigned field, enum wire wire, size_t bytes)
{
    if (!packet_room(p, 2 * VARINT_BYTES_MAX + bytes))
        return false;
    p->used += put_varint(p->bytes + p->used, (uint64_t)field << 3 | wire);
    return true;
}

void packet_number(struct packet *p, unsigned field, uint64_t value)
{
    if (put_tag(p, field, WIRE_VARINT, 0))
        p->used += put_varint(p->bytes + p->used, value);
}

void packet_double(struct packet *p, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!put_tag(p, field, WIRE_64, sizeof bits))
        return;
    for (unsigned i = 0; i < sizeof bits; i++)
        p->bytes[p->used++] = (uint8_t)(bits >> 8 * i);
}

void packet_bytes(struct packet *p, unsigned field, const void *data, size_t length)
{
    if (!put_tag(p, field, WIRE_BYTES, length))
        return;
    p->used += put_varint(p->bytes + p->used, length);
    if (length)
        memcpy(p->bytes + p->used, data, length);
    p->used += length;
}

void packet_string(struct packet *p, unsigned field, struct json_piece string)
{
    if (string.length > 1 && !memchr(string.at, '\\', string.length)) {
        packet_bytes(p, field, string.at + 1, string.length - 2);
        return;
    }
    char *plain = malloc(string.length + 1);
    p->failed |= !plain;
    packet_bytes(p, field, plain, plain ? json_unescape(string, plain) : 0);
    free(plain);
}

/* Reserves one byte for the length; packet_close makes more room if needed. */
size_t packet_open(struct packet *p, unsigned field)
{
    if (!put_tag(p, field, WIRE_BYTES, 1))
        return 0;
    return ++p->used;
}

void packet_close(struct packet *p, size_t opened)
{
    uint8_t text[VARINT_BYTES_MAX];
    size_t length = p->used - opened;
    if (p->failed || !packet_room(p, VARINT_BYTES_MAX))
        return;
    size_t bytes = put_varint(text, length);
    if (bytes > 1)
        memmove(p->bytes + opened + bytes - 1, p->bytes + opened, length);
    memcpy(p->bytes + opened - 1, text, bytes);
    p->used += bytes - 1;
}

/* ---- numbers of texts -------------------------------------------------------------------------
 */

void text_numbers_release(struct text_numbers *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->texts[i].text);
    free(t->texts);
    number_set_release(&t->set);
    *t = (struct text_numbers){0};
}

static uint32_t text_hash_of(const void *item)
{
    return ((const struct text_number *)item)->hash;
}

static bool text_is_same(const void *left, const void *right)
{
    const struct text_number *a = left, *b = right;
    return a->hash == b->hash && a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

uint32_t text_number(struct text_numbers *t, const char *text, size_t length, bool *is_new)
{
    static const struct number_kind kind = {sizeof(struct text_number), 0, text_hash_of,
                                            text_is_same};
    struct text_number wanted = {(char *)text, (uint32_t)length, text_hash(text, length)};
    uint32_t *number = number_set_find(&t->set, &kind, t->texts, t->count, &wanted);
    *is_new = false;
    if (!number || *number)
        return number ? *number : 0;
    if (t->count == TEXT_NUMBERS_MAX || length >= TEXT_NUMBERS_BYTES - t->bytes)
        return 0;
    wanted.text = malloc(length + 1);
    if (!wanted.text || ARRAY_PUSH(t->texts, t->count, &wanted) < 0) {
        free(wanted.text);
        return 0;
    }
    memcpy(wanted.text, text, length);
    t->bytes += length;
    *is_new = true;
    return *number = t->count;
}
