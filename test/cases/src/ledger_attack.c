/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_attack SEED ROUNDS end|kill managed|unmanaged: gets and releases memory of every kind at
 * random on two devices, also by another function than one would expect; after each step the device
 * is asked how much is left. Prints, for each device, the most that was used and what is used at
 * last.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD  24
#define PAGE  ((size_t)2 << 20)
#define KINDS 10

enum kind {
    NONE,
    LINEAR,
    ASYNC,
    MANAGED,
    DRIVER,
    PITCHED,
    PINNED,
    ARRAY,
    POOLED,
    PHYSICAL,
    REGISTERED
};

struct block {
    enum kind kind;
    int device;
    void *ptr;
    CUmemGenericAllocationHandle handle;
    int references; /* of physical memory */
    int is_mapped;
};

static struct block held[HELD];
static unsigned seed;
static size_t first[2], most[2], now[2];
static cudaMemPool_t pools[2];
static int has_managed;

static unsigned any(unsigned below)
{
    return (unsigned)rand_r(&seed) % below;
}

static void must(int error, int line)
{
    if (error) {
        fprintf(stderr, "line %d: error %d\n", line, error);
        exit(9);
    }
}
#define MUST(call) must((int)(call), __LINE__)

static void look(int is_first)
{
    for (int device = 0; device < 2; device++) {
        size_t left, total;
        MUST(cudaSetDevice(device));
        MUST(cudaMemGetInfo(&left, &total));
        now[device] = total - left;
        if (is_first)
            first[device] = now[device];
        if (now[device] - first[device] > most[device])
            most[device] = now[device] - first[device];
    }
}

static void map(struct block *b)
{
    CUdeviceptr ptr;
    MUST(cuMemAddressReserve(&ptr, PAGE, 0, 0, 0));
    MUST(cuMemMap(ptr, PAGE, 0, b->handle, 0));
    b->ptr = (void *)(uintptr_t)ptr;
    b->is_mapped = 1;
}

static void get(struct block *b)
{
    size_t bytes = PAGE * (1 + any(4)), pitch; /* what a device hands out in */
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct cudaChannelFormatDesc desc =
        cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    memset(b, 0, sizeof *b);
    b->kind = (enum kind)(1 + any(KINDS));
    if (b->kind == MANAGED && !has_managed)
        b->kind = LINEAR;
    b->device = (int)any(2);
    MUST(cudaSetDevice(b->device));
    switch (b->kind) {
    case LINEAR: MUST(cudaMalloc(&b->ptr, bytes)); break;
    case ASYNC: MUST(cudaMallocAsync(&b->ptr, bytes, NULL)); break;
    case MANAGED: MUST(cudaMallocManaged(&b->ptr, bytes, cudaMemAttachGlobal)); break;
    case DRIVER: MUST(cuMemAlloc((CUdeviceptr *)(void *)&b->ptr, bytes)); break;
    case PITCHED: MUST(cudaMallocPitch(&b->ptr, &pitch, 4096, bytes / 4096)); break;
    case PINNED: MUST(cudaHostAlloc(&b->ptr, bytes, 0)); break;
    case ARRAY:
        MUST(cudaMallocArray((cudaArray_t *)(void *)&b->ptr, &desc, bytes / 4, 0, 0));
        break;
    case POOLED: MUST(cudaMallocFromPoolAsync(&b->ptr, bytes, pools[b->device], NULL)); break;
    case REGISTERED:
        b->ptr = malloc(bytes);
        MUST(cudaHostRegister(b->ptr, bytes, 0));
        break;
    case PHYSICAL:
        prop.location.id = b->device;
        MUST(cuMemCreate(&b->handle, PAGE, &prop, 0));
        b->references = 1;
        if (any(2))
            map(b);
        break;
    default: break;
    }
}

