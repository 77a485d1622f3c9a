/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that initialize the driver, which loads this library in the middle of the call
 * (InitializeInjection). What that starts is delayed until the call returns. */
#ifndef GPUPROF_INJECT_GPU_CLIENT_H
#define GPUPROF_INJECT_GPU_CLIENT_H

#include <stdbool.h>

/* Wraps another client's CUPTI call, which may initialize the driver, which then loads us. CUPTI
 * would deadlock if we called it there, so we call it afterwards. Returns `result`. */
void gpu_client_calls(void);
int gpu_client_called(int result);

/* The same for cuInit, after which loading us needs no further action. */
void gpu_client_initialises(void);
void gpu_client_initialised(void);

/* The driver has loaded us. If such a call is under way on this thread, returns true and calls
 * `what` (always the same function) after it, except after cuInit. */
bool gpu_client_defers(void (*what)(void));

#endif
