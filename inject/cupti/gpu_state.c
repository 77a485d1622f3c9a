/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_state.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/ticks.h"
#include "record/wake.h"

struct gpu gpu = {.status.text = "absent: CUDA was not initialised"};

uint64_t gpu_timestamp(void)
{
    return clock_scale_ns(&gp.header.scale, ticks_now());
}

void gpu_set_status(const char *format, ...)
{
    char text[STATUS_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    status_set(&gpu.status, text);
    writer_wake();
}

const char *gpu_result_text(CUptiResult result)
{
    const char *text = NULL;
    static _Thread_local char number[32];
    if (gpu.cupti.cuptiGetResultString(result, &text) == CUPTI_SUCCESS && text)
        return text;
    snprintf(number, sizeof number, "CUPTI error %d", (int)result);
    return number;
}
