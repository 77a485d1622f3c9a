/* SPDX-License-Identifier: Apache-2.0 */
#include "column.h"

#include <assert.h>

#include "error.h"

#define DICT_SLOTS 1024 /* power of two, a few times COLUMN_DICT_MAX */

static unsigned byte_width(uint64_t bits)
{
    return bits ? (unsigned)(71 - __builtin_clzll(bits)) / 8 : 1;
}

/* Bits that a value needs after compression, whatever the width of its planes. */
static int bit_length(uint64_t value)
{
    return 64 - __builtin_clzll(value | 1);
}

static void put_planes(struct byte_writer *w, const uint64_t *values, size_t count, unsigned width)
{
    put_u8(w, (uint8_t)width);
    for (unsigned plane = 0; plane < width; plane++) {
        uint8_t *p = put_space(w, count);
        if (!p)
            return;
        for (size_t i = 0; i < count; i++)
            p[i] = (uint8_t)(values[i] >> (8 * plane));
    }
}

static size_t dict_hash(uint64_t value)
{
    return (size_t)((value * 0x9E3779B97F4A7C15u) >> 54) & (DICT_SLOTS - 1);
}

/*
 * Fills scratch with dictionary indexes and dict with the entries in order of first appearance.
 * Returns the number of entries, or 0 when there are more than COLUMN_DICT_MAX.
 */
static unsigned dict_make(const uint64_t *values, size_t count, uint64_t *scratch, uint64_t *dict)
{
    uint8_t slots[DICT_SLOTS] = {0}; /* entry number + 1 */
    unsigned entries = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = dict_hash(values[i]);
        while (slots[at] && dict[slots[at] - 1] != values[i])
            at = (at + 1) & (DICT_SLOTS - 1);
        if (!slots[at]) {
            if (entries == COLUMN_DICT_MAX)
                return 0;
            dict[entries++] = values[i];
            slots[at] = (uint8_t)entries;
        }
        scratch[i] = slots[at] - 1u;
    }
    return entries;
}

static bool put_dict(struct byte_writer *w, const uint64_t *values, uint64_t *scratch, size_t count,
                     unsigned plain_width)
{
    uint64_t dict[COLUMN_DICT_MAX];
    unsigned entries = dict_make(values, count, scratch, dict);
    if (!entries || 1 + 8 * (size_t)entries + count >= plain_width * count)
        return false;
    put_u8(w, COLUMN_DICT);
    put_u8(w, 1);
    put_u8(w, (uint8_t)entries);
    for (unsigned i = 0; i < entries; i++)
        put_u64(w, dict[i]);
    uint8_t *p = put_space(w, count);
    for (size_t i = 0; p && i < count; i++)
        p[i] = (uint8_t)scratch[i];
    return true;
}

void column_put_const(struct byte_writer *w, uint64_t value)
{
    put_u8(w, COLUMN_CONST);
    put_u8(w, 8);
    put_u64(w, value);
}

/* Returns false if the values are not sorted. */
static bool put_increase(struct byte_writer *w, const uint64_t *values, uint64_t *scratch,
                         size_t count)
{
    uint64_t increase = 0;
    uint64_t decreases = 0;
    scratch[0] = 0;
    for (size_t i = 1; i < count; i++) {
        decreases |= values[i] < values[i - 1];
        scratch[i] = values[i] - values[i - 1];
        increase |= scratch[i];
    }
    if (decreases)
        return false;
    put_u8(w, COLUMN_INCREASE);
    put_u64(w, values[0]);
    put_planes(w, scratch, count, byte_width(increase));
    return true;
}

/* Returns false if differences are not shorter than the values. */
static bool column_put_step(struct byte_writer *w, const uint64_t *values, uint64_t *scratch,
                            size_t count, unsigned plain_width)
{
    uint64_t steps = 0;
    int saved_bits = -64; /* the first value */
    scratch[0] = 0;
    for (size_t i = 1; i < count; i++) {
        scratch[i] = zigzag((int64_t)(values[i] - values[i - 1]));
        steps |= scratch[i];
        saved_bits += bit_length(values[i]) - bit_length(scratch[i]);
    }
    if (byte_width(steps) > plain_width || saved_bits <= 0)
        return false;
    put_u8(w, COLUMN_STEP);
    put_u64(w, values[0]);
    put_planes(w, scratch, count, byte_width(steps));
    return true;
}

