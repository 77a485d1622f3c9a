/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_life [cuda]: sleeps of 3, 4 and 5 ms, in this order, one of 6 ms by another thread; with
 * `cuda` a call of CUDA's, a sleep of 7 ms, a child that lives for a moment, one that execs, and
 * a worker: a child that makes no call of CUDA's and sleeps 30 times 8 ms.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tiny_cudart.h"

int early_wrong(void);

static void *sleeper(void *us)
{
    usleep((useconds_t)(long)us);
    cudaMemset(NULL, 0, 2);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    (void)argv;
    for (useconds_t us = 3000; us <= 5000; us += 1000)
        usleep(us);
    if (argc > 1) {
        pthread_create(&thread, NULL, sleeper, (void *)6000);
        pthread_join(thread, NULL);
        cudaMemset(NULL, 0, 1);
        usleep(7000);
        for (int i = 0; i < 2; i++) {
            if (fork() == 0) {
                usleep(1500);
                if (i)
                    execl("/bin/true", "true", (char *)NULL);
                _exit(0);
            }
        }
        if (fork() == 0) {
            for (int i = 0; i < 30; i++)
                usleep(8000);
            _exit(0);
        }
        while (wait(NULL) > 0)
            ;
    }
    printf("%d wrong\n", early_wrong());
    return 0;
}
