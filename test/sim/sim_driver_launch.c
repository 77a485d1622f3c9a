/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

enum { THREADS_MAX = 1024, SHARED_MAX = 232448, COOPERATIVE_BLOCKS_MAX = 80 * 32 };

CUresult launch_check(CUfunction function, const unsigned *grid, const unsigned *block,
                      unsigned shared)
{
    if (SIM_UNLIKELY(!function_check(function)))
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (SIM_UNLIKELY(threads == 0 || threads > THREADS_MAX || block[2] > 64 || grid[0] == 0 ||
                     grid[0] > 0x7fffffffu || grid[1] - 1 > 65534 || grid[2] - 1 > 65534))
        return CUDA_ERROR_INVALID_VALUE;
    if (SIM_UNLIKELY(
            shared > SHARED_MAX ||
            shared >
                (unsigned)function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES]))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult launch_kernel(CUfunction function, const unsigned *grid, const unsigned *block,
                       unsigned shared, CUstream handle, int pt, bool cooperative)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (SIM_UNLIKELY(result != CUDA_SUCCESS))
        return result;
    result = launch_check(function, grid, block, shared);
    if (SIM_UNLIKELY(result != CUDA_SUCCESS))
        return result;
    if (cooperative && (uint64_t)grid[0] * grid[1] * grid[2] > COOPERATIVE_BLOCKS_MAX)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    if (SIM_UNLIKELY(stream->capture != NULL)) {
        struct graph_node_params params = {.function = function, .shared = shared};
        for (int i = 0; i < 3; i++) {
            params.grid[i] = grid[i];
            params.block[i] = block[i];
        }
        if (capture_take(stream, CU_GRAPH_NODE_TYPE_KERNEL, &params, &result))
            return result;
    } else if (capture_take(stream, CU_GRAPH_NODE_TYPE_KERNEL, NULL, &result)) {
        return result;
    }
    host_spend(sim_config.launch_ns);
    struct work work = {.what = "kernel", .duration_ns = kernel_duration(function, grid)};
    work_enqueue(stream, &work);
    if (SIM_UNLIKELY(collective_is(function)))
        collective_meet(stream, &work);
    if (SIM_UNLIKELY(work_wanted())) {
        const struct sim_arg args[] = {A_KS("name", function->name), A_X(function),
                                       A_3("grid", grid[0], grid[1], grid[2]),
                                       A_3("block", block[0], block[1], block[2]), A_U(shared)};
        work_log(stream, &work, args, 5);
        const struct graph_node_params params = {.function = function,
                                                 .grid = {grid[0], grid[1], grid[2]},
                                                 .block = {block[0], block[1], block[2]},
                                                 .shared = shared};
        trace_kernel(stream, &work, &params, NULL);
    }
    return SIM_UNLIKELY(sim_config.launch_blocking) ? stream_wait(stream) : CUDA_SUCCESS;
}

#define GRID(x, y, z) ((const unsigned[3]){x, y, z})
#define KERNEL_ARGS(function, gx, gy, gz, bx, by, bz, shared, stream)                              \
    A_KS("kernel", function_name(function)), A_X(function), A_3("grid", gx, gy, gz),               \
        A_3("block", bx, by, bz), A_KU("shared", shared), A_KX("stream", stream)

DRV2(cuLaunchKernel, _ptsz,
     (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
      unsigned bz, unsigned shared, CUstream stream, void **params, void **extra),
     launch_kernel(function, GRID(gx, gy, gz), GRID(bx, by, bz), shared, stream, pt, false),
     KERNEL_ARGS(function, gx, gy, gz, bx, by, bz, shared, stream))
DRV2(cuLaunchCooperativeKernel, _ptsz,
     (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
      unsigned bz, unsigned shared, CUstream stream, void **params),
     launch_kernel(function, GRID(gx, gy, gz), GRID(bx, by, bz), shared, stream, pt, true),
     KERNEL_ARGS(function, gx, gy, gz, bx, by, bz, shared, stream))

static CUresult launch_config(const CUlaunchConfig *config, CUfunction function, int pt)
{
    bool cooperative = false;
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = config->attrs[i].value.cooperative != 0;
    return launch_kernel(function, &config->gridDimX, &config->blockDimX, config->sharedMemBytes,
                         config->hStream, pt, cooperative);
}

static const CUlaunchConfig no_config;
#define CONFIG(config) (config ? config : &no_config)

