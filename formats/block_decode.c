/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "block_layout.h"
#include "error.h"

#define RARE (1u << BLOCK_FLAGS | 1u << BLOCK_RESULT | 1u << BLOCK_STACK | 1u << BLOCK_WEIGHT)

_Static_assert(RECORD_ARGS_MAX % 2 == 0, "arguments are copied two at a time");

static int read_shapes(struct block_decoder *d, struct byte_reader *r, uint32_t *column_count)
{
    uint64_t records = 0;
    uint32_t columns = BLOCK_COMMON_COLUMNS;
    for (uint32_t i = 0; i < d->shape_count; i++) {
        struct block_shape *s = &d->shapes[i];
        s->type = get_u8(r);
        uint64_t code = get_varint(r);
        s->arg_count = get_u8(r);
        uint64_t count = get_varint(r);
        if (r->failed || code > UINT16_MAX || count == 0 || count > d->record_count ||
            s->arg_count > RECORD_ARGS_MAX)
            return GPUPROF_DAMAGED;
        s->code = (uint16_t)code;
        s->count = s->left = (uint32_t)count;
        s->first_column = columns;
        columns += s->arg_count;
        records += count;
    }
    *column_count = columns;
    return records == d->record_count ? 0 : GPUPROF_DAMAGED;
}

static int open_columns(struct block_decoder *d, struct byte_reader *r)
{
    for (unsigned i = 0; i < BLOCK_COMMON_COLUMNS; i++) {
        struct column_cursor *c = &d->columns[i];
        int error = i == BLOCK_BEGIN ? column_open_begins(c, r, d->record_count)
                                     : column_open(c, r, d->record_count);
        if (error < 0)
            return GPUPROF_DAMAGED;
        if (c->encoding != COLUMN_CONST)
            d->varying |= (uint16_t)(1u << i);
    }
    const struct column_cursor *length = &d->columns[BLOCK_TEXT_LENGTH];
    d->has_rare = d->varying & RARE || length->encoding != COLUMN_CONST || length->value;
    for (uint32_t i = 0; i < d->shape_count; i++)
        for (unsigned arg = 0; arg < d->shapes[i].arg_count; arg++) {
            struct block_shape *s = &d->shapes[i];
            struct column_cursor *first = &d->columns[s->first_column];
            if (column_open_argument(first + arg, r, s->count, first, arg) < 0)
                return GPUPROF_DAMAGED;
            if (first[arg].encoding == COLUMN_CONST)
                d->constants[s->first_column + arg] = first[arg].value;
            else
                s->varying |= (uint16_t)(1u << arg);
        }
    return 0;
}

static size_t ahead_of(const struct column_cursor *c)
{
    return c->encoding == COLUMN_CONST ? 0 : c->count < COLUMN_AHEAD ? c->count : COLUMN_AHEAD;
}

/* There may be thousands of open blocks, most of them short, or with mostly constant columns. */
static int give_ahead(struct block_decoder *d, uint32_t columns)
{
    size_t values = 0;
    for (uint32_t i = 0; i < columns; i++)
        values += ahead_of(&d->columns[i]);
    d->bytes = values * sizeof *d->ahead;
    d->ahead = malloc(d->bytes + 1);
    if (!d->ahead)
        return GPUPROF_NO_MEMORY;
    uint64_t *next = d->ahead;
    for (uint32_t i = 0; i < columns; i++) {
        d->columns[i].ahead = next;
        next += ahead_of(&d->columns[i]);
    }
    for (uint32_t i = 0; i < d->shape_count; i++) {
        struct block_shape *s = &d->shapes[i];
        s->ahead = s->arg_count ? d->columns[s->first_column].ahead : d->ahead;
        s->ahead_each = s->count < COLUMN_AHEAD ? s->count : COLUMN_AHEAD;
    }
    return 0;
}

int block_decoder_init(struct block_decoder *d, const uint8_t *payload, size_t length,
                       uint32_t record_count)
{
    *d = (struct block_decoder){0};
    struct byte_reader r = byte_reader(payload, length);
    int error = GPUPROF_DAMAGED;
    if (get_u8(&r) != BLOCK_PAYLOAD_VERSION)
        return GPUPROF_VERSION;
    uint64_t records = get_varint(&r);
    uint64_t shapes = get_varint(&r);
    if (r.failed || records != record_count || records == 0 || records > BLOCK_RECORDS_MAX ||
        shapes == 0 || shapes > BLOCK_SHAPES_MAX)
        return GPUPROF_DAMAGED;
    d->record_count = (uint32_t)records;
    d->shape_count = (uint32_t)shapes;
    d->shapes = calloc(shapes, sizeof *d->shapes);
    uint32_t columns = 0;
    if (!d->shapes) {
        error = GPUPROF_NO_MEMORY;
        goto fail;
    }
    if ((error = read_shapes(d, &r, &columns)) < 0)
        goto fail;
    d->columns = calloc(columns, sizeof *d->columns);
    d->constants = calloc(columns + 1u, sizeof *d->constants);
    if (!d->columns || !d->constants) {
        error = GPUPROF_NO_MEMORY;
        goto fail;
    }
    if ((error = open_columns(d, &r)) < 0 || (error = give_ahead(d, columns)) < 0)
        goto fail;
    d->bytes +=
        d->shape_count * sizeof *d->shapes + columns * (sizeof *d->columns + sizeof *d->constants);
    d->text = r;
    return 0;
fail:
    block_decoder_release(d);
    return error;
}

