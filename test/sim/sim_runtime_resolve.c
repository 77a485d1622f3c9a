/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

/* Driver entry points by name, error names. */

typedef __typeof__(cuGetProcAddress_v2) get_proc;

/* The second look-up of the list is cuGetProcAddress itself in its later form. */
static CUresult entry_point(const char *symbol, void **pfn, unsigned version,
                            unsigned long long flags, enum cudaDriverEntryPointQueryResult *status,
                            int pt)
{
    get_proc *ask = (get_proc *)runtime_driver[LOOKUP_cuGetProcAddress_12000_0];
    if (!symbol || !pfn || flags > 2)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_GET_PROC_ADDRESS_DEFAULT && pt)
        flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult result = ask(symbol, pfn, (int)version, flags, &found);
    if (status)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    if (result == CUDA_SUCCESS && !*pfn && !status)
        result = (CUresult)cudaErrorSymbolNotFound;
    return result;
}

#define POINT_ARGS A_KS("name", symbol ? symbol : ""), A_U(flags), A_OUT("pfn", pfn)

RT_AS(cudaGetDriverEntryPoint, cudaGetDriverEntryPoint, 0,
      (const char *symbol, void **pfn, unsigned long long flags,
       enum cudaDriverEntryPointQueryResult *status),
      entry_point(symbol, pfn, CUDART_VERSION, flags, status, pt), POINT_ARGS)
RT_AS(cudaGetDriverEntryPoint_ptsz, cudaGetDriverEntryPoint, 1,
      (const char *symbol, void **pfn, unsigned long long flags,
       enum cudaDriverEntryPointQueryResult *status),
      entry_point(symbol, pfn, CUDART_VERSION, flags, status, pt), POINT_ARGS)
RT2(cudaGetDriverEntryPointByVersion, _ptsz,
    (const char *symbol, void **pfn, unsigned version, unsigned long long flags,
     enum cudaDriverEntryPointQueryResult *status),
    entry_point(symbol, pfn, version, flags, status, pt), POINT_ARGS, A_U(version))
RT_RAW(cudaGetExportTable, (const void **table, const cudaUUID_t *id),
       runtime_return(cudaErrorSymbolNotFound))
#if SIM_CUDART_MAJOR >= 13
RT(__cudaGetProcAddress,
   (const char *symbol, void **pfn, unsigned version, unsigned long long flags, void *status),
   cudaErrorNotSupported)
#endif

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, name, text) {code, #name, text},
#include "sim_runtime_errors.def"
#undef ERROR
};

static const char *error_text(int code, bool name)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            return name ? errors[i].name : errors[i].text;
    return "unrecognized error code";
}

SIM_EXPORT const char *cudaGetErrorName(cudaError_t error)
{
    return error_text((int)error, true);
}

SIM_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
    return error_text((int)error, false);
}
