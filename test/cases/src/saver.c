/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload that gives memory as torch_memory_saver does: its cudaMalloc maps physical memory at
 * addresses that it reserves, its pause lets the memory go, its resume maps new one at the same
 * addresses. With -DPROGRAM the program that uses it, and writes how many MiB the device says are
 * in use after each step.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

#ifdef PROGRAM
#include <cuda_runtime_api.h>

static void (*turn)(int);

static void step(int result)
{
    size_t left, total;
    if (result || cuMemGetInfo_v2(&left, &total))
        exit(2);
    printf("%zu\n", (total - left) / MIB);
}

int main(void)
{
    void *kept, *freed, *last;
    *(void **)&turn = dlsym(RTLD_DEFAULT, "saver_turn");
    if (!turn)
        return 2;
    step(cudaMalloc(&kept, 40 * MIB));
    step(cudaMalloc(&freed, 20 * MIB));
    step((turn(0), 0));
    step((turn(1), 0));
    step((turn(0), cudaFree(freed)));
    step((turn(1), cudaMalloc(&last, 10 * MIB)));
    step(cudaFree(kept));
    return 3;
}

#else

#define BLOCKS 8
#define CHUNK  (10 * MIB) /* each block is mapped in so large pieces */
#define CHUNKS 4

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != CUDA_SUCCESS) {                                                              \
            fprintf(stderr, "saver: %s\n", #call);                                                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static struct block {
    CUdeviceptr ptr;
    size_t bytes;
    CUmemGenericAllocationHandle handles[CHUNKS];
    int is_mapped;
} blocks[BLOCKS];

static void map(struct block *b)
{
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    memset(&access, 0, sizeof access);
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (size_t at = 0, i = 0; at < b->bytes; at += CHUNK, i++) {
        MUST(cuMemCreate(&b->handles[i], CHUNK, &prop, 0));
        MUST(cuMemMap(b->ptr + at, CHUNK, 0, b->handles[i], 0));
    }
    MUST(cuMemSetAccess(b->ptr, b->bytes, &access, 1));
    b->is_mapped = 1;
}

static void unmap(struct block *b)
{
    for (size_t at = 0, i = 0; b->is_mapped && at < b->bytes; at += CHUNK, i++) {
        MUST(cuMemUnmap(b->ptr + at, CHUNK));
        MUST(cuMemRelease(b->handles[i]));
    }
    b->is_mapped = 0;
}

void saver_turn(int on)
{
    for (struct block *b = blocks; b < blocks + BLOCKS; b++)
        if (b->ptr && on)
            map(b);
        else if (b->ptr)
            unmap(b);
}

int cudaMalloc(void **ptr, size_t bytes)
{
    struct block *b = blocks;
    CUdevice device;
    CUcontext context;
    while (b->ptr)
        b++;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAddressReserve(&b->ptr, bytes, 0, 0, 0));
    b->bytes = bytes;
    map(b);
    *ptr = (void *)(uintptr_t)b->ptr;
    return 0;
}

int cudaFree(void *ptr)
{
    struct block *b = blocks;
    while (b->ptr != (CUdeviceptr)(uintptr_t)ptr)
        b++;
    unmap(b);
    MUST(cuMemAddressFree(b->ptr, b->bytes));
    b->ptr = 0;
    return 0;
}

#endif
