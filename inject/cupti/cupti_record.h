/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads CUPTI's activity records without its structures. The size of each kind's record is measured
 * with the loaded libcupti, and a field is read only if it lies within that size. Any thread;
 * allocates nothing.
 */
#ifndef GPUPROF_INJECT_CUPTI_RECORD_H
#define GPUPROF_INJECT_CUPTI_RECORD_H

#include <stdbool.h>
#include <string.h>

#include "cupti/cupti_abi.h"
#include "error.h"

/* FIELD_KERNEL_START, FIELD_MEMCPY_BYTES ... */
enum cupti_field {
#define CUPTI_FIELD(record, field, offset, width, member) FIELD_##record##_##field,
#include "cupti/cupti_fields.def"
    CUPTI_FIELD_COUNT
};

struct cupti_field_row {
    uint16_t offset;
    uint16_t width;
};

/* Defined in the header, so that reading a field that is named in the source compiles to a load at
 * a constant offset. */
static const struct cupti_field_row cupti_field_rows[CUPTI_FIELD_COUNT] = {
#define CUPTI_FIELD(record, field, offset, width, member) {offset, width},
#include "cupti/cupti_fields.def"
};

/* Reads a field of 1, 2, 4 or 8 bytes (also pointers), zero-extended. Returns false and sets 0 if
 * this libcupti does not have it. The caller ensures that the record is of the field's kind. */
static inline bool cupti_field(enum cupti_field field, const void *record, size_t record_bytes,
                               uint64_t *value)
{
    const struct cupti_field_row *row = &cupti_field_rows[field];
    const uint8_t *at = (const uint8_t *)record + row->offset;
    *value = 0;
    switch ((size_t)row->offset + row->width <= record_bytes ? row->width : 0) {
    case 1: *value = *at; return true;
    case 2: {
        uint16_t half;
        memcpy(&half, at, sizeof half);
        *value = half;
        return true;
    }
    case 4: {
        uint32_t word;
        memcpy(&word, at, sizeof word);
        *value = word;
        return true;
    }
    case 8: memcpy(value, at, sizeof *value); return true;
    default: return false;
    }
}

typedef CUptiResult (*cupti_next_record_fn)(uint8_t *buffer, size_t validBufferSizeBytes,
                                            CUpti_Activity **record);

/* Record sizes in bytes, by kind; 0 for a kind that this libcupti does not know. */
struct cupti_sizes {
    uint16_t bytes[CUPTI_KIND_MAX];
};

/* Measures all sizes with the loaded library's cuptiActivityGetNextRecord. Needs no driver up to
 * libcupti 13.1, and an initialized one later. Returns the number of kinds that have a size. */
unsigned cupti_sizes_measure(struct cupti_sizes *sizes, cupti_next_record_fn next_record);

/* Iterates over a buffer that CUPTI has completed. The caller owns the buffer. */
struct cupti_walk {
    const struct cupti_sizes *sizes;
    cupti_next_record_fn next_record;
    uint8_t *buffer;
    size_t valid_bytes;
    CUpti_Activity *record; /* NULL before the first record */
    CUptiResult result;     /* why the iteration ended */
};

struct cupti_view {
    CUpti_ActivityKind kind;
    const uint8_t *record;
    size_t bytes; /* of the record, never beyond the buffer; 0 for a kind of unknown size */
};

void cupti_walk_init(struct cupti_walk *walk, const struct cupti_sizes *sizes,
                     cupti_next_record_fn next_record, void *buffer, size_t valid_bytes);

/*
 * Returns 1 and the next record, or 0 at the end of the valid bytes, also if the last record is
 * incomplete. Returns GPUPROF_DAMAGED if it cannot go on (walk->result says why); the rest of the
 * buffer is lost.
 */
int cupti_walk_next(struct cupti_walk *walk, struct cupti_view *view);

#endif
