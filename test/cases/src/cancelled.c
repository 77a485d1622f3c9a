/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are cancelled before their first call, one after the other: of CUDA's calls none is
 * where that is done, so all go on to the end. Says how many did.
 */
#include <pthread.h>
#include <stdio.h>

#include "../../programs/kernels.h"

#define THREADS 4

#define KERNELS(X) X(scale, "_Z5scalePf")
KERNELS_DEFINE(KERNELS)

static pthread_key_t key;
static int whole, destroyed;

static void destroy(void *value)
{
    destroyed += value != NULL;
}

static void *work(void *unused)
{
    void *memory = NULL;
    pthread_cancel(pthread_self());
    cudaMalloc(&memory, 1024);
    cudaMalloc(&memory, (size_t)1 << 60); /* fails: with a stack */
    launch(scale, 1, 64, 0, NULL);
    cudaMemcpy(memory, memory, 64, cudaMemcpyDefault);
    cudaFree(memory);
    pthread_setspecific(key, &key);
    whole++;
    pthread_testcancel();
    return unused;
}

int main(void)
{
    void *result;
    pthread_key_create(&key, destroy);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED)
            puts("not cancelled");
    }
    printf("%d of %d, %d destroyed\n", whole, THREADS, destroyed);
    return whole != THREADS || destroyed != THREADS;
}