/* Returns false if the begins are not closer to the previous end than to the previous begin. */
static bool put_follow(struct byte_writer *w, const uint64_t *values, const uint64_t *lengths,
                       uint64_t *scratch, size_t count)
{
    uint64_t gaps = 0;
    int saved_bits = 0;
    scratch[0] = 0;
    for (size_t i = 1; i < count; i++) {
        uint64_t step = values[i] - values[i - 1];
        scratch[i] = zigzag((int64_t)(step - lengths[i - 1]));
        gaps |= scratch[i];
        saved_bits += bit_length(step) - bit_length(scratch[i] >> 1);
    }
    if (saved_bits <= 0)
        return false;
    put_u8(w, COLUMN_FOLLOW);
    put_u64(w, values[0]);
    put_planes(w, scratch, count, byte_width(gaps));
    return true;
}

void column_put(struct byte_writer *w, const uint64_t *values, uint64_t *scratch, size_t count,
                enum column_hint hint)
{
    assert(count > 0);
    uint64_t all = 0;
    uint64_t differ = 0;
    for (size_t i = 0; i < count; i++) {
        all |= values[i];
        differ |= values[i] ^ values[0];
    }
    unsigned plain_width = byte_width(all);
    if (!differ) {
        column_put_const(w, values[0]);
        return;
    }
    if (hint == COLUMN_SORTED && put_increase(w, values, scratch, count))
        return;
    if (hint == COLUMN_ANY && plain_width > 1 &&
        (put_dict(w, values, scratch, count, plain_width) ||
         column_put_step(w, values, scratch, count, plain_width)))
        return;
    put_u8(w, COLUMN_PLANES);
    put_planes(w, values, count, plain_width);
}

bool column_put_map(struct byte_writer *w, const uint64_t *values, size_t count, unsigned number,
                    const uint8_t *plane)
{
    uint64_t map[256];
    bool known[256] = {false};
    size_t entries = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = plane[i];
        if (known[at] && map[at] != values[i])
            return false;
        known[at] = true;
        map[at] = values[i];
        entries = at < entries ? entries : at + 1;
    }
    if (entries > COLUMN_DICT_MAX || 1 + 8 * entries >= count)
        return false;
    put_u8(w, COLUMN_MAP);
    put_u8(w, (uint8_t)number);
    put_u8(w, (uint8_t)entries);
    for (size_t i = 0; i < entries; i++)
        put_u64(w, known[i] ? map[i] : 0);
    return true;
}

const uint8_t *column_map_plane(const uint8_t *column, size_t bytes, size_t count)
{
    assert(bytes >= count && count > 0);
    bool single = column[0] == COLUMN_DICT || (column[0] == COLUMN_PLANES && column[1] == 1);
    return single ? column + bytes - count : NULL;
}

void column_put_begins(struct byte_writer *w, const uint64_t *values, const uint64_t *lengths,
                       uint64_t *scratch, size_t count)
{
    assert(count > 0);
    if (!put_follow(w, values, lengths, scratch, count))
        column_put(w, values, scratch, count, COLUMN_SORTED);
}

