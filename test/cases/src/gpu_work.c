/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with work for the GPU, step by step: gpu_work STEP... Nothing here knows of CUPTI. Each
 * step prints one line, so that the output with and without gpuprof can be compared.
 */
#include <assert.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cupti_work.h"
#include "range/gpuprof.h"

enum { WAITS_MS = 300, HEAP_NOISE = 80000, GRAPH_LAUNCHES = 2000 };
enum { THREADS = 8, THREAD_ROUNDS = 40, SHORT_LIVED = 64, CHURN_MS = 400 };
enum { BUSY_LAUNCHES = 1500, BUSY_AHEAD = 4, HOST_FUNCTIONS = 5 };
enum {
    STOP_US = 100000,
    PAUSES = 50,
    PAUSE_US = 1000,
    LONG_PAUSE_US = 1100000,
    PAUSED_THREADS = 3,
    CAPTURES = 500,
    STARTS = 80
};

static volatile sig_atomic_t signals;
static _Atomic int threads_end;
static sigjmp_buf back;

static void query(void)
{
    CUdevice device;
    int count, version;
    CUcontext context;
    cuDriverGetVersion(&version);
    cuDeviceGetCount(&count);
    cuDeviceGet(&device, 0);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
}

static void *busy(void *data)
{
    cudaStream_t stream;
    void *memory;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&memory, WORK_BYTES);
    for (unsigned i = 0; i < THREAD_ROUNDS; i++) {
        launch(i % 2 ? gemm : adam, 1 + i, 32, (size_t)(uintptr_t)data, stream);
        cudaMemsetAsync(memory, (int)i, 1 + i, stream);
        cudaMemcpyAsync(memory, &i, sizeof i, cudaMemcpyHostToDevice, stream);
        if (i % 8 == 0)
            cudaStreamSynchronize(stream);
    }
    cudaStreamSynchronize(stream);
    cudaFree(memory);
    cudaStreamDestroy(stream);
    return NULL;
}

static void threads(void)
{
    pthread_t ids[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&ids[i], NULL, busy, (void *)i);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
}

static void *one_launch(void *unused)
{
    launch(gemm, 1, 32, 0, NULL);
    return unused;
}

/* Threads that end at once, while others are in callbacks. */
static void short_lived(void)
{
    pthread_t ids[SHORT_LIVED];
    for (unsigned i = 0; i < SHORT_LIVED; i++)
        pthread_create(&ids[i], NULL, one_launch, NULL);
    for (unsigned i = 0; i < SHORT_LIVED; i++)
        pthread_join(ids[i], NULL);
}

static void *launch_on(void *unused)
{
    for (;;)
        launch(gemm, 1, 32, 0, NULL);
    return unused;
}

/* The end of the process comes in the middle of the others' calls. */
static void churn(void)
{
    pthread_t id;
    for (unsigned i = 0; i < 3; i++)
        pthread_create(&id, NULL, launch_on, NULL);
    usleep(CHURN_MS * 1000);
}

/* The device always has something to do, and never much. */
static void keep_busy(void)
{
    cudaEvent_t events[BUSY_AHEAD];
    for (unsigned i = 0; i < BUSY_AHEAD; i++)
        cudaEventCreate(&events[i]);
    for (unsigned i = 0; i < BUSY_LAUNCHES; i++) {
        if (i >= BUSY_AHEAD)
            cudaEventSynchronize(events[i % BUSY_AHEAD]);
        launch(gemm, 1 + i, 32, 0, NULL);
        cudaEventRecord(events[i % BUSY_AHEAD], NULL);
    }
}

static void host_function(void *unused)
{
    (void)unused;
}

static void host_functions(void)
{
    CUstream stream;
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; i < HOST_FUNCTIONS; i++) {
        cudaLaunchHostFunc(NULL, host_function, NULL);
        cuLaunchHostFunc(stream, host_function, NULL);
    }
    cuStreamSynchronize(stream);
}

static void *launch_to_end(void *unused)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    while (!threads_end)
        launch(gemm, 1, 32, 0, stream);
    cudaStreamSynchronize(stream);
    return unused;
}

/* The recording stops and goes on while others launch. */
static void pauses(void)
{
    pthread_t ids[PAUSED_THREADS];
    for (unsigned i = 0; i < PAUSED_THREADS; i++)
        pthread_create(&ids[i], NULL, launch_to_end, NULL);
    for (unsigned i = 0; i < PAUSES; i++) {
        usleep(PAUSE_US);
        gpuprof_stop();
        usleep(PAUSE_US);
        gpuprof_start();
    }
    threads_end = 1;
    for (unsigned i = 0; i < PAUSED_THREADS; i++)
        pthread_join(ids[i], NULL);
}

