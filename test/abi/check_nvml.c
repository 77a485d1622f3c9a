/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that inject/ knows of NVML, compared with a real header; it is compiled, never run.
 * The test writes "declared.h" for each version of the header: DECLARED_<name> is 1 if it has the
 * function.
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS /* declares the older versions, too */
#include <nvml.h>

#include "declared.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

#define DECLARED_0(name, params)
#define DECLARED_1(name, params)                                                                   \
    _Static_assert(__builtin_types_compatible_p(nvmlReturn_t(*) params, __typeof__(&name)), #name);
#define NVML_FUNCTION(name, older, required, params)                                               \
    JOIN(DECLARED_, DECLARED_##name)                                                               \
    (name, params) _Static_assert(DECLARED_##name || !(required), #name " is not in all "          \
                                                                        "versions");
#include "device/nvml_functions.def"

/* What stands in for a newer one where that is not there. */
_Static_assert(__builtin_types_compatible_p(nvmlReturn_t (*)(nvmlDevice_t, unsigned *,
                                                             nvmlProcessInfo_v2_t *),
                                            __typeof__(&nvmlDeviceGetComputeRunningProcesses_v2)),
               "as the third version");
_Static_assert(__builtin_types_compatible_p(nvmlReturn_t (*)(nvmlDevice_t, unsigned long long *),
                                            __typeof__(&nvmlDeviceGetCurrentClocksThrottleReasons)),
               "as the reasons of events");