/* Opens any column except a map, of which it reads only the first byte. */
static int open_any(struct column_cursor *c, struct byte_reader *r, size_t count)
{
    *c = (struct column_cursor){.count = (uint32_t)count};
    c->encoding = get_u8(r);
    if (c->encoding == COLUMN_MAP)
        return 0;
    if (c->encoding == COLUMN_INCREASE || c->encoding == COLUMN_STEP ||
        c->encoding == COLUMN_FOLLOW)
        c->value = get_u64(r);
    c->width = get_u8(r);
    if (c->encoding == COLUMN_CONST) {
        c->value = get_u64(r);
        return r->failed || c->width != 8 ? GPUPROF_DAMAGED : 0;
    }
    if (c->encoding >= COLUMN_ENCODINGS || c->width < 1 || c->width > 8)
        return GPUPROF_DAMAGED;
    if (c->encoding == COLUMN_DICT) {
        c->dict_count = get_u8(r);
        c->dict = get_space(r, 8 * (size_t)c->dict_count);
        if (c->dict_count == 0 || c->width != 1)
            return GPUPROF_DAMAGED;
    }
    c->data = get_space(r, count * c->width);
    return r->failed ? GPUPROF_DAMAGED : 0;
}

/*
 * A map has no plane of its own, so it needs no `count`: it has as many values as the other column.
 */
static int open_map(struct column_cursor *c, struct byte_reader *r,
                    const struct column_cursor *shape, size_t shape_count)
{
    size_t number = get_u8(r);
    c->dict_count = get_u8(r);
    c->dict = get_space(r, 8 * (size_t)c->dict_count);
    if (r->failed || c->dict_count == 0 || number >= shape_count)
        return GPUPROF_DAMAGED;
    const struct column_cursor *from = &shape[number];
    if (from->width != 1 || (from->encoding != COLUMN_DICT && from->encoding != COLUMN_PLANES))
        return GPUPROF_DAMAGED;
    c->width = 1;
    c->data = from->data;
    return 0;
}

int column_open_argument(struct column_cursor *c, struct byte_reader *r, size_t count,
                         const struct column_cursor *shape, size_t shape_count)
{
    int error = open_any(c, r, count);
    if (error == 0 && c->encoding == COLUMN_MAP)
        error = open_map(c, r, shape, shape_count);
    return error == 0 && c->encoding == COLUMN_FOLLOW ? GPUPROF_DAMAGED : error;
}

int column_open_begins(struct column_cursor *c, struct byte_reader *r, size_t count)
{
    int error = open_any(c, r, count);
    return error == 0 && c->encoding == COLUMN_MAP ? GPUPROF_DAMAGED : error;
}

int column_open(struct column_cursor *c, struct byte_reader *r, size_t count)
{
    return column_open_argument(c, r, count, NULL, 0);
}

void column_look_ahead(struct column_cursor *c)
{
    const uint8_t *plane = c->data + c->index;
    uint32_t left = c->count - c->index, count = left < COLUMN_AHEAD ? left : COLUMN_AHEAD;
    uint64_t *v = c->ahead, value = c->value;
    for (uint32_t i = 0; i < count; i++)
        v[i] = plane[i];
    for (unsigned bits = 8; bits < 8u * c->width; bits += 8) {
        plane += c->count;
        for (uint32_t i = 0; i < count; i++)
            v[i] |= (uint64_t)plane[i] << bits;
    }
    switch (c->encoding) {
    case COLUMN_DELTA:
    case COLUMN_STEP:
        for (uint32_t i = 0; i < count; i++)
            v[i] = value += (uint64_t)unzigzag(v[i]);
        break;
    case COLUMN_FOLLOW:
        for (uint32_t i = 0; i < count; i++)
            v[i] = (uint64_t)unzigzag(v[i]);
        break;
    case COLUMN_INCREASE:
        for (uint32_t i = 0; i < count; i++)
            v[i] = value += v[i];
        break;
    case COLUMN_DICT:
    case COLUMN_MAP:
        for (uint32_t i = 0; i < count; i++)
            v[i] = v[i] < c->dict_count ? load_u64(c->dict + 8 * v[i]) : 0;
        break;
    default: break;
    }
    c->value = value;
    c->index += count;
}

void column_follow(struct column_cursor *c, const uint64_t *lengths, uint64_t length)
{
    uint32_t count = (c->index - 1) % COLUMN_AHEAD + 1;
    uint64_t *v = c->ahead, value = c->value;
    for (uint32_t i = 0; i < count; i++) {
        v[i] = value += v[i];
        value += lengths ? lengths[i] : length;
    }
    c->value = value;
}
