/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks for more than gpuprof keeps: lossy SCENARIO COUNT. -DDRIVER: names that the driver is asked
 * for, each kept by gpuprof.
 */
#ifdef DRIVER
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 4000

int main(int argc, char **argv)
{
    char name[NAME_BYTES + 1];
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    int count = argc > 1 ? atoi(argv[1]) : 0;
    memset(name, 'n', NAME_BYTES);
    name[NAME_BYTES] = '\0';
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context) || cuModuleLoadData(&module, "an image"))
        return 2;
    for (int i = 0; i < count; i++) {
        name[snprintf(name, 20, "f%d", i)] = 'n';
        if (cuModuleGetFunction(&function, module, name))
            return 2;
    }
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    return 3;
}

#else

#include "range/gpuprof.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tiny_cudart.h"
#include "until.h"

static void long_name(size_t bytes)
{
    static char kernel;
    char *name = malloc(bytes + 1);
    memset(name, 'n', bytes);
    name[bytes] = '\0';
    __cudaRegisterFunction(NULL, &kernel, NULL, name, -1, NULL, NULL, NULL, NULL, NULL);
    cudaLaunchKernelExC(&kernel, &kernel, NULL);
}

/* Captures that nobody ends. */
static void captures(size_t count)
{
    for (size_t i = 1; i <= count; i++)
        cudaStreamBeginCapture((void *)(0x100 * i), 0);
}

static void texts(size_t count)
{
    char text[5001];
    memset(text, 't', 5000);
    text[5000] = '\0';
    for (size_t i = 0; i < count; i++)
        gpuprof_mark(text);
}

/* Open before the recording begins. */
static void ranges(size_t count)
{
    for (size_t i = 0; i < count; i++)
        gpuprof_range_push("open");
}

/*
 * Before the recording begins: an OS call and a tick of gpuprof's first timer, which is the main
 * thread's, `count` times; then an object is unloaded, so that addresses may mean something else.
 */
static void early(size_t count)
{
    const struct itimerspec past = {.it_value.tv_nsec = 1};
    for (size_t i = 0; i < count; i++) {
        fsync(-1);
        syscall(SYS_timer_settime, 0, TIMER_ABSTIME, &past, NULL);
    }
    void *object = dlopen("libm.so.6", RTLD_NOW);
    if (!object || dlclose(object) != 0)
        abort();
}

static int value; /* that calls set; below 0 they fail */

static void calls(size_t count)
{
    for (size_t i = 1; i <= count; i++)
        cudaMemset(NULL, value, i);
}

static volatile size_t returned;

static void go_down(size_t bits, unsigned depth);

__attribute__((noinline)) static void left(size_t bits, unsigned depth)
{
    go_down(bits, depth);
    returned++;
}

__attribute__((noinline)) static void right(size_t bits, unsigned depth)
{
    go_down(bits, depth);
    returned += 2;
}

__attribute__((noinline)) static void go_down(size_t bits, unsigned depth)
{
    if (depth == 0)
        cudaMemset(NULL, 0, 1);
    else if (bits & 1)
        left(bits >> 1, depth - 1);
    else
        right(bits >> 1, depth - 1);
    returned++;
}

/* Each call from another stack. */
static void stacks(size_t count)
{
    for (size_t i = 0; i < count; i++)
        go_down(i, 18);
}

static pthread_barrier_t all_called;

static void *call_and_wait(void *data)
{
    calls(2000);
    pthread_barrier_wait(&all_called);
    return data;
}

/* Threads that live at the same time. */
static void threads(size_t count)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    pthread_barrier_init(&all_called, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&thread, &attributes, call_and_wait, NULL) != 0)
            abort();
    pthread_barrier_wait(&all_called);
}

static void *call_and_end(void *data)
{
    calls(100);
    return data;
}

static void short_threads(size_t count)
{
    pthread_t thread;
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&thread, NULL, call_and_end, NULL) == 0)
            pthread_join(thread, NULL);
}

/* The most memory that the process had at a time. */
static void print_memory(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            fputs(line, stdout);
    if (status)
        fclose(status);
}

static void on_alarm(int number)
{
    (void)number;
}

/* Signals that interrupt every system call. */
static void storm(size_t count)
{
    struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval timer = {{0, 500}, {0, 500}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    calls(count);
}

static volatile sig_atomic_t handled;

static void on_alarm_call(int number)
{
    (void)number;
    handled++;
    cudaMemset(NULL, 0, 1);
}

/* Calls for so long, while signals come whose handler makes calls; prints how many there were. */
static void signals(size_t ms)
{
    struct sigaction action = {.sa_handler = on_alarm_call, .sa_flags = SA_RESTART};
    const struct itimerval timer = {{0, 100}, {0, 100}}, none = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    size_t rounds = 0;
    for (uint64_t end = now_ms() + ms; now_ms() < end; rounds++)
        calls(1000), usleep(1000);
    setitimer(ITIMER_REAL, &none, NULL);
    printf("%zu %d\n", 1 + 1000 * rounds + (size_t)handled, (int)handled);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 2 ? argv[1] : "";
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (strcmp(scenario, "storm") == 0)
        storm(count);
    if (strcmp(scenario, "ranges") == 0)
        ranges(count);
    if (strcmp(scenario, "early") == 0)
        early(count);
    cudaMemset(NULL, 0, 1);
    if (strcmp(scenario, "long-name") == 0)
        long_name(count);
    else if (strcmp(scenario, "captures") == 0)
        captures(count);
    else if (strcmp(scenario, "texts") == 0)
        texts(count);
    else if (strcmp(scenario, "calls") == 0)
        calls(count);
    else if (strcmp(scenario, "stacks") == 0)
        stacks(count);
    else if (strcmp(scenario, "short-threads") == 0)
        short_threads(count);
    else if (strcmp(scenario, "threads") == 0)
        threads(count);
    else if (strcmp(scenario, "signals") == 0)
        signals(count);
    value = strcmp(scenario, "failing") == 0 ? -1 : 0;
    if (value || strcmp(scenario, "slowly") == 0)
        for (size_t i = 0; i < count; i++)
            calls(100), usleep(10000);
    if (argc > 3 && strcmp(argv[3], "memory") == 0)
        print_memory();
    return 3;
}

#endif
