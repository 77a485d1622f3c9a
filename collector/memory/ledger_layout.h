/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the memory of a process lies at a moment: segments, which are what CUDA gave, in the order of
 * addresses, and the blocks of PyTorch's allocator within them. Physical memory lies where it is
 * mapped, neighbours as one segment. Arrays have no address, and are in none.
 */
#ifndef GPUPROF_COLLECTOR_LEDGER_LAYOUT_H
#define GPUPROF_COLLECTOR_LEDGER_LAYOUT_H

#include "memory/ledger_books.h"

struct layout_range {
    uint64_t address;
    uint64_t bytes;
    uint32_t device; /* LEDGER_NO_DEVICE: not known */
    uint32_t place;  /* in the books: its block, the first of several */
    bool is_mapped;
    bool has_tensors; /* of a segment: at least one, now */
};

struct ledger_layout {
    struct layout_range *segments; /* owned, and so `tensors`; by address */
    uint32_t segment_count;
    struct layout_range *tensors;
    uint32_t tensor_count;
};

/* 0 or GPUPROF_NO_MEMORY; ledger_layout_release in both cases. */
int ledger_layout_make(struct ledger_layout *layout, const struct ledger_books *books,
                       const struct process *process);
void ledger_layout_release(struct ledger_layout *layout);

/* The first of the tensors that do not begin below `address`. */
uint32_t layout_tensor_from(const struct ledger_layout *layout, uint64_t address);

/* Does the whole of `inner` lie in it? */
static inline bool layout_has(const struct layout_range *outer, const struct layout_range *inner)
{
    return inner->address >= outer->address &&
           inner->address - outer->address <= outer->bytes - inner->bytes &&
           inner->bytes <= outer->bytes;
}

/* What is free between the blocks of PyTorch's allocator, in segments of a device that have some.
 */
struct layout_holes {
    uint64_t free;
    uint64_t largest;
};
struct layout_holes layout_holes_of(const struct ledger_layout *layout, uint32_t device);

#endif
