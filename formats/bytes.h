/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Little-endian loads and stores, and bounded cursors over byte ranges. Every byte that goes into
 * or comes out of a file passes through these. A cursor that would leave its range sets `failed`
 * and yields zeros from then on, so that a caller may test once after several steps.
 */
#ifndef GPUPROF_FORMATS_BYTES_H
#define GPUPROF_FORMATS_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VARINT_BYTES_MAX 10

static inline uint16_t load_u16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return le16toh(v);
}

static inline uint32_t load_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static inline uint64_t load_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static inline void store_u16(uint8_t *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof v);
}

static inline void store_u32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

static inline void store_u64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

static inline uint64_t zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

struct byte_writer {
    uint8_t *data;
    size_t length;
    size_t capacity;
    bool failed;
};

static inline struct byte_writer byte_writer(void *data, size_t capacity)
{
    return (struct byte_writer){.data = data, .capacity = capacity};
}

/* Reserves `count` bytes; NULL (and failed) if they do not fit. */
static inline uint8_t *put_space(struct byte_writer *w, size_t count)
{
    if (w->failed || count > w->capacity - w->length) {
        w->failed = true;
        return NULL;
    }
    uint8_t *p = w->data + w->length;
    w->length += count;
    return p;
}

static inline void put_bytes(struct byte_writer *w, const void *data, size_t count)
{
    uint8_t *p = put_space(w, count);
    if (p && count)
        memcpy(p, data, count);
}

static inline void put_u8(struct byte_writer *w, uint8_t v)
{
    put_bytes(w, &v, 1);
}

static inline void put_u16(struct byte_writer *w, uint16_t v)
{
    uint8_t *p = put_space(w, 2);
    if (p)
        store_u16(p, v);
}

static inline void put_u32(struct byte_writer *w, uint32_t v)
{
    uint8_t *p = put_space(w, 4);
    if (p)
        store_u32(p, v);
}

static inline void put_u64(struct byte_writer *w, uint64_t v)
{
    uint8_t *p = put_space(w, 8);
    if (p)
        store_u64(p, v);
}

/* LEB128, low group first. */
static inline void put_varint(struct byte_writer *w, uint64_t v)
{
    while (v >= 0x80) {
        put_u8(w, (uint8_t)(v | 0x80));
        v >>= 7;
    }
    put_u8(w, (uint8_t)v);
}

struct byte_reader {
    const uint8_t *data;
    size_t position;
    size_t length;
    bool failed;
};

static inline struct byte_reader byte_reader(const void *data, size_t length)
{
    return (struct byte_reader){.data = data, .length = length};
}

/* A view of the next `count` bytes; NULL (and failed) if there are not so many. */
static inline const uint8_t *get_space(struct byte_reader *r, size_t count)
{
    if (r->failed || count > r->length - r->position) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *p = r->data + r->position;
    r->position += count;
    return p;
}

static inline uint8_t get_u8(struct byte_reader *r)
{
    const uint8_t *p = get_space(r, 1);
    return p ? *p : 0;
}

static inline uint16_t get_u16(struct byte_reader *r)
{
    const uint8_t *p = get_space(r, 2);
    return p ? load_u16(p) : 0;
}

static inline uint32_t get_u32(struct byte_reader *r)
{
    const uint8_t *p = get_space(r, 4);
    return p ? load_u32(p) : 0;
}

static inline uint64_t get_u64(struct byte_reader *r)
{
    const uint8_t *p = get_space(r, 8);
    return p ? load_u64(p) : 0;
}

static inline uint64_t get_varint(struct byte_reader *r)
{
    size_t left = r->failed ? 0 : r->length - r->position;
    uint64_t v = 0;
    for (unsigned i = 0; i < VARINT_BYTES_MAX && i < left; i++) {
        uint8_t byte = r->data[r->position + i];
        if (i == VARINT_BYTES_MAX - 1 && byte > 1)
            break;
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        r->position += i + 1;
        return v;
    }
    r->failed = true;
    return 0;
}

#endif
