/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"

/* Waits for values in memory and writes of values, in stream order. */

struct memop {
    uint64_t address, value;
    unsigned flags;
    bool is_wide, is_write;
};

static bool memop_is_met(void *data)
{
    const struct memop *op = data;
    uint64_t have =
        op->is_wide ? __atomic_load_n((const uint64_t *)(uintptr_t)op->address, __ATOMIC_ACQUIRE)
                    : __atomic_load_n((const uint32_t *)(uintptr_t)op->address, __ATOMIC_ACQUIRE);
    if (op->is_write)
        return true;
    switch (op->flags & 3) {
    case 0: /* greater or equal, cyclic */
        return op->is_wide ? (int64_t)(have - op->value) >= 0
                           : (int32_t)((uint32_t)have - (uint32_t)op->value) >= 0;
    case 1: return have == op->value;
    case 2: return (have & op->value) != 0;
    default: return ~(have | op->value) != 0;
    }
}

static void memop_run(void *data)
{
    const struct memop *op = data;
    if (!op->is_write)
        return;
    if (op->is_wide)
        __atomic_store_n((uint64_t *)(uintptr_t)op->address, op->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)(uintptr_t)op->address, (uint32_t)op->value, __ATOMIC_RELEASE);
}

static CUresult memop_add(CUstream handle, struct memop op, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result == CUDA_SUCCESS)
        result = capture_forbids(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (memory_is_pageable(op.address) || op.address % (op.is_wide ? 8 : 4))
        return CUDA_ERROR_INVALID_VALUE;
    struct memop *own = malloc(sizeof *own);
    if (!own)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *own = op;
    host_op_enqueue(stream, (struct host_action){memop_run, memop_is_met, own, true});
    return CUDA_SUCCESS;
}

static CUresult memop_batch(CUstream stream, const CUstreamBatchMemOpParams *list, unsigned count,
                            int pt)
{
    CUresult result = list && count <= 256 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        bool is_wide = list[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                       list[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        bool is_write = list[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
                        list[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        uint64_t value = is_wide ? list[i].waitValue.value64 : list[i].waitValue.value;
        struct memop op = {list[i].waitValue.address, value, list[i].waitValue.flags, is_wide,
                           is_write};
        if (!is_wide && !is_write && list[i].operation != CU_STREAM_MEM_OP_WAIT_VALUE_32)
            continue; /* flushes and barriers have nothing to do here */
        result = memop_add(stream, op, pt);
    }
    return result;
}

#define MEMOP(name, type, wide, write)                                                             \
    DRV2(name, _ptsz, (CUstream stream, CUdeviceptr ptr, type value, unsigned flags),              \
         memop_add(stream, (struct memop){ptr, value, flags, wide, write}, pt), A_X(stream),       \
         A_X(ptr), A_U(value), A_U(flags))

MEMOP(cuStreamWaitValue32, cuuint32_t, false, false)
MEMOP(cuStreamWaitValue32_v2, cuuint32_t, false, false)
MEMOP(cuStreamWaitValue64, cuuint64_t, true, false)
MEMOP(cuStreamWaitValue64_v2, cuuint64_t, true, false)
MEMOP(cuStreamWriteValue32, cuuint32_t, false, true)
MEMOP(cuStreamWriteValue32_v2, cuuint32_t, false, true)
MEMOP(cuStreamWriteValue64, cuuint64_t, true, true)
MEMOP(cuStreamWriteValue64_v2, cuuint64_t, true, true)
#undef MEMOP
DRV2(cuStreamBatchMemOp, _ptsz,
     (CUstream stream, unsigned count, CUstreamBatchMemOpParams *list, unsigned flags),
     memop_batch(stream, list, count, pt), A_X(stream), A_U(count))
DRV2(cuStreamBatchMemOp_v2, _ptsz,
     (CUstream stream, unsigned count, CUstreamBatchMemOpParams *list, unsigned flags),
     memop_batch(stream, list, count, pt), A_X(stream), A_U(count))