/* The same once, for so long that callbacks are off meanwhile. */
static void long_pause(void)
{
    pthread_t ids[PAUSED_THREADS];
    for (unsigned i = 0; i < PAUSED_THREADS; i++)
        pthread_create(&ids[i], NULL, launch_to_end, NULL);
    usleep(20000);
    gpuprof_stop();
    usleep(LONG_PAUSE_US);
    gpuprof_start();
    usleep(20000);
    threads_end = 1;
    for (unsigned i = 0; i < PAUSED_THREADS; i++)
        pthread_join(ids[i], NULL);
}

/* While another thread's first launch starts CUPTI. */
static void stop_early(void)
{
    pthread_t id;
    pthread_create(&id, NULL, one_launch, NULL);
    usleep(STOP_US);
    gpuprof_stop();
    pthread_join(id, NULL);
}

static void in_child(void (*body)(void), int status)
{
    int ended = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        body();
        exit(status);
    }
    waitpid(pid, &ended, 0);
    printf("child %d\n", WEXITSTATUS(ended));
}

static void fork_calls(void)
{
    void *memory = NULL;
    printf("in child %d\n", cudaMalloc(&memory, 64));
}

static void alarm_in(unsigned ms, void (*handler)(int))
{
    struct sigaction action;
    struct itimerval timer = {.it_value = {.tv_usec = ms * 1000}};
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void call_in_handler(int number)
{
    signals += number == SIGALRM && cudaEventQuery(NULL) != cudaSuccess;
    launch(adam, 77, 32, 0, NULL);
}

static void jump_in_handler(int number)
{
    siglongjmp(back, number);
}

/* Kernels take SIMCUDA_KERNEL_NS: the signal comes while the call waits. */
static void interrupted(void)
{
    launch(gemm, 5, 32, 0, NULL);
    alarm_in(20, call_in_handler);
    cudaDeviceSynchronize();
    launch(gemm, 6, 32, 0, NULL);
}

static void left(void)
{
    launch(gemm, 5, 32, 0, NULL);
    alarm_in(20, jump_in_handler);
    if (!sigsetjmp(back, 1))
        cudaDeviceSynchronize();
    launch(gemm, 6, 32, 0, NULL);
    cudaDeviceSynchronize();
    launch(gemm, 7, 32, 0, NULL);
}

static void destroy_context(void)
{
    CUcontext context, before;
    CUdeviceptr memory;
    cuCtxGetCurrent(&before);
#if CUDA_VERSION >= 13000
    cuCtxCreate(&context, NULL, 0, 0);
#else
    cuCtxCreate(&context, 0, 0);
#endif
    cuMemAlloc(&memory, 4096);
    cuMemsetD8(memory, 3, 4096);
    cuCtxSynchronize();
    cuCtxDestroy(context);
    cuCtxSetCurrent(before);
}

/* A capture that goes to more streams, by more events, than there is room for at first. */
static void wide_capture(void)
{
    enum { STREAMS = 300 };
    static cudaStream_t streams[STREAMS + 1];
    cudaEvent_t event;
    cudaGraph_t graph;
    for (unsigned i = 0; i <= STREAMS; i++)
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal);
    for (unsigned i = 1; i <= STREAMS; i++) {
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        cudaEventRecord(event, streams[0]);
        cudaStreamWaitEvent(streams[i], event, 0);
        launch(gemm, i, 32, 0, streams[i]);
    }
    for (unsigned i = 1; i <= STREAMS; i++) {
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        cudaEventRecord(event, streams[i]);
        cudaStreamWaitEvent(streams[0], event, 0);
    }
    cudaStreamEndCapture(streams[0], &graph);
    launch(adam, 1, 32, 0, streams[STREAMS]); /* is not captured any more */
    cudaStreamSynchronize(streams[STREAMS]);
}

/* One graph twice in another, which is launched often. */
static void child_graphs(void)
{
    cudaStream_t stream;
    cudaGraph_t child, graph;
    cudaGraphNode_t first, second;
    cudaGraphExec_t exec;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    launch(gemm, 11, 32, 0, stream);
    launch(adam, 12, 32, 0, stream);
    cudaStreamEndCapture(stream, &child);
    cudaGraphCreate(&graph, 0);
    cudaGraphAddChildGraphNode(&first, graph, NULL, 0, child);
    cudaGraphAddChildGraphNode(&second, graph, &first, 1, child);
    cudaGraphInstantiateWithFlags(&exec, graph, 0);
    for (unsigned i = 0; i < GRAPH_LAUNCHES; i++)
        cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
}

