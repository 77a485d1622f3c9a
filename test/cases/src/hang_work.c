/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang_work SCENE: hangs in a call of the simulated CUDA, and says so before. Which of the kernels
 * never end, and which call does not return, is the simulation's affair (SIMCUDA_ENDLESS,
 * SIMCUDA_FAIL). Its watchdogs are signals: SIGALRM ends it by _exit, SIGTERM does so from a stack
 * of its own, SIGUSR1 leaves the call first.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../programs/kernels.h"
#include <cuda.h>

#define KERNELS(X)                                                                                 \
    X(first, "_Z5firstPf")                                                                         \
    X(endless, "_Z7endlessPf")                                                                     \
    X(behind, "_Z6behindPf")                                                                       \
    X(all_reduce, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
KERNELS_DEFINE(KERNELS)

static cudaStream_t streams[2];

static void hangs(void)
{
    puts("hangs");
    fflush(stdout);
}

/* A stream that has ended its work, and one that never does. */
static __attribute__((noinline)) void wait_for_kernel(void)
{
    for (int i = 0; i < 2; i++)
        launch(first, 1, 32, 0, streams[i]);
    cudaDeviceSynchronize();
    launch(first, 1, 32, 0, streams[0]);
    launch(endless, 1, 32, 0, streams[1]);
    launch(behind, 1, 32, 0, streams[1]);
    hangs();
    cudaStreamSynchronize(streams[1]);
    puts("goes on"); /* so that the call is no jump */
}

/* Nobody ever writes the value. */
static void wait_for_value(void)
{
    void *value = NULL;
    cudaMalloc(&value, 64);
    cudaMemset(value, 0, 64);
    cuStreamWaitValue32((CUstream)streams[0], (CUdeviceptr)value, 1, 1 /* is equal */);
    launch(behind, 1, 32, 0, streams[0]);
    hangs();
    cudaStreamSynchronize(streams[0]);
}

static void never_returns(void *data)
{
    (void)data;
    for (;;)
        pause();
}

/* All kernels before it have ended, and no record says so: one behind it lies in their buffer. */
static void wait_for_host(void)
{
    launch(first, 1, 32, 0, streams[0]);
    cudaLaunchHostFunc(streams[0], never_returns, NULL);
    launch(endless, 1, 32, 0, streams[0]); /* is never begun */
    hangs();
    cudaStreamSynchronize(streams[0]);
}

/* By an event: all but what is behind it has ended. */
static void wait_for_event(void)
{
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    launch(first, 1, 32, 0, streams[0]);
    cudaEventRecord(event, streams[0]);
    cudaEventSynchronize(event);
    launch(endless, 1, 32, 0, streams[0]);
    cudaLaunchHostFunc(streams[1], never_returns, NULL); /* nobody waits for it */
    cudaEventRecord(event, streams[0]);
    hangs();
    cudaEventSynchronize(event);
}

static void allocate(void)
{
    void *memory = NULL;
    launch(first, 1, 32, 0, streams[0]);
    cudaStreamSynchronize(streams[0]);
    hangs();
    cudaMalloc(&memory, 4096);
}

static void launch_only(void)
{
    hangs();
    launch(first, 1, 32, 0, streams[0]);
}

/* In code of the host: no call tells of it. */
static void wait_outside(void)
{
    for (int i = 0; i < 2; i++)
        launch(first, 1, 32, 0, streams[0]);
    cudaStreamSynchronize(streams[0]);
    hangs();
    for (;;)
        pause();
}

/* Rank 1 never comes to the second one. */
static void reduce(void)
{
    const char *rank = getenv("RANK");
    launch(first, 1, 32, 0, streams[0]);
    cudaStreamSynchronize(streams[0]);
    if (rank && strcmp(rank, "1") == 0) {
        hangs();
        for (;;)
            pause();
    }
    launch(all_reduce, 1, 32, 0, streams[0]);
    launch(behind, 1, 32, 0, streams[0]);
    hangs();
    cudaStreamSynchronize(streams[0]);
}

static sigjmp_buf outside;

static void watchdog(int number)
{
    if (number == SIGUSR1)
        siglongjmp(outside, 1);
    _exit(7);
}

static void watch(void)
{
    static char stack[65536];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = watchdog, .sa_flags = SA_ONSTACK}, NULL);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = watchdog}, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = watchdog}, NULL);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenes[] = {{"kernel", wait_for_kernel}, {"value", wait_for_value}, {"malloc", allocate},
                  {"reduce", reduce},          {"outside", wait_outside}, {"launch", launch_only},
                  {"host", wait_for_host},     {"event", wait_for_event}};
    for (int i = 0; i < 2; i++)
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    watch();
    if (sigsetjmp(outside, 1))
        _exit(7);
    for (unsigned i = 0; count == 2 && i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(words[1], scenes[i].name) == 0)
            scenes[i].run();
    return 1;
}
