/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/ledger_layout.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

void ledger_layout_release(struct ledger_layout *layout)
{
    free(layout->segments);
    free(layout->tensors);
    *layout = (struct ledger_layout){0};
}

static int by_address(const void *left, const void *right)
{
    const struct layout_range *a = left, *b = right;
    return ORDER(a->address, b->address);
}

static bool has_address(const struct ledger_block *b)
{
    return !b->is_host && b->kind != LEDGER_NOT_OWN &&
           (b->space == SPACE_ADDRESS || b->space == SPACE_STATIC);
}

struct mapped {
    struct ledger_layout *layout;
    const struct ledger_books *books;
};

static int add_mapped(void *context, const struct mapping *found)
{
    struct mapped *m = context;
    struct ledger_layout *layout = m->layout;
    const struct ledger_block *b = &m->books->blocks[found->to];
    if (!found->to || b->is_host)
        return 0;
    struct layout_range *last =
        layout->segment_count ? &layout->segments[layout->segment_count - 1] : NULL;
    if (last && last->is_mapped && last->device == b->device &&
        last->address + last->bytes == found->address) {
        last->bytes += found->bytes;
        return 0;
    }
    const struct layout_range new = {.address = found->address,
                                     .bytes = found->bytes,
                                     .device = b->device,
                                     .place = found->to,
                                     .is_mapped = true};
    return ARRAY_PUSH(layout->segments, layout->segment_count, &new);
}

static int add_blocks(struct mapped *m, const struct process *process)
{
    struct ledger_layout *layout = m->layout;
    int error = 0;
    for (uint32_t i = 1; error == 0 && i <= m->books->count; i++) {
        const struct ledger_block *b = &m->books->blocks[i];
        bool is_tensor = b->space == SPACE_TENSOR;
        const struct layout_range new = {
            .address = b->address, .bytes = b->bytes, .device = b->device, .place = i};
        if (!b->is_live || b->process != process || (!is_tensor && !has_address(b)) ||
            b->address > UINT64_MAX - b->bytes)
            continue;
        error = is_tensor ? ARRAY_PUSH(layout->tensors, layout->tensor_count, &new)
                          : ARRAY_PUSH(layout->segments, layout->segment_count, &new);
    }
    return error;
}

uint32_t layout_tensor_from(const struct ledger_layout *layout, uint64_t address)
{
    return address ? ARRAY_UP_TO(layout->tensors, layout->tensor_count, address, address - 1) : 0;
}

int ledger_layout_make(struct ledger_layout *layout, const struct ledger_books *books,
                       const struct process *process)
{
    *layout = (struct ledger_layout){0};
    struct mapped m = {.layout = layout, .books = books};
    int error = mappings_each(&books->mappings[process->index], add_mapped, &m);
    if (error == 0)
        error = add_blocks(&m, process);
    if (layout->segment_count)
        qsort(layout->segments, layout->segment_count, sizeof *layout->segments, by_address);
    if (layout->tensor_count)
        qsort(layout->tensors, layout->tensor_count, sizeof *layout->tensors, by_address);
    for (uint32_t i = 0; i < layout->segment_count; i++) {
        struct layout_range *s = &layout->segments[i];
        uint32_t first = layout_tensor_from(layout, s->address);
        s->has_tensors = first < layout->tensor_count && layout_has(s, &layout->tensors[first]);
    }
    return error;
}

struct layout_holes layout_holes_of(const struct ledger_layout *layout, uint32_t device)
{
    struct layout_holes holes = {0};
    for (uint32_t i = 0; i < layout->segment_count; i++) {
        const struct layout_range *s = &layout->segments[i];
        uint64_t at = s->address, end = s->address + s->bytes;
        if (!s->has_tensors || s->device != device)
            continue;
        for (uint32_t t = layout_tensor_from(layout, s->address); at < end; t++) {
            bool is_in = t < layout->tensor_count && layout_has(s, &layout->tensors[t]);
            uint64_t next = is_in ? layout->tensors[t].address : end;
            uint64_t hole = next > at ? next - at : 0;
            holes.free += hole;
            holes.largest = hole > holes.largest ? hole : holes.largest;
            at = is_in && next + layout->tensors[t].bytes > at ? next + layout->tensors[t].bytes
                 : is_in                                       ? at
                                                               : end;
        }
    }
    return holes;
}
