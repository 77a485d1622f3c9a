/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "sim_driver.h"
#include "sim_memory_kinds.h"

/* Arrays are pitched memory; a mipmapped array is a list of arrays. */

enum { LEVEL_COUNT_MAX = 16, ARRAY_COUNT_MAX = 1 << 16 };

struct CUmipmappedArray_st {
    struct sim_handle handle;
    unsigned level_count;
    CUarray levels[LEVEL_COUNT_MAX];
};

struct sim_pool pool_arrays = SIM_POOL(struct CUarray_st, ARRAY_COUNT_MAX);
static struct sim_pool pool_mipmaps = SIM_POOL(struct CUmipmappedArray_st, 4096);

static size_t format_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    }
    return 0;
}

CUresult array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result == CUDA_SUCCESS)
        result = capture_forbids_thread();
    if (result != CUDA_SUCCESS)
        return result;
    size_t element = desc ? format_bytes(desc->Format) * desc->NumChannels : 0;
    if (!array || element == 0 || desc->Width == 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t height = desc->Height ? desc->Height : 1, depth = desc->Depth ? desc->Depth : 1;
    size_t bytes = desc->Width * element * height * depth;
    host_spend_on_memory();
    result = memory_account(context->device, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    CUarray made = sim_pool_get(&pool_arrays);
    if (made)
        made->memory = calloc(1, bytes);
    if (!made || !made->memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->context = context;
    made->desc = *desc;
    made->element_bytes = element;
    made->pitch_bytes = desc->Width * element;
    made->height = height;
    made->depth = depth;
    *array = made;
    return CUDA_SUCCESS;
}

CUresult array_create_2d(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR full = {.Width = desc->Width,
                                    .Height = desc->Height,
                                    .Format = desc->Format,
                                    .NumChannels = desc->NumChannels};
    return array_create(array, &full);
}

static CUresult array_destroy(CUarray array, bool is_level)
{
    if (!sim_pool_has(&pool_arrays, array) || array->is_level != is_level)
        return CUDA_ERROR_INVALID_HANDLE;
    host_spend_on_memory();
    __atomic_sub_fetch(&array->context->device->used_bytes,
                       array->pitch_bytes * array->height * array->depth, __ATOMIC_RELAXED);
    free(array->memory);
    array->memory = NULL;
    sim_pool_put(&pool_arrays, array);
    return CUDA_SUCCESS;
}

static CUresult array_describe(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array)
{
    if (!sim_pool_has(&pool_arrays, array))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    *desc = array->desc;
    return CUDA_SUCCESS;
}

static CUresult array_describe_2d(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR full;
    CUresult result = array_describe(&full, array);
    if (result == CUDA_SUCCESS && desc)
        *desc = (CUDA_ARRAY_DESCRIPTOR){full.Width, full.Height, full.Format, full.NumChannels};
    return result;
}

static CUresult mipmap_destroy(CUmipmappedArray mipmap)
{
    if (!sim_pool_has(&pool_mipmaps, mipmap))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < mipmap->level_count; i++)
        array_destroy(mipmap->levels[i], true);
    sim_pool_put(&pool_mipmaps, mipmap);
    return CUDA_SUCCESS;
}

static CUresult mipmap_create(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc,
                              unsigned count)
{
    if (!out || !desc || count == 0 || count > LEVEL_COUNT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    CUmipmappedArray mipmap = sim_pool_get(&pool_mipmaps);
    CUDA_ARRAY3D_DESCRIPTOR level = *desc;
    if (!mipmap)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < count; i++) {
        CUresult result = array_create(&mipmap->levels[i], &level);
        if (result != CUDA_SUCCESS) {
            mipmap_destroy(mipmap);
            return result;
        }
        mipmap->levels[mipmap->level_count++]->is_level = true;
        level.Width = level.Width > 1 ? level.Width / 2 : 1;
        level.Height = level.Height > 1 ? level.Height / 2 : level.Height;
        level.Depth = level.Depth > 1 ? level.Depth / 2 : level.Depth;
    }
    *out = mipmap;
    return CUDA_SUCCESS;
}

static CUresult mipmap_level(CUarray *level, CUmipmappedArray mipmap, unsigned index)
{
    if (!sim_pool_has(&pool_mipmaps, mipmap))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!level || index >= mipmap->level_count)
        return CUDA_ERROR_INVALID_VALUE;
    *level = mipmap->levels[index];
    return CUDA_SUCCESS;
}

DRV(cuArrayCreate_v2, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *desc),
    array_create_2d(array, desc), A_OUT("array", array), A_DEVICE)
DRV(cuArray3DCreate_v2, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *desc),
    array_create(array, desc), A_OUT("array", array), A_DEVICE)
DRV(cuArrayDestroy, (CUarray array), array_destroy(array, false), A_X(array))
DRV(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR * desc, CUarray array),
    array_describe_2d(desc, array), A_X(array))
DRV(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * desc, CUarray array),
    array_describe(desc, array), A_X(array))
DRV(cuMipmappedArrayCreate,
    (CUmipmappedArray * mipmap, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels),
    mipmap_create(mipmap, desc, levels), A_OUT("mipmap", mipmap), A_U(levels), A_DEVICE)
DRV(cuMipmappedArrayDestroy, (CUmipmappedArray mipmap), mipmap_destroy(mipmap), A_X(mipmap))
DRV(cuMipmappedArrayGetLevel, (CUarray * level, CUmipmappedArray mipmap, unsigned index),
    mipmap_level(level, mipmap, index), A_X(mipmap), A_U(index))
