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

#include "gpuprof.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tiny_cudart.h"

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

static void calls(size_t count)
{
    for (size_t i = 1; i <= count; i++)
        cudaMemset(NULL, 0, i);
}

/* By one of two ways at each depth: 2^depth stacks. */
__attribute__((noinline)) static void branch(unsigned depth, size_t way)
{
    if (depth == 0)
        cudaMemset(NULL, 0, way);
    else if (way >> (depth - 1) & 1) {
        branch(depth - 1, way);
        __asm__ volatile("nop"); /* so that the two calls are not made one */
    } else {
        branch(depth - 1, way);
    }
    __asm__ volatile("" ::: "memory"); /* what comes before it is no tail call */
}

static void stacks(size_t count)
{
    for (size_t i = 0; i < count; i++)
        branch(17, i);
}

static void on_signal(int number)
{
    cudaMemset(NULL, 0, (size_t)number);
}

static void signals(size_t count)
{
    signal(SIGUSR1, on_signal);
    for (size_t i = 0; i < count; i++)
        raise(SIGUSR1);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 2 ? argv[1] : "";
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (strcmp(scenario, "ranges") == 0)
        ranges(count);
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
    else if (strcmp(scenario, "signals") == 0)
        signals(count);
    else if (strcmp(scenario, "slowly") == 0)
        for (size_t i = 0; i < count; i++)
            calls(100), usleep(10000);
    return 3;
}

#endif
