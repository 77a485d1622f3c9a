/* SPDX-License-Identifier: Apache-2.0 */
/* ci_work COPIES ... --steps STEPS: what stands for a training in GUIDE's recipes of CI. */
#include "gpuprof.h"

#include <stdlib.h>

#include "cuda_runtime_api.h"

int main(int argc, char **argv)
{
    static char bytes[4096];
    void *buffer = NULL;
    unsigned long copies = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long steps = strtoul(argv[argc - 1], NULL, 10);
    int failed = cudaMalloc(&buffer, sizeof bytes) != cudaSuccess;
    for (unsigned long step = 0; step < steps; step++) {
        gpuprof_step(step);
        for (unsigned long i = 0; i < copies; i++)
            failed |= cudaMemcpy(buffer, bytes, sizeof bytes, cudaMemcpyHostToDevice);
    }
    gpuprof_step(steps);
    return failed;
}
