/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of a call's stack, as a STACK record has it: one little-endian word that says where the
 * frame would return to. See "Records" in event-stream.md. */
#ifndef GPUPROF_FORMATS_FRAME_H
#define GPUPROF_FORMATS_FRAME_H

#include <stdint.h>

#include "record.h"

enum frame_kind {
    FRAME_MODULE = 0,  /* number of a MODULE record, and an offset in its file */
    FRAME_ADDRESS = 1, /* in no known module */
    FRAME_PYTHON = 2,  /* number of a PYTHON record */
};

enum stack_flag {
    STACK_CUT = 1,      /* there were more frames than are kept */
    STACK_BORROWED = 2, /* its Python frames belong to the thread that waits for this one */
};

#define FRAME_KIND_SHIFT   60
#define FRAME_MODULE_SHIFT 40
#define FRAME_MODULE_MAX   0xfffffu        /* largest number of a module */
#define FRAME_OFFSET_MAX   0xffffffffffull /* largest offset in one */
#define FRAME_COUNT_MAX    (RECORD_BYTES_MAX / 8)

static inline uint64_t frame_in_module(uint32_t module, uint64_t offset)
{
    return (uint64_t)FRAME_MODULE << FRAME_KIND_SHIFT | (uint64_t)module << FRAME_MODULE_SHIFT |
           (offset & FRAME_OFFSET_MAX);
}

static inline uint64_t frame_at_address(uint64_t address)
{
    return (uint64_t)FRAME_ADDRESS << FRAME_KIND_SHIFT |
           (address & ((1ull << FRAME_KIND_SHIFT) - 1));
}

static inline uint64_t frame_in_python(uint32_t location)
{
    return (uint64_t)FRAME_PYTHON << FRAME_KIND_SHIFT | location;
}

static inline unsigned frame_kind(uint64_t frame)
{
    return (unsigned)(frame >> FRAME_KIND_SHIFT);
}

static inline uint32_t frame_module(uint64_t frame)
{
    return (uint32_t)(frame >> FRAME_MODULE_SHIFT) & FRAME_MODULE_MAX;
}

static inline uint64_t frame_offset(uint64_t frame)
{
    return frame & FRAME_OFFSET_MAX;
}

static inline uint64_t frame_address(uint64_t frame)
{
    return frame & ((1ull << FRAME_KIND_SHIFT) - 1);
}

static inline uint32_t frame_python(uint64_t frame)
{
    return (uint32_t)frame;
}

#endif
