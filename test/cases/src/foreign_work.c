/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that call CUDA, each with ranges of its own, and end: for tools that look at everything
 * that a process does. With -DOPTIONS it tells AddressSanitizer's library what it wants itself.
 * With an argument: one thread only, and a forked child that starts another.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tiny_cudart.h"

#define THREADS 4
#define ROUNDS  3
#define CALLS   100

#ifdef OPTIONS
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=1";
}
#endif

static void *work(void *unused)
{
    for (size_t i = 1; i <= CALLS; i++)
        cudaMemset(NULL, 0, i);
    return unused;
}

static int fork_one(void)
{
    int status = 0;
    work(NULL);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        work(NULL);
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
        _exit(4);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* A new round's threads get what those of the last one have left. */
int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return fork_one();
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        char *memory = malloc(100);
        memset(memory, round, 100);
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        free(memory);
    }
    const char *options = getenv("ASAN_OPTIONS");
    printf("options: %s\n", options ? options : "none");
    return 3;
}
