/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

/* Fills of device memory: a box of elements of one, two or four bytes. */

void fill_now(const struct fill *fill)
{
    for (size_t y = 0; y < fill->height; y++) {
        char *row = (char *)(uintptr_t)fill->dst + y * fill->pitch;
        if (fill->element == 1)
            memset(row, (int)fill->value, fill->width);
        else
            for (size_t x = 0; x < fill->width; x++)
                memcpy(row + x * fill->element, &fill->value, fill->element);
    }
}

static void fill_run(void *fill)
{
    fill_now(fill);
}

CUresult fill_memory(struct fill fill, CUstream handle, int pt, int sync)
{
    CUstream stream;
    struct memory memory;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result == CUDA_SUCCESS && sync)
        result = capture_forbids(stream);
    if (result != CUDA_SUCCESS)
        return result;
    size_t bytes = fill.width * fill.height * fill.element;
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (!memory_find(fill.dst, &memory) || fill.dst % fill.element ||
        fill.dst + (fill.height - 1) * fill.pitch + fill.width * fill.element >
            memory.base + memory.bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct graph_node_params params = {.fill = fill};
    if (!sync && capture_take(stream, CU_GRAPH_NODE_TYPE_MEMSET, &params, &result))
        return result;
    if (host_op_done(__atomic_load_n(&stream->last_op, __ATOMIC_ACQUIRE))) {
        fill_now(&fill);
    } else {
        struct fill *own = malloc(sizeof *own);
        if (!own)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *own = fill;
        host_op_enqueue(stream, (struct host_action){fill_run, NULL, own, true});
    }
    struct work work = {.what = "memset", .duration_ns = copy_duration(bytes / 4, false)};
    work_enqueue(stream, &work);
    if (work_wanted()) {
        const struct sim_arg args[] = {A_U(bytes), A_KU("value", fill.value)};
        work_log(stream, &work, args, 2);
        trace_fill(stream, &work, &fill, !sync, NULL);
    }
    return CUDA_SUCCESS;
}

#define FILL(size)    ((struct fill){dst, 0, count, 1, value, size})
#define FILL_2D(size) ((struct fill){dst, pitch, width, height, value, size})
#define ARGS(size)    A_X(dst), A_KU("value", value), A_KU("bytes", count *size)
#define ARGS_2D(size) A_X(dst), A_KU("value", value), A_KU("bytes", width *height *size)

#define SET(bits, size, type)                                                                      \
    DRV2(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr dst, type value, size_t count),                 \
         fill_memory(FILL(size), NULL, pt, 1), ARGS(size))                                         \
    DRV2(cuMemsetD##bits##Async, _ptsz,                                                            \
         (CUdeviceptr dst, type value, size_t count, CUstream stream),                             \
         fill_memory(FILL(size), stream, pt, 0), ARGS(size), A_X(stream))                          \
    DRV2(cuMemsetD2D##bits##_v2, _ptds,                                                            \
         (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height),                 \
         fill_memory(FILL_2D(size), NULL, pt, 1), ARGS_2D(size))                                   \
    DRV2(                                                                                          \
        cuMemsetD2D##bits##Async, _ptsz,                                                           \
        (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, CUstream stream), \
        fill_memory(FILL_2D(size), stream, pt, 0), ARGS_2D(size), A_X(stream))

SET(8, 1, unsigned char)
SET(16, 2, unsigned short)
SET(32, 4, unsigned int)
#undef SET