/* A graph of copies and a fill, often, and as many copies beside it. */
static void copies_graph(void)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    char host[64];
    char *memory;
    cudaMalloc((void **)&memory, WORK_BYTES);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaMemcpyAsync(memory, memory + 4096, 4096, cudaMemcpyDeviceToDevice, stream);
    cudaMemsetAsync(memory, 5, 64, stream);
    cudaMemcpyAsync(memory + 64, memory + 8192, 64, cudaMemcpyDeviceToDevice, stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiateWithFlags(&exec, graph, 0);
    for (unsigned i = 0; i < 30; i++) {
        cudaGraphLaunch(exec, stream);
        cudaMemcpyAsync(memory, host, sizeof host, cudaMemcpyHostToDevice, stream);
        cudaMemsetAsync(memory, 0, 0, stream);
        launch(gemm, 1, 32, 0, stream);
    }
}

static void allocate(void)
{
    for (size_t i = 1; i <= 10; i++) {
        void *memory = NULL;
        cudaMalloc(&memory, i << 10);
        cudaFree(memory);
    }
}

/* A thread waits for the device from here ... */
static volatile int waits, wait_ends;
static pthread_t waiter;

static void wait_for_end(void *unused)
{
    (void)unused;
    while (!wait_ends)
        usleep(1000);
}

static void *wait_for_device(void *stream)
{
    cudaLaunchHostFunc(stream, wait_for_end, NULL);
    waits = 1;
    cudaStreamSynchronize(stream);
    return NULL;
}

static void wait_begin(void)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    pthread_create(&waiter, NULL, wait_for_device, stream);
    while (!waits)
        usleep(1000);
    usleep(200000);
}

/* ... to here. */
static void wait_end(void)
{
    wait_ends = 1;
    pthread_join(waiter, NULL);
}

/* Longer than gpuprof keeps CUPTI's callbacks on while it is stopped. */
static void rest(void)
{
    usleep(1150000);
}

static cudaStream_t captured;

static void capture_begin(void)
{
    cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking);
    cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed);
}

static void capture_end(void)
{
    cudaGraph_t graph;
    cudaStreamEndCapture(captured, &graph);
}

static _Atomic unsigned turns_left;

static void *capture_again(void *unused)
{
    for (; turns_left; turns_left--) {
        capture_begin();
        usleep(1); /* the others have the lock for a while */
        capture_end();
        cudaStreamDestroy(captured);
        usleep(1);
    }
    return unused;
}

static void *start_again(void *unused)
{
    for (; turns_left; turns_left--) {
        gpuprof_stop();
        usleep(1);
        gpuprof_start();
        usleep(1);
    }
    return unused;
}

/* Records of an event, while another thread does something again and again, and one after it. */
static void record_beside(void *(*other)(void *), unsigned turns)
{
    pthread_t id;
    cudaEvent_t event;
    cudaEventCreate(&event);
    turns_left = turns;
    pthread_create(&id, NULL, other, NULL);
    while (turns_left)
        cudaEventRecord(event, NULL);
    cudaEventRecord(event, NULL);
    pthread_join(id, NULL);
}

static void beside_captures(void)
{
    record_beside(capture_again, CAPTURES);
}

static void beside_starts(void)
{
    record_beside(start_again, STARTS);
}

static void capture_launch(void)
{
    launch(gemm, 11, 32, 0, captured);
}

/* Did it grow since the last time? */
static void heap(void)
{
    static size_t before;
    size_t now = mallinfo2().uordblks;
    printf("grown %d\n", before && now > before + HEAP_NOISE);
    before = now;
}

static void *after_main(void *unused)
{
    usleep(50000);
    cupti_work_launches();
    cudaDeviceSynchronize();
    printf("thread\n");
    exit(unused ? 4 : 3); /* the driver's threads, and CUPTI's, do not end by themselves */
}

static void leave_main(void)
{
    pthread_t id;
    pthread_create(&id, NULL, after_main, NULL);
    pthread_exit(NULL);
}

/* As Python does at its end, when nobody has caught KeyboardInterrupt. */
static void interrupt_itself(void)
{
    signal(SIGINT, SIG_DFL);
    kill(getpid(), SIGINT);
}

static void fail_assertion(void)
{
    assert(threads_end);
}

