/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

/* Arrays: channel descriptions of the runtime are formats of the driver. */

static cudaError_t format_of(const struct cudaChannelFormatDesc *desc, CUarray_format *format,
                             unsigned *channels)
{
    if (!desc || desc->x <= 0)
        return cudaErrorInvalidValue;
    *channels = 1u + (desc->y != 0) + (desc->z != 0) + (desc->w != 0);
    if (desc->f == cudaChannelFormatKindFloat)
        *format = desc->x == 32 ? CU_AD_FORMAT_FLOAT : CU_AD_FORMAT_HALF;
    else if (desc->f == cudaChannelFormatKindSigned)
        *format = desc->x == 8    ? CU_AD_FORMAT_SIGNED_INT8
                  : desc->x == 16 ? CU_AD_FORMAT_SIGNED_INT16
                                  : CU_AD_FORMAT_SIGNED_INT32;
    else
        *format = desc->x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
                  : desc->x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                                  : CU_AD_FORMAT_UNSIGNED_INT32;
    return cudaSuccess;
}

static struct cudaChannelFormatDesc channels_of(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    int bits = 32;
    enum cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
    switch (desc->Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: bits = 8; break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: bits = 16; break;
    default: break;
    }
    if (desc->Format >= CU_AD_FORMAT_HALF)
        kind = cudaChannelFormatKindFloat;
    else if (desc->Format >= CU_AD_FORMAT_SIGNED_INT8)
        kind = cudaChannelFormatKindSigned;
    return (struct cudaChannelFormatDesc){bits, desc->NumChannels > 1 ? bits : 0,
                                          desc->NumChannels > 2 ? bits : 0,
                                          desc->NumChannels > 3 ? bits : 0, kind};
}

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *out, const struct cudaChannelFormatDesc *desc,
                         struct cudaExtent extent, unsigned flags)
{
    *out = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
    return (CUresult)format_of(desc, &out->Format, &out->NumChannels);
}

static CUresult array_create(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                             struct cudaExtent extent, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult result = describe(&desc, channels, extent, flags);
    if (result != CUDA_SUCCESS)
        return result;
    return D(cuArray3DCreate_v2, cuArray3DCreate, 3020)((CUarray *)array, &desc);
}

static CUresult mipmap_create(cudaMipmappedArray_t *array,
                              const struct cudaChannelFormatDesc *channels,
                              struct cudaExtent extent, unsigned levels, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult result = describe(&desc, channels, extent, flags);
    if (result != CUDA_SUCCESS)
        return result;
    return D(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000)((CUmipmappedArray *)array, &desc,
                                                                   levels);
}

static CUresult array_info(struct cudaChannelFormatDesc *channels, struct cudaExtent *extent,
                           unsigned *flags, cudaArray_const_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult result = D(cuArray3DGetDescriptor_v2, cuArray3DGetDescriptor,
                        3020)(&desc, (CUarray)(uintptr_t)array);
    if (result != CUDA_SUCCESS)
        return result;
    if (channels)
        *channels = channels_of(&desc);
    if (extent)
        *extent = (struct cudaExtent){desc.Width, desc.Height, desc.Depth};
    if (flags)
        *flags = desc.Flags;
    return CUDA_SUCCESS;
}

RT(cudaMallocArray,
   (cudaArray_t * array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
    unsigned flags),
   array_create(array, desc, (struct cudaExtent){width, height, 0}, flags), A_OUT("array", array),
   A_U(width), A_U(height), A_DEVICE)
RT(cudaMalloc3DArray,
   (cudaArray_t * array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
    unsigned flags),
   array_create(array, desc, extent, flags), A_OUT("array", array),
   A_3("extent", extent.width, extent.height, extent.depth), A_DEVICE)
RT(cudaMallocMipmappedArray,
   (cudaMipmappedArray_t * array, const struct cudaChannelFormatDesc *desc,
    struct cudaExtent extent, unsigned levels, unsigned flags),
   mipmap_create(array, desc, extent, levels, flags), A_OUT("array", array), A_U(levels), A_DEVICE)
RT(cudaGetMipmappedArrayLevel,
   (cudaArray_t * level, cudaMipmappedArray_const_t array, unsigned index),
   D(cuMipmappedArrayGetLevel, cuMipmappedArrayGetLevel,
     5000)((CUarray *)level, (CUmipmappedArray)(uintptr_t)array, index),
   A_X(array), A_U(index))
RT(cudaFreeArray, (cudaArray_t array),
   array ? D(cuArrayDestroy, cuArrayDestroy, 2000)((CUarray)array) : CUDA_SUCCESS, A_X(array))
RT(cudaFreeMipmappedArray, (cudaMipmappedArray_t array),
   array ? D(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, 5000)((CUmipmappedArray)array)
         : CUDA_SUCCESS,
   A_X(array))
RT(cudaArrayGetInfo,
   (struct cudaChannelFormatDesc * desc, struct cudaExtent *extent, unsigned *flags,
    cudaArray_t array),
   array_info(desc, extent, flags, array), A_X(array))
RT(cudaGetChannelDesc, (struct cudaChannelFormatDesc * desc, cudaArray_const_t array),
   array_info(desc, NULL, NULL, array), A_X(array))

SIM_EXPORT struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                              enum cudaChannelFormatKind kind)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
