/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight_work: does what each word on its standard input says, and answers with it when that is
 * done: sNUMBER cudaMemset of so many bytes, aNUMBER a block of so many bytes, which frees the one
 * of that size if there is one, (NAME and ) a range, tNUMBER gpuprof_step, dWHY gpuprof_dump, nMS a
 * sleep, e a call that fails, m one for which there is no memory, l a launch, bCOUNT so many copies
 * of 64 bytes, k SIGUSR1 to itself, f a fork: the child goes on, the parent waits for it, wMS a
 * wait for a stream that sleeps so long, x a reset of the device.
 */
#include "gpuprof.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime_api.h"

#define BLOCKS_MAX 64

static struct {
    size_t bytes;
    void *address;
} blocks[BLOCKS_MAX];

static int turn_block(size_t bytes)
{
    for (unsigned i = 0; i < BLOCKS_MAX; i++) {
        if (blocks[i].bytes == bytes) {
            blocks[i].bytes = 0;
            return cudaFree(blocks[i].address);
        }
    }
    for (unsigned i = 0; i < BLOCKS_MAX; i++) {
        if (!blocks[i].bytes) {
            blocks[i].bytes = bytes;
            return cudaMalloc(&blocks[i].address, bytes);
        }
    }
    return 1;
}

static bool is_child;

static int parent_of(void)
{
    int status = 0;
    fflush(stdout);
    if (fork()) {
        wait(&status);
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    is_child = true;
    return 0;
}

/* An empty graph. */
static int launch(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t made;
    return cudaGraphCreate(&graph, 0) || cudaGraphInstantiate(&made, graph, 0) ||
           cudaGraphLaunch(made, NULL);
}

static void sleep_ms(void *number)
{
    usleep((useconds_t)(*(unsigned long *)number * 1000));
}

static int obey(const char *word, void *buffer)
{
    static void *none;
    unsigned long number = strtoul(word + 1, NULL, 10);
    switch (*word) {
    case 's': return cudaMemset(buffer, 0, number) && !is_child; /* where CUDA refuses all */
    case 'a': return turn_block(number);
    case '(': return gpuprof_range_push(word + 1) == -2;
    case ')': return gpuprof_range_pop() == -2;
    case 't': gpuprof_step(number); return 0;
    case 'd': return gpuprof_dump(word + 1);
    case 'n': return usleep((useconds_t)number * 1000);
    case 'e': return cudaMemcpy(buffer, buffer, 1, (enum cudaMemcpyKind)77) == cudaSuccess;
    case 'm': return cudaMalloc(&none, (size_t)1 << 60) == cudaSuccess;
    case 'b':
        for (unsigned long i = 0; i < number; i++)
            if (cudaMemset(buffer, 0, 64))
                return 1;
        return 0;
    case 'l': return launch();
    case 'k': return raise(SIGUSR1);
    case 'f': return parent_of();
    case 'w': return cudaLaunchHostFunc(NULL, sleep_ms, &number) || cudaDeviceSynchronize();
    case 'x': return cudaDeviceReset();
    default: return 1;
    }
}

int main(void)
{
    static char word[256];
    void *buffer = NULL;
    if (cudaMalloc(&buffer, 1 << 20))
        return 1;
    setvbuf(stdin, NULL, _IONBF, 0); /* a child reads on where its parent was */
    while (fgets(word, sizeof word, stdin)) {
        word[strcspn(word, "\n")] = '\0';
        if (obey(word, buffer))
            return 1;
        puts(word);
        fflush(stdout);
    }
    return 0;
}
