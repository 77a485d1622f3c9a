/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies whose contents are known. content_work COPY changes one byte at a time between copies of
 * BYTES by each of the functions, and prints of each copy what it copies: a number for each
 * different content, 0 where nobody is to know; content_work threads: two threads copy the
 * same, and two of a child of fork.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (300000u)
#define LEAST (256u << 10)

static char *source;
static void *target;

static void need(int result)
{
    if (result)
        abort();
}

/* One copy by the function of that number. */
static void copy(int how, size_t bytes)
{
    CUdeviceptr device = (CUdeviceptr)(uintptr_t)target;
    errno = 4321;
    switch (how) {
    case 0: need(cudaMemcpy(target, source, bytes, cudaMemcpyHostToDevice)); break;
    case 1: need(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, NULL)); break;
    case 2: need(cuMemcpyHtoD(device, source, bytes)); break;
    default: need(cuMemcpyHtoDAsync(device, source, bytes, NULL)); break;
    }
    if (errno != 4321)
        abort();
}

static void said(int content)
{
    printf("%d\n", content);
}

/* Of the content that it begins with, and of others that differ from it in one byte. */
static void change(int how)
{
    const size_t places[] = {0, 31, BYTES - 32, BYTES - 1, (BYTES - 32) / 63 * 40 + 20};
    int content = 1;
    copy(how, BYTES), said(1);
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        source[places[i]] ^= 1;
        copy(how, BYTES), said(++content);
        copy(how, BYTES), said(content);
        source[places[i]] ^= 1;
        copy(how, BYTES), said(1);
    }
    copy(how, BYTES - 1), said(++content); /* less of it is something else */
    copy(how, LEAST), said(++content);
    copy(how, LEAST - 1), said(0);
}

/* What is not looked at: other directions, pieces that lie apart, what goes into a graph, errors.
 */
static void leave(void)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    need(cudaMemcpy(source, target, BYTES, cudaMemcpyDeviceToHost)), said(0);
    need(cudaMemcpy(target, source, BYTES, cudaMemcpyDefault)), said(0);
    need(cudaMemcpy2D(target, 1024, source, 1024, 1000, BYTES / 1024, cudaMemcpyHostToDevice));
    said(0);
    need(cudaStreamCreate(&stream));
    need(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    need(cudaMemcpyAsync(target, source, BYTES, cudaMemcpyHostToDevice, stream)), said(0);
    need(cudaStreamEndCapture(stream, &graph));
}

static void *copy_all(void *unused)
{
    for (int how = 0; how < 100; how++)
        copy(how % 4, BYTES);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    bool has_threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    bool is_child = has_threads && fork() == 0; /* before CUDA is there, which no child can use */
    source = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        source[i] = (char)(i * 2654435761u >> 13);
    need(cudaMalloc(&target, BYTES));
    if (has_threads) {
        for (int i = 0; i < 2; i++)
            need(pthread_create(&threads[i], NULL, copy_all, NULL));
        for (int i = 0; i < 2; i++)
            need(pthread_join(threads[i], NULL));
        while (!is_child && wait(NULL) < 0 && errno == EINTR)
            ;
        return 3;
    }
    for (int how = 0; how < 4; how++)
        change(how);
    leave();
    return 3;
}
