/* SPDX-License-Identifier: Apache-2.0 */
/* A program with somebody else's rights, perhaps: says so, whether gpuprof is in it, and calls. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tiny_cudart.h"

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(int *)data |= strstr(info->dlpi_name, "libgpuprof.so") != NULL;
    return 0;
}

int main(void)
{
    void *memory = NULL;
    int is_there = 0;
    dl_iterate_phdr(visit, &is_there);
    int error = cudaMalloc(&memory, 64);
    cudaFree(memory);
    printf("secure=%lu library=%d call=%d looked-up=%d nvtx=%s injection=%s\n",
           getauxval(AT_SECURE), is_there, error,
           dlsym(RTLD_DEFAULT, "cudaMalloc") == (void *)cudaMalloc,
           getenv("NVTX_INJECTION64_PATH") ? "set" : "unset",
           getenv("CUDA_INJECTION64_PATH") ? "set" : "unset");
    return 0;
}
