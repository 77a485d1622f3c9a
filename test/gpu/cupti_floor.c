/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUPTI costs by itself: records of kernels and synchronisations, and callbacks of the
 * driver's launches, all of it thrown away. The driver loads it (CUDA_INJECTION64_PATH);
 * CUPTI_FLOOR is the path of the libcupti to use.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cupti/cupti_abi.h"

#define BUFFER_BYTES (256u << 10) /* as gpuprof's own */
#define CBID_MAX     1500u

static void requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *size = BUFFER_BYTES;
    *max_records = 0;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
}

static void completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                      size_t valid)
{
    (void)context, (void)stream, (void)size, (void)valid;
    free(buffer);
}

static void called(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *call)
{
    (void)data, (void)domain, (void)id, (void)call;
}

int InitializeInjection(void); /* the name that the driver looks for */

int InitializeInjection(void)
{
    static const char *const launches[] = {"cuLaunchKernel", "cuLaunchKernelEx"};
    void *cupti = dlopen(getenv("CUPTI_FLOOR"), RTLD_NOW);
    CUpti_SubscriberHandle me;
    const char *name;
    if (!cupti)
        abort();
#define CUPTI_FUNCTION(name, required, returns, params)                                            \
    returns(*name) params = (returns(*) params)dlsym(cupti, #name);                                \
    (void)name;
#include "cupti/cupti_functions.def"
    if (cuptiSubscribe(&me, called, NULL) != CUPTI_SUCCESS ||
        cuptiActivityRegisterCallbacks(requested, completed) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) != CUPTI_SUCCESS)
        abort();
    for (CUpti_CallbackId id = 1; id < CBID_MAX; id++)
        for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++)
            if (cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) == CUPTI_SUCCESS &&
                strcmp(name, launches[i]) == 0)
                cuptiEnableCallback(1, me, CUPTI_CB_DOMAIN_DRIVER_API, id);
    return 1;
}
