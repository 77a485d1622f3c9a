/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcudart.so.12 of a few functions that do nothing but what a test hangs into them: the program
 * sets tiny_during, which runs inside every call, and may jump, throw, block, fork or call back.
 * Each call that arrives is a line "pid tid symbol argument" in the file named by TINY_LOG.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tiny_cudart.h"

void (*tiny_during)(const char *symbol, uint64_t argument);

/* The file is opened anew each time: the tests close descriptors as they like. */
static void note(const char *symbol, uint64_t argument)
{
    const char *path = getenv("TINY_LOG");
    char line[100];
    int saved = errno;
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        int length = snprintf(line, sizeof line, "%ld %ld %s %llu\n", (long)syscall(SYS_getpid),
                              (long)syscall(SYS_gettid), symbol, (unsigned long long)argument);
        if (write(fd, line, (size_t)length) != length)
            abort();
        close(fd);
    }
    errno = saved;
    if (tiny_during)
        tiny_during(symbol, argument);
}

int cudaMalloc(void **memory, size_t bytes)
{
    note("cudaMalloc", bytes);
    if (memory)
        *memory = (void *)(uintptr_t)0x10000;
    return memory ? 0 : 1;
}

int cudaFree(void *memory)
{
    note("cudaFree", (uintptr_t)memory);
    return 0;
}

int cudaMemset(void *memory, int value, size_t bytes)
{
    (void)memory;
    note("cudaMemset", bytes);
    return value < 0 ? 1 : 0;
}

int cudaStreamSynchronize(void *stream)
{
    note("cudaStreamSynchronize", (uintptr_t)stream);
    return 0;
}

int cudaDeviceSynchronize(void)
{
    note("cudaDeviceSynchronize", 0);
    return 0;
}

int cudaStreamBeginCapture(void *stream, int mode)
{
    (void)mode;
    note("cudaStreamBeginCapture", (uintptr_t)stream);
    return 0;
}

int cudaLaunchKernelExC(const void *config, const void *function, void **arguments)
{
    (void)config, (void)arguments;
    note("cudaLaunchKernelExC", (uintptr_t)function);
    return 0;
}

int cudaLaunchKernel(const void *function, struct tiny_dim3 grid, struct tiny_dim3 block,
                     void **arguments, size_t shared, void *stream)
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared;
    note("cudaLaunchKernel", (uintptr_t)stream);
    return 0;
}

/* Not recorded. */
void __cudaRegisterFunction(void **module, const char *function, char *device_function,
                            const char *name, int limit, void *thread, void *block,
                            void *block_size, void *grid_size, int *warp)
{
    (void)module, (void)function, (void)device_function, (void)name, (void)limit, (void)thread;
    (void)block, (void)block_size, (void)grid_size, (void)warp;
}

int cudaGetDeviceCount(int *count)
{
    *count = 1;
    return 0;
}
