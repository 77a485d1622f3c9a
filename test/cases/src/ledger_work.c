/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_work THREADS ROUNDS end|kill: each thread gets and releases memory of several kinds at
 * random, asks for more than there is, and keeps some; then the program ends, or is killed.
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
#include <unistd.h>

#define HELD 32

static int rounds;

struct block {
    int kind;
    void *ptr;
};

static int get(struct block *b, size_t bytes)
{
    switch (b->kind) {
    case 0: return (int)cudaMalloc(&b->ptr, bytes);
    case 1: return (int)cudaMallocAsync(&b->ptr, bytes, NULL);
    case 2: return (int)cudaMallocManaged(&b->ptr, bytes, cudaMemAttachGlobal);
    case 3: return (int)cudaHostAlloc(&b->ptr, bytes, 0);
    default: return (int)cuMemAlloc((CUdeviceptr *)(void *)&b->ptr, bytes);
    }
}

static void release(const struct block *b)
{
    switch (b->kind) {
    case 1: cudaFreeAsync(b->ptr, NULL); break;
    case 3: cudaFreeHost(b->ptr); break;
    case 4: cuMemFree((CUdeviceptr)(uintptr_t)b->ptr); break;
    default: cudaFree(b->ptr); break;
    }
}

static void *of_thread(void *context)
{
    unsigned seed = (unsigned)(uintptr_t)context;
    struct block held[HELD] = {{0}};
    void *none;
    cudaSetDevice((int)seed & 1);
    for (int i = 0; i < rounds; i++) {
        struct block *b = &held[rand_r(&seed) % HELD];
        if (b->ptr)
            release(b);
        *b = (struct block){rand_r(&seed) % 5, NULL};
        if (get(b, 256 * (1 + (size_t)rand_r(&seed) % 64)))
            exit(9);
    }
    return cudaMalloc(&none, (size_t)1 << 50) ? NULL : context;
}

int main(int argc, char **argv)
{
    pthread_t threads[8];
    int count = argc > 3 ? atoi(argv[1]) : 0;
    rounds = argc > 3 ? atoi(argv[2]) : 0;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, of_thread, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    if (count && strcmp(argv[3], "kill") == 0)
        syscall(SYS_kill, getpid(), SIGKILL);
    return 0;
}
