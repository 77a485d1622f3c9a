/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "block.h"
#include "block_layout.h"
#include "error.h"
#include "run_sort.h"

void block_encoder_reset(struct block_encoder *e)
{
    e->record_count = 0;
    e->shape_count = 0;
    e->raw_bytes = 0;
    e->any_word0 = 0;
    e->any_word3 = 0;
}

/* A thread's shapes are few and come in runs, so the last one is tried first. */
static int shape_find(struct block_encoder *e, uint32_t key)
{
    if (e->record_count) {
        uint16_t last = e->layouts[e->record_count - 1].shape;
        if (e->shape_keys[last] == key)
            return last;
    }
    for (uint32_t i = 0; i < e->shape_count; i++)
        if (e->shape_keys[i] == key)
            return (int)i;
    if (e->shape_count == BLOCK_SHAPES_MAX)
        return -1;
    e->shape_keys[e->shape_count] = key;
    e->shape_counts[e->shape_count] = 0;
    return (int)e->shape_count++;
}

int block_encoder_add(struct block_encoder *e, const uint8_t *record, size_t length)
{
    struct record_layout l;
    uint32_t index = e->record_count;
    if (length < 8 * RECORD_HEAD_WORDS)
        return GPUPROF_TRUNCATED;
    uint64_t word0 = load_u64(record);
    int error = record_lay_out(record, length, word0, &l);
    if (error < 0)
        return error;
    if (index == BLOCK_RECORDS_MAX || e->raw_bytes + 8 * l.words > BLOCK_TEXT_BYTES_MAX)
        return 0;
    int shape = shape_find(e, record_shape_key(word0));
    if (shape < 0)
        return 0;
    e->any_word0 |= word0;
    e->any_word3 |= load_u64(record + 24);
    e->records[index] = record;
    e->layouts[index] = (struct block_layout){(uint16_t)shape, (uint16_t)l.byte_count,
                                              (uint16_t)l.text_at, (uint16_t)l.arguments_at};
    e->shape_counts[shape]++;
    e->raw_bytes += 8 * l.words;
    e->record_count++;
    return (int)(8 * l.words);
}

size_t block_encode_bytes_max(const struct block_encoder *e)
{
    /* Each column needs its head, and each value at most 8 bytes; a raw record contains every
     * value. */
    size_t columns = BLOCK_COMMON_COLUMNS;
    for (uint32_t i = 0; i < e->shape_count; i++)
        columns += record_key_arg_count(e->shape_keys[i]);
    return 64 + 32 * (size_t)e->shape_count + columns * column_bytes_max(0) +
           (size_t)e->record_count * 8 * BLOCK_COMMON_COLUMNS + e->raw_bytes;
}

/* Puts the items of `array`, `bytes` each, in order, using `room` of the same size. */
static inline __attribute__((always_inline)) void
arrange(void *array, size_t bytes, const uint16_t *order, uint32_t count, void *room)
{
    for (uint32_t i = 0; i < count; i++)
        memcpy((uint8_t *)room + i * bytes, (uint8_t *)array + order[i] * bytes, bytes);
    memcpy(array, room, count * bytes);
}

/* Among records with the same begin, the first are those that are not calls (a kernel's name before
 * its launch), then the longer calls, which are the outer ones, then the earlier ones. */
static void sort_by_begin(struct block_encoder *e, const struct clock_scale *scale)
{
    uint32_t n = e->record_count;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *record = e->records[i];
        uint64_t begin = load_u64(record + 8);
        uint64_t begin_ns = clock_scale_ns(scale, begin);
        uint64_t end_ns = clock_scale_ns(scale, begin + load_u64(record + 16));
        bool is_call = e->shape_keys[e->layouts[i].shape] >> 24 == RECORD_CALL;
        e->begin_ns[i] = begin_ns;
        /* The counters of two processors may differ a little: the end is never before the begin. */
        e->duration_ns[i] = end_ns > begin_ns ? end_ns - begin_ns : 0;
        e->values[i] = is_call ? ~e->duration_ns[i] : 0;
    }
    if (!run_sort(e->begin_ns, e->values, n, e->order, e->order_room))
        return;
    arrange(e->records, sizeof *e->records, e->order, n, e->scratch);
    arrange(e->begin_ns, sizeof *e->begin_ns, e->order, n, e->scratch);
    arrange(e->duration_ns, sizeof *e->duration_ns, e->order, n, e->scratch);
    arrange(e->layouts, sizeof *e->layouts, e->order, n, e->scratch);
}

enum word_part { PART_FLAGS, PART_RESULT, PART_CORRELATION, PART_STACK, PART_WEIGHT, PART_TEXT };

static uint64_t block_encode_part_of(const struct block_encoder *e, uint32_t i, enum word_part part)
{
    const uint8_t *record = e->records[i];
    const struct block_layout *l = &e->layouts[i];
    bool is_extended = l->arguments_at > RECORD_HEAD_WORDS;
    const uint8_t *extension = is_extended ? record + 8 * RECORD_HEAD_WORDS : NULL;
    switch (part) {
    case PART_FLAGS: return record[1] & ~(RECORD_EXTENDED | RECORD_BYTES);
    case PART_RESULT: return zigzag((int32_t)load_u32(record + 24));
    case PART_CORRELATION: return load_u32(record + 28);
    case PART_STACK: return extension ? load_u32(extension) : 0;
    case PART_WEIGHT: return extension ? load_u32(extension + 4) : 0;
    case PART_TEXT: return l->byte_count;
    }
    return 0;
}

