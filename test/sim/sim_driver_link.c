/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "sim_driver.h"

/* The driver's linker, as Numba uses it: what is linked is an image like any other. */

enum { LINK_COUNT_MAX = 1 << 10 };

struct CUlinkState_st {
    struct sim_handle handle;
    unsigned input_count;
    char image[sizeof "simulated code"];
};

static struct sim_pool links = SIM_POOL(struct CUlinkState_st, LINK_COUNT_MAX);

__attribute__((constructor)) static void link_start(void)
{
    sim_fork_lock(&links.lock);
}

static CUresult link_create(CUlinkState *state)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = sim_pool_get(&links);
    return *state ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult link_add(CUlinkState state, const void *data, size_t bytes, const char *path)
{
    if (!sim_pool_has(&links, state))
        return CUDA_ERROR_INVALID_HANDLE;
    if (path ? access(path, R_OK) != 0 : !data || !bytes)
        return path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    state->input_count++;
    return CUDA_SUCCESS;
}

static CUresult link_complete(CUlinkState state, void **image, size_t *bytes)
{
    if (!sim_pool_has(&links, state))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!image || !state->input_count)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(state->image, "simulated code", sizeof state->image);
    *image = state->image; /* until the state is destroyed */
    if (bytes)
        *bytes = sizeof state->image;
    return CUDA_SUCCESS;
}

static CUresult link_destroy(CUlinkState state)
{
    if (!sim_pool_has(&links, state))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_pool_put(&links, state);
    return CUDA_SUCCESS;
}

DRV(cuLinkCreate, (unsigned count, CUjit_option *options, void **values, CUlinkState *state),
    link_create(state))
DRV(cuLinkCreate_v2, (unsigned count, CUjit_option *options, void **values, CUlinkState *state),
    link_create(state))
DRV(cuLinkAddData,
    (CUlinkState state, int type, void *data, size_t bytes, const char *name, unsigned count,
     CUjit_option *options, void **values),
    link_add(state, data, bytes, NULL), A_X(state))
DRV(cuLinkAddData_v2,
    (CUlinkState state, int type, void *data, size_t bytes, const char *name, unsigned count,
     CUjit_option *options, void **values),
    link_add(state, data, bytes, NULL), A_X(state))
DRV(cuLinkAddFile,
    (CUlinkState state, int type, const char *path, unsigned count, CUjit_option *options,
     void **values),
    link_add(state, NULL, 0, path ? path : ""), A_X(state), A_KS("path", path))
DRV(cuLinkAddFile_v2,
    (CUlinkState state, int type, const char *path, unsigned count, CUjit_option *options,
     void **values),
    link_add(state, NULL, 0, path ? path : ""), A_X(state), A_KS("path", path))
DRV(cuLinkComplete, (CUlinkState state, void **image, size_t *bytes),
    link_complete(state, image, bytes), A_X(state))
DRV(cuLinkDestroy, (CUlinkState state), link_destroy(state), A_X(state))
