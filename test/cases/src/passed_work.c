/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are passed by, and what comes in between: passed_work SCENARIO MS. Launches, sets and
 * allocations for so long, or, 0, until its stdin ends; prints how many began while recording was
 * not paused, how many of all arrived at the runtime, and how often something came in between.
 *   pause     the thread itself pauses and resumes
 *   inside    likewise, in the middle of calls
 *   other     another thread does so
 *   jump      a signal handler leaves calls by siglongjmp
 *   handler   a signal handler forks in the middle of calls; the child ends by _exit
 *   fork      a thread forks while others call; the child calls and ends
 */
#include "range/gpuprof.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tiny_cudart.h"
#include "until.h"

enum {
    ROUND = 500,
    PAUSE_EACH = 7,
    INSIDE_EACH = 1001,
    THREADS = 3,
    CHILD_CALLS = 50,
    FORK_US = 20000
};

static atomic_ulong made, arrived, between;
static atomic_bool is_paused;
static uint64_t end_ms;
static sigjmp_buf back;
static bool inside, spins;
static volatile sig_atomic_t can_jump;

static atomic_uint changes; /* odd: it is being paused, or goes on again */

static void set_paused(bool paused)
{
    atomic_fetch_add(&changes, 1);
    if (paused)
        gpuprof_stop();
    atomic_store(&is_paused, paused);
    if (!paused)
        gpuprof_start();
    atomic_fetch_add(&changes, 1);
    atomic_fetch_add(&between, 1);
}

static void during(const char *symbol, uint64_t argument)
{
    (void)symbol, (void)argument;
    atomic_fetch_add(&arrived, 1);
    if (inside && atomic_load(&arrived) % INSIDE_EACH == 0)
        set_paused(!atomic_load(&is_paused));
    for (volatile int i = 0; spins && i < 300; i++)
        ;
}

static void call(unsigned i)
{
    static const char kernel;
    const struct tiny_dim3 one = {1, 1, 1};
    unsigned before = atomic_load(&changes);
    if (!atomic_load(&is_paused) || i % 50 == 0) /* allocations go on */
        atomic_fetch_add(&made, 1);
    if (i % 50 == 0)
        cudaMalloc(NULL, 1);
    else if (i % 2)
        cudaLaunchKernel(&kernel, one, one, NULL, 0, NULL);
    else
        cudaMemset(NULL, i % 10 ? 0 : -1, 1);
    if (before % 2 || before != atomic_load(&changes))
        atomic_fetch_add(&between, 1);
}

static void round_of_calls(void)
{
    for (unsigned i = 0; i < ROUND; i++)
        call(i);
}

static void *calls(void *pauses)
{
    for (unsigned round = 1; !is_until(end_ms); round++) {
        round_of_calls();
        if (pauses && round % PAUSE_EACH == 0)
            set_paused(!atomic_load(&is_paused));
        usleep(2500);
    }
    return NULL;
}

static void *toggle(void *unused)
{
    while (!is_until(end_ms)) {
        set_paused(!atomic_load(&is_paused));
        usleep(700);
    }
    set_paused(false);
    return unused;
}

static void jump(int number)
{
    (void)number;
    if (!can_jump)
        return;
    can_jump = 0;
    atomic_fetch_add(&between, 1);
    siglongjmp(back, 1);
}

/* A child that calls and ends so. */
static void fork_child(void (*leave)(int))
{
    atomic_fetch_add(&between, 1);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        for (unsigned i = 0; i < CHILD_CALLS; i++)
            cudaMemset(NULL, 0, 1);
        leave(0);
    }
    waitpid(child, NULL, 0);
}

/* The next one is due some time after this one is over, however slow the machine is. */
static void fork_in_handler(int number)
{
    const struct itimerval timer = {{0, 0}, {0, FORK_US}};
    (void)number;
    fork_child(_exit);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void on_timer(void (*handler)(int), unsigned us)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    const struct itimerval timer = {{0, us}, {0, us}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void jumps(void)
{
    spins = true;
    on_timer(jump, 700);
    while (!is_until(end_ms)) {
        if (sigsetjmp(back, 1) == 0) {
            can_jump = 1;
            round_of_calls();
        }
        can_jump = 0;
        usleep(200);
    }
}

static void forks(void)
{
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, calls, NULL);
    while (!is_until(end_ms)) {
        fork_child(exit);
        usleep(20000);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 2 ? argv[1] : "";
    pthread_t other;
    end_ms = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    end_ms += end_ms ? now_ms() : 0;
    tiny_during = during;
    if (strcmp(scenario, "jump") == 0) {
        jumps();
    } else if (strcmp(scenario, "fork") == 0) {
        forks();
    } else {
        inside = strcmp(scenario, "inside") == 0;
        if (strcmp(scenario, "handler") == 0)
            on_timer(fork_in_handler, FORK_US);
        if (strcmp(scenario, "other") == 0)
            pthread_create(&other, NULL, toggle, NULL);
        calls(strcmp(scenario, "pause") == 0 ? "" : NULL);
        if (strcmp(scenario, "other") == 0)
            pthread_join(other, NULL);
    }
    if (atomic_load(&is_paused))
        set_paused(false);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    call(0);
    printf("%lu %lu %lu\n", atomic_load(&made), atomic_load(&arrived), atomic_load(&between));
    return 3;
}