/* Writes a column that has only zeros in most blocks; `any` is 0 then. */
static void put_part(struct block_encoder *e, struct byte_writer *w, enum word_part part,
                     uint64_t any)
{
    if (!any) {
        column_put_const(w, 0);
        return;
    }
    for (uint32_t i = 0; i < e->record_count; i++)
        e->values[i] = block_encode_part_of(e, i, part);
    column_put(w, e->values, e->scratch, e->record_count, COLUMN_ANY);
}

static void put_common(struct block_encoder *e, struct byte_writer *w)
{
    uint32_t n = e->record_count;
    uint64_t flags = e->any_word0 >> 8 & 0xff;
    for (uint32_t i = 0; i < n; i++)
        e->values[i] = e->layouts[i].shape;
    column_put(w, e->values, e->scratch, n, COLUMN_ANY);
    put_part(e, w, PART_FLAGS, flags & ~(uint64_t)(RECORD_EXTENDED | RECORD_BYTES));
    column_put_begins(w, e->begin_ns, e->duration_ns, e->scratch, n);
    column_put(w, e->duration_ns, e->scratch, n, COLUMN_NOISE);
    put_part(e, w, PART_RESULT, e->any_word3 & UINT32_MAX);
    put_part(e, w, PART_CORRELATION, e->any_word3 >> 32);
    put_part(e, w, PART_STACK, flags & RECORD_EXTENDED);
    put_part(e, w, PART_WEIGHT, flags & RECORD_EXTENDED);
    put_part(e, w, PART_TEXT, flags & RECORD_BYTES);
}

/*
 * Fills `arguments` with pointers to the records' argument words, shape after shape, in time order.
 */
static void group_by_shape(struct block_encoder *e)
{
    uint32_t next[BLOCK_SHAPES_MAX];
    uint32_t sum = 0;
    for (uint32_t i = 0; i < e->shape_count; i++) {
        next[i] = sum;
        sum += e->shape_counts[i];
    }
    for (uint32_t i = 0; i < e->record_count; i++) {
        const struct block_layout *l = &e->layouts[i];
        e->arguments[next[l->shape]++] = e->records[i] + 8 * l->arguments_at;
    }
}

static bool is_const(const uint64_t *values, uint32_t count)
{
    uint32_t i = 1;
    while (i < count && values[i] == values[0])
        i++;
    return i == count;
}

/* `planes` has the planes of the shape's previous arguments; NULL for one that cannot be mapped. */
static void put_argument(struct block_encoder *e, struct byte_writer *w, uint32_t count,
                         const uint8_t **planes, unsigned arg)
{
    planes[arg] = NULL;
    if (is_const(e->values, count)) {
        column_put_const(w, e->values[0]);
        return;
    }
    for (unsigned from = 0; from < arg; from++)
        if (planes[from] && column_put_map(w, e->values, count, from, planes[from]))
            return;
    size_t at = w->length;
    column_put(w, e->values, e->scratch, count, COLUMN_ANY);
    if (!w->failed)
        planes[arg] = column_map_plane(w->data + at, w->length - at, count);
}

static void block_encode_put_arguments(struct block_encoder *e, struct byte_writer *w)
{
    group_by_shape(e);
    uint32_t first = 0;
    for (uint32_t s = 0; s < e->shape_count; s++) {
        uint32_t count = e->shape_counts[s];
        unsigned arg_count = record_key_arg_count(e->shape_keys[s]);
        const uint8_t *planes[RECORD_ARGS_MAX];
        assert(arg_count <= RECORD_ARGS_MAX);
        for (unsigned arg = 0; arg < arg_count; arg++) {
            for (uint32_t i = 0; i < count; i++)
                e->values[i] = load_u64(e->arguments[first + i] + 8 * arg);
            put_argument(e, w, count, planes, arg);
        }
        first += count;
    }
}

int block_encode(struct block_encoder *e, const struct clock_scale *scale, uint8_t *out,
                 size_t capacity, struct block_header *h)
{
    assert(e->record_count > 0);
    struct byte_writer w = byte_writer(out, capacity);
    sort_by_begin(e, scale);
    put_u8(&w, BLOCK_PAYLOAD_VERSION);
    put_varint(&w, e->record_count);
    put_varint(&w, e->shape_count);
    for (uint32_t i = 0; i < e->shape_count; i++) {
        put_u8(&w, (uint8_t)(e->shape_keys[i] >> 24));
        put_varint(&w, e->shape_keys[i] & 0xffff);
        put_u8(&w, (uint8_t)record_key_arg_count(e->shape_keys[i]));
        put_varint(&w, e->shape_counts[i]);
    }
    put_common(e, &w);
    block_encode_put_arguments(e, &w);
    for (uint32_t i = 0; i < e->record_count; i++) {
        const struct block_layout *l = &e->layouts[i];
        if (l->text_at)
            put_bytes(&w, e->records[i] + 8 * (l->text_at + 1u), l->byte_count);
    }
    if (w.failed)
        return GPUPROF_LIMIT;
    assert(e->record_count <= BLOCK_RECORDS_MAX && e->shape_count <= BLOCK_SHAPES_MAX);
    h->record_count = e->record_count;
    h->payload_bytes = (uint32_t)w.length;
    h->min_ns = e->begin_ns[0];
    h->max_ns = h->types = 0;
    for (uint32_t i = 0; i < e->shape_count; i++)
        h->types |= block_type_bit(e->shape_keys[i] >> 24);
    for (uint32_t i = 0; i < e->record_count; i++) {
        uint64_t end_ns = e->begin_ns[i] + e->duration_ns[i];
        h->max_ns = end_ns > h->max_ns ? end_ns : h->max_ns;
    }
    return 0;
}
