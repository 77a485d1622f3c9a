/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls from other stacks in the middle of calls: other_stacks SCENARIO AMOUNT, which is how many
 * signals are sent or how often a coroutine waits. Prints how many calls have arrived at the
 * runtime.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tiny_cudart.h"

#define NOINLINE        __attribute__((noinline))
#define STACK_BYTES     ((size_t)64 << 10)
#define COROUTINES      3   /* and one that goes on: as many calls as can be open */
#define KILL_AT         100 /* signals */
#define FAR_BYTES       ((size_t)600 << 10)
#define CALLS_MAX       60000 /* where the sender of signals seldom gets its turn */
#define HANDLED_MIN     200
#define FIRST_CALLS     200
#define INTERRUPT_EVERY 10

static volatile unsigned long arrived;
static unsigned long amount;
static sigjmp_buf back;
static pthread_t main_thread, sender;
static volatile unsigned handled;
static volatile int is_over;

static unsigned draw(unsigned *x)
{
    *x ^= *x << 13, *x ^= *x >> 17, *x ^= *x << 5;
    return *x;
}

static void count(const char *symbol, uint64_t argument)
{
    (void)symbol, (void)argument;
    __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
}

/*
 * Every so many-th call is interrupted while CUDA has it, which is recorded for certain: in what
 * the library does at each call, where most other signals may arrive, a handler's calls are counted
 * only.
 */
static void interrupt_some(const char *symbol, uint64_t argument)
{
    static unsigned calls;
    count(symbol, argument);
    if (strcmp(symbol, "cudaMalloc") == 0 && ++calls % INTERRUPT_EVERY == 0)
        raise(SIGALRM);
}

NOINLINE static void with_frame(size_t bytes, void (*body)(void))
{
    volatile char *frame = __builtin_alloca(bytes);
    frame[0] = frame[bytes - 1] = 1;
    body();
    frame[0] = 2;
}

static void two_calls(void)
{
    cudaMemset(NULL, 0, 7);
    cudaMemset(NULL, 0, 8);
}

static void on_signal_call(int number)
{
    (void)number;
    two_calls();
    handled++;
}

static void on_signal_far(int number)
{
    (void)number;
    with_frame(FAR_BYTES, two_calls);
    handled++;
}

static void on_signal_jump(int number)
{
    (void)number;
    two_calls();
    siglongjmp(back, 1);
}

static void catch_signal(void (*handler)(int), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags | SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
}

/*
 * A timer would be too seldom in the middle of anything. Where the library is at work for long, as
 * on its first stacks, all signals could fall into one such moment, in which their calls are not
 * recorded, but counted: before every other one, as drawn, the program has made a call.
 */
static void *send_signals(void *data)
{
    unsigned x = 1;
    while (arrived < FIRST_CALLS && !is_over)
        sched_yield();
    for (unsigned long i = 0; i < amount && !is_over; i++) {
        unsigned before = handled, waits = draw(&x) % 2;
        pthread_kill(main_thread, SIGALRM);
        while (handled == before && !is_over)
            sched_yield();
        unsigned long seen = arrived; /* the handler's have */
        while (waits && arrived == seen && !is_over)
            sched_yield();
        for (volatile unsigned wait = draw(&x) % 4096; wait > 0;)
            wait = wait - 1;
    }
    is_over = 1;
    return data;
}

static void start_signals(void)
{
    main_thread = pthread_self();
    pthread_create(&sender, NULL, send_signals, NULL);
}

static void stop_signals(void)
{
    is_over = 1;
    pthread_join(sender, NULL);
}

static int is_going_on(void)
{
    if (arrived > 100 * handled + 1000)
        sched_yield();
    return !is_over && (arrived < CALLS_MAX || handled < HANDLED_MIN);
}

static void some_calls(void)
{
    static const char kernel;
    const struct tiny_dim3 one = {1, 1, 1};
    for (int i = 0; i < 20; i++) {
        cudaLaunchKernel(&kernel, one, one, NULL, 0, NULL);
        cudaMalloc(NULL, 1);
    }
}

static void interrupted(void)
{
    start_signals();
    while (is_going_on())
        some_calls();
    stop_signals();
}

static void jumped_out_of(void)
{
    if (sigsetjmp(back, 1))
        handled++; /* the next one comes when this one is off the signals' stack */
    else
        start_signals();
    while (is_going_on())
        some_calls();
    signal(SIGALRM, SIG_IGN);
    stop_signals();
    with_frame(STACK_BYTES, some_calls); /* over whatever was left there */
}

