/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_work WORD... - gives the device work, as the words say, in their order:
 *   run=MS    launches and waits for it, for so long
 *   graphs=MS the same with launches of a graph of three kernels
 *   begin=NAME, end   a range, of which it prints from when to when it was (CLOCK_MONOTONIC)
 *   step      gpuprof_step(), and prints when that was
 *   idle=MS   nothing, for so long
 *   count     prints how many devices there are, and what the call that says so answers
 *   device=N  the next ones on that device
 *   get=MIB   gets so much memory
 *   stop, start   gpuprof_stop() and gpuprof_start()
 *   patience=N   the next children may take so many seconds (20)
 *   forks=N   so many children, each of which asks NVML itself, as PyTorch's workers do
 *   nvml      starts NVML and asks it for the count of devices, now and at the end
 *   shutdown  shuts NVML down twice as often as it was started
 *   exit      _exit(3)
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels.h"
#include "range/gpuprof.h"

#define KERNELS(X) X(heat, "_Z4heatPfi")
KERNELS_DEFINE(KERNELS)

static unsigned long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec;
}

static void run(int ms)
{
    for (unsigned long long end = now_ns() + ms * 1000000ull; now_ns() < end;) {
        launch((void (*)(void))heat, 1, 1, 0, NULL);
        cudaDeviceSynchronize();
    }
}

static void run_graphs(int ms)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < 3; i++)
        launch((void (*)(void))heat, 1, 1, 0, stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    for (unsigned long long end = now_ns() + ms * 1000000ull; now_ns() < end;) {
        cudaGraphLaunch(exec, stream);
        cudaStreamSynchronize(stream);
    }
}

static void range(const char *name)
{
    static unsigned long long begin_ns;
    static const char *open;
    if (name) {
        gpuprof_range_push(open = name);
        begin_ns = now_ns();
    } else {
        printf("%s %llu %llu\n", open, begin_ns, now_ns());
        gpuprof_range_pop();
    }
}

static void step(void)
{
    static uint64_t number;
    gpuprof_step(number++);
    printf("step %llu\n", now_ns());
}

static int (*symbol(const char *name))()
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    return (int (*)())(size_t)dlsym(library, name);
}

/* What a call of its own answers: 0, all is well. */
static int ask_nvml(void)
{
    unsigned count = 0, mhz;
    void *device;
    int result = symbol("nvmlInit_v2")();
    result = result ? result : symbol("nvmlDeviceGetCount_v2")(&count);
    result = result ? result : symbol("nvmlDeviceGetHandleByIndex_v2")(0, &device);
    result = result ? result : symbol("nvmlDeviceGetClockInfo")(device, 1, &mhz);
    return result ? result : symbol("nvmlShutdown")();
}

static unsigned patience = 20;

static void fork_children(int count)
{
    for (int i = 0; i < count; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(patience); /* a lock that nobody gives back */
            _exit(ask_nvml());
        }
        if (waitpid(child, &status, 0) < 0 || status != 0) {
            printf("child %d: status %d\n", i, status);
            exit(1);
        }
    }
}

static void print_count(void)
{
    int count = -1, result = cudaGetDeviceCount(&count);
    printf("%d %d\n", count, result);
}

static void obey(const char *word)
{
    const char *equals = strchr(word, '=');
    int number = equals ? atoi(equals + 1) : 0;
    void *memory;
    if (strncmp(word, "run=", 4) == 0)
        run(number);
    else if (strncmp(word, "graphs=", 7) == 0)
        run_graphs(number);
    else if (strncmp(word, "begin=", 6) == 0)
        range(equals + 1);
    else if (strcmp(word, "end") == 0)
        range(NULL);
    else if (strcmp(word, "step") == 0)
        step();
    else if (strncmp(word, "idle=", 5) == 0)
        usleep((useconds_t)number * 1000);
    else if (strcmp(word, "count") == 0)
        print_count();
    else if (strncmp(word, "device=", 7) == 0)
        cudaSetDevice(number);
    else if (strncmp(word, "get=", 4) == 0)
        cudaMalloc(&memory, (size_t)number << 20);
    else if (strncmp(word, "forks=", 6) == 0)
        fork_children(number);
    else if (strncmp(word, "patience=", 9) == 0)
        patience = (unsigned)number;
    else if (strcmp(word, "stop") == 0)
        gpuprof_stop();
    else if (strcmp(word, "start") == 0)
        gpuprof_start();
    else if (strcmp(word, "nvml") == 0)
        printf("nvml %d\n", ask_nvml());
    else if (strcmp(word, "shutdown") == 0)
        symbol("nvmlShutdown")();
    else if (strcmp(word, "exit") == 0)
        _exit(3);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        obey(argv[i]);
    return 0;
}
