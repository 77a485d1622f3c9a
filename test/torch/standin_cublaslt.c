/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

/*
 * What stands for cuBLASLt: it reaches the driver by dlopen and plain dlsym, as the real one does.
 * A kernel takes time and computes nothing.
 */

enum { SUCCESS = 0, ALLOC_FAILED = 3, INVALID_VALUE = 7, EXECUTION_FAILED = 13 };

enum { TILE = 128, TILE_THREADS = 384, CONTEXT_COUNT_MAX = 16, LAYOUT_BATCH = 5, VERSION = 130000 };

/* cublasLtMatmulHeuristicResult_t: as the library lays it out. */
struct heuristic {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};
_Static_assert(sizeof(struct heuristic) == 96, "the size in cublasLt.h");

/* By number, as in cublasLt.h. */
enum layout_attribute { LAYOUT_TYPE = 0, LAYOUT_ROWS = 2, LAYOUT_COLUMNS = 3, LAYOUT_LEADING = 4 };

struct layout {
    uint64_t rows, columns;
    int64_t leading;
    int32_t type, batch;
};

static struct {
    pthread_mutex_t lock;
    __typeof__(cuCtxGetCurrent) *current;
    __typeof__(cuModuleLoadData) *load;
    __typeof__(cuModuleGetFunction) *function;
    __typeof__(cuLaunchKernel) *launch;
    struct {
        CUcontext context;
        CUfunction kernel;
    } rows[CONTEXT_COUNT_MAX];
    unsigned row_count;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void driver_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!library || driver.launch)
        return;
    driver.current = (__typeof__(driver.current))(uintptr_t)dlsym(library, "cuCtxGetCurrent");
    driver.load = (__typeof__(driver.load))(uintptr_t)dlsym(library, "cuModuleLoadData");
    driver.function = (__typeof__(driver.function))(uintptr_t)dlsym(library, "cuModuleGetFunction");
    driver.launch = (__typeof__(driver.launch))(uintptr_t)dlsym(library, "cuLaunchKernel");
}

/* The kernel, loaded once for each context; under the lock. */
static CUfunction kernel_here(void)
{
    static const char image[] = "simulated code";
    CUcontext context = NULL;
    CUmodule module;
    driver_find();
    if (!driver.launch || driver.current(&context) != CUDA_SUCCESS || !context)
        return NULL;
    for (unsigned i = 0; i < driver.row_count; i++)
        if (driver.rows[i].context == context)
            return driver.rows[i].kernel;
    CUfunction kernel = NULL;
    if (driver.row_count == CONTEXT_COUNT_MAX || driver.load(&module, image) != CUDA_SUCCESS ||
        driver.function(&kernel, module, STANDIN_CUBLASLT_PREFIX "matmul_128x128") != CUDA_SUCCESS)
        return NULL;
    driver.rows[driver.row_count].context = context;
    driver.rows[driver.row_count++].kernel = kernel;
    return kernel;
}

static unsigned tiles(uint64_t size)
{
    return size ? (unsigned)((size + TILE - 1) / TILE) : 1;
}

STANDIN size_t cublasLtGetVersion(void)
{
    return VERSION;
}

STANDIN int cublasLtCreate(void **handle)
{
    if (!handle)
        return INVALID_VALUE;
    *handle = malloc(1);
    return *handle ? SUCCESS : ALLOC_FAILED;
}

STANDIN int cublasLtDestroy(void *handle)
{
    free(handle);
    return SUCCESS;
}

STANDIN int cublasLtMatmul(void *handle, void *description, const void *alpha, const void *a,
                           const struct layout *layout_a, const void *b,
                           const struct layout *layout_b, const void *beta, const void *c,
                           const struct layout *layout_c, void *d, const struct layout *layout_d,
                           const uint64_t *algorithm, void *workspace, size_t workspace_bytes,
                           CUstream stream)
{
    void *args[1] = {NULL};
    if (!layout_d)
        return INVALID_VALUE;
    pthread_mutex_lock(&driver.lock);
    CUfunction kernel = kernel_here();
    pthread_mutex_unlock(&driver.lock);
    if (!kernel)
        return EXECUTION_FAILED;
    CUresult result = driver.launch(kernel, tiles(layout_d->rows), tiles(layout_d->columns),
                                    layout_d->batch > 0 ? (unsigned)layout_d->batch : 1,
                                    TILE_THREADS, 1, 1, 0, stream, args, NULL);
    return result == CUDA_SUCCESS ? SUCCESS : EXECUTION_FAILED;
}

