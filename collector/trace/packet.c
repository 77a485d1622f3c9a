/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/packet.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

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
    memcpy(packet_room(p, length), data, length);
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

/* Writes a tag and a number after it, and makes room for `bytes` more. */
static void put_tag(struct packet *p, unsigned field, enum wire wire, uint64_t number, size_t bytes)
{
    uint8_t *out = packet_room(p, 2 * VARINT_BYTES_MAX + bytes);
    size_t length = put_varint(out, (uint64_t)field << 3 | wire);
    p->used += length + put_varint(out + length, number);
}

void packet_number(struct packet *p, unsigned field, uint64_t value)
{
    put_tag(p, field, WIRE_VARINT, value, 0);
}

void packet_double(struct packet *p, unsigned field, double value)
{
    uint8_t *out = packet_room(p, VARINT_BYTES_MAX + sizeof value);
    size_t length = put_varint(out, (uint64_t)field << 3 | WIRE_64);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = htole64(bits);
    memcpy(out + length, &bits, sizeof bits);
    p->used += length + sizeof bits;
}

void packet_bytes(struct packet *p, unsigned field, const void *data, size_t length)
{
    put_tag(p, field, WIRE_BYTES, length, length);
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
    char *plain = memory_new(string.length + 1, 1);
    packet_bytes(p, field, plain, json_unescape(string, plain));
    free(plain);
}

size_t packet_open(struct packet *p, unsigned field)
{
    put_tag(p, field, WIRE_BYTES, 0, 0); /* one byte for the length */
    return p->used;
}

void packet_close(struct packet *p, size_t opened)
{
    uint8_t text[VARINT_BYTES_MAX];
    size_t length = p->used - opened;
    packet_room(p, VARINT_BYTES_MAX);
    size_t bytes = put_varint(text, length);
    if (bytes > 1)
        memmove(p->bytes + opened + bytes - 1, p->bytes + opened, length);
    memcpy(p->bytes + opened - 1, text, bytes);
    p->used += bytes - 1;
}