void block_decoder_release(struct block_decoder *d)
{
    free(d->shapes);
    free(d->columns);
    free(d->constants);
    free(d->ahead);
    d->shapes = NULL;
    d->columns = NULL;
    d->constants = NULL;
    d->ahead = NULL;
}

/* Fills in what all records of a shape share. Arguments are copied two at a time. */
static __attribute__((noinline)) void block_decode_fill(struct block_decoder *d,
                                                        struct block_shape *shape, struct record *r)
{
    const struct column_cursor *common = d->columns;
    const uint64_t *constants = d->constants + shape->first_column;
    r->type = shape->type;
    r->code = shape->code;
    r->arg_count = shape->arg_count;
    r->flags = (uint8_t)common[BLOCK_FLAGS].value;
    r->begin = common[BLOCK_BEGIN].value;
    r->duration = common[BLOCK_DURATION].value;
    r->result = (int32_t)unzigzag(common[BLOCK_RESULT].value);
    r->correlation = (uint32_t)common[BLOCK_CORRELATION].value;
    r->stack_id = (uint32_t)common[BLOCK_STACK].value;
    r->weight = (uint32_t)common[BLOCK_WEIGHT].value;
    r->bytes = NULL;
    r->byte_count = 0;
    for (unsigned arg = 0; arg < shape->arg_count; arg += 2)
        memcpy(r->args + arg, constants + arg, 2 * sizeof *constants);
    d->last = r;
    d->like = shape;
}

/* Decodes the next values of the columns from `first` on. */
static __attribute__((noinline)) void look_ahead(struct column_cursor *first, unsigned varying)
{
    for (; varying; varying &= varying - 1)
        column_look_ahead(&first[__builtin_ctz(varying)]);
}

static __attribute__((noinline)) void look_ahead_common(struct block_decoder *d)
{
    struct column_cursor *begins = &d->columns[BLOCK_BEGIN];
    const struct column_cursor *durations = &d->columns[BLOCK_DURATION];
    look_ahead(d->columns, d->varying);
    if (begins->encoding == COLUMN_FOLLOW)
        column_follow(begins, durations->encoding == COLUMN_CONST ? NULL : durations->ahead,
                      durations->value);
}

/* Decodes only varying arguments. If a hostile block has more records of a shape than values, the
 * rest are zeros. */
static inline void read_arguments(struct block_decoder *d, struct block_shape *shape,
                                  uint64_t *args)
{
    if (!shape->left) {
        memset(args, 0, shape->arg_count * sizeof *args);
        d->like = NULL;
        return;
    }
    unsigned at = (shape->count - shape->left--) % COLUMN_AHEAD;
    if (at == 0)
        look_ahead(&d->columns[shape->first_column], shape->varying);
    const uint64_t *ahead = shape->ahead + at;
    for (unsigned rest = shape->varying; rest; rest &= rest - 1) {
        args[__builtin_ctz(rest)] = *ahead;
        ahead += shape->ahead_each;
    }
}

/* Reads what few blocks have, or what rarely repeats. */
static __attribute__((noinline)) int read_rare(struct block_decoder *d, unsigned at,
                                               struct record *r)
{
    const struct column_cursor *common = d->columns;
    const unsigned varying = d->varying;
    if (varying & 1u << BLOCK_FLAGS)
        r->flags = (uint8_t)common[BLOCK_FLAGS].ahead[at];
    if (varying & 1u << BLOCK_RESULT)
        r->result = (int32_t)unzigzag(common[BLOCK_RESULT].ahead[at]);
    if (varying & 1u << BLOCK_STACK)
        r->stack_id = (uint32_t)common[BLOCK_STACK].ahead[at];
    if (varying & 1u << BLOCK_WEIGHT)
        r->weight = (uint32_t)common[BLOCK_WEIGHT].ahead[at];
    const struct column_cursor *lengths = &common[BLOCK_TEXT_LENGTH];
    uint64_t bytes = varying & 1u << BLOCK_TEXT_LENGTH ? lengths->ahead[at] : lengths->value;
    r->bytes = NULL;
    r->byte_count = 0;
    if (!bytes)
        return 1;
    if (bytes > RECORD_BYTES_MAX)
        return GPUPROF_DAMAGED;
    r->bytes = get_space(&d->text, bytes);
    r->byte_count = (uint32_t)bytes;
    return r->bytes ? 1 : GPUPROF_DAMAGED;
}

int block_decoder_next(struct block_decoder *d, struct record *r)
{
    if (d->index == d->record_count)
        return 0;
    unsigned at = d->index++ % COLUMN_AHEAD;
    if (at == 0)
        look_ahead_common(d);
    const struct column_cursor *common = d->columns;
    const unsigned varying = d->varying;
    uint64_t number =
        varying & 1u << BLOCK_SHAPE ? common[BLOCK_SHAPE].ahead[at] : common[BLOCK_SHAPE].value;
    if (number >= d->shape_count)
        return GPUPROF_DAMAGED;
    struct block_shape *shape = &d->shapes[number];
    if (d->last != r || d->like != shape)
        block_decode_fill(d, shape, r);
    if (varying & 1u << BLOCK_BEGIN)
        r->begin = common[BLOCK_BEGIN].ahead[at];
    if (varying & 1u << BLOCK_DURATION)
        r->duration = common[BLOCK_DURATION].ahead[at];
    if (varying & 1u << BLOCK_CORRELATION)
        r->correlation = (uint32_t)common[BLOCK_CORRELATION].ahead[at];
    read_arguments(d, shape, r->args);
    return d->has_rare ? read_rare(d, at, r) : 1;
}
