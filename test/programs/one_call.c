/* SPDX-License-Identifier: Apache-2.0 */
/* The least that is recorded: one allocation and its release. */
#include <cuda_runtime_api.h>

int main(void)
{
    void *memory = 0;
    if (cudaMalloc(&memory, 4096) != cudaSuccess)
        return 1;
    return cudaFree(memory) == cudaSuccess ? 0 : 1;
}
