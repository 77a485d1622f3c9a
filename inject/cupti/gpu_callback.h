/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function that CUPTI calls at entry to and exit from CUDA functions, on the program's thread.
 * A call that a hook has begun gets its correlation id here. A call that no hook saw (statically
 * linked runtime, driver found without us) is begun and ended here.
 */
#ifndef GPUPROF_INJECT_GPU_CALLBACK_H
#define GPUPROF_INJECT_GPU_CALLBACK_H

#include "cupti/cupti_abi.h"

void gpu_callback(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                  const void *cbdata);

#endif
