/* SPDX-License-Identifier: Apache-2.0 */
#include "find/kernel_class.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "model/nccl_call.h"

static bool has_any(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (strstr(name, *words))
            return true;
    return false;
}

/*
 * cuBLAS, cuDNN, CUTLASS and MAGMA write an "s" before what computes in FP32 on the ordinary cores:
 * ampere_sgemm_128x64_nn, cutlass_80_simt_sgemm_..., volta_scudnn_winograd_...; on tensor cores the
 * shape of an instruction stands between them (s1688gemm, s16816gemm), or the word itself. Of
 * implicit_convolve_sgemm<__half, ...> the "s" is its sums' alone. xmma names the types of factors
 * and sums: sm80_xmma_gemm_f32f32_f32f32_f32_... is FP32, ..._tf32f32_... TF32.
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
