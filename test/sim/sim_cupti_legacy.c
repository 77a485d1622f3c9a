/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_cupti.h"

/*
 * Events and metrics, which 13.0 no longer has: PyTorch is linked with them. Devices of compute
 * capability 7.5 and newer, such as the simulated ones, do not support them.
 */

#if SIM_CUPTI < 130
#define LEGACY(name)                                                                               \
    CUPTI_EXPORT CUptiResult name(void);                                                           \
    CUPTI_EXPORT CUptiResult name(void)                                                            \
    {                                                                                              \
        CUptiResult result = cupti_ready(__func__);                                                \
        return result == CUPTI_SUCCESS ? cupti_error(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED)    \
                                       : result;                                                   \
    }

LEGACY(cuptiEventGetAttribute)
LEGACY(cuptiEventGetIdFromName)
LEGACY(cuptiEventGroupGetAttribute)
LEGACY(cuptiEventGroupReadEvent)
LEGACY(cuptiEventGroupSetAttribute)
LEGACY(cuptiEventGroupSetDisable)
LEGACY(cuptiEventGroupSetEnable)
LEGACY(cuptiEventGroupSetsCreate)
LEGACY(cuptiEventGroupSetsDestroy)
LEGACY(cuptiMetricEnumEvents)
LEGACY(cuptiMetricGetAttribute)
LEGACY(cuptiMetricGetIdFromName)
LEGACY(cuptiMetricGetNumEvents)
LEGACY(cuptiMetricGetValue)
LEGACY(cuptiSetEventCollectionMode)
#endif
