/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin whose constructor, which holds the loader's lock, calls CUDA while a thread of its own
 * makes the process's first recorded call. -DJOINS: it then waits for the thread's end.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tiny_cudart.h"

enum { CALLS = 4 };

static pthread_t thread;

static void *first(void *unused)
{
    cudaMemset(NULL, 0, 1);
    return unused;
}

__attribute__((constructor)) static void load(void)
{
    pthread_create(&thread, NULL, first, NULL);
    usleep(100000);
    for (int i = 0; i < CALLS; i++)
        cudaMemset(NULL, 0, 2);
#ifdef JOINS
    pthread_join(thread, NULL);
#endif
}

int run(int argc, char **argv);
int run(int argc, char **argv)
{
    (void)argc;
    (void)argv;
#ifndef JOINS
    pthread_join(thread, NULL);
#endif
    cudaMemset(NULL, 0, 3);
    printf("run\n");
    return 3;
}
