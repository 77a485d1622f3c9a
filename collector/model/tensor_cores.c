/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tensor_cores.h"

#include <stddef.h>
#include <string.h>

static bool has_any(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (strstr(name, *words))
            return true;
    return false;
}

/*
 * cuBLAS, cuDNN and CUTLASS name the instruction that a kernel is made of: its shape (s884, h1688,
 * s16816, i16832 ... before "gemm" or "fprop"), or tensorop, wmma, gmma and the like; "simt" and
 * "ffma" are the ordinary cores. Kernels of nvjet, cuBLAS's newest, exist for tensor cores only.
 */
enum tensor_use tensor_use_of(const char *name)
{
    static const char *const ordinary[] = {"simt", "ffma", "gemv", "dot_kernel", NULL};
    static const char *const tensor[] = {"tensorop", "tensor16x8", "wmma",    "gmma",  "hmma",
                                         "imma",     "884gemm",    "1688",    "16816", "16832",
                                         "16864",    "884cudnn",   "tcgen05", "nvjet", NULL};
    static const char *const products[] = {"sgemm", "dgemm",  "cgemm",  "zgemm",
                                           "hgemm", "scudnn", "dcudnn", NULL};
    if (has_any(name, ordinary))
        return TENSOR_UNUSED;
    if (has_any(name, tensor))
        return TENSOR_USED;
    /* xmma has both: ordinary ones say so. */
    if (strstr(name, "xmma_"))
        return TENSOR_USED;
    return has_any(name, products) ? TENSOR_UNUSED : TENSOR_UNKNOWN;
}

bool tensor_is_eligible(uint8_t type, uint16_t compute, bool doubles)
{
    enum { F32, F64, F16, I8, BF16 = 14, I4 = 16, E4M3 = 28, E5M2, E2M3 = 31, E3M2, E2M1 };
    enum { FAST_F16 = 74, FAST_BF16 = 75, FAST_TF32 = LIBRARY_COMPUTE_TF32 };
    switch (type) {
    case F16:
    case BF16:
    case I8:
    case I4:
    case E4M3:
    case E5M2:
    case E2M3:
    case E3M2:
    case E2M1: return true;
    case F32: return compute == FAST_F16 || compute == FAST_BF16 || compute == FAST_TF32;
    case F64: return doubles;
    default: return false;
    }
}
