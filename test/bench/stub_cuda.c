/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 whose one function does nothing: what libcudart calls inside its own calls. */
#include "stub_cudart.h"

int cuStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return 0;
}