/* A step on its way; true: it is gone. */
static int let_go_physical(struct block *b)
{
    CUmemGenericAllocationHandle again;
    switch (any(4)) {
    case 0:
        if (b->is_mapped && b->references < 3) {
            MUST(cuMemRetainAllocationHandle(&again, (char *)b->ptr + any(4096)));
            b->handle = again;
            b->references++;
        }
        break;
    case 1:
        if (b->is_mapped) {
            MUST(cuMemUnmap((CUdeviceptr)(uintptr_t)b->ptr, PAGE));
            MUST(cuMemAddressFree((CUdeviceptr)(uintptr_t)b->ptr, PAGE));
            b->is_mapped = 0;
        } else if (b->references) {
            map(b);
        }
        break;
    default:
        if (b->references) {
            MUST(cuMemRelease(b->handle));
            b->references--;
        }
        break;
    }
    return !b->references && !b->is_mapped;
}

static void release(struct block *b)
{
    CUdeviceptr ptr = (CUdeviceptr)(uintptr_t)b->ptr;
    unsigned way = any(3);
    MUST(cudaSetDevice((int)any(2)));
    switch (b->kind) {
    case LINEAR:
    case PITCHED:
    case DRIVER:
    case MANAGED: MUST(way ? (int)cudaFree(b->ptr) : (int)cuMemFree(ptr)); break;
    case ASYNC:
    case POOLED:
        MUST(cudaSetDevice(b->device));
        if (way == 0)
            MUST(cudaFreeAsync(b->ptr, NULL));
        else if (way == 1)
            MUST(cudaFree(b->ptr));
        else
            MUST(cuMemFreeAsync(ptr, NULL));
        break;
    case PINNED: MUST(way ? (int)cudaFreeHost(b->ptr) : (int)cuMemFreeHost(b->ptr)); break;
    case ARRAY: MUST(cudaFreeArray(b->ptr)); break;
    case REGISTERED:
        MUST(way ? (int)cudaHostUnregister(b->ptr) : (int)cuMemHostUnregister(b->ptr));
        free(b->ptr);
        break;
    case PHYSICAL:
        if (!let_go_physical(b))
            return;
        break;
    default: break;
    }
    b->kind = NONE;
}

/* On another thread than the one that got it. */
static void *release_there(void *b)
{
    release(b);
    return NULL;
}

static void fail(void)
{
    void *none;
    CUdeviceptr other;
    switch (any(4)) {
    case 0: cudaMalloc(&none, (size_t)1 << 50); break;
    case 1: cuMemAlloc(&other, (size_t)1 << 50); break;
    case 2: cudaFree((void *)&seed); break;
    default: cudaFreeAsync((void *)&seed, NULL); break;
    }
    cudaGetLastError();
}

static void step(void)
{
    struct block *b = &held[any(HELD)];
    pthread_t thread;
    if (any(10) == 0) {
        fail();
    } else if (b->kind == NONE) {
        get(b);
    } else if (any(4) == 0) {
        MUST(pthread_create(&thread, NULL, release_there, b));
        MUST(pthread_join(thread, NULL));
    } else {
        release(b);
    }
    if (any(60) == 0 && fork() == 0)
        _exit(0);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    if (any(20) == 0)
        MUST(cudaMemPoolTrimTo(pools[any(2)], 0));
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    has_managed = *argv[4] == 'm';
    seed = (unsigned)strtoul(argv[1], NULL, 10);
    for (int device = 0; device < 2; device++) {
        struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                         .location = {cudaMemLocationTypeDevice, device}};
        MUST(cudaSetDevice(device));
        MUST(cudaFree(NULL));
        MUST(cudaMemPoolCreate(&pools[device], &props));
    }
    look(1);
    for (int i = atoi(argv[2]); i > 0; i--) {
        step();
        look(0);
    }
    for (int device = 0; device < 2; device++)
        printf("%zu %zu\n", most[device], now[device] - first[device]);
    fflush(stdout);
    if (strcmp(argv[3], "kill") == 0)
        syscall(SYS_kill, getpid(), SIGKILL);
    return 0;
}
