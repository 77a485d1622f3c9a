/* SPDX-License-Identifier: Apache-2.0 */
/* A library that makes a call of CUDA's in the program that CUDA_IN names, before its main. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_cudart.h"

__attribute__((constructor)) static void call_early(void)
{
    const char *in = getenv("CUDA_IN");
    void *memory;
    if (in && strcmp(in, program_invocation_short_name) == 0)
        cudaMalloc(&memory, 100);
}
