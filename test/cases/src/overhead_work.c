/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that launches a lot: overhead_work THREADS [capture|churn|fork|pauses]. It goes on
 * until its stdin ends, in each thread: launches, copies, fills, event records, queries and some
 * waits. capture  now and then the same in a graph churn    besides, threads that end soon fork at
 * the end a child makes calls, which CUDA refuses there pauses   besides, a thread stops the
 * recording, and lets it go on It prints how many calls did not return what they should.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti_work.h"
#include "range/gpuprof.h"

enum { THREADS_MAX = 64, INNER = 50, CHURN_ROUNDS = 20, CHILD_CALLS = 20000, PAUSE_US = 5000 };

static atomic_bool is_over;
static bool captures;
static atomic_ulong wrong;

static void check(int result)
{
    if (result != cudaSuccess)
        atomic_fetch_add(&wrong, 1);
}

/* What is launched in one round, plain or into a graph. */
static void round_of(cudaStream_t stream, char *memory, unsigned i)
{
    for (unsigned k = 0; k < INNER; k++) {
        launch(k % 4 ? gemm : adam, 1 + k, 32, 0, stream);
        check(cudaMemcpyAsync(memory, memory + 4096, 64 + i % 7, cudaMemcpyDeviceToDevice, stream));
    }
    check(cudaMemsetAsync(memory, 1, 512, stream));
}

static void capture(cudaStream_t stream, char *memory)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    round_of(stream, memory, 0);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    check(cudaGraphLaunch(exec, stream));
    check(cudaGraphExecDestroy(exec));
    check(cudaGraphDestroy(graph));
}

static void *work(void *rounds)
{
    cudaStream_t stream;
    cudaEvent_t event;
    char *memory;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaEventCreate(&event));
    check(cudaMalloc((void **)&memory, WORK_BYTES));
    for (unsigned i = 0; rounds ? i < *(unsigned *)rounds : !atomic_load(&is_over); i++) {
        round_of(stream, memory, i);
        check(cudaEventRecord(event, stream));
        cudaEventQuery(event);
        cudaStreamQuery(stream);
        if (i % 4 == 0)
            check(cudaStreamSynchronize(stream));
        if (captures && i % 16 == 0)
            capture(stream, memory);
        usleep(PAUSE_US);
    }
    check(cudaStreamSynchronize(stream));
    check(cudaFree(memory));
    check(cudaEventDestroy(event));
    check(cudaStreamDestroy(stream));
    return NULL;
}

static void *churn(void *unused)
{
    static unsigned rounds = CHURN_ROUNDS;
    while (!atomic_load(&is_over)) {
        pthread_t id;
        if (pthread_create(&id, NULL, work, &rounds) == 0)
            pthread_join(id, NULL);
    }
    return unused;
}

static void *pauses(void *unused)
{
    while (!atomic_load(&is_over)) {
        usleep(PAUSE_US);
        gpuprof_stop();
        gpuprof_start();
    }
    return unused;
}

static void fork_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0; i < CHILD_CALLS; i++)
            if (launch(gemm, 1, 32, 0, NULL) == cudaSuccess)
                _exit(1);
        exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0)
        atomic_fetch_add(&wrong, 1);
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) % THREADS_MAX : 1;
    bool forks = false, has_pauses = false;
    pthread_t ids[THREADS_MAX + 2];
    struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
    bool churns = false;
    for (int i = 2; i < argc; i++) {
        captures |= strcmp(argv[i], "capture") == 0;
        churns |= strcmp(argv[i], "churn") == 0;
        forks |= strcmp(argv[i], "fork") == 0;
        has_pauses |= strcmp(argv[i], "pauses") == 0;
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, NULL);
    if (churns)
        pthread_create(&ids[threads++], NULL, churn, NULL);
    if (has_pauses)
        pthread_create(&ids[threads++], NULL, pauses, NULL);
    while (poll(&end, 1, -1) < 0)
        ;
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    if (forks)
        fork_child();
    printf("wrong: %lu\n", atomic_load(&wrong));
    return 3;
}