static void wait_in_call(const char *symbol, uint64_t argument)
{
    count(symbol, argument);
    struct timespec t = {0, 200000000};
    while (strcmp(symbol, "cudaStreamSynchronize") == 0 && nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

/* Two handlers' calls in the middle of a call that takes 200 ms. */
static void synchronise(void)
{
    struct itimerval twice = {{0, 60000}, {0, 60000}};
    tiny_during = wait_in_call;
    setitimer(ITIMER_REAL, &twice, NULL);
    cudaStreamSynchronize((void *)0x55);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    cudaDeviceSynchronize();
}

/* A kill in a handler on its own stack. */
static void die_in_handler(const char *symbol, uint64_t argument)
{
    count(symbol, argument);
    if (strcmp(symbol, "cudaMemset") == 0 && handled >= KILL_AT) {
        printf("%lu\n", arrived);
        fflush(stdout);
        syscall(SYS_kill, getpid(), SIGKILL);
    }
}

static ucontext_t contexts[COROUTINES], scheduler;
static char *stacks[COROUTINES];
static unsigned current, switches, seed = 1;
static int is_done[COROUTINES], must_end, is_in_one;

static void coroutine(void)
{
    while (!must_end) {
        cudaStreamSynchronize((void *)(uintptr_t)current);
        some_calls();
    }
    is_done[current] = 1;
}

static void begin_coroutine(unsigned i)
{
    if (!stacks[i]) /* a page that is none lies between two, or they touch each other */
        stacks[i] =
            mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i];
    contexts[i].uc_stack.ss_size = STACK_BYTES;
    contexts[i].uc_link = &scheduler;
    makecontext(&contexts[i], coroutine, 0);
}

/* To any other, in the middle of one of ten calls. */
static void switch_in_call(const char *symbol, uint64_t argument)
{
    count(symbol, argument);
    if (is_in_one && draw(&seed) % 10 == 0) {
        switches++;
        swapcontext(&contexts[current], &scheduler);
    }
}

static void run_one(unsigned i)
{
    current = i;
    is_in_one = 1;
    swapcontext(&scheduler, &contexts[i]);
    is_in_one = 0;
}

static void end_all(void)
{
    must_end = 1;
    for (unsigned i = 0; i < COROUTINES; i++)
        if (!is_done[i])
            run_one(i);
    some_calls();
}

static void coroutines(int destroys)
{
    tiny_during = switch_in_call;
    for (unsigned i = 0; i < COROUTINES; i++)
        begin_coroutine(i);
    while (switches < amount) {
        unsigned i = draw(&seed) % COROUTINES;
        if (destroys && draw(&seed) % 5 == 0) {
            munmap(stacks[i], STACK_BYTES);
            stacks[i] = NULL;
            begin_coroutine(i);
        }
        run_one(i);
        two_calls();
    }
    tiny_during = count;
    end_all();
}

/* Each time a coroutine waits in a call, the other thread takes it on. */
static sem_t turns[2];

static void *take_turns(void *number)
{
    unsigned mine = *(unsigned *)number;
    for (;;) {
        sem_wait(&turns[mine]);
        if (is_over)
            return NULL;
        run_one(0);
        if (mine && amount % 3 == 0) /* a call of its own, too */
            two_calls();
        is_over = is_done[0];
        sem_post(&turns[!mine]);
    }
}

static void wait_in_call_of_coroutine(const char *symbol, uint64_t argument)
{
    count(symbol, argument);
    if (is_in_one && (strcmp(symbol, "cudaMemset") != 0)) {
        must_end = ++switches >= amount;
        swapcontext(&contexts[current], &scheduler);
    }
}

static void moved(void)
{
    unsigned numbers[2] = {0, 1};
    pthread_t other;
    tiny_during = wait_in_call_of_coroutine;
    begin_coroutine(0);
    sem_init(&turns[0], 0, 1);
    sem_init(&turns[1], 0, 0);
    pthread_create(&other, NULL, take_turns, &numbers[1]);
    take_turns(&numbers[0]);
    sem_post(&turns[1]);
    pthread_join(other, NULL);
    with_frame(STACK_BYTES, two_calls);
}

int main(int argc, char **argv)
{
    static char alternate[64 << 10];
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    const char *scenario = argc > 2 ? argv[1] : "";
    amount = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    tiny_during = count;
    sigaltstack(&stack, NULL);
    cudaMalloc(NULL, 1000);
    if (strcmp(scenario, "altstack") == 0)
        tiny_during = interrupt_some, catch_signal(on_signal_call, SA_ONSTACK), interrupted();
    else if (strcmp(scenario, "far") == 0)
        tiny_during = interrupt_some, catch_signal(on_signal_far, 0), interrupted();
    else if (strcmp(scenario, "jump") == 0)
        catch_signal(on_signal_jump, SA_ONSTACK), jumped_out_of();
    else if (strcmp(scenario, "synchronise") == 0)
        catch_signal(on_signal_call, SA_ONSTACK), synchronise();
    else if (strcmp(scenario, "synchronise-far") == 0)
        catch_signal(on_signal_far, 0), synchronise();
    else if (strcmp(scenario, "killed") == 0)
        tiny_during = die_in_handler, catch_signal(on_signal_call, SA_ONSTACK), interrupted();
    else if (strcmp(scenario, "coroutines") == 0)
        coroutines(0);
    else if (strcmp(scenario, "destroyed") == 0)
        coroutines(1);
    else if (strcmp(scenario, "moved") == 0)
        moved();
    else
        return 2;
    printf("%lu\n", arrived);
    return 3;
}