/* As an uncaught C++ exception does. */
static void terminate(void)
{
    void (*end)(void);
    *(void **)&end = dlsym(dlopen("libstdc++.so.6", RTLD_NOW), "_ZSt9terminatev");
    end();
}

static void abort_in_handler(int number)
{
    launch(gemm, 88, 32, 0, NULL);
    (void)number;
    abort();
}

/* A watchdog, while the thread waits. */
static void watchdog(void)
{
    launch(gemm, 5, 32, 0, NULL);
    alarm_in(20, abort_in_handler);
    cudaDeviceSynchronize();
}

static void jump_out_of_abort(int number)
{
    siglongjmp(back, number);
}

/* Signals that end nothing: of another process, blocked, with a handler; abort() is left. */
static void harmless(void)
{
    sigset_t term, old;
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, &old);
    pthread_kill(pthread_self(), SIGTERM);
    sigwait(&term, &(int){0});
    for (int i = 0; i < 200; i++) { /* what a program tells a thread of its own by it */
        pthread_kill(pthread_self(), SIGTERM);
        sigwait(&term, &(int){0});
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    raise(SIGCHLD);
    signal(SIGABRT, jump_out_of_abort);
    launch(adam, 99, 32, 0, NULL);
    if (!sigsetjmp(back, 1))
        abort();
    signal(SIGABRT, SIG_DFL);
}

static void raise_term(void)
{
    raise(SIGTERM);
}

static void kill_group(void)
{
    setpgid(0, 0);
    kill(0, SIGTERM);
}

static void queue_quit(void)
{
    sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 1});
}

static void thread_segv(void)
{
    pthread_kill(pthread_self(), SIGSEGV);
}

static void often_wait(void)
{
    for (clock_t end = clock() + WAITS_MS * CLOCKS_PER_SEC / 1000; clock() < end;)
        cudaDeviceSynchronize();
}

static const struct {
    const char *name;
    void (*body)(void);
} steps[] = {
    {"abort", abort},
    {"assert", fail_assertion},
    {"terminate", terminate},
    {"interrupt", interrupt_itself},
    {"raise", raise_term},
    {"group", kill_group},
    {"queue", queue_quit},
    {"thread", thread_segv},
    {"watchdog", watchdog},
    {"harmless", harmless},
    {"often-wait", often_wait},
    {"init", cupti_work_init},
    {"query", query},
    {"work", cupti_work_all},
    {"graph", cupti_work_graph},
    {"wide-capture", wide_capture},
    {"child-graphs", child_graphs},
    {"launches", cupti_work_launches},
    {"launch", cupti_work_launch},
    {"sync", cupti_work_sync},
    {"threads", threads},
    {"short-lived", short_lived},
    {"churn", churn},
    {"busy", keep_busy},
    {"host-functions", host_functions},
    {"pauses", pauses},
    {"long-pause", long_pause},
    {"stop-early", stop_early},
    {"interrupted", interrupted},
    {"left", left},
    {"destroy", destroy_context},
    {"leave-main", leave_main},
    {"heap", heap},
    {"copies-graph", copies_graph},
    {"allocate", allocate},
    {"capture-begin", capture_begin},
    {"capture-launch", capture_launch},
    {"capture-end", capture_end},
    {"wait-begin", wait_begin},
    {"wait-end", wait_end},
    {"rest", rest},
    {"beside-captures", beside_captures},
    {"beside-starts", beside_starts},
    {"stop", gpuprof_stop},
    {"start", gpuprof_start},
};

static bool step(const char *name)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (strcmp(name, steps[i].name) == 0) {
            steps[i].body();
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        unsigned ms = (unsigned)strtoul(name, NULL, 10);
        if (ms)
            usleep(ms * 1000);
        else if (strcmp(name, "reset") == 0)
            cudaDeviceReset();
        else if (strcmp(name, "fork") == 0)
            in_child(fork_calls, 7);
        else if (strcmp(name, "fork-work") == 0)
            in_child(cupti_work_all, 7);
        else if (strcmp(name, "fork-start") == 0)
            in_child(gpuprof_start, 7);
        else if (strcmp(name, "exec") == 0)
            execv("/proc/self/exe", (char *[]){argv[0], "work", NULL});
        else if (strcmp(name, "kill") == 0)
            syscall(SYS_kill, getpid(), SIGKILL);
        else if (strcmp(name, "_exit") == 0)
            _exit(3);
        else if (strcmp(name, "quick_exit") == 0)
            quick_exit(3);
        else if (!step(name))
            return 9;
        printf("%s %d\n", name, cudaGetLastError());
    }
    return 3;
}