STANDIN int cublasLtMatmulAlgoGetHeuristic(void *handle, void *description, void *layout_a,
                                           void *layout_b, void *layout_c, void *layout_d,
                                           void *preference, int wanted, struct heuristic *results,
                                           int *found)
{
    if (wanted < 1 || !results || !found)
        return INVALID_VALUE;
    memset(results, 0, sizeof *results);
    results->waves = 1;
    *found = 1;
    return SUCCESS;
}

/* What is only made, told things that change no grid, and destroyed. */
#define OPAQUE(name, ...)                                                                          \
    STANDIN int cublasLtMatmul##name##Create(void **made, ##__VA_ARGS__)                           \
    {                                                                                              \
        *made = calloc(1, 1);                                                                      \
        return *made ? SUCCESS : ALLOC_FAILED;                                                     \
    }                                                                                              \
    STANDIN int cublasLtMatmul##name##Destroy(void *made)                                          \
    {                                                                                              \
        free(made);                                                                                \
        return SUCCESS;                                                                            \
    }                                                                                              \
    STANDIN int cublasLtMatmul##name##SetAttribute(void *made, int which, const void *value,       \
                                                   size_t bytes)                                   \
    {                                                                                              \
        return made && value ? SUCCESS : INVALID_VALUE;                                            \
    }

OPAQUE(Desc, int compute, int scale)
OPAQUE(Preference)

STANDIN int cublasLtMatrixLayoutCreate(struct layout **made, int type, uint64_t rows,
                                       uint64_t columns, int64_t leading)
{
    *made = calloc(1, sizeof **made);
    if (!*made)
        return ALLOC_FAILED;
    (*made)->rows = rows;
    (*made)->columns = columns;
    (*made)->leading = leading;
    (*made)->type = type;
    (*made)->batch = 1;
    return SUCCESS;
}

STANDIN int cublasLtMatrixLayoutDestroy(struct layout *made)
{
    free(made);
    return SUCCESS;
}

STANDIN int cublasLtMatrixLayoutSetAttribute(struct layout *made, int which, const void *value,
                                             size_t bytes)
{
    if (!made || !value)
        return INVALID_VALUE;
    if (which == LAYOUT_BATCH && bytes == sizeof made->batch)
        memcpy(&made->batch, value, bytes);
    return SUCCESS;
}

static int give(const void *from, size_t its_bytes, void *value, size_t bytes, size_t *written)
{
    if (written)
        *written = its_bytes;
    if (value && bytes >= its_bytes)
        memcpy(value, from, its_bytes);
    return !value || bytes >= its_bytes ? SUCCESS : INVALID_VALUE;
}

STANDIN int cublasLtMatrixLayoutGetAttribute(const struct layout *made, int which, void *value,
                                             size_t bytes, size_t *written)
{
    if (!made)
        return INVALID_VALUE;
    switch (which) {
    case LAYOUT_TYPE: return give(&made->type, sizeof made->type, value, bytes, written);
    case LAYOUT_ROWS: return give(&made->rows, sizeof made->rows, value, bytes, written);
    case LAYOUT_COLUMNS: return give(&made->columns, sizeof made->columns, value, bytes, written);
    case LAYOUT_LEADING: return give(&made->leading, sizeof made->leading, value, bytes, written);
    case LAYOUT_BATCH: return give(&made->batch, sizeof made->batch, value, bytes, written);
    default: return INVALID_VALUE;
    }
}

/* No descriptor keeps what it was told: each answers 0, the standard value of most. */
STANDIN int cublasLtMatmulDescGetAttribute(const void *made, int which, void *value, size_t bytes,
                                           size_t *written)
{
    static const uint64_t none;
    return made && bytes <= sizeof none ? give(&none, bytes, value, bytes, written) : INVALID_VALUE;
}
