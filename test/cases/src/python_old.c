/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an interpreter in it that is so old that it has no runtime: before Python 3.7. */
#include <cuda_runtime_api.h>

void *PyGILState_GetThisThreadState(void)
{
    return (void *)8;
}

int main(void)
{
    void *memory = NULL;
    return cudaMalloc(&memory, 64) != cudaSuccess;
}
