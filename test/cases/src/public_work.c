/* SPDX-License-Identifier: Apache-2.0 */
/* gpuprof.h around CUDA calls, as C and as C++: public_work SCENARIO. */
#include "gpuprof.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tiny_cudart.h"

static void all(void)
{
    gpuprof_step(6);
    gpuprof_step(7); /* lasts until after the first call: recorded; 6 is over */
    cudaMemset(NULL, 0, 1);
    printf("push %d\n", gpuprof_range_push("outer"));
    printf("push %d\n", gpuprof_range_push("inner \xc3\xa4"));
    gpuprof_mark("here");
    printf("pop %d\n", gpuprof_range_pop());
    printf("pop %d\n", gpuprof_range_pop());
    printf("pop %d\n", gpuprof_range_pop());
    gpuprof_step(8);
    gpuprof_range_push(NULL);
    gpuprof_range_pop();
}

/* What is open across a pause is whole; what begins and ends in it is not there. */
static void paused(void)
{
    cudaMemset(NULL, 0, 1);
    gpuprof_range_push("ends in it");
    gpuprof_range_push("across");
    gpuprof_stop();
    gpuprof_stop();
    cudaMemset(NULL, 0, 2);
    gpuprof_mark("lost");
    gpuprof_step(1);
    gpuprof_range_push("lost");
    gpuprof_range_pop();
    gpuprof_range_pop();
    gpuprof_range_pop();
    gpuprof_range_push("begins in it");
    gpuprof_step(2);
    gpuprof_start();
    gpuprof_start();
    cudaMemset(NULL, 0, 3);
    gpuprof_range_pop();
    gpuprof_stop();
    cudaMemset(NULL, 0, 4);
}

/* A stop inside a call, and calls of a child. */
static void stop_during(const char *symbol, uint64_t argument)
{
    (void)symbol;
    if (argument == 2)
        gpuprof_stop();
}

static void paused_inside(void)
{
    tiny_during = stop_during;
    cudaMemset(NULL, 0, 1);
    cudaMemset(NULL, 0, 2);
    cudaMemset(NULL, 0, 3);
    pid_t pid = fork();
    if (pid == 0) {
        cudaMemset(NULL, 0, 10);
        gpuprof_start();
        cudaMemset(NULL, 0, 11);
        exit(0);
    }
    waitpid(pid, NULL, 0);
    gpuprof_start();
    cudaMemset(NULL, 0, 4);
}

static void stopped_first(int start)
{
    gpuprof_stop();
    cudaMemset(NULL, 0, 1);
    gpuprof_range_push("open");
    if (start)
        gpuprof_start();
    if (start)
        cudaMemset(NULL, 0, 2);
    gpuprof_range_pop();
}

static void started(void)
{
    cudaMemset(NULL, 0, 1);
    gpuprof_start();
    cudaMemset(NULL, 0, 2);
}

static void *step_once(void *stays)
{
    gpuprof_step(5);
    if (stays)
        pause();
    return NULL;
}

static void *call_once(void *unused)
{
    cudaMemset(NULL, 0, 1);
    return unused;
}

static void in_thread(void *(*what)(void *), void *argument)
{
    pthread_t t;
    pthread_create(&t, NULL, what, argument);
    if (argument)
        pthread_detach(t);
    else
        pthread_join(t, NULL);
    usleep(20000);
}

/* The step, then the first call, of another thread; the step's may come back, may not, or is gone
 * before. */
static void steps_elsewhere(const char *how)
{
    static char stays;
    if (strcmp(how, "helper") == 0 || strcmp(how, "helper-stays") == 0) {
        in_thread(step_once, how[6] ? &stays : NULL);
        cudaMemset(NULL, 0, 1);
        return;
    }
    gpuprof_step(5);
    usleep(20000);
    in_thread(call_once, NULL);
    if (strcmp(how, "comes-back") == 0)
        gpuprof_step(6);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "";
    if (strcmp(scenario, "all") == 0)
        all();
    else if (strcmp(scenario, "paused") == 0)
        paused();
    else if (strcmp(scenario, "paused-inside") == 0)
        paused_inside();
    else if (strcmp(scenario, "stopped") == 0)
        stopped_first(0);
    else if (strcmp(scenario, "stopped-first") == 0)
        stopped_first(1);
    else if (strcmp(scenario, "started") == 0)
        started();
    else if (strcmp(scenario, "steps-elsewhere") == 0)
        steps_elsewhere(argv[2]);
    else
        return 2;
    fflush(stdout);
    return 3;
}
