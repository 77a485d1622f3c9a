/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that initialise the driver, which then loads us (InitializeInjection) in the middle of
 * them: what that leads to comes after them.
 */
#ifndef GPUPROF_INJECT_GPU_CLIENT_H
#define GPUPROF_INJECT_GPU_CLIENT_H

#include <stdbool.h>

/*
 * Around another client's call of CUPTI, which may initialise the driver, which then loads us:
 * CUPTI would wait for itself if we called it there, so that comes after it. Hands `result`
 * through.
 */
void gpu_client_calls(void);
int gpu_client_called(int result);

/* The same around cuInit: then it is no news that the driver loads us. */
void gpu_client_initialises(void);
void gpu_client_initialised(void);

/* The driver has loaded us. Is one of them under way on this thread? Then `what`, always the same,
 * is called after it; but for cuInit. */
bool gpu_client_defers(void (*what)(void));

#endif