DRV2(cuLaunchKernelEx, _ptsz,
     (const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
     launch_config(config, function, pt),
     KERNEL_ARGS(function, CONFIG(config)->gridDimX, CONFIG(config)->gridDimY,
                 CONFIG(config)->gridDimZ, CONFIG(config)->blockDimX, CONFIG(config)->blockDimY,
                 CONFIG(config)->blockDimZ, CONFIG(config)->sharedMemBytes,
                 CONFIG(config)->hStream))

static CUresult launch_list(const CUDA_LAUNCH_PARAMS *list, unsigned count)
{
    CUresult result = list && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = launch_kernel(list[i].function, &list[i].gridDimX, &list[i].blockDimX,
                               list[i].sharedMemBytes, list[i].hStream, 0, true);
    return result;
}

DRV(cuLaunchCooperativeKernelMultiDevice,
    (CUDA_LAUNCH_PARAMS * list, unsigned count, unsigned flags), launch_list(list, count),
    A_U(count), A_U(flags))

/* The launches of CUDA 2, where the block belongs to the function. */
static CUresult launch_old(CUfunction function, int width, int height, CUstream stream)
{
    if (!function_check(function) || width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    return launch_kernel(function, GRID((unsigned)width, (unsigned)height, 1), function->block,
                         function->shared_bytes, stream, 0, false);
}

static CUresult block_shape(CUfunction function, int x, int y, int z)
{
    if (!function_check(function) || x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    function->block[0] = (unsigned)x;
    function->block[1] = (unsigned)y;
    function->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

static CUresult shared_size(CUfunction function, unsigned bytes)
{
    if (!function_check(function))
        return CUDA_ERROR_INVALID_VALUE;
    function->shared_bytes = bytes;
    return CUDA_SUCCESS;
}

DRV(cuLaunch, (CUfunction function), launch_old(function, 1, 1, NULL),
    A_KS("kernel", function_name(function)), A_X(function))
DRV(cuLaunchGrid, (CUfunction function, int width, int height),
    launch_old(function, width, height, NULL), A_KS("kernel", function_name(function)),
    A_X(function), A_3("grid", width, height, 1))
DRV(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream),
    launch_old(function, width, height, stream), A_KS("kernel", function_name(function)),
    A_X(function), A_3("grid", width, height, 1), A_X(stream))
DRV(cuFuncSetBlockShape, (CUfunction function, int x, int y, int z), block_shape(function, x, y, z),
    A_X(function))
DRV(cuFuncSetSharedSize, (CUfunction function, unsigned bytes), shared_size(function, bytes),
    A_X(function))
DRV(cuParamSetSize, (CUfunction function, unsigned bytes), CUDA_SUCCESS, A_X(function))
DRV(cuParamSeti, (CUfunction function, int offset, unsigned value), CUDA_SUCCESS, A_X(function))
DRV(cuParamSetf, (CUfunction function, int offset, float value), CUDA_SUCCESS, A_X(function))
DRV(cuParamSetv, (CUfunction function, int offset, void *ptr, unsigned bytes), CUDA_SUCCESS,
    A_X(function))

CUresult launch_host(CUstream handle, CUhostFn fn, void *data, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result == CUDA_SUCCESS && !fn)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    struct graph_node_params params = {.host = {fn, data}};
    if (capture_take(stream, CU_GRAPH_NODE_TYPE_HOST, &params, &result))
        return result;
    host_op_enqueue(stream, (struct host_action){fn, NULL, data, false});
    return CUDA_SUCCESS;
}

DRV2(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn fn, void *data),
     launch_host(stream, fn, data, pt), A_X(stream), A_KX("fn", fn))

struct callback {
    CUstreamCallback fn;
    CUstream stream;
    void *data;
};

static void callback_run(void *data)
{
    struct callback *callback = data;
    callback->fn(callback->stream, CUDA_SUCCESS, callback->data);
}

static CUresult add_callback(CUstream handle, CUstreamCallback fn, void *data, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result == CUDA_SUCCESS)
        result = fn ? capture_forbids(stream) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    struct callback *callback = malloc(sizeof *callback);
    if (!callback)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *callback = (struct callback){fn, handle, data};
    host_op_enqueue(stream, (struct host_action){callback_run, NULL, callback, true});
    return CUDA_SUCCESS;
}

DRV2(cuStreamAddCallback, _ptsz, (CUstream stream, CUstreamCallback fn, void *data, unsigned flags),
     add_callback(stream, fn, data, pt), A_X(stream), A_KX("fn", fn))
