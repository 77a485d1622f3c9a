/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/cupti_record.h"

#define PROBE_BYTES 4096 /* more than two of the largest records, which have 248 bytes in 13.5 */

#define CUPTI_FIELD(record, field, offset, width, member)                                          \
    _Static_assert((width) <= 16 && (offset) >= 4 && (offset) + (width) <= PROBE_BYTES / 2,        \
                   #record "." #field);
#include "cupti/cupti_fields.def"

/* A buffer with the kind in every word looks like a sequence of records of that kind, wherever the
 * next one begins. So one step of GetNextRecord advances by the record's size. */
static uint16_t cupti_record_measure(cupti_next_record_fn next_record, uint32_t kind)
{
    uint64_t words[PROBE_BYTES / 8];
    uint8_t *buffer = (uint8_t *)words;
    CUpti_Activity *record = NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        words[i] = kind;
    if (next_record(buffer, sizeof words, &record) != CUPTI_SUCCESS ||
        (uint8_t *)record != buffer || next_record(buffer, sizeof words, &record) != CUPTI_SUCCESS)
        return 0;
    uintptr_t step = (uintptr_t)record - (uintptr_t)buffer;
    return step <= sizeof words && step % 8 == 0 ? (uint16_t)step : 0;
}

unsigned cupti_sizes_measure(struct cupti_sizes *sizes, cupti_next_record_fn next_record)
{
    unsigned count = 0;
    sizes->bytes[0] = 0;
    for (uint32_t kind = 1; kind < CUPTI_KIND_MAX; kind++) {
        sizes->bytes[kind] = cupti_record_measure(next_record, kind);
        count += sizes->bytes[kind] != 0;
    }
    return count;
}

void cupti_walk_init(struct cupti_walk *walk, const struct cupti_sizes *sizes,
                     cupti_next_record_fn next_record, void *buffer, size_t valid_bytes)
{
    *walk = (struct cupti_walk){
        .sizes = sizes, .next_record = next_record, .buffer = buffer, .valid_bytes = valid_bytes};
}

int cupti_walk_next(struct cupti_walk *walk, struct cupti_view *view)
{
    walk->result = walk->next_record(walk->buffer, walk->valid_bytes, &walk->record);
    if (walk->result == CUPTI_ERROR_MAX_LIMIT_REACHED)
        return 0;
    if (walk->result != CUPTI_SUCCESS)
        return GPUPROF_DAMAGED;
    const uint8_t *record = (const uint8_t *)walk->record;
    size_t left = walk->valid_bytes - (size_t)(record - walk->buffer);
    view->kind = walk->record->kind;
    view->record = record;
    view->bytes =
        (unsigned)view->kind < CUPTI_KIND_MAX ? walk->sizes->bytes[(unsigned)view->kind] : 0;
    if (view->bytes > left)
        view->bytes = left;
    return 1;
}
