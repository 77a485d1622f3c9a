/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are left by another door than the return: leave SCENARIO. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tiny_cudart.h"

#define NOINLINE __attribute__((noinline))

static sigjmp_buf back;

static void on_signal_jump(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void raise_inside(const char *symbol, uint64_t argument)
{
    (void)argument;
    if (strcmp(symbol, "cudaStreamSynchronize") == 0)
        raise(SIGUSR1);
}

static void catch_signal(void (*handler)(int), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(SIGUSR1, &action, NULL);
}

/* Leaves the middle of its frame as it finds it. */
NOINLINE static void with_frame(size_t bytes, void (*body)(void))
{
    volatile char *frame = __builtin_alloca(bytes);
    frame[0] = frame[bytes - 1] = 1;
    body();
    frame[0] = 2;
}

static void three_calls(void)
{
    for (size_t i = 1; i <= 3; i++)
        cudaMalloc(NULL, i);
}

static void jump_out(void)
{
    if (!sigsetjmp(back, 1))
        cudaStreamSynchronize((void *)0x55);
}

static void jump(size_t depth_of_jump, size_t depth_of_calls)
{
    tiny_during = raise_inside;
    catch_signal(on_signal_jump, 0);
    with_frame(depth_of_jump, jump_out);
    with_frame(depth_of_calls, three_calls);
    with_frame(depth_of_jump, jump_out);
    with_frame(depth_of_calls, three_calls);
}

/* Jumps out of the middle of registrations and launches, at no particular place. */
static void names(void)
{
    static const char kernels[1 << 20];
    static uint64_t config[16];
    static volatile size_t next;
    catch_signal(on_signal_jump, 0);
    signal(SIGALRM, on_signal_jump);
    for (int round = 0; round < 300; round++) {
        struct itimerval soon = {.it_value = {.tv_usec = 20 + 7 * round}};
        if (sigsetjmp(back, 1))
            continue;
        setitimer(ITIMER_REAL, &soon, NULL);
        while (next < sizeof kernels) {
            const char *kernel = &kernels[next++];
            __cudaRegisterFunction(NULL, kernel, NULL, "a kernel of the round", -1, NULL, NULL,
                                   NULL, NULL, NULL);
            cudaLaunchKernelExC(config, kernel, NULL);
        }
    }
}

static void on_signal_call(int number)
{
    (void)number;
    cudaMemset(NULL, 0, 77);
}

static void handler(int flags)
{
    tiny_during = raise_inside;
    catch_signal(on_signal_call, flags);
    cudaStreamSynchronize((void *)0x55);
    three_calls();
    cudaStreamSynchronize((void *)0x56);
    three_calls();
}

static void raise_or_die(const char *symbol, uint64_t argument)
{
    raise_inside(symbol, argument);
    if (strcmp(symbol, "cudaMemset") == 0) {
        usleep(100000); /* until the file has the functions' names */
        syscall(SYS_kill, getpid(), SIGKILL);
    }
}

/* Calls inside a call, over several chunks, and a kill in the last of them. */
static void on_signal_die(int number)
{
    for (size_t i = 1; i <= 3000; i++)
        cudaMalloc(NULL, i);
    on_signal_call(number);
}

static void die_inside(void)
{
    tiny_during = raise_or_die;
    catch_signal(on_signal_die, 0);
    cudaStreamSynchronize((void *)0x55);
}

static void block(const char *symbol, uint64_t argument)
{
    (void)argument;
    if (strcmp(symbol, "cudaStreamSynchronize") == 0)
        for (;;)
            pause();
}

static pthread_key_t key;
static volatile int calls_in_cleanup;

static void at_thread_end(void *value)
{
    cudaMemset(NULL, 0, (size_t)value);
}

static void clean_up(void *value)
{
    if (calls_in_cleanup)
        cudaFree(value);
}

static void *cancelled(void *data)
{
    pthread_setspecific(key, (void *)88);
    cudaMalloc(NULL, 5);
    pthread_cleanup_push(clean_up, data);
    cudaStreamSynchronize((void *)0x55);
    pthread_cleanup_pop(1);
    return NULL;
}

static void cancel(void)
{
    pthread_t thread;
    void *result = NULL;
    tiny_during = block;
    pthread_key_create(&key, at_thread_end);
    pthread_create(&thread, NULL, cancelled, (void *)0x99);
    usleep(100000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
    three_calls();
}

static void leave_thread(const char *symbol, uint64_t argument)
{
    (void)argument;
    if (strcmp(symbol, "cudaStreamSynchronize") == 0)
        pthread_exit((void *)9);
}

static void exit_thread(void)
{
    pthread_t thread;
    tiny_during = leave_thread;
    pthread_key_create(&key, at_thread_end);
    pthread_create(&thread, NULL, cancelled, (void *)0x99);
    pthread_join(thread, NULL);
    three_calls();
}

static ucontext_t first, second;
static char second_stack[256 << 10];

static void run_second(void)
{
    three_calls();
    swapcontext(&second, &first);
    three_calls();
    swapcontext(&second, &first);
}

static void switch_inside(const char *symbol, uint64_t argument)
{
    (void)argument;
    if (strcmp(symbol, "cudaStreamSynchronize") == 0)
        swapcontext(&first, &second);
}

/* A coroutine waits inside a call while another one, on another stack, goes on. */
static void coroutines(void)
{
    tiny_during = switch_inside;
    getcontext(&second);
    second.uc_stack.ss_sp = second_stack;
    second.uc_stack.ss_size = sizeof second_stack;
    makecontext(&second, run_second, 0);
    cudaStreamSynchronize((void *)0x55);
    cudaFree(NULL);
    cudaStreamSynchronize((void *)0x56);
    cudaFree(NULL);
}

int main(int argc, char **argv)
{
    static char alternate[64 << 10];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    const char *scenario = argc > 1 ? argv[1] : "";
    cudaMalloc(NULL, 1000);
    if (strcmp(scenario, "jump-shallow") == 0)
        jump(20000, 100);
    else if (strcmp(scenario, "jump-deep") == 0)
        jump(100, 20000);
    else if (strcmp(scenario, "jump-same") == 0)
        jump(3000, 3000);
    else if (strcmp(scenario, "handler") == 0)
        handler(0);
    else if (strcmp(scenario, "altstack") == 0 && sigaltstack(&stack, NULL) == 0)
        handler(SA_ONSTACK);
    else if (strcmp(scenario, "die") == 0)
        die_inside();
    else if (strcmp(scenario, "cancel") == 0)
        cancel();
    else if (strcmp(scenario, "cancel-cleanup") == 0)
        calls_in_cleanup = 1, cancel();
    else if (strcmp(scenario, "exit") == 0)
        exit_thread();
    else if (strcmp(scenario, "names") == 0)
        names();
    else if (strcmp(scenario, "coroutines") == 0)
        coroutines();
    else
        return 2;
    cudaDeviceSynchronize();
    return 3;
}
