/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/kernel_class.h"

#include <stddef.h>
#include <string.h>

#include "resolve/nccl_call.h"

static bool has_any(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (strstr(name, *words))
            return true;
    return false;
}

/*
 * cuBLAS, cuDNN, CUTLASS and MAGMA write an "s" in names of FP32 kernels on ordinary cores:
 * ampere_sgemm_128x64_nn, cutlass_80_simt_sgemm_..., volta_scudnn_winograd_... On tensor cores, the
 * shape of an instruction precedes "gemm" (s1688gemm, s16816gemm), or the word does. In
 * implicit_convolve_sgemm<__half, ...> the "s" is the type of sums only. xmma names the types of
 * factors and sums: sm80_xmma_gemm_f32f32_f32f32_f32_... is FP32, ..._tf32f32_... TF32.
 */
static bool is_fp32_gemm(const char *name)
{
    static const char *const products[] = {"sgemm", "scudnn", "gemm_f32f32_f32f32", NULL};
    static const char *const others[] = {"tensorop", "half", "fp16", "bf16", "tf32", "int8", NULL};
    return has_any(name, products) && !has_any(name, others);
}

enum kernel_class kernel_class_of(const struct kernel_name *known)
{
    static const char *const elementwise[] = {"elementwise", "Elementwise", "ElementWise",
                                              "TensorCwise", NULL};
    const char *name = known->shown;
    if (nccl_is_kernel(known))
        return KERNEL_COMMUNICATION;
    if (is_fp32_gemm(name))
        return KERNEL_FP32_GEMM;
    return has_any(name, elementwise) ? KERNEL_ELEMENTWISE : KERNEL_PLAIN;
}

/*
 * cuBLAS, cuDNN and CUTLASS name the instruction of a kernel by its shape (s884, h1688, s16816,
 * i16832 ... before "gemm" or "fprop"), or as tensorop, wmma, gmma and the like. "simt" and "ffma"
 * mean ordinary cores. Kernels of nvjet, the newest in cuBLAS, exist for tensor cores only.
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
    /* xmma has both kinds; names say if cores are ordinary. */
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
