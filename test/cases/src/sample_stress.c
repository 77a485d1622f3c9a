/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_stress MS: for so long, threads that begin and end, are cancelled, leave signal handlers
 * by siglongjmp, run handlers on a stack of their own, fork, become other programs, and burn CPU
 * time all the while. Says what came out, which is the same each time.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern int cudaMalloc(void **, size_t);
extern int cudaFree(void *);
extern int cudaDeviceSynchronize(void);

static unsigned long end_ms;
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t may_jump;
static _Atomic unsigned long wrong, jumps, threads, forks;

static unsigned long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long)t.tv_sec * 1000 + (unsigned long)t.tv_nsec / 1000000;
}

static __attribute__((noinline)) unsigned long burn(unsigned depth, unsigned long n)
{
    volatile unsigned long sum = 0;
    if (depth)
        return burn(depth - 1, n) + 1;
    for (unsigned long i = 0; i < n; i++)
        sum += i;
    return sum == n * (n - 1) / 2 ? 0 : 1000;
}

static void check(unsigned depth, unsigned long n)
{
    if (burn(depth, n) != depth)
        wrong++;
}

static void on_signal(int number)
{
    (void)number;
    check(3, 2000);
    if (may_jump) {
        may_jump = 0;
        siglongjmp(back, 1);
    }
}

static void *burner(void *cancelled)
{
    char *stack = malloc(65536);
    stack_t handlers = {.ss_sp = stack, .ss_size = 65536};
    sigaltstack(&handlers, NULL);
    do {
        pthread_testcancel();
        check(20, 30000);
        pthread_kill(pthread_self(), SIGUSR2);
    } while (cancelled);
    handlers.ss_flags = SS_DISABLE;
    sigaltstack(&handlers, NULL);
    free(stack);
    return NULL;
}

static void *maker(void *unused)
{
    void *memory;
    do {
        pthread_t some[3];
        for (long i = 0; i < 3; i++)
            pthread_create(&some[i], NULL, burner, i == 2 ? (void *)some : NULL);
        cudaMalloc(&memory, 64);
        check(5, 20000);
        cudaFree(memory);
        pthread_cancel(some[2]);
        for (int i = 0; i < 3; i++)
            pthread_join(some[i], NULL);
        threads += 3;
    } while (now_ms() < end_ms);
    return unused;
}

static void *jumper(void *unused)
{
    do {
        if (sigsetjmp(back, 1) == 0) {
            may_jump = 1;
            pthread_kill(pthread_self(), SIGUSR1);
            may_jump = 0;
            wrong++;
        }
        jumps++;
        check(1, 5000);
    } while (now_ms() < end_ms);
    return unused;
}

static void *forker(void *unused)
{
    do {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            check(4, 200000);
            if (forks % 2)
                execl("/bin/true", "true", NULL);
            _exit(wrong != 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            wrong++;
        forks++;
    } while (now_ms() < end_ms);
    return unused;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction aside = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    void *(*const what[])(void *) = {maker, jumper, forker};
    pthread_t some[3];
    sigset_t alarms;
    end_ms = now_ms() + (argc > 1 ? strtoul(argv[1], NULL, 10) : 100);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR2, &aside, NULL);
    sigemptyset(&alarms); /* only this thread has the alarms */
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    for (int i = 0; i < 3; i++)
        pthread_create(&some[i], NULL, what[i], NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    while (now_ms() < end_ms)
        check(30, 20000);
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(some[i], NULL);
    cudaDeviceSynchronize();
    printf("%s %s\n", wrong ? "wrong" : "right", jumps && threads && forks ? "all" : "not all");
    return wrong != 0;
}
